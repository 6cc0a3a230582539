"""Normalisations."""

import numpy as np

from ..sample import Sample, away_from_zero, f32, positive


def batch_norm(shape, c, op="batch_norm", grad=True, x=None, saved=True, **attrs):
    inputs = {
        "X": f32(*shape) * 2 + np.float32(0.5) if x is None else x,
        "Scale": away_from_zero(c),
        "Bias": f32(c),
        "Mean": f32(c),
        "Variance": positive(c),
    }
    outputs = ["Y", "MeanOut", "VarianceOut"] + (["SavedMean", "SavedVariance"] if saved else [])
    inplace = {"MeanOut": "Mean", "VarianceOut": "Variance"}
    return Sample(
        op,
        inputs,
        attrs,
        outputs=outputs,
        grad=["X", "Scale", "Bias"] if grad else (),
        of=["Y"],
        inplace=inplace,
    )


def batch_norms():
    b = batch_norm
    yield b((4, 3, 2, 5), 3)
    yield b((4, 2, 5, 3), 3, data_layout="NHWC")
    yield b((6, 4), 4, momentum=0.7, epsilon=0.001)
    yield b((6, 4), 4, data_layout="NHWC")
    yield b((3, 4, 5), 4)
    yield b((2, 3, 2, 3, 2), 3)
    yield b((2, 2, 3, 2, 3), 3, data_layout="NHWC")
    # statistics that were given; Paddle leaves the saved ones uninitialised then
    yield b((4, 3, 2, 5), 3, is_test=True, grad=False, saved=False)
    yield b((4, 2, 5, 3), 3, is_test=True, grad=False, saved=False, data_layout="NHWC")
    yield b((4, 3, 2, 5), 3, use_global_stats=True, saved=False)
    yield b((4, 2, 5, 3), 3, use_global_stats=True, saved=False, data_layout="NHWC")
    yield b((4, 3, 2, 5), 3, is_test=True, trainable_statistics=True, grad=False)
    # large against its deviation: E[x^2] - E[x]^2 would lose every digit
    large = b((4, 3, 2, 5), 3, grad=False, x=f32(4, 3, 2, 5) + np.float32(1000))
    large.tol, large.note = (
        5e-4,
        "Paddle subtracts numbers near 1000 from each other: 4 digits are left",
    )
    yield large
    # one value a channel is passed through
    yield b((1, 3, 1, 1), 3, saved=False)
    momentum = batch_norm((4, 3, 2, 2), 3)
    momentum.inputs["MomentumTensor"] = np.array([0.3], "float32")
    yield momentum


def inplace_abn(shape, c, **attrs):
    sample = batch_norm(shape, c, op="inplace_abn", grad=False, **attrs)
    sample.inplace["Y"] = "X"
    return sample


def inplace_abn_grad(shape, c, **attrs):
    sample = batch_norm(shape, c, op="inplace_abn", **attrs)
    sample.paddle, sample.note = False, "Y must be X, whose gradient can then not be asked for"
    return sample


def layer_norm(shape, scale=True, bias=True, **attrs):
    n = int(np.prod(shape[attrs.get("begin_norm_axis", 1) :]))
    inputs = {"X": f32(*shape)}
    if scale:
        inputs["Scale"] = away_from_zero(n)
    if bias:
        inputs["Bias"] = f32(n)
    return Sample(
        "layer_norm",
        inputs,
        attrs,
        outputs=["Y", "Mean", "Variance"],
        grad=sorted(inputs),
        of=["Y"],
    )


def layer_norms():
    yield layer_norm((4, 6))
    yield layer_norm((3, 4, 5), begin_norm_axis=2)
    yield layer_norm((3, 4, 5), begin_norm_axis=1, epsilon=0.001)
    yield layer_norm((3, 4, 5), begin_norm_axis=2, scale=False)
    yield layer_norm((3, 4, 5), begin_norm_axis=2, bias=False)
    yield layer_norm((3, 8), scale=False, bias=False)


def group_norm(shape, groups, scale=True, bias=True, **attrs):
    c = shape[-1] if attrs.get("data_layout") == "NHWC" else shape[1]
    inputs = {"X": f32(*shape)}
    if scale:
        inputs["Scale"] = away_from_zero(c)
    if bias:
        inputs["Bias"] = f32(c)
    return Sample(
        "group_norm",
        inputs,
        dict(attrs, groups=groups),
        outputs=["Y", "Mean", "Variance"],
        grad=sorted(inputs),
        of=["Y"],
        paddle=len(shape) == 4,
        note="" if len(shape) == 4 else "Paddle's kernel reads 4 dimensions",
        skip={}
        if scale
        else {"numeric": "Paddle forgets the mean of the gradient if there is no Scale"},
    )


def group_norms():
    yield group_norm((2, 6, 3, 2), 3)
    yield group_norm((2, 3, 2, 6), 2, data_layout="NHWC")
    yield group_norm((2, 4, 5), 2, epsilon=0.01)
    yield group_norm((2, 6), 3)
    yield group_norm((2, 4, 3, 3), 1)
    yield group_norm((2, 4, 3, 3), 4)
    yield group_norm((2, 6, 3, 2), 3, bias=False)
    yield group_norm((2, 6, 3, 2), 3, scale=False)
    yield group_norm((2, 6, 3, 2), 3, scale=False, bias=False)


