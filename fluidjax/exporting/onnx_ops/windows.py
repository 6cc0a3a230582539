"""Convolutions, pools and resized images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph import Graph, Size
from ..rules import Op, rule
from ..values import Lacking, Value
from .products import channels_last
from .shaping import numbers, padded


def pads(op: Op, rank: int) -> tuple[list[int], list[int]] | str:
    """(before, after) for each axis, or ONNX's own way of padding."""
    algorithm = str(op.attr("padding_algorithm") or "EXPLICIT")
    if algorithm == "SAME":
        return "SAME_UPPER"
    if algorithm == "VALID":
        return [0] * rank, [0] * rank
    given = list(op.attr("paddings"))
    if len(given) == rank:
        return given, given
    return given[::2], given[1::2]


def padding(op: Op, rank: int) -> dict[str, Any]:
    found = pads(op, rank)
    return {"auto_pad": found} if isinstance(found, str) else {"pads": [*found[0], *found[1]]}


def first(g: Graph, x: Value) -> Value:
    """x with its channels first, if they are last."""
    return g.transpose(x, [0, x.rank - 1, *range(1, x.rank - 1)])


def last(g: Graph, x: Value) -> Value:
    return g.transpose(x, [0, *range(2, x.rank), 1])


def _windows(n: int, window: int, stride: int, pad: int, ceil: bool = False) -> int:
    if n < 0:
        return -1
    room = n + pad - window
    return (-(-room // stride) if ceil else room // stride) + 1


@rule("conv2d", "depthwise_conv2d", "conv3d", "conv2d_fusion")
def conv(g: Graph, op: Op) -> dict[str, Value]:
    x = op["Input"]
    w = g.whole(op["Filter"], x.dtype)
    is_channels_last = channels_last(op, "data_format")
    x = first(g, x) if is_channels_last else x
    rank = x.rank - 2
    strides, dilations = list(op.attr("strides")), list(op.attr("dilations"))
    where = padding(op, rank)
    if "auto_pad" in where:
        dilations = [1] * rank  # Paddle's SAME takes no dilation
        sizes = [-(-n // s) if n >= 0 else -1 for n, s in zip(x.sizes[2:], strides, strict=True)]
    else:
        around = where["pads"]
        sizes = [
            _windows(n, d * (k - 1) + 1, s, around[i] + around[i + rank])
            for i, (n, k, s, d) in enumerate(
                zip(x.sizes[2:], w.sizes[2:], strides, dilations, strict=True)
            )
        ]
    inputs = [x, w]
    bias = op.get("Bias")
    if bias is not None:
        inputs.append(g.reshape(bias, [-1]))
    made = g.add(
        "Conv", *inputs, shape=(x.sizes[0], w.sizes[0], *sizes), strides=strides,
        dilations=dilations, group=int(op.attr("groups")), kernel_shape=list(w.sizes[2:]), **where,
    )  # fmt: skip
    rest = op.get("ResidualData")
    if rest is not None:
        made = g.plus(made, rest)
    if op.type == "conv2d_fusion" and op.attr("activation") == "relu":
        made = g.like("Relu", made)
    return {"Output": last(g, made) if is_channels_last else made}


@rule("conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose")
def conv_transpose(g: Graph, op: Op) -> dict[str, Value]:
    x, w = op["Input"], op["Filter"]
    is_channels_last = channels_last(op, "data_format")
    x = first(g, x) if is_channels_last else x
    rank = x.rank - 2
    strides, dilations = list(op.attr("strides")), list(op.attr("dilations"))
    groups = int(op.attr("groups"))
    found = pads(op, rank)
    if isinstance(found, str):
        raise Lacking("its padding is SAME", "give the paddings as numbers")
    before, after = found
    sizes = [
        (n - 1) * s - b - a + d * (k - 1) + 1 if n >= 0 else -1
        for n, s, b, a, d, k in zip(
            x.sizes[2:], strides, before, after, dilations, w.sizes[2:], strict=True
        )
    ]
    more: dict[str, Any] = {}
    wanted = list(op.attr("output_size") or ())
    if wanted:
        if -1 in sizes:
            raise Lacking("its output_size is given while the input's size is open")
        more["output_padding"] = [a - b for a, b in zip(wanted, sizes, strict=True)]
        sizes = wanted
    elif op.attr("output_padding"):
        more["output_padding"] = list(op.attr("output_padding"))
        sizes = [
            n + p if n >= 0 else -1 for n, p in zip(sizes, more["output_padding"], strict=True)
        ]
    if any(n < 0 for n in more.get("output_padding", ())):
        raise Lacking("its output_size is less than what the input gives")
    bias = op.get("Bias")
    inputs = [x, w] if bias is None else [x, w, g.reshape(bias, [-1])]
    made = g.add(
        "ConvTranspose", *inputs, shape=(x.sizes[0], w.sizes[1] * groups, *sizes), strides=strides,
        dilations=dilations, group=groups, kernel_shape=list(w.sizes[2:]), pads=[*before, *after], **more,
    )  # fmt: skip
    return {"Output": last(g, made) if is_channels_last else made}


@rule("pool2d", "pool3d")
def pool(g: Graph, op: Op) -> Value:
    x = op["X"]
    is_channels_last = channels_last(op, "data_format")
    x = first(g, x) if is_channels_last else x
    made = _pool(g, op, x)
    return last(g, made) if is_channels_last else made


def _pool(g: Graph, op: Op, x: Value) -> Value:
    rank, is_max = x.rank - 2, op.attr("pooling_type") == "max"
    size, strides = list(op.attr("ksize")), list(op.attr("strides"))
    adaptive = bool(op.attr("adaptive")) and not op.attr("global_pooling")
    if op.attr("global_pooling") or (adaptive and not is_max and set(size) == {1}):
        kind = "GlobalMaxPool" if is_max else "GlobalAveragePool"
        return g.add(kind, x, shape=(*x.sizes[:2], *[1] * rank))
    kind = "MaxPool" if is_max else "AveragePool"
    if adaptive:
        cells = x.sizes[2:]
        if -1 in cells:
            raise Lacking("its windows follow from an open size", "fix the size of the input")
        if is_max:
            ends = [(o - 1) * s + o for o, s in zip(size, strides, strict=True)]
            if any(e > n for e, n in zip(ends, cells, strict=True)):
                raise Lacking("its windows reach over the end")
            for a, e in enumerate(ends):
                x = g.slice(x, a + 2, 0, e)
            return g.add(kind, x, shape=(*x.sizes[:2], *size), kernel_shape=size, strides=strides)
        if any(n % o for n, o in zip(cells, size, strict=True)):
            return _uneven_average(g, x, size)
        windows = [n // o for n, o in zip(cells, size, strict=True)]
        return g.add(kind, x, shape=(*x.sizes[:2], *size), kernel_shape=windows, strides=windows)
    ceil = bool(op.attr("ceil_mode"))
    where = padding(op, rank)
    more: dict[str, Any] = {"ceil_mode": 1} if ceil else {}
    if "auto_pad" in where:
        sizes = [-(-n // s) if n >= 0 else -1 for n, s in zip(x.sizes[2:], strides, strict=True)]
    else:
        around = where["pads"]
        if any(p >= k for p, k in zip(around, size * 2, strict=True)):
            raise Lacking("its padding is as wide as its windows")
        sizes = [
            _windows(n, k, s, around[i] + around[i + rank], ceil)
            for i, (n, k, s) in enumerate(zip(x.sizes[2:], size, strides, strict=True))
        ]
        small = [
            0 <= n + b + a < k
            for n, b, a, k in zip(x.sizes[2:], around, around[rank:], size, strict=False)
        ]
        sizes = [1 if less else n for less, n in zip(small, sizes, strict=True)]
        if ceil or any(small):
            where, more = _overhanging_padding(op, x, size, strides, around, sizes, is_max)
    if not is_max and not op.attr("exclusive"):
        more["count_include_pad"] = 1
    return g.add(kind, x, shape=(*x.sizes[:2], *sizes), kernel_shape=size, strides=strides, **where, **more)  # fmt: skip


def _overhanging_padding(
    op: Op, x: Value, size: list[int], strides: list[int], around: list[int], sizes: list[int], is_max: bool,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """Windows that may reach over the end. Fluid counts a window that begins in the padding at the
    end, and one that is larger than the image; ONNX's rounding up does not. So the padding that
    they need is written explicitly if it is known.
    """
    rank = len(size)
    if -1 in sizes:
        if any(around[rank:]):
            raise Lacking("it rounds up the number of windows of an open size, with padding")
        return {"pads": around}, {"ceil_mode": 1}
    behind = [
        max((o - 1) * s + k - n - b, 0)
        for o, s, k, n, b in zip(sizes, strides, size, x.sizes[2:], around[:rank], strict=True)
    ]
    if not is_max and not op.attr("exclusive"):
        raise Lacking("its windows reach over the end, and it counts the padding")
    if any(p >= k for p, k in zip(behind, size, strict=True)):
        raise Lacking("a window of it lies in the padding alone")
    return {"pads": [*around[:rank], *behind]}, {}


def _uneven_average(g: Graph, x: Value, size: Sequence[int]) -> Value:
    """The average over windows of different sizes: along each axis a product with the windows'
    weights.
    """
    for axis, outs in enumerate(size, 2):
        cells = x.sizes[axis]
        share = np.zeros((cells, outs), x.dtype)
        for o in range(outs):
            low, high = o * cells // outs, -(-(o + 1) * cells // outs)
            share[low:high, o] = 1 / (high - low)
        order = [a for a in range(x.rank) if a != axis] + [axis]
        made = g.matmul(g.transpose(x, order), g.constant(share))
        x = g.transpose(made, [order.index(a) for a in range(x.rank)])
    return x


@rule("max_pool2d_with_index")
def max_pool_with_index(g: Graph, op: Op) -> dict[str, Value]:
    x, size, strides = op["X"], list(op.attr("ksize")), list(op.attr("strides"))
    if op.attr("adaptive"):
        cells = x.sizes[2:]
        if -1 in cells or any(n % o for n, o in zip(cells, size, strict=True)):
            raise Lacking("its windows differ in size, or follow from an open size")
        size = [n // o for n, o in zip(cells, size, strict=True)]
        strides, around = size, [0, 0]
    elif op.attr("global_pooling"):
        if -1 in x.sizes[2:]:
            raise Lacking("its window is an open size")
        size, strides, around = list(x.sizes[2:]), [1, 1], [0, 0]
    else:
        around = list(op.attr("paddings"))
    sizes = [
        _windows(n, k, s, 2 * p)
        for n, k, s, p in zip(x.sizes[2:], size, strides, around, strict=True)
    ]
    shape = (*x.sizes[:2], *sizes)
    out, index = g.many(
        "MaxPool", [x], [(x.dtype, shape), ("int64", shape)], kernel_shape=size, strides=strides,
        pads=[*around, *around],
    )  # fmt: skip
    # ONNX counts through the whole array, Fluid within each image
    plane = g.multiplied([g.size(x, 2), g.size(x, 3)])
    area = plane if isinstance(plane, Value) else g.constant(plane, np.int64)
    return {"Out": out, "Mask": g.cast(g.add("Mod", index, area, shape=shape), "int32")}


# resized images


@rule(
    *(
        f"{m}_interp{v}"
        for m in ("bilinear", "nearest", "bicubic", "linear", "trilinear")
        for v in ("", "_v2")
    )
)
def resize(g: Graph, op: Op) -> Value:
    x = op["X"]
    is_channels_last = channels_last(op, "data_layout")
    x = first(g, x) if is_channels_last else x
    made = _resized(g, op, x)
    return last(g, made) if is_channels_last else made


def _resized(g: Graph, op: Op, x: Value) -> Value:
    name = op.type.partition("_")[0]
    rank = x.rank - 2
    method = {"nearest": "nearest", "bicubic": "cubic"}.get(name, "linear")
    corners = bool(op.attr("align_corners"))
    if not x.is_float:
        raise Lacking(
            "it resizes whole numbers, which ONNX rounds in another way", "cast to float32 first"
        )
    later = op.type.endswith("_v2")
    attrs: dict[str, Any] = {"mode": method}
    if method == "nearest":
        attrs["nearest_mode"] = "round_prefer_ceil" if corners else "floor"
    if method == "cubic":
        attrs["cubic_coeff_a"] = -0.75
    if corners:
        attrs["coordinate_transformation_mode"] = "align_corners"
    elif method == "nearest" or (method == "linear" and op.attr("align_mode") != 0):
        attrs["coordinate_transformation_mode"] = "asymmetric"
    else:
        attrs["coordinate_transformation_mode"] = (
            "pytorch_half_pixel"
            if method == "linear" and not (later and rank != 2)
            else "half_pixel"
        )
    scale = op.attr("scale")
    scales = [float(s) for s in (scale if isinstance(scale, tuple | list) else [scale])]
    scales = scales * rank if len(scales) == 1 else scales
    given = op.get("Scale")
    if given is not None:
        if given.const is None:
            raise Lacking("its Scale is given while it runs", "give it out_shape")
        scales = [float(v) for v in given.const.reshape(-1)]
        scales = scales * rank if len(scales) == 1 else scales
    sizes: list[Size]
    sized = op.has("OutSize") or op.has("SizeTensor")
    if scales and all(s > 0 for s in scales) and not sized:
        shape = tuple(int(np.float32(n) * np.float32(s)) if n >= 0 else -1
                      for n, s in zip(x.sizes[2:], scales, strict=True))  # fmt: skip
        if later or all(s == int(s) for s in scales):
            factors = g.constant([1, 1, *scales], np.float32)
            return g.add("Resize", x, None, factors, shape=(*x.sizes[:2], *shape), **attrs)
        if -1 in shape:
            raise Lacking(
                f"it scales an open size by {scales[0]}", "fix the size, or give it out_shape"
            )
        sizes = list(shape)
    elif sized:
        if later and scales and all(s > 0 for s in scales):
            raise Lacking(
                "it takes steps by a scale to a size that is given beside it", "give one of them"
            )
        sizes = numbers(g, op, "OutSize", "SizeTensor", "none")
    else:
        sizes = [int(op.attr(n)) for n in ("out_d", "out_h", "out_w")[3 - rank :]]
        if any(isinstance(n, int) and n <= 0 for n in sizes):
            raise Lacking("it names neither a size nor a scale")
    if method == "cubic" and not corners and 1 in sizes:
        raise Lacking("it makes one cell of a line, which lies elsewhere in ONNX")
    target = g.vector([g.size(x, 0), g.size(x, 1), *sizes])
    shape = tuple(n if isinstance(n, int) else -1 for n in sizes)
    return g.add("Resize", x, None, None, target, shape=(*x.sizes[:2], *shape), **attrs)


@rule("grid_sampler")
def grid_sampler(g: Graph, op: Op) -> dict[str, Value]:
    x, grid = op["X"], op["Grid"]
    corners = op.attr("align_corners")
    mode = str(op.attr("mode") or "bilinear")
    if g.opset >= 20 and mode == "bilinear":
        mode = "linear"
    made = g.add(
        "GridSample", x, grid, shape=(*x.sizes[:2], *grid.sizes[1:3]), mode=mode,
        padding_mode={"reflect": "reflection"}.get(str(op.attr("padding_mode") or "zeros"), str(op.attr("padding_mode") or "zeros")),
        align_corners=int(True if corners is None else bool(corners)),
    )  # fmt: skip
    return {"Output": made}


@rule("maxout")
def maxout(g: Graph, op: Op) -> Value:
    x, groups, axis = op["X"], int(op.attr("groups")), int(op.attr("axis") or 1) % op["X"].rank
    sizes = [g.size(x, a) for a in range(x.rank)]
    c = sizes[axis]
    if not isinstance(c, int):
        raise Lacking("the number of channels is open")
    apart = g.reshape(x, [*sizes[:axis], c // groups, groups, *sizes[axis + 1 :]])
    return g.reduce("Max", apart, [axis + 1], False)


def patches(
    g: Graph, x: Value, size: Sequence[int], strides: Sequence[int], around: Sequence[int], dilations: Sequence[int],
) -> Value:  # fmt: skip
    """The cells under each window: [N, C, h * w, rows, columns]; around: the padding up, left,
    down, right.
    """
    x = padded(g, x, [0, 0, *around[:2]], [0, 0, *around[2:]], "constant", 0.0)
    counts = [
        _windows(n, d * (k - 1) + 1, s, 0)
        for n, k, s, d in zip(x.sizes[2:], size, strides, dilations, strict=True)
    ]
    if -1 in counts:
        raise Lacking("the size of its images is open", "fix it: shapes={...}")
    parts = []
    for i in range(size[0]):
        for j in range(size[1]):
            part = x
            for axis, start in ((2, i * dilations[0]), (3, j * dilations[1])):
                reach = start + (counts[axis - 2] - 1) * strides[axis - 2] + 1
                part = g.slice(part, axis, start, reach, strides[axis - 2])
            parts.append(g.unsqueeze(part, [2]))
    return g.concat(parts, 2)


@rule("unfold")
def unfold(g: Graph, op: Op) -> dict[str, Value]:
    x = op["X"]
    around = list(op.attr("paddings"))
    cells = patches(g, x, op.attr("kernel_sizes"), op.attr("strides"), around, op.attr("dilations"))
    _, c, k, h, w = cells.sizes
    return {"Y": g.reshape(cells, [-1, c * k, h * w])}
