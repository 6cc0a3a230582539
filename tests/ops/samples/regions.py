"""Pools of regions of interest. Boxes stand away from where their bins jump, so that gradients and
rounding are compared.
"""

import numpy as np

from ..sample import Sample, distinct, f32, f64, uniform

BOXES = [
    [0.3, 0.7, 5.3, 4.2],
    [1.2, 2.3, 2.1, 3.4],
    [-1.3, 0.4, 3.6, 9.2],
    [4.1, 1.1, 4.2, 1.3],
    [2.6, 0.2, 6.9, 3.3],
]
OUTSIDE = [
    [9.3, 9.2, 12.4, 11.1],
    [-9.3, -8.2, -4.4, -5.1],
    [3.2, 3.1, 1.3, 0.4],
    [0.6, 0.6, 0.6, 0.6],
    [-0.4, -0.4, 7.4, 6.4],
]


def boxes(rows, dtype="float32"):
    return np.array(rows, dtype)


def pooled(op, x, rois, lod, attrs, outputs=("Out",), more=None, **rest):
    inputs = {"X": x, "ROIs": rois}
    inputs.update(more or {})
    return Sample(
        op,
        inputs,
        attrs,
        list(outputs),
        rest.pop("grad", ["X"]),
        lod={"ROIs": [lod]} if lod else None,
        **rest,
    )


def bins(height, width, scale=1.0, **more):
    return dict({"pooled_height": height, "pooled_width": width, "spatial_scale": scale}, **more)


def moved(
    x,
    rois,
    lod,
    trans,
    dim,
    pooled,
    group=(1, 1),
    part=None,
    samples=2,
    scale=0.5,
    std=0.1,
    no_trans=False,
):
    attrs = {
        "no_trans": no_trans,
        "spatial_scale": scale,
        "output_dim": dim,
        "group_size": list(group),
        "pooled_height": pooled[0],
        "pooled_width": pooled[1],
        "part_size": list(part or pooled),
        "sample_per_part": samples,
        "trans_std": std,
    }
    return Sample(
        "deformable_psroi_pooling",
        {"Input": x, "ROIs": rois, "Trans": trans},
        attrs,
        ["TopCount", "Output"],
        ["Input"] if no_trans else ["Input", "Trans"],
        of=["Output"],
        lod={"ROIs": [lod]},
        grad_tol=2e-5,
    )


QUADS = [
    [0.2, 0.3, 5.6, 0.8, 5.1, 4.3, 0.7, 4.1],
    [1.3, 1.2, 3.4, 2.2, 2.6, 3.7, 0.4, 2.9],
    [-2.2, -1.3, 8.3, -1.1, 8.2, 6.1, -2.4, 6.3],
    [3.1, 1.2, 6.2, 1.1, 6.4, 2.2, 3.3, 2.4],
]


def quads(x, rois, lod, height, width, scale=1.0):
    attrs = {"transformed_height": height, "transformed_width": width, "spatial_scale": scale}
    return Sample(
        "roi_perspective_transform",
        {"X": x, "ROIs": rois},
        attrs,
        ["Out", "Mask", "TransformMatrix"],
        ["X"],
        of=["Out"],
        lod={"ROIs": [lod]},
        tol=3e-5,
        grad_tol=3e-5,
    )


