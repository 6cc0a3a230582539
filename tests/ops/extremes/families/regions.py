"""Regions of interest: beyond the map, without extent, upside down, on whole coordinates, larger
than the map; ties; nan and infinities.
"""

import numpy as np

from ..case import Extreme

BOXES = {
    "beyond": [[9, 9, 12, 11], [-9, -8, -4, -5], [-3, -3, 9, 9], [4, -2, 8, 1]],
    "empty": [[2, 2, 2, 2], [3, 3, 1, 1], [0, 0, 0, 0], [-1, -1, -1, -1]],
    "whole": [[0, 0, 3, 3], [1, 1, 4, 2], [0, 0, 5, 4], [1, 2, 2, 4]],
    "halves": [[0.5, 0.5, 2.5, 2.5], [-0.5, 1.5, 1.5, 3.5], [1.5, 0.5, 4.5, 1.5]],
}
PLANE = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3], [5, 8, 9, 7, 9], [3, 2, 3, 8, 4]], "float32")
TIES = np.array(
    [[1, 1, 0, 2, 2], [1, 1, 0, 2, 2], [-3, -3, -3, -3, -3], [0, -0.0, 0, -0.0, 0]], "float32"
)
SIZES = {"pooled_height": 2, "pooled_width": 2, "spatial_scale": 1.0}
CASES = []


def pooled(op, label, plane, rows, attrs, outputs=("Out",), channels=1, grad=("X",), **more):
    x = np.repeat(plane[None, None], channels, 1) + np.arange(channels, dtype="float32").reshape(
        1, -1, 1, 1
    )
    slot = "Input" if op == "deformable_psroi_pooling" else "X"
    inputs = dict({slot: x, "ROIs": np.array(rows, "float32")}, **more)
    return Extreme(
        label,
        op,
        inputs,
        dict(SIZES, **attrs),
        outputs,
        list(grad),
        lod={"ROIs": [[len(rows)]]},
        of=[outputs[-1] if "Output" in outputs else "Out"],
    )


for what in sorted(BOXES):
    CASES += [
        pooled("roi_align", what, PLANE, BOXES[what], {"sampling_ratio": 2}),
        pooled("roi_pool", what, PLANE, BOXES[what], {}, ("Out", "Argmax")),
        pooled("psroi_pool", what, PLANE, BOXES[what], {"output_channels": 2}, channels=8),
        pooled("prroi_pool", what, PLANE, BOXES[what], {}, grad=("X", "ROIs")),
        pooled(
            "deformable_psroi_pooling",
            what,
            PLANE,
            BOXES[what],
            {
                "no_trans": False,
                "output_dim": 1,
                "group_size": [1, 1],
                "part_size": [1, 1],
                "sample_per_part": 2,
                "trans_std": 1.0,
            },
            ("TopCount", "Output"),
            grad=("Input", "Trans"),
            Trans=np.zeros((len(BOXES[what]), 2, 1, 1), "float32"),
        ),
    ]
CASES += [
    pooled("roi_align", "adaptive " + what, PLANE, BOXES[what], {}) for what in ("beyond", "empty")
] + [
    pooled("roi_pool", "ties", TIES, BOXES["whole"], {}, ("Out", "Argmax")),
    pooled(
        "roi_pool",
        "special",
        np.where(TIES == 2, np.nan, np.where(TIES == 0, -np.inf, TIES)).astype("float32"),
        BOXES["whole"],
        {},
        ("Out", "Argmax"),
        grad=(),
    ),
    pooled(
        "roi_align",
        "infinite",
        np.where(TIES == 2, np.inf, TIES).astype("float32"),
        [[0, 0, 1, 1], [3, 0, 4, 1]],
        {"sampling_ratio": 1},
        grad=(),
    ),
]
SQUARES = {
    "whole": [[0, 0, 3, 0, 3, 3, 0, 3]],
    "flat": [[0, 1, 3, 1, 3, 1, 0, 1]],
    "point": [[1, 1, 1, 1, 1, 1, 1, 1]],
    "beyond": [[-5, -5, 9, -5, 9, 9, -5, 9]],
    "turned": [[3, 3, 0, 3, 0, 0, 3, 0]],
}
for what in sorted(SQUARES):
    attrs = {"transformed_height": 3, "transformed_width": 3, "spatial_scale": 1.0}
    CASES.append(
        Extreme(
            what,
            "roi_perspective_transform",
            {"X": PLANE[None, None], "ROIs": np.array(SQUARES[what], "float32")},
            attrs,
            ["Out", "Mask"],
            ["X"],
            lod={"ROIs": [[1]]},
            of=["Out"],
        )
    )
