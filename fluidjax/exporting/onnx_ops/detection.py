"""Boxes of objects in images."""

from __future__ import annotations

import numpy as np

from ...ops.registry import lookup
from ..graph import Graph, Value
from ..rules import Op, rule
from ..values import Lacking
from .sequences import numbered


@rule("iou_similarity")
def iou(g: Graph, op: Op) -> Value:
    x, y = op["X"], op["Y"]
    more = 0.0 if op.attr("box_normalized") else 1.0
    a = [g.slice(x, 1, i, i + 1) for i in range(4)]  # [n, 1]
    b = [g.reshape(g.slice(y, 1, i, i + 1), [1, -1]) for i in range(4)]  # [1, m]

    def area(v: list[Value]) -> Value:
        return g.times(g.plus(g.minus(v[2], v[0]), more), g.plus(g.minus(v[3], v[1]), more))

    sides = [
        g.like("Relu", g.plus(g.minus(g.binary("Min", a[i + 2], b[i + 2]), g.binary("Max", a[i], b[i])), more))
        for i in (0, 1)
    ]  # fmt: skip
    both = g.times(*sides)
    whole = g.minus(g.plus(area(a), area(b)), both)
    return g.over(both, whole).ragged(x.lengths)


@rule("yolo_box")
def yolo_box(g: Graph, op: Op) -> dict[str, Value]:
    """x, y, w, h, confidence and classes of each anchor at each cell, as boxes of the image."""
    x, image = op["X"], op["ImgSize"]
    if op.attr("iou_aware"):
        raise Lacking("its confidence takes a predicted overlap into account")
    anchors = np.asarray(op.attr("anchors"), np.float32).reshape(-1, 2)
    count, classes = len(anchors), int(op.attr("class_num"))
    down, scale = int(op.attr("downsample_ratio")), float(op.attr("scale_x_y") or 1.0)
    h, w = x.sizes[2:]
    if h < 0 or w < 0:
        raise Lacking("the size of its images is open", "fix it: shapes={...}")
    batch = g.size(x, 0)
    cells = g.reshape(x, [batch, count, 5 + classes, h, w])
    part = [g.squeeze(g.slice(cells, 2, i, i + 1), [2]) for i in range(5)]  # [n, a, h, w]
    sizes = g.cast(image, x.dtype)
    rows, columns = (g.reshape(g.slice(sizes, 1, i, i + 1), [-1, 1, 1, 1]) for i in (0, 1))
    place = [np.arange(w, dtype=np.float32), np.arange(h, dtype=np.float32)[:, None]]
    shift = 0.5 * (1 - scale)
    centres = []
    for i, extent in ((0, columns), (1, rows)):
        at = g.like("Sigmoid", part[i])
        if scale != 1.0:
            at = g.plus(g.times(at, scale), shift)
        at = g.plus(at, g.constant(place[i], x.dtype))
        centres.append(g.over(g.times(at, extent), float((w, h)[i])))
    extents = []
    for i, extent in ((0, columns), (1, rows)):
        anchor = g.constant(anchors[:, i].reshape(1, -1, 1, 1), x.dtype)
        size = g.times(g.times(g.like("Exp", part[2 + i]), anchor), extent)
        extents.append(g.over(size, float(down * (w, h)[i])))
    half = [g.over(e, 2.0) for e in extents]
    low = [g.minus(c, e) for c, e in zip(centres, half, strict=True)]
    high = [g.plus(c, e) for c, e in zip(centres, half, strict=True)]
    if op.attr("clip_bbox"):
        zero = g.number(0, x)
        low = [g.binary("Max", v, zero) for v in low]
        high = [g.binary("Min", v, g.minus(e, 1.0)) for v, e in zip(high, (columns, rows), strict=True)]  # fmt: skip
    confidence = g.like("Sigmoid", part[4])
    sure = g.like("Not", g.binary("Less", confidence, g.number(op.attr("conf_thresh"), x), "bool"))
    boxes = g.concat([g.unsqueeze(v, [4]) for v in (*low, *high)], 4)
    boxes = g.where(g.unsqueeze(sure, [4]), boxes, g.number(0, x))
    scores = g.times(g.like("Sigmoid", g.slice(cells, 2, 5, 5 + classes)), g.unsqueeze(confidence, [2]))  # fmt: skip
    scores = g.where(g.unsqueeze(sure, [2]), scores, g.number(0, x))
    scores = g.transpose(scores, [0, 1, 3, 4, 2])
    return {
        "Boxes": g.reshape(boxes, [batch, count * h * w, 4]),
        "Scores": g.reshape(scores, [batch, count * h * w, classes]),
    }


