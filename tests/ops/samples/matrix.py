"""Products: flattening, transposing, vectors, batches."""

from ..sample import LATER, Sample, f32, f64, positive

MATMULS = [
    ((2, 3), (3, 4), {}),
    ((3, 2), (3, 4), {"transpose_X": True}),
    ((2, 3), (4, 3), {"transpose_Y": True, "alpha": 0.125}),
    ((3, 2), (4, 3), {"transpose_X": True, "transpose_Y": True}),
    ((3,), (3,), {}),
    ((3,), (3, 4), {}),
    ((2, 3), (3,), {"alpha": 2.0}),
    ((3,), (4, 3), {"transpose_Y": True}),
    ((5, 2, 3), (5, 3, 4), {}),
    ((5, 2, 3), (3, 4), {}),
    ((2, 3), (5, 3, 4), {}),
    ((5, 2, 3), (3,), {}),
    ((3,), (5, 3, 4), {}),
    ((2, 3, 4, 5), (2, 3, 4, 5), {"transpose_Y": True, "alpha": 0.5}),
    ((2, 3, 5, 4), (2, 3, 5, 4), {"transpose_X": True}),
    ((2, 3, 4, 5), (5, 2), {}),
    ((2, 2, 3, 4), (4, 4, 2), {}),  # as many matrices, in other dimensions
    ((1, 2, 3), (1, 3, 4), {}),
    # a transposed vector keeps its dimension
    ((4,), (3,), {"transpose_X": True, "transpose_Y": True}),
    ((4,), (1, 3), {"transpose_X": True}),
    ((2, 4, 1), (3,), {"transpose_Y": True}),
]
MULS = [
    ((2, 3), (3, 4), {}),
    ((2, 3, 4), (12, 5), {}),
    ((2, 3, 4), (4, 5), {"x_num_col_dims": 2}),
    ((2, 3, 4), (2, 6, 3), {"x_num_col_dims": 1, "y_num_col_dims": 2}),
    ((2, 3, 2, 2), (4, 3, 2), {"x_num_col_dims": 2}),
]


def binary(op, x, y, make=f32, skip=None, **attrs):
    return Sample(
        op, {"X": make(*x), "Y": make(*y)}, attrs, outputs=["Out"], grad=["X", "Y"], skip=skip
    )


def bilinear(**extra):
    inputs = dict({"X": f32(3, 2), "Y": f32(3, 4), "Weight": f32(5, 2, 4)}, **extra)
    return Sample(
        "bilinear_tensor_product", inputs, outputs=["Out"], grad=["X", "Y", "Weight", *extra]
    )


def second():
    inputs = {"X": f32(2, 3, 2), "Y": f32(6, 4), "Out@GRAD": f32(2, 4)}
    return Sample(
        "mul_grad",
        inputs,
        outputs=["X@GRAD", "Y@GRAD"],
        grad=["X", "Y", "Out@GRAD"],
        paddle=False,
        note="the recorder knows ops with a proto only",
    )


def addmm(x, y, z, skip=None, **attrs):
    return Sample(
        "addmm",
        {"Input": f32(*z), "X": f32(*x), "Y": f32(*y)},
        attrs,
        outputs=["Out"],
        grad=["Input", "X", "Y"],
        skip=skip,
    )


def trace(*shape, **attrs):
    return Sample("trace", {"Input": f32(*shape)}, attrs, outputs=["Out"], grad=["Input"])


SAMPLES = [binary("matmul", x, y, **attrs) for x, y, attrs in MATMULS]
SAMPLES += [binary("matmul", (2, 3), (3, 4), make=f64)]
SAMPLES += [binary("mul", x, y, **attrs) for x, y, attrs in MULS]
SAMPLES += [second()]
SAMPLES += [
    binary("bmm", (4, 2, 3), (4, 3, 5)),
    binary("dot", (5,), (5,)),
    binary("dot", (3, 4), (3, 4)),
    addmm((2, 3), (3, 4), (2, 4)),
    addmm((2, 3), (3, 4), (2, 4), Alpha=0.5, Beta=-2.0),
    addmm((2, 3), (3, 4), (1, 4), Alpha=2.0, skip={"unknown": "Input's one row is for all of X"}),
    binary("kron", (2, 3), (3, 2)),
    binary("kron", (3,), (2, 2)),
    binary("kron", (2, 1, 2), (3, 2)),
    binary("cross", (2, 3, 3), (2, 3, 3)),
    binary("cross", (2, 3, 3), (2, 3, 3), dim=2),
    binary("cross", (3, 4), (3, 4), dim=-2, skip={"unknown": "dimension 0 must be 3"}),
    bilinear(),
    bilinear(Bias=f32(1, 5)),
    trace(3, 4),
    trace(4, 3, 5),
    trace(3, 4, 2, offset=1, dim1=0, dim2=1),
    trace(4, 3, offset=-1),
    binary("conv_shift", (2, 7), (2, 3)),
    binary("conv_shift", (3, 5), (3, 5), make=positive),
]

for _x, _y, _attrs in (
    ((2, 3), (3, 4), {}),
    ((2, 1, 3, 4), (5, 4, 2), {}),
    ((2, 4, 3), (2, 5, 4), {"trans_x": True, "trans_y": True}),
    ((2, 3, 4), (4,), {}),
    ((4,), (4,), {}),
    ((4,), (4, 3), {}),
    ((3,), (4, 3), {"trans_x": True, "trans_y": True}),
    ((4,), (2, 4, 3), {}),
    ((3, 2, 4), (1, 4, 5), {}),
):
    _lost = _x == (3,) or len(_x) - len(_y) == 1 and len(_y) == 3
    SAMPLES.append(
        Sample(
            "matmul_v2",
            {"X": f32(*_x), "Y": f32(*_y)},
            _attrs,
            ["Out"],
            grad=["X", "Y"],
            paddle=False if _lost else LATER,
            note="3.3.1 fails in this gradient" if _lost else "",
        )
    )

HEADS = [
    ((2, 4), (4, 6), {}),
    ((3, 2, 4), (3, 2, 6), {"alpha": 0.5}),
    ((2, 4, 3), (2, 5, 4), {"transpose_X": True, "transpose_Y": True}),
    ((2, 4), (4,), {}),
    ((4,), (2, 6), {}),
]
for _x, _y, _attrs in HEADS:
    _attrs = dict(_attrs, head_number=2)
    SAMPLES.append(Sample("matmul", {"X": f32(*_x), "Y": f32(*_y)}, _attrs, ["Out"]))
    SAMPLES.append(
        Sample(
            "matmul",
            {"X": f32(*_x), "Y": f32(*_y)},
            _attrs,
            ["Out"],
            grad=["X", "Y"],
            paddle=False,
            note="1.8.5's gradient ignores head_number and reads other memory",
        )
    )
