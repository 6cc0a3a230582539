"""Resizing: every method, with and without aligned corners, by size and by scale."""

import numpy as np

from ..sample import Sample, f32, f64

SIZES = {"nearest_interp": ("nearest", 4), "bilinear_interp": ("bilinear", 4), "trilinear_interp": ("trilinear", 5), "bicubic_interp": ("bicubic", 4)}
LATER = "an op of Paddle 2.x"


def resized(kind, shape, **attrs):
    return Sample(kind, {"X": f32(*shape)}, attrs, ["Out"], grad=["X"], note=attrs.pop("note", ""))


def early():
    for kind, (method, rank) in SIZES.items():
        shape = (2, 2, 3, 4) if rank == 4 else (1, 2, 2, 3, 4)
        last = (shape[0], *shape[2:], 2)
        deep = {"out_d": 3} if rank == 5 else {}
        cubic = kind == "bicubic_interp"
        for corners in (True, False):
            for mode in (1,) if corners or method in ("nearest", "bicubic") else (0, 1):
                common = {"interp_method": method, "align_corners": corners, "align_mode": mode}
                yield resized(kind, shape, out_h=5, out_w=7, **deep, **common)
                yield resized(kind, shape, out_h=2, out_w=3, **deep, **common)
                if not cubic:
                    yield resized(kind, last, out_h=6, out_w=8, data_layout="NHWC", **deep, **common)
        yield resized(kind, shape, scale=2.0, interp_method=method, align_corners=False)
        yield resized(kind, shape, scale=1.5, interp_method=method, align_corners=True)
        sizes = np.array(([3] if rank == 5 else []) + [4, 6], "int32")
        given = {"interp_method": method, "align_corners": False, "out_h": 1, "out_w": 1, **({"out_d": 1} if rank == 5 else {})}
        yield Sample(kind, {"X": f32(*shape), "OutSize": sizes}, given, ["Out"], grad=["X"])
    yield Sample("nearest_interp", {"X": f64(1, 1, 2, 2)}, {"out_h": 1, "out_w": 1, "interp_method": "nearest"}, ["Out"], grad=["X"])


def later():
    for kind, rank in (("nearest", 4), ("linear", 3), ("bilinear", 4), ("trilinear", 5), ("bicubic", 4)):
        shape = (1, 2, 3, 4, 3)[:rank]
        size = {"out_w": 5, "out_h": 4, "out_d": 3}
        for attrs in ({"scale": [2.0] * (rank - 2), "align_corners": False, "align_mode": 0}, {"align_corners": True, **size}):
            yield Sample(kind + "_interp_v2", {"X": f32(*shape)}, dict(attrs, interp_method=kind), ["Out"], grad=["X"], paddle=False, note=LATER)


SAMPLES = [*early(), *later()]
