"""core.Graph: block 0 of a program as nodes and links. A variable has one node for each time it is
written.

Nodes are numbered as they are made, and every method that takes nodes in some order takes them by
number. Ops are ordered by a depth first search from the lowest number, each behind the ops that it
needs, as in Paddle. A node without a variable stands for an order alone: one op reads a variable
before another op writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..errors import FluidTypeError, FluidValueError
from ..ir import edit
from ..ir.desc import BlockDesc, FrozenMap, ProgramDesc
from ..ir.desc import VarDesc as VarValue
from .described import OpDesc, VarDesc

CONTROL = "__control_var"


class Node:
    """A variable as one op leaves it, an op, or an order between ops."""

    __slots__ = ("_desc", "_id", "_name", "inputs", "outputs")

    def __init__(self, number: int, name: str, desc: VarDesc | OpDesc | None) -> None:
        self._id, self._name, self._desc = number, name, desc
        self.inputs: list[Node] = []
        self.outputs: list[Node] = []

    def id(self) -> int:
        return self._id

    def name(self) -> str:
        """The variable's name, or the op's type."""
        return self._desc.type() if isinstance(self._desc, OpDesc) else self._name

    def is_op(self) -> bool:
        return isinstance(self._desc, OpDesc)

    def is_var(self) -> bool:
        return not self.is_op()

    def is_ctrl_var(self) -> bool:
        return self._desc is None and self._name.startswith(CONTROL)

    def op(self) -> Any:
        """The op's description, None for other nodes."""
        return self._desc if isinstance(self._desc, OpDesc) else None

    def var(self) -> Any:
        """The variable's description, None for other nodes."""
        return self._desc if isinstance(self._desc, VarDesc) else None

    def __repr__(self) -> str:
        return f"<{'op' if self.is_op() else 'variable'} {self._id}: {self.name()}>"


