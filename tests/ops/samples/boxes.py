"""Boxes of detection: priors, codes, overlaps, matches."""

import numpy as np

from ..sample import Sample, distinct, f32, f64, uniform

VAR = [0.1, 0.1, 0.2, 0.2]
IMAGE = np.zeros((1, 3, 40, 60), "float32")
MAP = np.zeros((1, 2, 3, 4), "float32")
FIXED = {"unknown": "the batch decides nothing, and the other dimensions are the sizes"}


def boxes(*shape, dtype="float32", scale=1.0, seed=3):
    """corners in order"""
    r = np.random.RandomState(seed)
    low = r.uniform(0, 0.6, shape + (2,))
    return (np.concatenate([low, low + r.uniform(0.05, 0.4, shape + (2,))], -1) * scale).astype(
        dtype
    )


def prior(dtype="float32", size=(40, 60), **attrs):
    inputs = {"Input": MAP.astype(dtype), "Image": np.zeros((1, 3) + size, dtype)}
    return Sample(
        "prior_box",
        inputs,
        dict({"variances": VAR, "aspect_ratios": [1.0]}, **attrs),
        ["Boxes", "Variances"],
    )


def density(**attrs):
    return Sample(
        "density_prior_box",
        {"Input": MAP, "Image": IMAGE},
        dict({"variances": VAR}, **attrs),
        ["Boxes", "Variances"],
    )


def anchors(dtype="float32", **attrs):
    return Sample(
        "anchor_generator",
        {"Input": MAP.astype(dtype)},
        dict({"variances": VAR}, **attrs),
        ["Anchors", "Variances"],
    )


def coder(target, priors, var=None, lod=None, **attrs):
    inputs = {"PriorBox": priors, "TargetBox": target}
    if var is not None:
        inputs["PriorBoxVar"] = var
    return Sample(
        "box_coder", inputs, attrs, ["OutputBox"], lod={"TargetBox": lod} if lod else None, tol=1e-5
    )


def positive(*shape, dtype="float32"):
    return uniform(shape, 0.1, 0.3, dtype)


def clip(shape, lod=None, dtype="float32", info=((10, 20, 1),)):
    return Sample(
        "box_clip",
        {"Input": uniform(shape, -20, 40, dtype), "ImInfo": np.array(info, dtype)},
        {},
        ["Output"],
        lod={"Input": lod} if lod else None,
    )


def decode_assign(rows, classes, dtype="float32", scores=None, **attrs):
    score = (
        distinct(rows, classes, lo=0.0, dtype=dtype) if scores is None else np.array(scores, dtype)
    )
    inputs = {
        "PriorBox": boxes(rows, dtype=dtype, scale=50),
        "PriorBoxVar": np.array(VAR, dtype),
        "TargetBox": uniform((rows, 4 * classes), -2, 2, dtype),
        "BoxScore": score,
    }
    return Sample(
        "box_decoder_and_assign", inputs, attrs, ["DecodeBox", "OutputAssignBox"], tol=1e-5
    )


def iou(n, m, dtype="float32", lod=None, **attrs):
    scale = 1.0 if attrs.get("box_normalized", True) else 40.0
    return Sample(
        "iou_similarity",
        {"X": boxes(n, dtype=dtype, scale=scale), "Y": boxes(m, dtype=dtype, scale=scale, seed=4)},
        attrs,
        ["Out"],
        lod={"X": lod} if lod else None,
    )


def yolo(shape, sizes, dtype="float32", **attrs):
    return Sample(
        "yolo_box",
        {"X": uniform(shape, -2, 2, dtype), "ImgSize": np.array(sizes, "int32")},
        attrs,
        ["Boxes", "Scores"],
        tol=1e-5,
    )


