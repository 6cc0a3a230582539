"""Ops that change the shape or order of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph import Graph, Size
from ..rules import Op, rule
from ..values import Lacking, Value


def numbers(g: Graph, op: Op, whole: str, parts: str, attr: str) -> list[Size]:
    """Sizes that a tensor, a list of tensors or an attribute gives; the tensor takes precedence."""
    given = op.get(whole) if whole else None
    if given is not None:
        if given.const is not None:
            return [int(n) for n in given.const.reshape(-1)]
        if given.sizes != (1,) and (given.rank != 1 or given.sizes[0] < 0):
            raise Lacking(f"how many numbers {whole} has is open")
        each = g.cast(given, "int64")
        return [g.slice(each, 0, i, i + 1) for i in range(given.sizes[0])]
    listed = op.all(parts) if parts else []
    found: list[Size] = list(op.attr(attr) or ())
    if listed:
        found = [
            int(v.const.reshape(-1)[0]) if v.const is not None else g.reshape(g.cast(v, "int64"), [1])
            for v in listed
        ]  # fmt: skip
    return found


@rule("reshape", "reshape2")
def reshape(g: Graph, op: Op) -> Value:
    x = op["X"]
    given = op.get("Shape")
    if given is not None and given.const is None and given.sizes[0] < 0:
        raise Lacking("how many axes it gets is open")
    sizes = numbers(g, op, "Shape", "ShapeTensor", "shape")
    return reshaped(g, x, sizes, op)


def reshaped(g: Graph, x: Value, sizes: Sequence[Size], op: Op) -> Value:
    declared = op.declared("Out")
    shape = tuple(n if isinstance(n, int) else -1 for n in sizes)
    known: list[int] = [x.sizes[i] if n == 0 and i < x.rank else n for i, n in enumerate(shape)]
    if known.count(-1) == 1 and -1 not in x.sizes and 0 not in x.sizes:
        left = int(np.prod(x.sizes)) // max(-int(np.prod(known)), 1)
        known = [left if n == -1 else n for n in known]
    elif declared is not None and declared.shape is not None and len(declared.shape) == len(known):
        known = [m if n == -1 and m > 0 and not isinstance(sizes[i], int) else n
                 for i, (n, m) in enumerate(zip(known, declared.shape, strict=True))]  # fmt: skip
    if x.const is not None and all(isinstance(n, int) for n in sizes):
        return g.constant(
            x.const.reshape([x.sizes[i] if n == 0 else n for i, n in enumerate(shape)])
        )
    made = g.add("Reshape", x, g.vector(sizes), shape=tuple(known))
    keeps = bool(x.lengths) and (
        sizes[0] == 0 or (sizes[0] == -1 and known[1:] == list(x.sizes[1:]))
    )
    return made.ragged(x.lengths if keeps or _same_rows(x, known) else ())


def _same_rows(x: Value, shape: Sequence[int]) -> bool:
    """Whether a shape with an open first size has as many rows as x, which holds if its other sizes
    are as large.
    """
    rest, own = list(shape[1:]), list(x.sizes[1:])
    return -1 not in rest and -1 not in own and int(np.prod(rest)) == int(np.prod(own))


@rule("squeeze", "squeeze2")
def squeeze(g: Graph, op: Op) -> Value:
    x = op["X"]
    axes = [a % x.rank for a in op.attr("axes") or ()]
    if not axes:
        axes = [i for i, n in enumerate(x.sizes) if n == 1]
    axes = [a for a in axes if x.sizes[a] in (1, -1)]
    return g.squeeze(x, axes).ragged(x.lengths if 0 not in axes else ())


@rule("unsqueeze", "unsqueeze2")
def unsqueeze(g: Graph, op: Op) -> Value:
    x = op["X"]
    op.refuse("AxesTensor", "AxesTensorList")
    made, lengths = x, x.lengths
    for axis in op.attr("axes"):  # each refers to the shape made so far
        axis = axis + made.rank + 1 if axis < 0 else axis
        lengths = () if axis == 0 else lengths
        made = g.unsqueeze(made, [axis])
    return made.ragged(lengths)


@rule("flatten", "flatten2")
def flatten(g: Graph, op: Op) -> Value:
    x, axis = op["X"], int(op.attr("axis"))
    before, behind = x.sizes[:axis], x.sizes[axis:]
    shape = tuple(-1 if -1 in part else int(np.prod(part)) for part in (before, behind))
    return g.add("Flatten", x, shape=shape, axis=axis).ragged(x.lengths if axis == 1 else ())


@rule("flatten_contiguous_range")
def flatten_range(g: Graph, op: Op) -> Value:
    x = op["X"]
    if not x.rank:
        return g.reshape(x, [1])
    start, stop = (int(op.attr(n)) % x.rank for n in ("start_axis", "stop_axis"))
    inner = x.sizes[start : stop + 1]
    middle: Size = -1 if -1 in inner else int(np.prod(inner))
    around = [*range(start), *range(stop + 1, x.rank)]
    sizes: list[Size] = [g.size(x, a) if a > start or middle != -1 else 0 for a in around]
    if middle == -1 and any(isinstance(g.size(x, a), Value) for a in around if a > stop):
        sizes = [g.size(x, a) for a in around]
    target = [*sizes[:start], middle, *sizes[start:]]
    shape = tuple(x.sizes[a] for a in around)
    made = g.add("Reshape", x, g.vector(target), shape=(*shape[:start], int(middle), *shape[start:]))  # type: ignore[arg-type]  # fmt: skip
    return made


@rule("transpose", "transpose2")
def transpose(g: Graph, op: Op) -> Value:
    x, order = op["X"], list(op.attr("axis"))
    return g.transpose(x, order).ragged(x.lengths if order[0] == 0 else ())


@rule("concat")
def concat(g: Graph, op: Op) -> Value:
    parts = op.all("X")
    given = op.get("AxisTensor")
    if given is not None and given.const is None:
        op.refuse("AxisTensor")
    axis = int(op.attr("axis") if given is None else given.const.item())  # type: ignore[union-attr]
    lengths = next((p.lengths for p in parts if p.lengths), ())
    along = axis % parts[0].rank
    return g.concat(parts, axis).ragged(lengths if along else ())


@rule("split")
def split(g: Graph, op: Op) -> dict[str, Any]:
    x = op["X"]
    given = op.get("AxisTensor")
    if given is not None and given.const is None:
        op.refuse("AxisTensor")
    axis = int(op.attr("axis") if given is None else given.const.item()) % x.rank  # type: ignore[union-attr]
    count = len(op.desc.output("Out"))
    sections = list(op.attr("sections") or ())
    op.refuse("SectionsTensorList")
    whole = x.sizes[axis]
    if sections and -1 in sections:
        if whole < 0:
            raise Lacking("a section follows from an open size")
        sections = [whole - sum(sections) - 1 if n == -1 else n for n in sections]
    elif not sections:
        if whole < 0:
            size = g.size(x, axis)
            assert isinstance(size, Value)
            part = g.over(size, count)
            parts = g.many("Split", [x, g.concat([part] * count, 0)], [(x.dtype, x.shape)] * count, axis=axis)  # fmt: skip
            return {"Out": [p.ragged(x.lengths if axis else ()) for p in parts]}
        sections = [whole // count] * count
    return {"Out": [p.ragged(x.lengths if axis else ()) for p in g.split(x, axis, sections)]}


@rule("stack")
def stack(g: Graph, op: Op) -> Value:
    parts = op.all("X")
    axis = int(op.attr("axis")) % (parts[0].rank + 1)
    return g.concat([g.unsqueeze(p, [axis]) for p in parts], axis)


@rule("unstack", "unbind")
def unstack(g: Graph, op: Op) -> list[Value] | dict[str, Any]:
    x = op["X"]
    axis = int(op.attr("axis")) % x.rank
    slot = "Y" if op.type == "unstack" else "Out"
    count = len(op.desc.output(slot))
    return {slot: [g.squeeze(p, [axis]) for p in g.split(x, axis, [1] * count)]}


@rule("expand", "tile")
def expand(g: Graph, op: Op) -> Value:
    x = op["X"]
    names = (
        ("ExpandTimes", "expand_times_tensor", "expand_times")
        if op.type == "expand"
        else ("RepeatTimes", "repeat_times_tensor", "repeat_times")
    )
    times = numbers(g, op, *names)
    lead = max(x.rank, len(times))
    times = [*[1] * (lead - len(times)), *times]
    x = g.unsqueeze(x, range(lead - x.rank))
    if all(isinstance(t, int) and t == 1 for t in times):
        return x
    shape = tuple(
        n * t if isinstance(t, int) and n >= 0 else -1 for n, t in zip(x.sizes, times, strict=True)
    )
    made = g.add("Tile", x, g.vector(times), shape=shape)
    return made.ragged(x.lengths if times[0] == 1 else ())


@rule("expand_v2")
def expand_to(g: Graph, op: Op) -> Value:
    x = op["X"]
    sizes = numbers(g, op, "Shape", "expand_shapes_tensor", "shape")
    behind = len(sizes) - x.rank
    sizes = [
        (g.size(x, i - behind) if i >= behind else 1) if isinstance(n, int) and n == -1 else n
        for i, n in enumerate(sizes)
    ]
    return g.expand(x, sizes)


@rule("expand_as", "expand_as_v2")
def expand_as(g: Graph, op: Op) -> Value:
    x = op["X"]
    slot = next((s for s in ("target_tensor", "Y") if op.has(s)), None)
    if slot is None:
        return g.expand(x, list(op.attr("target_shape")))
    target = op[slot]
    if op.type == "expand_as":
        times = [
            n // m if n >= 0 and m > 0 else None for n, m in zip(target.sizes, x.sizes, strict=True)
        ]
        if None not in times:
            return g.add("Tile", x, g.ints(*times), shape=target.shape)  # type: ignore[arg-type]
        return g.add("Tile", x, g.binary("Div", g.shape(target), g.shape(x)), shape=target.shape)
    return g.add("Expand", x, g.shape(target), shape=target.shape)


@rule("slice")
def cut(g: Graph, op: Op) -> Value:
    x, axes = op["Input"], list(op.attr("axes"))
    if x.many:
        raise Lacking("it cuts a list of tensors")
    starts = numbers(g, op, "StartsTensor", "StartsTensorList", "starts")
    ends = numbers(g, op, "EndsTensor", "EndsTensorList", "ends")
    gone = [a % x.rank for a in op.attr("decrease_axis") or ()]
    axes = [a % x.rank for a in axes]
    if gone:
        # -1 for the last element: the end of its slice is the end
        ends = [
            2**31 - 1 if isinstance(s, int) and s == -1 and isinstance(e, int) and e == 0 and a in gone else e
            for a, s, e in zip(axes, starts, ends, strict=True)
        ]  # fmt: skip
        if any(isinstance(s, Value) and a in gone for a, s in zip(axes, starts, strict=True)):
            starts = [
                _from_front(g, x, a, s) if isinstance(s, Value) and a in gone else s
                for a, s in zip(axes, starts, strict=True)
            ]
        ends = [
            g.plus(s, 1) if isinstance(s, Value) and a in gone else e
            for a, s, e in zip(axes, starts, ends, strict=True)
        ]
    made = sliced(g, x, axes, starts, ends, [1] * len(axes))
    made = g.squeeze(made, gone)
    if op.declared("Out") is not None and made.shape == () and op.declared("Out").shape == (1,):  # type: ignore[union-attr]
        made = g.reshape(made, [1])  # no axis is left: Fluid keeps one
    elif made.shape == () and op.declared("Out") is None:
        made = g.reshape(made, [1])
    return made.ragged(x.lengths if 0 not in axes else ())


def _from_front(g: Graph, x: Value, axis: int, at: Value) -> Value:
    """A position, which may be counted from the end."""
    size = g.vector([g.size(x, axis)])
    return g.where(g.binary("Less", at, g.ints(0), "bool"), g.plus(at, size), at)


def sliced(
    g: Graph,
    x: Value,
    axes: Sequence[int],
    starts: Sequence[Size],
    ends: Sequence[Size],
    steps: Sequence[int],
) -> Value:
    shape = list(x.sizes)
    for a, s, e, step in zip(axes, starts, ends, steps, strict=True):
        size, shape[a] = shape[a], -1
        if isinstance(s, int) and isinstance(e, int):
            if size >= 0:
                shape[a] = len(range(size)[s:e:step])
            elif s >= 0 and e - s == step == 1:
                shape[a] = 1
    if x.const is not None and all(isinstance(n, int) for n in [*starts, *ends]):
        index = [slice(None)] * x.rank
        for a, s, e, step in zip(axes, starts, ends, steps, strict=True):
            index[a] = slice(s, e, step)
        return g.constant(x.const[tuple(index)])
    inputs = [g.vector(starts), g.vector(ends), g.ints(*axes)]
    if any(s != 1 for s in steps):
        inputs.append(g.ints(*steps))
    return g.add("Slice", x, *inputs, shape=tuple(shape))


@rule("strided_slice")
def strided_slice(g: Graph, op: Op) -> Value:
    x = op["Input"]
    op.refuse("StridesTensor", "StridesTensorList", "StartsTensor", "StartsTensorList", "EndsTensor", "EndsTensorList")  # fmt: skip
    axes = [a % x.rank for a in op.attr("axes")]
    steps = list(op.attr("strides"))
    if any(s < 0 for s in steps):
        raise Lacking("it goes backwards", "reverse, and slice forwards")
    made = sliced(g, x, axes, list(op.attr("starts")), list(op.attr("ends")), steps)
    return g.squeeze(made, [a % x.rank for a in op.attr("decrease_axis") or ()])


@rule("reverse")
def reverse(g: Graph, op: Op) -> Value:
    x = op["X"]
    axes = [a % x.rank for a in op.attr("axis")]
    count = len(axes)
    return sliced(g, x, axes, [-1] * count, [-(2**62)] * count, [-1] * count)


@rule("pad", "pad2d", "pad3d")
def pad(g: Graph, op: Op) -> Value:
    x = op["X"]
    op.refuse("Paddings")
    widths = list(op.attr("paddings"))
    mode, value = op.attr("mode") or "constant", op.attr("pad_value")
    if op.type == "pad":
        before, after = widths[::2], widths[1::2]
    else:
        last = str(op.attr("data_format")).endswith("C")
        if op.type == "pad2d":  # top, bottom, left, right
            pairs = [(widths[0], widths[1]), (widths[2], widths[3])]
        else:  # left, right, top, bottom, front, back
            value = op.attr("value")
            pairs = [(widths[4], widths[5]), (widths[2], widths[3]), (widths[0], widths[1])]
        pairs = [(0, 0), *pairs, (0, 0)] if last else [(0, 0), (0, 0), *pairs]
        before, after = [p[0] for p in pairs], [p[1] for p in pairs]
    if mode == "circular" and g.opset < 19:
        raise Lacking("padding in a circle needs opset 19", "opset=19")
    kind = {"constant": "constant", "reflect": "reflect", "edge": "edge", "replicate": "edge", "circular": "wrap"}[mode]  # fmt: skip
    return padded(g, x, before, after, kind, value)


def padded(
    g: Graph, x: Value, before: Sequence[int], after: Sequence[int], mode: str, value: float
) -> Value:
    if not any(before) and not any(after):
        return x
    shape = tuple(
        n + b + a if n >= 0 else -1 for n, b, a in zip(x.sizes, before, after, strict=True)
    )
    inputs = [g.ints(*before, *after)]
    if mode == "constant":
        inputs.append(g.number(value, x))
    return g.add("Pad", x, *inputs, shape=shape, mode=mode)


@rule("pad_constant_like")
def pad_like(g: Graph, op: Op) -> Value:
    x, y = op["X"], op["Y"]
    lack = g.minus(g.shape(x), g.shape(y))
    pads = g.concat([g.constant(np.zeros(x.rank, np.int64)), lack], 0)
    return g.add("Pad", y, pads, g.number(op.attr("pad_value"), y), shape=x.shape, mode="constant")


@rule("crop", "crop_tensor")
def crop(g: Graph, op: Op) -> Value:
    """Crop; a size of -1 means everything behind the offset."""
    x = op["X"]
    op.refuse("Shape", "ShapeTensor", "OffsetsTensor")
    starts = numbers(g, op, "Offsets", "", "offsets") or [0] * x.rank
    y = op.get("Y") if op.type == "crop" else None
    shape: list[Size] = [g.size(y, a) for a in range(y.rank)] if y is not None else list(op.attr("shape"))  # fmt: skip
    axes = list(range(x.rank))
    ends: list[Size] = []
    for a in axes:
        start, size = starts[a], shape[a]
        if isinstance(size, int) and size == -1:
            ends.append(2**31 - 1)
        elif isinstance(start, int) and isinstance(size, int):
            ends.append(start + size)
        else:
            ends.append(g.plus(g.vector([start]), g.vector([size])))
    made = sliced(g, x, axes, [starts[a] for a in axes], ends, [1] * len(axes))
    known = [
        n if isinstance(n, int) and n >= 0 else m for n, m in zip(shape, made.sizes, strict=True)
    ]
    return Value(made.name, made.dtype, tuple(known), made.const)


@rule("space_to_depth")
def space_to_depth(g: Graph, op: Op) -> Value:
    raise Lacking("Fluid's space_to_depth orders its channels in another way")


@rule("pixel_shuffle")
def pixel_shuffle(g: Graph, op: Op) -> Value:
    x, r = op["X"], int(op.attr("upscale_factor"))
    if str(op.attr("data_format")) == "NHWC":
        raise Lacking("its channels are last")
    n, c, h, w = x.sizes
    shape = (n, c // (r * r) if c > 0 else -1, *(m * r if m >= 0 else -1 for m in (h, w)))
    return g.add("DepthToSpace", x, shape=shape, blocksize=r, mode="CRD")


@rule("shuffle_channel")
def shuffle_channel(g: Graph, op: Op) -> Value:
    x, groups = op["X"], int(op.attr("group"))
    sizes = [g.size(x, a) for a in range(4)]
    if not isinstance(sizes[1], int):
        raise Lacking("the number of channels is open")
    apart = g.reshape(x, [sizes[0], groups, sizes[1] // groups, sizes[2], sizes[3]])
    return g.reshape(g.transpose(apart, [0, 2, 1, 3, 4]), sizes)


@rule("temporal_shift")
def temporal_shift(g: Graph, op: Op) -> Value:
    x, times, ratio = op["X"], int(op.attr("seg_num")), float(op.attr("shift_ratio"))
    if str(op.attr("data_format")) == "NHWC" or x.sizes[1] < 0:
        raise Lacking("its channels are last, or their number is open")
    c = x.sizes[1]
    first, second = int(c * ratio), int(c * 2 * ratio)
    sizes = [g.size(x, a) for a in range(4)]
    apart = g.reshape(x, [-1, times, *sizes[1:]])
    back = g.slice(apart, 2, 0, first)
    fore = g.slice(apart, 2, first, second)
    rest = g.slice(apart, 2, second, c)
    back = g.slice(padded(g, back, [0, 1, 0, 0, 0], [0] * 5, "constant", 0.0), 1, 0, times)
    fore = g.slice(padded(g, fore, [0] * 5, [0, 1, 0, 0, 0], "constant", 0.0), 1, 1, times + 1)
    return g.reshape(g.concat([back, fore, rest], 2), sizes)


@rule("shape")
def shape(g: Graph, op: Op) -> Value:
    return g.cast(g.shape(op["Input"]), "int32")


@rule("size")
def size(g: Graph, op: Op) -> Value:
    return g.reshape(g.add("Size", op["Input"], dtype="int64", shape=()), [1])


@rule("roll")
def roll(g: Graph, op: Op) -> Value:
    x = op["X"]
    op.refuse("ShiftsTensor")
    shifts, axes = list(op.attr("shifts")), list(op.attr("dims") or op.attr("axis") or ())
    made = x
    if not axes:
        made = g.reshape(x, [-1])
        axes = [0]
    for shift, axis in zip(shifts, axes, strict=True):
        axis %= made.rank
        n = made.sizes[axis]
        if n < 0 and abs(shift) > 1:
            raise Lacking("an axis of open size is rolled by more than one")
        by = -shift if n < 0 else -shift % max(n, 1)
        made = g.concat([g.slice(made, axis, by, 2**62), g.slice(made, axis, 0, by)], axis)
    return g.reshape(made, [g.size(x, a) for a in range(x.rank)])
