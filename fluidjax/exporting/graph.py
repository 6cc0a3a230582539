"""A graph of ONNX nodes under construction: names, shared constants, and helpers for rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .values import Lacking, Value

Size = int | Value  # a known size, or an int64 array of one element
SMALL = 64  # weights with fewer elements are not converted
SHARED = 1 << 16  # constants of up to so many bytes are compared, and equal ones are stored once


@dataclass
class Node:
    """kind: an ONNX op. inputs, outputs: names, "" for none. attrs: as for onnx.helper; a Graph is
    a subgraph.
    """

    kind: str
    inputs: list[str]
    outputs: list[str]
    attrs: dict[str, Any] = field(default_factory=dict)
    place: str = ""  # the user's line


class Names:
    """Names and constants that a whole model shares, including its subgraphs."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.constants: dict[str, np.ndarray] = {}
        self.called: dict[str, str] = {}  # names of values in the file that the rule did not know
        # sizes of inputs that the program leaves open: text -> its axis
        self.open_axes: list[tuple[str, Value, int]] = []
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def new(self, wish: str) -> str:
        """A name that is not in use: the requested one, or that with a number."""
        name, n = wish, 1
        while name in self.taken:
            name, n = f"{wish}.{n}", n + 1
        self.taken.add(name)
        return name

    def call(self, value: Value, wish: str) -> bool:
        """Rename a node's output in the file; False if it has its name already."""
        if value.name in self.called or value.name in self.constants or wish in self.taken:
            return value.name == wish
        self.taken.add(wish)
        self.called[value.name] = wish
        return True

    def constant(self, array: np.ndarray, wish: str) -> str:
        """The name of a constant; equal small constants share one."""
        key = None
        if array.nbytes <= SHARED:
            key = (str(array.dtype), array.shape, array.tobytes())
            if key in self._known:
                return self._known[key]
        name = self.new(wish)
        self.constants[name] = array
        if key is not None:
            self._known[key] = name
        return name


