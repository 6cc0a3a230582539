"""Elements moved about."""

from ..sample import Sample, f32, f64, ints


def one(op, x, outputs=("Out",), grad=True, slot="X", **attrs):
    return Sample(op, {slot: x}, attrs, outputs=list(outputs), grad=[slot] if grad else None)


def turns():
    yield one("reverse", f32(2, 3), axis=[0])
    yield one("reverse", f32(2, 3, 2), axis=[0, 2])
    yield one("reverse", f32(2, 3), axis=[-1])
    yield one("reverse", ints(4, high=9), grad=False, axis=[0])
    for dims in ([0], [0, 1], [-1]):
        yield Sample(
            "flip",
            {"X": f32(2, 3)},
            {"dims": dims},
            ["Out"],
            grad=["X"],
            paddle=False,
            note="flip has a CUDA kernel only",
        )
    yield one("roll", f32(3, 4), shifts=[1], dims=[0])
    yield one("roll", f32(3, 4), shifts=[-1, 6], dims=[0, 1])
    yield one("roll", f32(3, 4), shifts=[2], dims=[-1])


def blocks():
    yield one("space_to_depth", f32(2, 4, 4, 2), blocksize=2)
    yield one("space_to_depth", f32(1, 8, 2, 4), blocksize=2)
    yield one("space_to_depth", f32(1, 9, 3, 6), blocksize=3)
    yield one("pixel_shuffle", f32(2, 8, 2, 3), upscale_factor=2)
    yield one("pixel_shuffle", f32(1, 9, 2, 2), upscale_factor=3)
    yield one("pixel_shuffle", f32(1, 3, 2, 2))
    yield one("shuffle_channel", f32(2, 4, 2, 1), group=2)
    for shape, group in (((2, 6, 2, 2), 2), ((1, 6, 2, 1), 3)):
        yield Sample(
            "shuffle_channel",
            {"X": f32(*shape)},
            {"group": group},
            ["Out"],
            grad=["X"],
            skip={"numeric": "shuffle_channel_grad shuffles once more instead of back"},
        )
    yield one("temporal_shift", f32(6, 4, 2, 2), seg_num=3)
    yield one("temporal_shift", f32(4, 7, 1, 2), seg_num=2, shift_ratio=0.3)
    yield one("temporal_shift", f32(4, 4, 1, 2), seg_num=4, shift_ratio=0.45)

    def window(x, k, s, p, d):
        return one("unfold", x, ["Y"], kernel_sizes=k, strides=s, paddings=p, dilations=d)

    yield window(f32(2, 3, 4, 5), [2, 3], [1, 1], [0, 0, 0, 0], [1, 1])
    yield window(f32(1, 2, 5, 6), [3, 2], [2, 1], [1, 0, 2, 1], [1, 2])
    yield window(f32(1, 2, 6, 6), [3, 3], [2, 2], [1, 1, 1, 1], [2, 2])


def planes():
    for lower in (True, False):
        for diagonal in (0, 1, -1):
            yield one("tril_triu", f32(3, 4), lower=lower, diagonal=diagonal)
    yield one("tril_triu", f32(2, 3, 3), lower=True, diagonal=0)
    yield one("tril_triu", ints(3, 3, high=9), grad=False, lower=False, diagonal=0)
    yield one("diag", f32(3), grad=False, slot="Diagonal")
    yield one("diag", ints(2, high=9), grad=False, slot="Diagonal")
    yield one("diag_embed", f32(2, 3), grad=False, slot="Input")
    yield one("diag_embed", f32(2, 3), grad=False, slot="Input", offset=1)
    yield one("diag_embed", f32(2, 3), grad=False, slot="Input", offset=-2)
    yield one("diag_embed", f32(2, 3), grad=False, slot="Input", offset=1, dim1=0, dim2=2)
    yield one("diag_embed", f32(2, 3), grad=False, slot="Input", offset=1, dim1=2, dim2=0)
    yield one("diag_embed", f64(3), grad=False, slot="Input", dim1=1, dim2=0, offset=-1)
    yield Sample("meshgrid", {"X": [f32(2), f32(3)]}, {}, ["Out*2"], grad=["X"])
    yield Sample("meshgrid", {"X": [f32(2), f32(1), f32(4)]}, {}, ["Out*3"], grad=["X"])


SAMPLES = [*turns(), *blocks(), *planes()]
SAMPLES += [
    Sample(
        "unfold",
        {"X": f32(1, 2, 3, 4)},
        {"kernel_sizes": [4, 4], "strides": [2, 2], "paddings": [0, 0, 0, 0], "dilations": [1, 1]},
        ["Y"],
        grad=["X"],
    )
]
