"""Pools that Paddle 3 has besides: layouts, paddings, powers, fractions with and without a kernel's
size, ties.
"""

import numpy as np

from ..sample import LATER, Sample, distinct, f32, ints, positive

TIES = {"numeric": "a maximum has no derivative at ties", "unknown": "the planes are whole"}


def norms(x, ksize, power, skip=None, **attrs):
    attrs = dict(
        {
            "strides": ksize,
            "paddings": [0, 0],
            "padding_algorithm": "EXPLICIT",
            "pooling_type": "lp",
        },
        **attrs,
    )
    return Sample(
        "lp_pool2d",
        {"x": x},
        dict(attrs, kernel_size=ksize, norm_type=power),
        ["out"],
        grad=["x"],
        paddle=LATER,
        skip=skip,
    )


def fractional(rank, x, sizes, skip=None, **attrs):
    return Sample(
        "fractional_max_pool%dd" % rank,
        {"x": x},
        dict(attrs, output_size=sizes, return_mask=True),
        ["out", "mask"],
        grad=["x"],
        of=["out"],
        paddle=LATER,
        skip=skip,
    )


SAMPLES = [
    norms(positive(1, 2, 4, 6), [2, 2], 2.0),
    norms(positive(2, 2, 5, 5), [3, 2], 3.0, strides=[2, 1]),
    norms(positive(1, 5, 4, 2), [2, 2], 1.5, data_format="NHWC"),
    norms(positive(1, 2, 5, 6), [3, 3], 2.0, strides=[2, 2], paddings=[1, 0], ceil_mode=True),
    norms(positive(1, 2, 5, 6), [3, 3], 2.0, strides=[2, 2], padding_algorithm="SAME"),
    norms(f32(1, 2, 4, 4), [2, 2], 1.0),
    norms(f32(1, 2, 4, 4), [2, 2], 2.0),
    norms(positive(1, 2, 4, 4), [2, 2], -1.0),
    norms(positive(1, 2, 4, 4), [2, 2], 2.0, global_pooling=True),
    fractional(2, distinct(2, 2, 7, 5), [3, 2], random_u=0.3),
    fractional(2, distinct(1, 2, 9, 10), [4, 7], random_u=0.71),
    fractional(2, distinct(1, 2, 9, 10), [4, 7], random_u=0.71, kernel_size=[2, 3]),
    fractional(2, distinct(1, 1, 6, 6), [6, 1], random_u=0.99),
    fractional(
        2,
        ints(1, 2, 6, 6, high=3, dtype="float32"),
        [3, 4],
        random_u=0.5,
        kernel_size=[3, 2],
        skip=TIES,
    ),
    fractional(3, distinct(1, 2, 5, 6, 4), [2, 3, 3], random_u=0.4),
    fractional(3, distinct(1, 1, 5, 6, 4), [2, 3, 3], random_u=0.9, kernel_size=[2, 2, 1]),
]
_nothing = f32(1, 1, 4, 4)
_nothing[..., :2, :2], _nothing[..., 2:, 2:], _nothing[..., 0, 3] = np.nan, -np.inf, np.inf
SAMPLES += [
    Sample(
        "fractional_max_pool2d",
        {"x": _nothing},
        {"output_size": [2, 2], "random_u": 0.1, "return_mask": True},
        ["out", "mask"],
        paddle=LATER,
    )
]
_special = f32(1, 1, 4, 6)
_special[..., :2, :2], _special[..., 2:, :2], _special[..., 0, 2], _special[..., 0, 4] = (
    0,
    -np.inf,
    np.nan,
    np.inf,
)
for _power in (2.0, 3.0, 0.5, float("inf")):
    SAMPLES += [
        Sample(
            "lp_pool2d",
            {"x": _special},
            {
                "kernel_size": [2, 2],
                "strides": [2, 2],
                "norm_type": _power,
                "pooling_type": "lp",
                "paddings": [0, 0],
                "padding_algorithm": "EXPLICIT",
            },
            ["out"],
            grad=["x"] if _power == 2 else [],
            paddle=LATER,
            skip={"numeric": "there is none at 0 and at infinities"},
        )
    ]
SAMPLES += [
    norms(distinct(1, 2, 5, 4), [3, 2], float("inf"), strides=[2, 1]),
    norms(ints(1, 1, 4, 4, high=2, dtype="float32"), [2, 2], float("inf"), skip=TIES),
]