class Graph:
    """Nodes in order. `base`: the base of names for intermediate values; `line`: the user's line of
    the current op.
    """

    def __init__(self, opset: int, names: Names | None = None) -> None:
        self.opset = opset
        self.names = Names() if names is None else names
        self.nodes: list[Node] = []
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.base, self.line = "", ""
        # values that several ops use, such as the grid of some lengths
        self.cache: dict[Any, Any] = {}

    def inner(self) -> Graph:
        """A graph within this one, which can use its names."""
        made = Graph(self.opset, self.names)
        made.base, made.line = self.base, self.line
        made.cache = dict(self.cache)
        return made

    # nodes

    def many(
        self,
        kind: str,
        inputs: Sequence[Value | None],
        outs: Sequence[tuple[str, tuple[int, ...] | None]],
        **attrs: Any,
    ) -> list[Value]:
        """A node with several outputs, of these dtypes and shapes."""
        made = [Value(self.names.new(f"{self.base}/{kind}"), dtype, shape) for dtype, shape in outs]
        given = ["" if v is None else v.name for v in inputs]
        while given and not given[-1]:
            given.pop()
        self.nodes.append(Node(kind, given, [v.name for v in made], attrs, self.line))
        return made

    def add(
        self,
        kind: str,
        *inputs: Value | None,
        dtype: str | None = None,
        shape: tuple[int, ...] | None = None,
        **attrs: Any,
    ) -> Value:
        """A node with one output. dtype: default the first input's."""
        first = next(v for v in inputs if v is not None) if dtype is None else None
        return self.many(kind, inputs, [(dtype or first.dtype, shape)], **attrs)[0]  # type: ignore[union-attr]

    def like(self, kind: str, x: Value, *more: Value, **attrs: Any) -> Value:
        """A node whose output has the dtype, the shape and the rows of its first input."""
        return self.add(kind, x, *more, shape=x.shape, **attrs).ragged(x.lengths)

    # constants

    def constant(self, array: Any, dtype: Any = None, wish: str = "") -> Value:
        array = np.ascontiguousarray(np.asarray(array, dtype)).reshape(np.shape(array))
        name = self.names.constant(array, wish or f"{self.base}/constant")
        return Value(name, str(array.dtype), array.shape, array)

    def ints(self, *numbers: int) -> Value:
        return self.constant(list(numbers), np.int64)

    def number(self, value: float, like: Value) -> Value:
        """A scalar of a value's dtype. Raises Lacking if the dtype is unknown."""
        try:
            return self.constant(np.array(value, _dtype(like.dtype)))
        except OverflowError:
            raise Lacking(f"{value} is not {like.dtype}") from None

    def whole(self, x: Value, dtype: str) -> Value:
        """Weights as floats; whole numbers, which quantisation leaves, are stored in the file as
        int8.
        """
        held = x.const
        if held is None or (held.dtype != np.int8 and held.size < SMALL):
            return self.cast(x, dtype) if x.dtype == "int8" else x
        if held.dtype != np.int8:
            if not x.is_float or np.abs(held).max() > 127 or (held != np.rint(held)).any():
                return x
            held = held.astype(np.int8)
        found = self.constant(held, wish=f"{x.name}.int8")
        one, zero = self.constant(np.ones((), _dtype(dtype))), self.zero_point()
        return self.add("DequantizeLinear", found, one, zero, dtype=dtype, shape=held.shape)

    def zero_point(self) -> Value:
        """An int8 zero that no other node reads: onnxruntime's exact mode for processors without
        VNNI (session.x64quantprecision) rewrites the zero point of each node.
        """
        zero = np.zeros((), np.int8)
        name = self.names.new(f"{self.base}/zero_point")
        self.names.constants[name] = zero
        return Value(name, "int8", (), zero)

    # arithmetic of two values that broadcast as in NumPy

    def binary(self, kind: str, x: Value, y: Value, dtype: str | None = None) -> Value:
        return self.add(kind, x, y, dtype=dtype, shape=broadcast(x.shape, y.shape))

    def plus(self, x: Value, y: Value | float) -> Value:
        return self.binary("Add", x, self._operand(y, x))

    def minus(self, x: Value, y: Value | float) -> Value:
        return self.binary("Sub", x, self._operand(y, x))

    def times(self, x: Value, y: Value | float) -> Value:
        return self.binary("Mul", x, self._operand(y, x))

    def over(self, x: Value, y: Value | float) -> Value:
        return self.binary("Div", x, self._operand(y, x))

    def _operand(self, y: Value | float, x: Value) -> Value:
        return y if isinstance(y, Value) else self.number(y, x)

    def where(self, condition: Value, x: Value, y: Value) -> Value:
        if x.dtype == "bool":  # onnxruntime selects no bools
            x, y = (self.cast(v, "int32") for v in (x, y))
            return self.cast(self.where(condition, x, y), "bool")
        shape = broadcast(broadcast(condition.shape, x.shape), y.shape)
        return self.add("Where", condition, x, y, dtype=x.dtype, shape=shape)

    def cast(self, x: Value, dtype: str) -> Value:
        if x.dtype == dtype:
            return x
        if x.const is not None:
            return self.constant(x.const.astype(_dtype(dtype)))
        made = self.add("Cast", x, dtype=dtype, shape=x.shape, to=dtype)
        return made.ragged(x.lengths)

    def count(self, size: Size) -> Value:
        """0, 1, ... below a size, as int64."""
        if isinstance(size, int):
            return self.constant(np.arange(size, dtype=np.int64))
        zero, one = self.constant(0, np.int64), self.constant(1, np.int64)
        return self.add("Range", zero, self.reshape(size, []), one, dtype="int64", shape=(-1,))

    # shapes

    def size(self, x: Value, axis: int) -> Size:
        """One of x's sizes: a number if known, else an array [1] of int64."""
        axis %= x.rank
        if x.sizes[axis] >= 0:
            return x.sizes[axis]
        key = ("size", x.name, axis)
        if key not in self.cache:
            self.cache[key] = self.add("Shape", x, dtype="int64", shape=(1,), start=axis, end=axis + 1)  # fmt: skip
        found: Value = self.cache[key]
        return found

    def shape(self, x: Value) -> Value:
        """x's shape as int64."""
        if x.shape is not None and all(n >= 0 for n in x.shape):
            return self.ints(*x.shape)
        return self.add("Shape", x, dtype="int64", shape=None if x.shape is None else (x.rank,))

    def vector(self, sizes: Sequence[Size]) -> Value:
        """Sizes as one array of int64."""
        if all(isinstance(n, int) for n in sizes):
            return self.ints(*sizes)  # type: ignore[arg-type]
        parts = [n if isinstance(n, Value) else self.ints(n) for n in sizes]
        if len(parts) == 1:
            return parts[0]
        return self.add("Concat", *parts, dtype="int64", shape=(len(parts),), axis=0)

    def multiplied(self, sizes: Sequence[Size]) -> Size:
        """The product of sizes."""
        known = int(np.prod([n for n in sizes if isinstance(n, int)], dtype=np.int64))
        found: Size = known
        for n in sizes:
            if isinstance(n, Value):
                found = n if found == 1 else self.times(n, found)
        return found

    def reshape(self, x: Value, sizes: Sequence[Size]) -> Value:
        """x in another shape; -1 is computed from the other sizes."""
        shape = tuple(n if isinstance(n, int) else -1 for n in sizes)
        if x.shape == shape and shape.count(-1) <= 1:
            return x
        if x.const is not None and all(isinstance(n, int) for n in sizes):
            return self.constant(x.const.reshape(shape))
        if 0 in shape:  # no size is copied, which is written as 0 too
            if any(n == -1 for n in sizes if isinstance(n, int)):
                raise Lacking("a size follows from the rest, of which one is 0")
            target = self.vector(sizes)
        elif shape.count(-1) == 1:
            target = self.ints(*shape)
        else:
            # a size that is copied from the same axis is 0
            stays = [
                isinstance(n, Value) and x.shape is not None and i < len(x.shape) and n is self.cache.get(("size", x.name, i))
                for i, n in enumerate(sizes)
            ]  # fmt: skip
            left = [n if not s else 0 for n, s in zip(sizes, stays, strict=True)]
            if sum(isinstance(n, Value) for n in left) == 1:
                left = [-1 if isinstance(n, Value) else n for n in left]
            target = self.vector(left)
        attrs: dict[str, Any] = {"allowzero": 1} if 0 in shape else {}
        return self.add("Reshape", x, target, shape=shape, **attrs)

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        order = [int(a) % max(x.rank, 1) for a in order]
        if order == list(range(len(order))):
            return x
        if x.const is not None:
            return self.constant(x.const.transpose(order))
        shape = tuple(x.sizes[a] for a in order)
        return self.add("Transpose", x, shape=shape, perm=order)

    def unsqueeze(self, x: Value, axes: Sequence[int]) -> Value:
        """New axes of size 1, as numbered in the result."""
        if not axes:
            return x
        rank = x.rank + len(axes)
        axes = sorted(a % rank for a in axes)
        sizes = list(x.sizes)
        for a in axes:
            sizes.insert(a, 1)
        if x.const is not None:
            return self.constant(x.const.reshape(sizes))
        return self.add("Unsqueeze", x, self.ints(*axes), shape=tuple(sizes))

    def squeeze(self, x: Value, axes: Sequence[int]) -> Value:
        if not axes:
            return x
        axes = sorted(a % x.rank for a in axes)
        shape = tuple(n for i, n in enumerate(x.sizes) if i not in axes)
        if x.const is not None:
            return self.constant(x.const.reshape(shape))
        return self.add("Squeeze", x, self.ints(*axes), shape=shape)

    def slice(self, x: Value, axis: int, start: Size, end: Size, step: int = 1) -> Value:
        """x between two positions of one axis."""
        shape = list(x.sizes)
        axis %= x.rank
        if isinstance(start, int) and isinstance(end, int) and shape[axis] >= 0:
            shape[axis] = len(range(shape[axis])[start:end:step])
        else:
            shape[axis] = -1
        inputs = [self.vector([start]), self.vector([end]), self.ints(axis)]
        if step != 1:
            inputs.append(self.ints(step))
        return self.add("Slice", x, *inputs, shape=tuple(shape))

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        if len(parts) == 1:
            return parts[0]
        shape: list[int] | None = None
        if all(p.shape is not None for p in parts):
            axis %= parts[0].rank
            shape = [max(p.sizes[a] for p in parts) for a in range(parts[0].rank)]
            along = [p.sizes[axis] for p in parts]
            shape[axis] = -1 if -1 in along else sum(along)
        return self.add("Concat", *parts, shape=None if shape is None else tuple(shape), axis=axis)

    def split(self, x: Value, axis: int, sections: Sequence[Size]) -> list[Value]:
        axis %= x.rank
        known = [n if isinstance(n, int) else -1 for n in sections]
        outs = [
            (x.dtype, tuple(n if a == axis else m for a, m in enumerate(x.sizes))) for n in known
        ]
        if len(outs) == 1:
            return [x]
        return self.many("Split", [x, self.vector(sections)], outs, axis=axis)

    def expand(self, x: Value, sizes: Sequence[Size]) -> Value:
        shape = tuple(n if isinstance(n, int) else -1 for n in sizes)
        return self.add("Expand", x, self.vector(sizes), shape=shape)

    def filled(self, value: Any, dtype: str, sizes: Sequence[Size]) -> Value:
        """An array of one value."""
        element = np.array([value], None if isinstance(value, int) else np.float64).astype(
            _dtype(dtype)
        )
        if all(isinstance(n, int) for n in sizes):
            return self.constant(np.full([int(n) for n in sizes], element[0]))  # type: ignore[arg-type]
        shape = tuple(n if isinstance(n, int) else -1 for n in sizes)
        return self.add(
            "ConstantOfShape", self.vector(sizes), dtype=dtype, shape=shape, value=element
        )

    def gather(self, x: Value, index: Value, axis: int = 0) -> Value:
        axis %= x.rank
        shape = None
        if index.shape is not None:
            shape = (*x.sizes[:axis], *index.shape, *x.sizes[axis + 1 :])
        return self.add("Gather", x, index, shape=shape, axis=axis)

    def reduce(self, kind: str, x: Value, axes: Sequence[int] | None, keep: bool) -> Value:
        """kind: "Sum", "Mean", "Max", ... axes None: all axes."""
        over = list(range(x.rank)) if axes is None else sorted({a % x.rank for a in axes})
        shape = tuple(1 if i in over else n for i, n in enumerate(x.sizes) if keep or i not in over)
        if kind == "Sum" or self.opset >= 18:
            return self.add(f"Reduce{kind}", x, self.ints(*over), shape=shape, keepdims=int(keep))
        return self.add(f"Reduce{kind}", x, shape=shape, axes=over, keepdims=int(keep))

    def matmul(self, x: Value, y: Value) -> Value:
        shape = None
        if x.shape is not None and y.shape is not None and min(x.rank, y.rank) >= 2:
            lead = broadcast(x.shape[:-2], y.shape[:-2])
            shape = None if lead is None else (*lead, x.shape[-2], y.shape[-1])
        return self.add("MatMul", x, y, shape=shape)


def _dtype(name: str) -> Any:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def broadcast(x: tuple[int, ...] | None, y: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The shape of two values after broadcasting; -1 for open sizes."""
    if x is None or y is None:
        return None
    rank = max(len(x), len(y))
    a, b = (1,) * (rank - len(x)) + x, (1,) * (rank - len(y)) + y
    return tuple(
        m if n == 1 else n if m in (1, n) or m == -1 else m for n, m in zip(a, b, strict=True)
    )


__all__ = ["Callable", "Graph", "Lacking", "Names", "Node", "Size", "Value", "broadcast", "replace"]
