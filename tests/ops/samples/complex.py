"""Complex numbers, recorded with 3.3.1: what makes them and takes them apart, transforms, and older
ops on them.
"""

import numpy as np

from ..sample import LATER, Sample, f32


def c64(*shape):
    return f32(*shape) + 1j * f32(*shape)


def one(op, x, attrs=None, grad=True, slot="X", out="Out", **more):
    return Sample(op, {slot: x}, attrs, [out], [slot] if grad else None, paddle=LATER, **more)


def two(op, x, y, attrs=None, **more):
    return Sample(op, {"X": x, "Y": y}, attrs, ["Out"], ["X", "Y"], paddle=LATER, **more)


EDGES = np.array([0, -1, 1j, np.inf, -1 - 0j], "complex64")
PARTS = {"numeric": "differences are taken of real numbers; Paddle's gradient is recorded"}
SAMPLES = [
    two("complex", f32(2, 3), f32(3)),
    one("real", c64(3)),
    one("imag", c64(3)),
    one("conj", c64(3)),
    one("angle", c64(3)),
    one("angle", np.array([-1, 2, 0], "float32"), grad=False),
    one("angle", EDGES, grad=False),
    one("abs", EDGES[:4], grad=False),
    one("as_complex", f32(3, 2)),
    one("as_real", c64(3)),
    one("abs", c64(3)),
    one("fft_c2c", c64(2, 3), {"axes": [0, 1], "normalization": "ortho", "forward": True}),
    one("fft_c2c", c64(4), {"axes": [0], "normalization": "forward", "forward": False}),
    one(
        "fft_r2c",
        f32(2, 4),
        {"axes": [1], "normalization": "backward", "forward": True, "onesided": True},
    ),
    one(
        "fft_r2c",
        f32(2, 3),
        {"axes": [0, 1], "normalization": "forward", "forward": False, "onesided": False},
    ),
    one(
        "fft_c2r",
        c64(2, 3),
        {"axes": [1], "normalization": "backward", "forward": False, "last_dim_size": 5},
    ),
    one(
        "fft_c2r",
        c64(3),
        {"axes": [0], "normalization": "ortho", "forward": True, "last_dim_size": 4},
    ),
    one("frame", f32(2, 6), {"frame_length": 3, "hop_length": 2, "axis": -1}),
    one("frame", f32(5, 2), {"frame_length": 2, "hop_length": 1, "axis": 0}),
    one("overlap_add", f32(2, 3, 2), {"hop_length": 2, "axis": -1}),
    one("overlap_add", f32(2, 3), {"hop_length": 1, "axis": 0}),
    *(
        two(op, c64(2, 3), c64(3))
        for op in ("elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div")
    ),
    two("matmul_v2", c64(2, 3), c64(3, 2), {"trans_x": False, "trans_y": False}),
    one("reduce_sum", c64(2, 3), {"dim": [1]}),
    one("reduce_mean", c64(2, 3), {"dim": [0]}),
    *(one(op, c64(3)) for op in ("exp", "tanh", "sin", "square")),
    one("scale", c64(3), {"scale": 2.0}),
    one("concat", [c64(2), c64(1)], {"axis": 0}),
    one("cast", c64(3), {"in_dtype": 23, "out_dtype": 24}, False),
]
for _sample in SAMPLES:
    if _sample.op not in ("frame", "overlap_add"):
        _sample.skip.update(PARTS)