def instance_norm(shape, **attrs):
    c = shape[1]
    inputs = {"X": f32(*shape), "Scale": away_from_zero(c), "Bias": f32(c)}
    return Sample(
        "instance_norm",
        inputs,
        attrs,
        outputs=["Y", "SavedMean", "SavedVariance"],
        grad=["X", "Scale", "Bias"],
        of=["Y"],
    )


def norms():
    for shape, attrs in [
        ((3, 5), {"axis": 1}),
        ((2, 3, 4), {"axis": 1}),
        ((2, 3, 4), {"axis": -1}),
        ((2, 3, 4), {"axis": 0, "epsilon": 0.1}),
    ]:
        yield Sample(
            "norm", {"X": f32(*shape)}, attrs, outputs=["Out", "Norm"], grad=["X"], of=["Out"]
        )


def lrn(shape, **attrs):
    return Sample(
        "lrn",
        {"X": f32(*shape, lo=-3, hi=3)},
        attrs,
        outputs=["Out", "MidOut"],
        grad=["X"],
        of=["Out"],
    )


def affine(shape, c, **attrs):
    return Sample(
        "affine_channel",
        {"X": f32(*shape), "Scale": f32(c), "Bias": f32(c)},
        attrs,
        outputs=["Out"],
        grad=["X", "Scale", "Bias"],
    )


def data_norm(n, c, slot=None, shift=False, **attrs):
    inputs = {
        "X": f32(n, c),
        "BatchSize": positive(c, lo=5, hi=10),
        "BatchSum": f32(c),
        "BatchSquareSum": positive(c, lo=1, hi=10),
    }
    if slot:
        inputs["X"][1, :slot] = 0
        inputs["X"][2, slot] = 1e-8
        attrs["slot_dim"] = slot
    if shift:
        inputs.update(scale_w=f32(c), bias=f32(c))
        attrs["enable_scale_and_shift"] = True
    return Sample(
        "data_norm",
        inputs,
        attrs,
        outputs=["Y", "Means", "Scales"],
        grad=["X", "BatchSize", "BatchSum", "BatchSquareSum"]
        + (["scale_w", "bias"] if shift else []),
        of=["Y"],
        skip=dict(
            {"numeric": "the gradients of the sums are what a batch adds to them"},
            **({"unknown": "the first input is not a batch"} if shift else {}),
        ),
    )


def spectral(shape, dim=0, **attrs):
    h = shape[dim]
    w = int(np.prod(shape)) // h
    return Sample(
        "spectral_norm",
        {"Weight": f32(*shape), "U": f32(h), "V": f32(w)},
        dict(attrs, dim=dim),
        outputs=["Out"],
        grad=["Weight"],
        skip={"numeric": "Paddle multiplies by u v^T where it should project on it"},
    )


# one list after another: Python 3.8 would run the generators of a single literal after the calls
# beside them
SAMPLES = list(batch_norms()) + list(layer_norms()) + list(group_norms())
SAMPLES += [
    instance_norm((2, 3, 4, 3)),
    instance_norm((2, 3, 5), epsilon=0.001),
    instance_norm((2, 2, 2, 3, 2)),
    *list(norms()),
    lrn((2, 6, 3, 2)),
    lrn((2, 7, 2, 2), n=3, k=1.0, alpha=0.1, beta=0.5),
    lrn((2, 3, 2, 6), data_format="NHWC", alpha=0.1),
    affine((2, 3, 2, 4), 3, data_layout="NCHW"),
    affine((2, 2, 4, 3), 3, data_layout="NHWC"),
    affine((2, 3), 3),
    data_norm(4, 3),
    data_norm(5, 6, slot=2),
    data_norm(4, 3, epsilon=0.001),
    data_norm(4, 3, shift=True),
    data_norm(5, 6, slot=3, shift=True),
    inplace_abn((4, 3, 2, 5), 3),
    inplace_abn((4, 2, 5, 3), 3, data_layout="NHWC"),
    inplace_abn((4, 3, 2, 5), 3, activation="leaky_relu", alpha=0.3),
    inplace_abn((4, 3, 2, 5), 3, activation="elu", alpha=0.7),
    inplace_abn((4, 3, 2, 5), 3, activation="identity", use_global_stats=True, saved=False),
    inplace_abn((4, 3, 2, 5), 3, activation="leaky_relu", is_test=True, saved=False),
    inplace_abn_grad((4, 3, 2, 5), 3),
    inplace_abn_grad((4, 3, 2, 5), 3, activation="leaky_relu", alpha=0.3),
    inplace_abn_grad((4, 2, 5, 3), 3, activation="elu", alpha=0.7, data_layout="NHWC"),
    inplace_abn_grad((4, 3, 2, 5), 3, activation="elu", use_global_stats=True, saved=False),
    spectral((3, 5)),
    spectral((4, 2, 3), power_iters=3),
    spectral((3, 4, 2, 2), dim=1, power_iters=2, eps=1e-4),
]