SAMPLES = [
    pooled("roi_align", f32(2, 3, 6, 7), boxes(BOXES), [3, 2], bins(2, 3)),
    pooled(
        "roi_align", f32(2, 2, 6, 7), boxes(BOXES) * 2, [2, 3], bins(2, 2, 0.5, sampling_ratio=2)
    ),
    pooled("roi_align", f32(3, 1, 5, 6), boxes(BOXES + OUTSIDE), [4, 0, 6], bins(3, 2)),
    pooled(
        "roi_align",
        f64(1, 2, 4, 4),
        boxes(BOXES, "float64"),
        [5],
        bins(1, 4, 0.7, sampling_ratio=3),
    ),
    pooled(
        "roi_align",
        f32(2, 2, 6, 7),
        boxes(BOXES),
        None,
        bins(2, 2),
        more={"RoisLod": np.array([0, 4, 5], "int64")},
    ),
    pooled("roi_align", f32(1, 1, 6, 7), boxes([[-30.5, -20.4, 60.3, 40.2]]), [1], bins(3, 3)),
    pooled(
        "roi_pool",
        distinct(2, 3, 6, 7),
        boxes(BOXES),
        [3, 2],
        bins(2, 3),
        ("Out", "Argmax"),
        of=["Out"],
    ),
    pooled(
        "roi_pool",
        distinct(2, 2, 6, 7),
        boxes(BOXES) * 2,
        [2, 3],
        bins(4, 2, 0.5),
        ("Out", "Argmax"),
        of=["Out"],
    ),
    pooled(
        "roi_pool",
        distinct(3, 1, 5, 6),
        boxes(BOXES + OUTSIDE),
        [4, 0, 6],
        bins(3, 2),
        ("Out", "Argmax"),
        of=["Out"],
    ),
    pooled(
        "roi_pool",
        distinct(1, 2, 4, 4, dtype="float64"),
        boxes(BOXES, "float64"),
        [5],
        bins(1, 5, 0.7),
        ("Out", "Argmax"),
        of=["Out"],
    ),
    pooled(
        "roi_pool",
        distinct(2, 2, 6, 7),
        boxes(BOXES),
        None,
        bins(2, 2),
        ("Out", "Argmax"),
        {"RoisLod": np.array([0, 4, 5], "int64")},
        of=["Out"],
    ),
    pooled("psroi_pool", f32(2, 12, 6, 7), boxes(BOXES), [3, 2], bins(2, 3, output_channels=2)),
    pooled(
        "psroi_pool",
        f32(3, 8, 5, 6),
        boxes(BOXES + OUTSIDE),
        [4, 0, 6],
        bins(2, 2, 0.6, output_channels=2),
    ),
    pooled(
        "psroi_pool",
        f64(1, 12, 4, 4),
        boxes(BOXES, "float64"),
        [5],
        bins(4, 1, 0.7, output_channels=3),
    ),
    pooled("prroi_pool", f32(2, 3, 6, 7), boxes(BOXES[:3]), [2, 1], bins(2, 3), grad=["X", "ROIs"]),
    pooled(
        "prroi_pool",
        f32(2, 2, 6, 7),
        boxes(BOXES[:3]) * 2,
        None,
        bins(2, 2, 0.5),
        more={"BatchRoINums": np.array([1, 2], "int64")},
        grad=["X", "ROIs"],
    ),
    pooled(
        "prroi_pool",
        f64(1, 2, 4, 4),
        boxes(BOXES, "float64"),
        [5],
        bins(1, 4, 0.7),
        grad=["X", "ROIs"],
    ),
    moved(f32(2, 2, 6, 7), boxes(BOXES) * 2, [3, 2], f32(5, 2, 2, 2), 2, (2, 3), part=(2, 2)),
    moved(
        f32(2, 8, 6, 7),
        boxes(BOXES + OUTSIDE) * 2,
        [4, 6],
        f32(10, 4, 2, 2),
        2,
        (3, 4),
        group=(2, 2),
        part=(2, 2),
        samples=3,
    ),
    moved(
        f32(1, 4, 6, 7),
        boxes(BOXES) * 2,
        [5],
        f32(5, 2, 2, 2),
        1,
        (2, 2),
        group=(2, 2),
        no_trans=True,
    ),
    quads(f32(2, 2, 6, 7), uniform((4, 8), -0.01, 0.01) + boxes(QUADS), [3, 1], 3, 4),
    quads(f32(2, 1, 6, 7), boxes(QUADS) * 4, [1, 3], 4, 3, 0.25),
]
