"""Turns a program into a graph of ONNX nodes, op by op, by the table of rules."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from ..base.dtypes import REAL_OF, numpy_dtype
from ..errors import FluidError
from ..ir.desc import EMPTY, OpDesc, ProgramDesc, VarDesc
from ..lower.open import open_attrs
from ..ops.registry import REGISTRY
from .graph import Graph
from .rules import Op, Rule, table
from .values import Lacking, Value

# results of constants are computed during the export, up to this size or that of their inputs
FOLDED = 1 << 20
IGNORED = frozenset({"feed", "fetch", "print", "assert", "delete_var"})


class Exporter:
    """The graph of block 0. lacks: (op type, why, remedy, place) for what the format does not
    support; then the graph is useless.
    """

    def __init__(
        self, desc: ProgramDesc, params: Mapping[str, Any], opset: int, lacks: list[tuple[str, str, str, str]] | None = None,
    ) -> None:  # fmt: skip
        self.desc, self.params = desc, params
        self.graph = Graph(opset)
        self.values: MutableMapping[str, Value] = {}
        self.parameters: dict[str, Value] = {}
        self.block = 0
        self.lacks = [] if lacks is None else lacks
        self.became: dict[str, Counter[str]] = {}
        self.rules: Mapping[str, Rule] = table()
        self._left: Counter[str] = Counter()  # remaining writes of each name
        self._made: set[str] = set()  # outputs of the current op so far
        self.read: frozenset[str] = frozenset(
            n for b in desc.blocks for op in b.ops for n in op.reads
        )

    def given(self, name: str, dtype: str, shape: tuple[int, ...]) -> Value:
        """A fed variable."""
        value = Value(self.graph.names.new(name), dtype, shape)
        self.graph.names.called[value.name] = value.name
        self.graph.inputs.append(value)
        self.values[name] = value
        return value

    def within(self, block: int) -> Exporter:
        """An exporter for a block of this program, in a graph within this graph."""
        made = Exporter(self.desc, self.params, self.graph.opset, self.lacks)
        made.graph, made.block = self.graph.inner(), block
        made.values, made.parameters = ChainMap({}, self.values), self.parameters
        made.became, made.read = self.became, self.read
        return made

    def inlined(
        self, graph: Graph, block: int, args: Sequence[str], values: Sequence[Value], results: Sequence[str],
    ) -> list[Value]:  # fmt: skip
        """The outputs of a block that is a function of its own, for these values, as nodes of a
        graph.
        """
        base, line = graph.base, graph.line
        made = self.within(block)
        made.graph, made.values = graph, dict(zip(args, values, strict=True))
        made.run(self.desc.blocks[block].ops)
        graph.base, graph.line = base, line
        return [made.values[n] for n in results]

    def local(
        self, name: str, dtype: str, shape: tuple[int, ...] | None, many: bool = False, lengths: tuple[Value, ...] = (),
    ) -> Value:  # fmt: skip
        """A variable that is passed to a block."""
        made = Value(self.graph.names.new(f"{name}@in"), dtype, shape, many=many, lengths=lengths)
        self.graph.names.called[made.name] = made.name
        self.values[name] = made
        return made

    def run(self, ops: Iterable[OpDesc]) -> None:
        """Export ops of a block in order."""
        wanted = [op for op in ops if op.type not in IGNORED]
        self._left.update(n for op in wanted for n in op.writes)
        for op in wanted:
            self._op(op)

    def _op(self, op: OpDesc) -> None:
        g = self.graph
        g.line = op.loc or ""
        g.base = next(op.writes, op.type)
        start, before = len(g.nodes), len(self.lacks)
        self._made = set()
        for name in op.reads:
            self._read(name)
        seen = Op(op, self.values, self.var)
        seen.read_later = self.read
        try:
            made = self._folded(op)
            if made is None:
                made = self._by_rule(seen)
            for slot, values in made.items():
                for name, value in zip(op.output(slot), values, strict=False):
                    if value is not None and name != EMPTY:
                        self.named(name, value)
        except Lacking as lack:
            self.lacks.append((op.type, lack.why, lack.remedy, op.loc or ""))
        except (
            ValueError,
            TypeError,
            IndexError,
            KeyError,
            AttributeError,
            AssertionError,
        ) as error:
            said = f"it is used in a way that has no rule ({type(error).__name__}: {error})"
            self.lacks.append((op.type, said, "", op.loc or ""))
        for name in op.writes:
            self._left[name] -= 1
            if len(self.lacks) > before:
                if name not in self.values:
                    self._stand_in(name)
            elif name not in self._made and name not in op.reads:
                self.values.pop(name, None)  # no rule gives it; its reader reports that
        kinds = self.became.setdefault(op.type, Counter())
        kinds.update(node.kind for node in g.nodes[start:])
        kinds[""] += 1

    def _by_rule(self, op: Op) -> dict[str, list[Value | None]]:
        rule = self.rules.get(op.type)
        if rule is None:
            if op.type not in REGISTRY and op.type not in self.rules:
                raise Lacking("no such op is known")
            raise Lacking("it has no rule", "")
        names = (*op.desc.reads, *op.desc.writes)
        if any((var := self.var(n)) is not None and var.dtype in REAL_OF for n in names):
            raise Lacking("its numbers are complex", "write it for their real and imaginary parts")
        if op.desc.blocks:
            op.exporter = self
        made = rule(self.graph, op)
        slots = [s.name for s in REGISTRY[op.type].outputs] if op.type in REGISTRY else list(op.desc.outputs)  # fmt: skip
        if made is None:
            return {}
        if isinstance(made, Value):
            return {slots[0]: [made]}
        if isinstance(made, Mapping):
            return {s: v if isinstance(v, list) else [v] for s, v in made.items()}
        return {s: [v] for s, v in zip(slots, made, strict=False)}

    def var(self, name: str) -> VarDesc | None:
        return self.desc.find_var(name, self.block)

    def _read(self, name: str) -> None:
        """Give a name its value if it is a parameter."""
        if name in self.values or name not in self.params:
            return
        if name in self.parameters:
            self.values[name] = self.parameters[name]
            return
        array = np.asarray(self.params[name])
        wish = name if name not in self.graph.names.taken else f"{name}.value"
        known = self.graph.names.new(wish)
        self.graph.names.constants[known] = array
        self.parameters[name] = Value(known, str(array.dtype), array.shape, array)
        self.values[name] = self.parameters[name]

    def named(self, name: str, value: Value) -> None:
        """Set a variable's value; its last value has its name in the file."""
        self._made.add(name)
        var = self.var(name)
        if var is not None and var.shape is not None and not value.many:
            value = replace(value, shape=var.shape if value.shape is None else value.shape)
        if value.const is None:
            left = self._left[name]
            self.graph.names.call(value, name if left <= 1 else f"{name}@{left - 1}")
        self.values[name] = value

    def _stand_in(self, name: str) -> None:
        """A substitute for a value that could not be exported, so that the rest is still
        checked.
        """
        var = self.var(name)
        if var is None:
            return
        shape = var.shape if var.kind == "LOD_TENSOR" else None
        dtype = str(numpy_dtype(var.dtype)) if var.dtype else "float32"
        lengths = tuple(Value(f"{name} lengths {i}", "int64", (-1,)) for i in range(var.lod_level))
        many = var.kind == "LOD_TENSOR_ARRAY"
        self.values[name] = Value(name, dtype, shape, lengths=lengths, many=many)

    def _folded(self, op: OpDesc) -> dict[str, list[Value | None]] | None:
        """The outputs of an op on constants, computed by the op itself."""
        definition = REGISTRY.get(op.type)
        if definition is None or definition.fn is None or definition.random or op.blocks:
            return None
        if open_attrs(op):
            return None
        found: dict[str, Any] = {}
        size = 0
        for slot in definition.inputs:
            values = [self.values.get(n) for n in op.input(slot.name) if n != EMPTY]
            if any(v is None or v.const is None or v.lengths for v in values):
                return None
            arrays = [v.const for v in values if v is not None]
            size += sum(a.nbytes for a in arrays if a is not None)
            found[slot.name] = arrays if slot.many else arrays[0] if arrays else None
        try:
            with jax.disable_jit(False):
                made = definition(found, op.attrs)
        except (FluidError, TypeError, ValueError):
            return None
        out: dict[str, list[Value | None]] = {}
        for slot_name, result in made.items():
            names = op.output(slot_name)
            results = result if isinstance(result, list | tuple) else [result]
            out[slot_name] = []
            for name, array in zip(names, results, strict=False):
                if not hasattr(array, "dtype") or not hasattr(array, "shape"):
                    return None
                if jax.dtypes.issubdtype(array.dtype, jax.dtypes.extended):  # a random key
                    return None
                array = np.asarray(array)
                if array.nbytes > max(size, FOLDED):
                    return None
                out[slot_name].append(self.graph.constant(array, wish=name))
        return out

    def outputs(self, names: Sequence[str]) -> None:
        """Make these variables the graph's outputs; an output has its variable's name."""
        g = self.graph
        g.line = ""
        for name in names:
            self._read(name)
            if name not in self.values:
                self.lacks.append((f"output '{name}'", "no rule gives it", "", ""))
                continue
            value = self.values[name]
            g.base = name
            if value.lengths:
                from .onnx_ops.sequences import shown

                rows, *lengths = shown(g, value)
                self._output(name, rows)
                for i, each in enumerate(lengths):
                    self._output(_lengths(name, i, len(lengths)), each)
            else:
                self._output(name, value)

    def _output(self, name: str, value: Value) -> None:
        g = self.graph
        called = g.names.called.get(value.name, value.name)
        taken = {v.name for v in g.outputs}
        is_node = any(value.name in node.outputs for node in g.nodes)
        if called == name and is_node and value.name not in taken:
            g.outputs.append(value)
            return
        made = g.like("Identity", value)
        if not g.names.call(made, name):
            self._rename(name)
            g.names.call(made, name)
        g.outputs.append(made)

    def _rename(self, name: str) -> None:
        """Rename an earlier value, or a constant, that has this name."""
        names = self.graph.names
        for made, called in names.called.items():
            if called == name:
                names.called[made] = names.new(f"{name}@0")
                break
        else:
            names.called[name] = names.new(f"{name}@0")
        names.taken.discard(name)


def _lengths(name: str, level: int, levels: int) -> str:
    """The name of the lengths of a variable's rows."""
    return f"{name}.lengths" if levels == 1 else f"{name}.lengths.{level}"