@rule("box_coder")
def box_coder(g: Graph, op: Op) -> dict[str, Value]:
    prior, target, given = op["PriorBox"], op["TargetBox"], op.get("PriorBoxVar")
    more = 0.0 if op.attr("box_normalized") else 1.0
    axis = int(op.attr("axis"))
    sides = [g.slice(prior, 1, i, i + 1) for i in range(4)]
    extent = [g.plus(g.minus(sides[i + 2], sides[i]), more) for i in (0, 1)]  # [m, 1]
    centre = [g.plus(sides[i], g.times(extent[i], 0.5)) for i in (0, 1)]
    fixed = list(op.attr("variance") or ())
    if op.attr("code_type") == "encode_center_size":
        extent, centre = ([g.reshape(v, [1, -1]) for v in each] for each in (extent, centre))
        own = [g.slice(target, 1, i, i + 1) for i in range(4)]  # [n, 1]
        size = [g.plus(g.minus(own[i + 2], own[i]), more) for i in (0, 1)]
        middle = [g.times(g.plus(own[i], own[i + 2]), 0.5) for i in (0, 1)]
        parts = [g.over(g.minus(middle[i], centre[i]), extent[i]) for i in (0, 1)]
        parts += [g.like("Log", g.like("Abs", g.over(size[i], extent[i]))) for i in (0, 1)]
        made = g.concat([g.unsqueeze(p, [2]) for p in parts], 2)
        if given is not None:
            made = g.over(made, g.unsqueeze(given, [0]))
        elif fixed:
            made = g.over(made, g.constant(fixed, target.dtype))
        return {"OutputBox": made.ragged(target.lengths)}
    spread = [1, -1] if axis == 0 else [-1, 1]
    extent, centre = ([g.reshape(v, spread) for v in each] for each in (extent, centre))
    own = [g.squeeze(g.slice(target, 2, i, i + 1), [2]) for i in range(4)]  # [n, m]
    if given is not None:
        scales = [g.reshape(g.slice(given, 1, i, i + 1), spread) for i in range(4)]
        own = [g.times(v, s) for v, s in zip(own, scales, strict=True)]
    elif fixed:
        own = [g.times(v, float(s)) for v, s in zip(own, fixed, strict=True)]
    middle = [g.plus(g.times(own[i], extent[i]), centre[i]) for i in (0, 1)]
    size = [g.times(g.like("Exp", own[i + 2]), extent[i]) for i in (0, 1)]
    low = [g.minus(middle[i], g.times(size[i], 0.5)) for i in (0, 1)]
    high = [g.minus(g.plus(middle[i], g.times(size[i], 0.5)), more) for i in (0, 1)]
    made = g.concat([g.unsqueeze(v, [2]) for v in (*low, *high)], 2)
    return {"OutputBox": made.ragged(target.lengths)}


@rule("prior_box", "density_prior_box", "anchor_generator")
def boxes_of_cells(g: Graph, op: Op) -> dict[str, Value]:
    """Compute boxes by the op itself, because they depend only on sizes."""
    definition = lookup(op.type)
    given: dict[str, np.ndarray] = {}
    for slot in ("Input", "Image"):
        if op.has(slot):
            sizes = [1, *op[slot].sizes[1:]]
            if -1 in sizes:
                raise Lacking("the size of its images is open", "fix it: shapes={...}")
            given[slot] = np.zeros(sizes, op[slot].dtype)
    made = definition(given, op.desc.attrs)
    return {
        slot: g.constant(np.asarray(v), wish=op.desc.output(slot)[0]) for slot, v in made.items()
    }


@rule("roi_align")
def roi_align(g: Graph, op: Op) -> Value:
    x, boxes = op["X"], op["ROIs"]
    op.refuse("RoisNum", "RoisLod")
    if not boxes.lengths:
        raise Lacking("its boxes have no lengths")
    ratio = int(op.attr("sampling_ratio"))
    size = (int(op.attr("pooled_height")), int(op.attr("pooled_width")))
    return g.add(
        "RoiAlign", x, boxes, numbered(g, boxes.lengths[-1]), shape=(-1, x.sizes[1], *size),
        mode="avg", output_height=size[0], output_width=size[1], sampling_ratio=max(ratio, 0),
        spatial_scale=float(op.attr("spatial_scale")), coordinate_transformation_mode="output_half_pixel",
    ).ragged(boxes.lengths)  # fmt: skip


