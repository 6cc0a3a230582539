"""Spatial transformers, pyramids of pools, focus, centres of classes, flows between layers,
deformable convolutions.
"""

import numpy as np

from ..sample import Sample, distinct, f32, f64, ints


def grid(*shape, lo=-1.1, hi=1.1):
    return f32(*shape, 2, lo=lo, hi=hi)


def deformed(
    x,
    w,
    offset,
    mask=None,
    strides=(1, 1),
    paddings=(0, 0),
    dilations=(1, 1),
    groups=1,
    deformable=1,
    reach=1.3,
    step=1,
):
    """offset: [N, height, width] of the output"""
    n, high, wide = offset
    taps = deformable * w[2] * w[3]
    inputs = {
        "Input": f32(*x),
        "Offset": f32(n, 2 * taps, high, wide, lo=-reach, hi=reach),
        "Filter": f32(*w),
    }
    if mask:
        inputs["Mask"] = f32(n, taps, high, wide, lo=0.1, hi=1.0)
    attrs = {
        "strides": list(strides),
        "paddings": list(paddings),
        "dilations": list(dilations),
        "groups": groups,
        "deformable_groups": deformable,
        "im2col_step": step,
    }
    return Sample(
        "deformable_conv" if mask else "deformable_conv_v1",
        inputs,
        attrs,
        ["Output"],
        sorted(inputs),
        grad_tol=2e-5,
    )


def centres(n, update, label=None):
    label = ints(n, 1, high=5) if label is None else np.array(label, "int64").reshape(-1, 1)
    return Sample(
        "center_loss",
        {
            "X": f32(n, 3),
            "Label": label,
            "Centers": f32(5, 3),
            "CenterUpdateRate": np.array([0.25], "float32"),
        },
        {"cluster_num": 5, "need_update": update},
        ["CentersOut", "SampleCenterDiff", "Loss"],
        ["X"],
        of=["Loss"],
        skip=(
            {
                "numeric": (
                    "the gradient of Loss alone is taken, of SampleCenterDiff and CentersOut none"
                )
            }
            if update
            else {"numeric": "the gradient of Loss alone is taken, of SampleCenterDiff none"}
        ),
    )


def pairs(scores, labels, queries, weight=None, before=None, column=0):
    inputs = {
        "Score": np.array(scores, "float32"),
        "Label": np.array(labels, "float32").reshape(-1, 1),
        "QueryID": np.array(queries, "int64").reshape(-1, 1),
    }
    if weight is not None:
        inputs["Weight"] = np.array(weight, "float32").reshape(-1, 1)
    if before is not None:
        for which, value in zip(("Positive", "Negative", "Neutral"), before):  # noqa: B905
            inputs["Accumulate%sPair" % which] = np.array([value], "float32")
    return Sample(
        "positive_negative_pair",
        inputs,
        {"column": column},
        ["PositivePair", "NegativePair", "NeutralPair"],
    )


SAMPLES = [
    Sample(
        "affine_grid",
        {"Theta": f32(2, 2, 3)},
        {"output_shape": [2, 3, 4, 5]},
        ["Output"],
        ["Theta"],
    ),
    Sample(
        "affine_grid",
        {"Theta": f64(1, 2, 3)},
        {"output_shape": [1, 1, 2, 3]},
        ["Output"],
        ["Theta"],
    ),
    Sample(
        "affine_grid",
        {"Theta": f32(2, 2, 3), "OutputShape": np.array([2, 1, 3, 2], "int32")},
        {},
        ["Output"],
        ["Theta"],
    ),
    Sample(
        "grid_sampler", {"X": f32(2, 3, 4, 5), "Grid": grid(2, 4, 5)}, {}, ["Output"], ["X", "Grid"]
    ),
    Sample(
        "grid_sampler",
        {"X": f64(1, 2, 3, 3), "Grid": grid(1, 3, 3, lo=-0.9, hi=0.9).astype("float64")},
        {},
        ["Output"],
        ["X", "Grid"],
    ),
    Sample(
        "spp",
        {"X": distinct(2, 2, 5, 7)},
        {"pyramid_height": 2, "pooling_type": "max"},
        ["Out"],
        ["X"],
    ),
    Sample(
        "spp",
        {"X": f32(2, 2, 5, 7)},
        {"pyramid_height": 3, "pooling_type": "avg"},
        ["Out"],
        ["X"],
        skip={"numeric": "a window without pixels has the mean nan"},
    ),
    Sample(
        "spp",
        {"X": distinct(1, 3, 8, 8)},
        {"pyramid_height": 3, "pooling_type": "max"},
        ["Out"],
        ["X"],
    ),
    Sample(
        "spp", {"X": f32(1, 1, 3, 4)}, {"pyramid_height": 1, "pooling_type": "avg"}, ["Out"], ["X"]
    ),
    Sample("similarity_focus", {"X": distinct(2, 3, 4, 2)}, {"axis": 1, "indexes": [0]}, ["Out"]),
    Sample(
        "similarity_focus", {"X": distinct(2, 3, 4, 2)}, {"axis": 2, "indexes": [1, 3]}, ["Out"]
    ),
    Sample(
        "similarity_focus",
        {"X": distinct(1, 2, 3, 3, dtype="float64")},
        {"axis": 3, "indexes": [2, 0]},
        ["Out"],
    ),
    centres(6, True),
    centres(4, False),
    centres(4, True, [2, 2, 2, 0]),
    Sample("fsp", {"X": f32(2, 3, 4, 5), "Y": f32(2, 2, 4, 5)}, {}, ["Out"], ["X", "Y"]),
    Sample("fsp", {"X": f64(1, 1, 2, 2), "Y": f64(1, 4, 2, 2)}, {}, ["Out"], ["X", "Y"]),
    deformed((2, 2, 4, 5), (3, 2, 3, 3), (2, 4, 5), mask=True, paddings=(1, 1)),
    deformed(
        (2, 4, 5, 5),
        (4, 2, 2, 3),
        (2, 2, 3),
        mask=True,
        strides=(2, 1),
        groups=2,
        deformable=2,
        reach=2.5,
    ),
    deformed(
        (2, 2, 6, 5), (2, 2, 2, 2), (2, 5, 4), mask=True, paddings=(1, 1), dilations=(3, 3), step=1
    ),
    deformed((2, 2, 4, 5), (3, 2, 3, 3), (2, 4, 5), paddings=(1, 1)),
    deformed(
        (1, 4, 5, 5), (2, 2, 2, 3), (1, 2, 3), strides=(2, 1), groups=2, deformable=2, reach=2.5
    ),
    pairs([[0.5], [0.2], [0.9], [0.1], [0.4]], [1, 0, 2, 1, 0], [0, 0, 0, 1, 1]),
    pairs(
        [[0.5], [0.5], [0.9], [0.1], [0.1]],
        [1, 0, 1, 1, 0],
        [7, 7, 7, 3, 3],
        weight=[1, 2, 0.5, 1, 3],
        before=[1, 2, 3],
    ),
    pairs([[0.5, 3], [0.2, 4], [0.9, 1]], [1, 0, 2], [0, 0, 0], column=-1),
]