class Graph:
    """Block 0 of a program as nodes; the program's other blocks do not change.

    Raises FluidTypeError for anything but a program's desc.
    """

    def __init__(self, desc: ProgramDesc) -> None:
        if not isinstance(desc, ProgramDesc):
            raise FluidTypeError(
                "core.Graph takes a program's desc (core.Graph(program.desc)), not"
                f" {type(desc).__name__}"
            )
        self._origin = desc
        self._nodes: dict[Node, None] = {}
        self._count = 0
        self._uid = 1 + edit.max_uid(desc)
        self._attrs: dict[str, Any] = {}
        self.resolve_hazard(self._read(desc.blocks[0]))

    def _read(self, block: BlockDesc) -> dict[str, list[Node]]:
        """Make nodes for a block's ops; returns a variable's nodes in order, by name."""
        versions: dict[str, list[Node]] = {}

        def made(name: str) -> Node:
            found = block.vars.get(name)
            node = (
                self._new(name, None) if found is None else self.create_var_node(VarDesc.of(found))
            )
            versions.setdefault(name, []).append(node)
            return node

        for value in block.ops:
            node = self._new(value.type, OpDesc.of(value))
            for name in node.op().input_arg_names():
                link(versions[name][-1] if name in versions else made(name), node)
            for name in node.op().output_arg_names():
                link(node, made(name))
        return versions

    def _new(self, name: str, desc: VarDesc | OpDesc | None) -> Node:
        node = Node(self._count, name, desc)
        self._count += 1
        self._nodes[node] = None
        return node

    def nodes(self) -> list[Node]:
        """All nodes, by number."""
        return list(self._nodes)

    def __contains__(self, node: Any) -> bool:
        return node in self._nodes

    def create_var_node(self, desc: VarDesc) -> Node:
        """A node for a variable, with a description of its own."""
        return self._new(desc.name(), VarDesc.of(desc.value))

    def create_op_node(self, desc: OpDesc) -> Node:
        """A node for a new op, with a description of its own."""
        value = replace(desc.value, uid=self._uid)
        self._uid += 1
        return self._new(value.type, OpDesc.of(value))

    def create_control_dep_var(self) -> Node:
        """A node that stands for the order of two ops."""
        return self._new(f"{CONTROL}@{self._count}", None)

    def create_empty_node(self, name: str) -> Node:
        """A node of a variable without a description."""
        return self._new(name, None)

    def remove(self, nodes: Iterable[Node]) -> None:
        """Remove nodes and their links."""
        gone = set(nodes)
        for node in gone:
            for near in (*node.inputs, *node.outputs):
                near.inputs[:] = [n for n in near.inputs if n is not node]
                near.outputs[:] = [n for n in near.outputs if n is not node]
            self._nodes.pop(node, None)

    def clone(self) -> Graph:
        """A graph of the same program."""
        return Graph(self.to_desc())

    def has(self, name: str) -> bool:
        """Whether a value was set under this name."""
        return name in self._attrs

    def set(self, name: str, value: Any) -> None:
        self._attrs[name] = value

    def get(self, name: str) -> Any:
        return self._attrs[name]

    def erase(self, name: str) -> None:
        del self._attrs[name]

    def op_links(self) -> dict[Node, list[Node]]:
        """For each op, by number, the numbers of the ops that it needs."""
        return {
            n: sorted({op for var in n.inputs for op in var.inputs}, key=Node.id)
            for n in self._nodes
            if n.is_op()
        }

    def sorted_ops(self) -> list[Node]:
        """All ops, each behind the ops that it needs. Raises FluidValueError if ops need one
        another.
        """
        links = self.op_links()
        done: dict[Node, None] = {}
        open_: set[Node] = set()
        for first in links:
            path: list[tuple[Node, Iterator[Node]]] = (
                [] if first in done else [(first, iter(links[first]))]
            )
            open_.update(n for n, _ in path)
            while path:
                node, rest = path[-1]
                needed = next((n for n in rest if n not in done), None)
                if needed is None:
                    done[node] = None
                    open_.discard(node)
                    path.pop()
                elif needed in open_:
                    raise FluidValueError(
                        f"the graph has a circle, through ops {needed.name()} and {node.name()}"
                    )
                else:
                    open_.add(needed)
                    path.append((needed, iter(links[needed])))
        return list(done)

    def resolve_hazard(self, versions: Mapping[str, list[Node]]) -> None:
        """Make each op that writes a variable wait for the ops that wrote and read it before.
        versions: a variable's nodes in order.
        """
        for name in sorted(versions):
            nodes = versions[name]
            for old, new in reversed(list(pairwise(nodes))):
                if not new.inputs:
                    continue
                writer = new.inputs[0]
                for op in old.inputs[:1]:
                    self._order(op, writer)
                for op in list(old.outputs):
                    if op is not writer and not any(n in writer.inputs for n in op.outputs):
                        self._order(op, writer)

    def _order(self, first: Node, then: Node) -> None:
        between = self.create_control_dep_var()
        link(first, between)
        link(between, then)

    def to_desc(self) -> ProgramDesc:
        """The program: its ops in order, and the variables that have nodes (all variables if other
        blocks may use them).
        """
        blocks = self._origin.blocks
        kept = dict(blocks[0].vars) if len(blocks) > 1 else {}
        for node in self._nodes:
            if node.var() is not None and node.name() not in kept:
                kept[node.name()] = _saved(node.var().value)
        ops = tuple(n.op().value for n in self.sorted_ops())
        return ProgramDesc((BlockDesc(FrozenMap(kept), ops), *blocks[1:]), self._origin.seed)


def link(first: Node, then: Node) -> None:
    """A link from one node to another one."""
    first.outputs.append(then)
    then.inputs.append(first)


def _saved(var: VarValue) -> VarValue:
    """The parts of a variable that a graph keeps: those that a file keeps, and whether it is
    fed.
    """
    return replace(var, stop_gradient=False, is_parameter=False, trainable=True)
