"""Open sizes as values of a Fluid program: what is fed gives them, and ops on integers compute the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ...ir import dims
from ..match import Refused

Add = Callable[..., str]


@dataclass(frozen=True)
class Size:
    """A size in the variable `name`, int32 [1]. Arithmetic on it appends ops."""

    name: str
    add: Add = field(repr=False)

    def __add__(self, other: Size | int) -> Size:
        return self._with(other, "elementwise_add", bias=other)

    def __sub__(self, other: Size | int) -> Size:
        less = other if isinstance(other, Size) else -other
        return self._with(less, "elementwise_sub", bias=less)

    def __rsub__(self, other: int) -> Size:
        return -self + other

    def __mul__(self, other: Size | int) -> Size:
        return self._with(other, "elementwise_mul", scale=other)

    def __neg__(self) -> Size:
        return self * -1

    def __pow__(self, power: int) -> Size:
        found = self
        for _ in range(power - 1):
            found = found * self
        return found

    __radd__, __rmul__ = __add__, __mul__

    def beside(self, other: Size | int, kind: str) -> Size:
        """An elementwise op of Fluid's that has no form for a number."""
        if not isinstance(other, Size):
            other = number(other, self.add)
        return Size(self.add(kind, {"X": self.name, "Y": other.name}), self.add)

    def _with(self, other: Size | int, kind: str, **scaled: Any) -> Size:
        if isinstance(other, Size):
            return self.beside(other, kind)
        held = {"scale": 1.0, "bias": 0.0} | {k: float(v) for k, v in scaled.items()}
        return Size(self.add("scale", {"X": self.name}, **held), self.add)


def number(value: int, add: Add) -> Size:
    return Size(add("fill_constant", {}, shape=[1], value=float(value), dtype=2), add)


def computed(text: str, fed: Iterable[tuple[str, int, str]], add: Add) -> Size:
    """The value of a size. fed: the open sizes of what is fed, as triples of variable, axis and
    text. Raises Refused if they do not give it.
    """
    known: dict[str, Size] = {}
    for name, axis, given in sorted(fed, key=lambda each: each[2] != text):
        wanted = given == text or (len(dims.symbols(given)) == 1 and dims.symbols(given) <= dims.symbols(text))  # fmt: skip
        symbol = given if given == text else next(iter(dims.symbols(given)), "")
        if not wanted or symbol in known:
            continue
        line = (0, 1) if given == symbol else dims.line(given, symbol)
        if line is None:
            continue
        sizes = add("shape", {"Input": name})
        at = {"axes": [0], "starts": [axis], "ends": [axis + 1], "infer_flags": [1]}
        size = Size(add("slice", {"Input": sizes}, **at), add)
        if given == text:
            return size
        first, step = line
        size = size - first if first else size
        known[symbol] = size if step == 1 else _divided(size, step)
    if dims.symbols(text) - known.keys():
        raise Refused(f"nothing that is fed has the size {text}")
    found = dims.value(text, known, _FUNCTIONS)
    return found if isinstance(found, Size) else number(found, add)


def _divided(a: Any, b: Any) -> Any:
    return a.beside(b, "elementwise_floordiv")


def _either(kind: str) -> Callable[[Any, Any], Any]:
    """An op whose operands may change places."""
    return lambda a, b: a.beside(b, kind) if isinstance(a, Size) else b.beside(a, kind)


_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": _divided,
    "mod": lambda a, b: a.beside(b, "elementwise_mod"),
    "max": _either("elementwise_max"),
    "min": _either("elementwise_min"),
}
