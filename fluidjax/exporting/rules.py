"""The table of rules from ops to nodes, and an op as rules see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from ..ir.desc import EMPTY, OpDesc, VarDesc
from ..ops.attributes import REQUIRED
from ..ops.registry import REGISTRY
from .graph import Graph
from .values import Lacking, Value

Made = Value | Sequence[Value | None] | Mapping[str, Any] | None


class Op:
    """An op during its export: its inputs as values, its attributes with their defaults."""

    def __init__(
        self, desc: OpDesc, values: Mapping[str, Value], found: Callable[[str], VarDesc | None]
    ) -> None:
        self.desc, self.type = desc, desc.type
        self._values, self._found = values, found
        self.exporter: Any = None  # for an op with blocks, the exporter of its blocks
        self.read_later: frozenset[str] = frozenset()  # names that other ops and the fetches read

    def has(self, slot: str) -> bool:
        return any(n != EMPTY for n in self.desc.input(slot))

    def all(self, slot: str) -> list[Value]:
        return [self.value(n) for n in self.desc.input(slot) if n != EMPTY]

    def value(self, name: str) -> Value:
        if name not in self._values:
            raise Lacking(f"nothing before it gives '{name}'")
        return self._values[name]

    def __getitem__(self, slot: str) -> Value:
        found = self.all(slot)
        if not found:
            raise Lacking(f"it has no input {slot}")
        return found[0]

    def get(self, slot: str) -> Value | None:
        return self[slot] if self.has(slot) else None

    def attr(self, name: str) -> Any:
        """An attribute, or its default in the op's declaration."""
        if name in self.desc.attrs:
            return self.desc.attrs[name]
        definition = REGISTRY.get(self.type)
        declared = None if definition is None else definition.attrs.get(name)
        return None if declared is None or declared.default is REQUIRED else declared.default

    def refuse(self, *slots: str) -> None:
        """Raise Lacking for inputs that the rule does not read."""
        for slot in slots:
            if self.has(slot):
                raise Lacking(f"its input {slot} is given while it runs", f"make {slot} a constant")

    @property
    def exporter_values(self) -> Mapping[str, Value]:
        """The values of all variables so far."""
        return self._values

    def found(self, name: str) -> VarDesc | None:
        """The program's declaration of a variable."""
        return self._found(name)

    def declared(self, slot: str, index: int = 0) -> VarDesc | None:
        """The program's declaration of an output."""
        names = self.desc.output(slot)
        return self._found(names[index]) if index < len(names) else None


Rule = Callable[[Graph, Op], Made]
RULES: dict[str, Rule] = {}
FAMILIES = (
    "pointwise", "shaping", "products", "windows", "indexing", "creation", "sequences", "detection", "control",
    "quantised", "jax_ops",
)  # fmt: skip


def rule(*types: str) -> Callable[[Rule], Rule]:
    """Register the rule of op types.

    The function returns the value of the op's first output; a list, for its outputs slot by slot;
    or {slot: value or values}.
    """

    def declare(function: Rule) -> Rule:
        for kind in types:
            RULES[kind] = function
        return function

    return declare


def table() -> dict[str, Rule]:
    """All rules, by op type."""
    for family in FAMILIES:
        import_module(f".onnx_ops.{family}", __package__)
    return RULES