@rule("multiclass_nms", "multiclass_nms2")
def multiclass_nms(g: Graph, op: Op) -> dict[str, Value]:
    """NonMaxSuppression, then the best of each image; no row for an image without any."""
    boxes, scores = op["BBoxes"], op["Scores"]
    if boxes.lengths or boxes.rank != 3 or boxes.sizes[2] != 4 or float(op.attr("nms_eta")) < 1:
        raise Lacking(
            "its boxes have lengths, or are polygons, or its threshold changes as it goes"
        )
    if any(n in op.read_later for n in op.desc.output("Index")):
        raise Lacking("the numbers of the boxes that it keeps are read")
    classes, background = scores.sizes[1], int(op.attr("background_label"))
    if classes < 0:
        raise Lacking("the number of classes is open")
    labels = np.array([c for c in range(classes) if c != background], np.int64)
    if len(labels) < classes:
        scores = g.gather(scores, g.constant(labels), 1)
    first, most = int(op.attr("nms_top_k")), int(op.attr("keep_top_k"))
    if first >= 0 and not 0 <= scores.sizes[2] <= first:
        count = g.binary("Min", g.vector([g.size(scores, 2)]), g.ints(first))
        _, best = g.many(
            "TopK", [scores, count], [(scores.dtype, None), ("int64", (-1, -1, -1))], axis=2
        )
        nothing = g.filled(False, "bool", [g.size(scores, a) for a in range(3)])
        there = g.add("Expand", g.constant(True), g.shape(best), shape=best.shape)
        taken = g.add("ScatterElements", nothing, best, there, shape=nothing.shape, axis=2)
        scores = g.where(taken, scores, g.number(-np.inf, scores))
    cells = boxes
    # a box of whole pixels is one wider than the distance of its corners
    if not op.attr("normalized"):
        cells = g.plus(boxes, g.constant([0, 0, 1, 1], boxes.dtype))
    every = g.concat([g.vector([g.size(boxes, 1)]), g.ints(1)], 0)
    chosen = g.add(
        "NonMaxSuppression", cells, scores, g.reduce("Max", every, [0], True),
        g.constant([op.attr("nms_threshold")], np.float32), g.constant([op.attr("score_threshold")], np.float32),
        dtype="int64", shape=(-1, 3),
    )  # fmt: skip
    if most >= 0:
        best_of = _best_of_images(g, chosen, scores, boxes, most)
        chosen = g.add("Compress", chosen, best_of, shape=(-1, 3), axis=0)
    image, label, box = (g.slice(chosen, 1, i, i + 1) for i in range(3))
    score = g.add("GatherND", scores, chosen, shape=(-1,))
    corners = g.add("GatherND", boxes, g.concat([image, box], 1), shape=(-1, 4))
    named = g.gather(g.constant(labels), label)
    parts = [g.cast(named, boxes.dtype), g.unsqueeze(score, [1]), corners]
    rows = g.concat(parts, 1)
    counts = _per_image(g, image, boxes)
    return {"Out": Value(rows.name, rows.dtype, (-1, 6)).ragged([counts])}


def _per_image(g: Graph, image: Value, boxes: Value) -> Value:
    """The number of rows of each image."""
    images = g.unsqueeze(g.count(g.size(boxes, 0)), [1])
    same = g.binary("Equal", images, g.reshape(image, [1, -1]), "bool")
    return g.reduce("Sum", g.cast(same, "int64"), [1], False)


def _best_of_images(g: Graph, chosen: Value, scores: Value, boxes: Value, most: int) -> Value:
    """The rows that are among the `most` best of their image. A further row of no image is added,
    because an empty array cannot be sorted.
    """
    rows = g.vector([g.size(chosen, 0)])
    size = g.plus(rows, 1)
    images = g.vector([g.size(boxes, 0)])
    image = g.concat([g.reshape(g.slice(chosen, 1, 0, 1), [-1]), images], 0)
    own = g.add("GatherND", scores, chosen, shape=(-1,))
    score = g.concat([own, g.constant([-np.inf], scores.dtype)], 0)

    def order(x: Value, largest: int) -> Value:
        outs = [(x.dtype, (-1,)), ("int64", (-1,))]
        return g.many("TopK", [x, size], outs, axis=0, largest=largest)[1]

    by_score = order(score, 1)
    by_image = g.gather(by_score, order(g.gather(image, by_score), 0))
    counts = _per_image(g, g.slice(chosen, 1, 0, 1), boxes)
    starts = g.like("CumSum", counts, g.constant(0, np.int64), exclusive=1)
    starts = g.concat([starts, rows], 0)
    place = g.minus(g.count(size), g.gather(starts, g.gather(image, by_image)))
    kept = g.binary("Less", place, g.ints(most), "bool")
    nothing = g.filled(False, "bool", [size])
    mask = g.add("ScatterElements", nothing, by_image, kept, shape=(-1,), axis=0)
    return g.slice(mask, 0, 0, -1)