SAMPLES = [
    prior(min_sizes=[8.0], max_sizes=[16.0], aspect_ratios=[2.0, 3.0], flip=True, clip=False),
    prior(
        min_sizes=[8.0, 12.0],
        max_sizes=[16.0, 20.0],
        aspect_ratios=[1.0, 0.5],
        flip=False,
        clip=True,
        offset=0.25,
    ),
    prior(
        min_sizes=[8.0, 12.0],
        aspect_ratios=[2.0, 0.5],
        flip=True,
        clip=False,
        step_w=7.0,
        step_h=9.0,
    ),
    prior(
        min_sizes=[8.0],
        max_sizes=[16.0],
        aspect_ratios=[2.0],
        flip=True,
        clip=False,
        min_max_aspect_ratios_order=True,
    ),
    prior(
        dtype="float64",
        min_sizes=[8.5],
        aspect_ratios=[1.0],
        flip=True,
        clip=False,
        min_max_aspect_ratios_order=True,
    ),
    density(fixed_sizes=[8.0, 16.0], densities=[2, 1], fixed_ratios=[1.0, 2.0], clip=False),
    density(
        fixed_sizes=[6.0],
        densities=[3],
        fixed_ratios=[0.5],
        clip=True,
        flatten_to_2d=True,
        step_w=11.0,
        step_h=8.0,
    ),
    anchors(anchor_sizes=[32.0, 64.0], aspect_ratios=[0.5, 1.0, 2.0]),
    anchors(
        dtype="float64", anchor_sizes=[20.0], aspect_ratios=[0.7], stride=[10.0, 6.0], offset=0.3
    ),
    coder(boxes(3), boxes(5, seed=5), positive(5, 4)),
    coder(boxes(3), boxes(5, seed=5), variance=VAR, lod=[[2, 1]]),
    coder(boxes(3, scale=30), boxes(5, scale=30, seed=5), positive(5, 4), box_normalized=False),
    coder(boxes(3, dtype="float64"), boxes(2, dtype="float64", seed=5)),
    coder(f32(3, 5, 4), boxes(5), positive(5, 4), code_type="decode_center_size"),
    coder(
        f32(3, 5, 4),
        boxes(3, scale=30),
        positive(3, 4),
        code_type="decode_center_size",
        axis=1,
        box_normalized=False,
    ),
    coder(f32(3, 5, 4), boxes(5), code_type="decode_center_size", variance=VAR),
    coder(f64(3, 2, 4), boxes(3, dtype="float64"), code_type="decode_center_size", axis=1),
    clip((5, 4), [[3, 2]], info=((10, 20, 1), (30, 15, 1.5))),
    clip((3, 2, 4), [[3]], dtype="float64"),
    decode_assign(3, 4),
    decode_assign(3, 2, box_clip=0.2),
    decode_assign(2, 3, scores=[[0.9, 0.2, 0.2], [0.1, -1.0, -2.0]]),
    iou(3, 4),
    iou(3, 4, lod=[[1, 2]], box_normalized=False),
    iou(2, 2, dtype="float64"),
    Sample("polygon_box_transform", {"Input": f32(2, 4, 3, 2)}, {}, ["Output"]),
    Sample("polygon_box_transform", {"Input": f64(1, 8, 2, 3)}, {}, ["Output"]),
    yolo(
        (2, 14, 3, 3),
        [[64, 48], [30, 90]],
        anchors=[10, 13, 16, 30],
        class_num=2,
        conf_thresh=0.4,
        downsample_ratio=32,
    ),
    yolo(
        (1, 18, 2, 2),
        [[64, 48]],
        anchors=[10, 13, 16, 30, 33, 23],
        class_num=1,
        conf_thresh=0.01,
        downsample_ratio=8,
        clip_bbox=False,
        scale_x_y=1.2,
    ),
    yolo(
        (1, 7, 2, 2),
        [[64, 48]],
        dtype="float64",
        anchors=[10, 13],
        class_num=2,
        conf_thresh=0.5,
        downsample_ratio=16,
    ),
]
