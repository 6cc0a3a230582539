"""HLO as a graph of values: calls inlined, equal values merged, what nothing needs left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .hlo import Instruction, Module, arrays, nbytes, rank

# They give their operand another shape or name, not another place.
SAME_PLACE = frozenset({"reshape", "bitcast", "bitcast-convert", "optimization-barrier", "copy"})
BODIES = {"while": ("body", "condition"), "conditional": ("true_computation", "false_computation")}


@dataclass(eq=False, slots=True)
class Value:
    """The result of an instruction. inside: bytes that its own computations need while it runs."""

    opcode: str
    operands: tuple[Value, ...]
    type: str
    order: int
    inside: int = 0
    bytes: int = field(init=False)
    rank: int = field(init=False)

    def __post_init__(self) -> None:
        self.bytes, self.rank = nbytes(self.type), rank(self.type)


@dataclass(frozen=True)
class Graph:
    """values: in an order in which they can be computed. takes_over: output -> the parameter whose memory it takes."""

    parameters: tuple[Value, ...]
    values: tuple[Value, ...]
    outputs: tuple[Value, ...]
    takes_over: dict[Value, Value]


Inside = Callable[[str], int]  # computation -> the bytes that it needs beside its arguments


def build(module: Module, name: str, inside: Inside) -> Graph:
    """The graph of a computation of the module."""
    builder = _Builder(module, inside)
    parameters = [i for i in module.computations[name] if i.opcode == "parameter"]
    given = [builder.parameter(i.type) for i in sorted(parameters, key=lambda i: int(i.operands))]
    outputs = _flat([builder.run(name, given)])
    leaves = _flat(given)
    aliases = module.aliases if name == module.entry else dict(enumerate(range(len(outputs)))) if len(leaves) == len(outputs) else {}
    takes_over: dict[Value, Value] = {}
    for out, param in aliases.items():
        if out < len(outputs) and param < len(leaves) and outputs[out].opcode != "parameter":
            takes_over.setdefault(outputs[out], leaves[param])
    return Graph(tuple(leaves), _needed(builder.values, outputs), tuple(outputs), takes_over)


def _flat(values: Iterable[Any]) -> list[Value]:
    """The values of nested tuples, in order."""
    found: list[Value] = []
    for v in values:
        found.extend(_flat(v) if isinstance(v, list) else [v])
    return found


def _needed(values: Sequence[Value], outputs: Sequence[Value]) -> tuple[Value, ...]:
    needed = set(outputs)
    for v in reversed(values):
        if v in needed:
            needed.update(v.operands)
    return tuple(v for v in values if v in needed)


class _Builder:
    """Tuples are lists of values while the graph is built."""

    def __init__(self, module: Module, inside: Inside) -> None:
        self.module, self.inside = module, inside
        self.values: list[Value] = []
        self.known: dict[Any, Value] = {}

    def parameter(self, kind: str) -> Any:
        if not kind.startswith("("):
            return Value("parameter", (), kind, -1)
        return [Value("parameter", (), f"{dtype}[{','.join(map(str, shape))}]", -1) for dtype, shape in arrays(kind)]

    def run(self, name: str, given: Sequence[Any]) -> Any:
        """The value, or the list of values, that a computation returns."""
        env: dict[str, Any] = {}
        for i in self.module.computations[name]:
            env[i.name] = self.result(i, env, given)
            if i.root:
                return env[i.name]
        raise AssertionError(f"computation {name} has no root")

    def result(self, i: Instruction, env: dict[str, Any], given: Sequence[Any]) -> Any:
        if i.opcode == "parameter":
            return given[int(i.operands)]
        operands = [env[n.split("%")[-1]] for n in i.operands.split(", ")] if i.operands and i.opcode != "constant" else []
        if i.opcode == "call":
            return self.run(i.attribute("to_apply"), operands)
        if i.opcode == "tuple":
            return operands
        if i.opcode == "get-tuple-element":
            return operands[0][int(i.attribute("index"))] if isinstance(operands[0], list) else operands[0]
        if i.opcode in SAME_PLACE:
            return operands[0]
        if i.opcode == "convolution":
            return self.convolution(i, operands)
        key = i.operands if i.opcode == "constant" else ""
        return self.value(i.opcode, _flat(operands), i.type, i.attributes + key, self.bodies(i))

    def value(self, opcode: str, operands: Sequence[Value], kind: str, attributes: str, inside: int = 0) -> Value:
        key = (opcode, tuple(operands), kind, attributes)
        if key not in self.known:
            self.known[key] = Value(opcode, tuple(operands), kind, len(self.values), inside)
            self.values.append(self.known[key])
        return self.known[key]

    def bodies(self, i: Instruction) -> int:
        """What the loop or the branches of an instruction need, of which one runs at a time."""
        names = [i.attribute(a) for a in BODIES.get(i.opcode, ())]
        if i.opcode == "conditional":
            names += [n.strip(" %") for n in i.attributes.partition("branch_computations={")[2].partition("}")[0].split(",")]
        return max((self.inside(n) for n in names if n in self.module.computations), default=0)

    def convolution(self, i: Instruction, operands: Sequence[Any]) -> Value:
        """XLA:CPU convolves [batch, ..., feature] with [..., in, out]; what is laid out otherwise is transposed first."""
        labels, _, out = i.attribute("dim_labels").partition("->")
        left, _, right = labels.partition("_")
        spatial = "".join(sorted(c for c in left if c.isdigit()))
        ready = [
            self.transposed(operands[0], left, f"b{spatial}f"),
            self.transposed(operands[1], right, f"{spatial}io"),
        ]
        return self.transposed(self.value("convolution", ready, i.type, i.attributes), out, f"b{spatial}f")

    def transposed(self, value: Value, labels: str, wanted: str) -> Value:
        return value if labels == wanted else self.value("transpose", [value], value.type, f"{labels}:{wanted}")
