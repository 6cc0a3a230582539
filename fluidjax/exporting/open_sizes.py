"""Open sizes of a program (``b``, ``2*h + 1``), as numbers that a graph computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import FluidValueError
from ..ir import dims
from .graph import Graph, Size, Value
from .rules import Op
from .values import Lacking


@dataclass(frozen=True, eq=False)
class Length:
    """An operand of `dims.value`: a size that is not a number, which the graph computes."""

    g: Graph
    size: Size

    def _value(self, size: Length | int) -> Value:
        found = size.size if isinstance(size, Length) else size
        return self.g.ints(found) if isinstance(found, int) else found

    def _by(self, kind: str, x: Length | int, y: Length | int) -> Length:
        return Length(self.g, self.g.binary(kind, self._value(x), self._value(y)))

    def __add__(self, other: Length | int) -> Length:
        return self._by("Add", self, other)

    def __sub__(self, other: Length | int) -> Length:
        return self._by("Sub", self, other)

    def __rsub__(self, other: int) -> Length:
        return self._by("Sub", other, self)

    def __mul__(self, other: Length | int) -> Length:
        return self._by("Mul", self, other)

    __radd__, __rmul__ = __add__, __mul__

    def __pow__(self, other: Length | int) -> Length:
        return self._by("Pow", self, other)

    def __neg__(self) -> Length:
        return self._by("Sub", 0, self)

    def __mod__(self, other: Length | int) -> Length:
        return self._by("Mod", self, other)

    def __rmod__(self, other: int) -> Length:
        return self._by("Mod", other, self)

    def __floordiv__(self, other: Length | int) -> Length:
        # Div rounds towards zero; without a remainder there is nothing to round
        return self._by("Div", self - self % other, other)

    def __rfloordiv__(self, other: int) -> Length:
        return self._by("Div", other - other % self, self)

    def __eq__(self, other: object) -> bool:
        """Always equal, because only feeds decide the size."""
        return isinstance(other, int | Length)

    __hash__ = None  # type: ignore[assignment]


def _either(kind: str) -> Callable[[Length | int, Length | int], Length | int]:
    def greatest_or_least(a: Length | int, b: Length | int) -> Length | int:
        for side in (a, b):
            if isinstance(side, Length):
                return side._by(kind, a, b)
        return max(a, b) if kind == "Max" else min(a, b)  # type: ignore[type-var]

    return greatest_or_least


_FUNCTIONS: dims.Functions = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": _either("Max"),
    "min": _either("Min"),
}


def sizes(g: Graph, texts: Sequence[int | str]) -> list[Size]:
    """The sizes in an attribute. Raises Lacking for a name that no input gives."""
    return [size(g, n) for n in texts]


def size(g: Graph, text: int | str) -> Size:
    if not isinstance(text, str):
        return int(text)
    key = ("open size", text)
    if key not in g.cache:
        try:
            if "open sizes" not in g.cache:
                lengths = [(v.name, said, _length(g, v, a)) for said, v, a in g.names.open_axes]
                g.cache["open sizes"] = dims.bound(lengths, _FUNCTIONS)
            found = dims.value(text, g.cache["open sizes"], _FUNCTIONS)
        except FluidValueError as error:
            raise Lacking(str(error)) from None
        g.cache[key] = found.size if isinstance(found, Length) else found
    made: Size = g.cache[key]
    return made


def _length(g: Graph, x: Value, axis: int) -> Length | int:
    found = g.size(x, axis)
    return found if isinstance(found, int) else Length(g, found)


def taken_whole(op: Op, slot: str, texts: Sequence[int | str]) -> list[bool]:
    """For each axis of an input, whether these sizes are its own."""
    x, var = op[slot], op.found(op.desc.input(slot)[0])
    own = var.dims if var is not None and var.dims else ("",) * x.rank
    return [
        str(n) == str(m) or (isinstance(n, str) and n == dims.bare(text))
        for n, m, text in zip(texts, x.sizes, own, strict=True)
    ]


def shape_of(found: Sequence[Size]) -> tuple[int, ...]:
    """The shape in the form of a Value: -1 for sizes that are computed."""
    return tuple(n if isinstance(n, int) else -1 for n in found)
