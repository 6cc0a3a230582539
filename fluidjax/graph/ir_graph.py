"""IrGraph: a program as a graph that passes of fluid.contrib.slim rewrite, by Fluid's methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..base.components import components
from ..errors import FluidTypeError, FluidValueError
from ..ir.show import quoted
from .core_graph import Graph, Node
from .described import OpDesc, VarDesc
from .ir_nodes import IrNode, IrOpNode, IrVarNode
from .program import Program


class IrGraph:
    """A view on a core.Graph: ``IrGraph(core.Graph(program.desc), for_test=False)``.

    for_test: whether it is the graph of a test program. Methods that return all nodes of a kind
    list them by number; Paddle returns unordered sets. Raises FluidTypeError for anything but a
    core.Graph.
    """

    def __init__(self, graph: Graph, for_test: bool = False) -> None:
        if not isinstance(graph, Graph):
            raise FluidTypeError(
                f"IrGraph takes a graph, core.Graph(program.desc), not {type(graph).__name__}"
            )
        self.graph = graph
        self._for_test = for_test
        self.out_node_mapping_table: dict[str, str] = {}

    def clone(self) -> IrGraph:
        """A graph of the same program."""
        return IrGraph(self.graph.clone(), self._for_test)

    def is_test(self) -> bool:
        return self._for_test

    def all_nodes(self) -> list[IrNode]:
        return [IrNode(n) for n in self.graph.nodes()]

    def all_var_nodes(self) -> list[IrVarNode]:
        return [IrVarNode(n) for n in self.graph.nodes() if n.is_var()]

    def all_persistable_nodes(self) -> list[IrVarNode]:
        return [n for n in self.all_var_nodes() if n.persistable()]

    def all_op_nodes(self) -> list[IrOpNode]:
        return [IrOpNode(n) for n in self.graph.nodes() if n.is_op()]

    def create_persistable_node(
        self, name: str, var_type: Any, shape: Sequence[int], var_dtype: Any
    ) -> IrVarNode:
        """A node of a new persistable variable."""
        node = self.create_var_node(name, var_type, shape, var_dtype)
        node.var().set_persistable(True)
        return node

    def create_var_node(
        self, name: str, var_type: Any, shape: Sequence[int], var_dtype: Any
    ) -> IrVarNode:
        """A node of a new variable. Raises FluidTypeError for an unknown dtype or kind."""
        desc = VarDesc(name)
        desc.set_type(var_type)
        desc.set_shape(shape)
        desc.set_dtype(var_dtype)
        return IrVarNode(self.graph.create_var_node(desc))

    def create_control_dep_var(self) -> IrVarNode:
        """A node that stands for the order of two ops."""
        return IrVarNode(self.graph.create_control_dep_var())

    def create_var_node_from_desc(self, var_desc: VarDesc) -> IrVarNode:
        """Another node of a variable."""
        return IrVarNode(self.graph.create_var_node(var_desc))

    def create_op_node(
        self,
        op_type: str,
        attrs: Mapping[str, Any],
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
    ) -> IrOpNode:
        """A node of a new op. inputs and outputs: nodes, or lists of them, by slot. link_to makes
        the links.
        """
        desc = OpDesc()
        desc.set_type(op_type)
        for name, value in attrs.items():
            desc._set_attr(name, value)
        for slot, nodes in inputs.items():
            desc.set_input(slot, _names(nodes))
        for slot, nodes in outputs.items():
            desc.set_output(slot, _names(nodes))
        return IrOpNode(self.graph.create_op_node(desc))

    def create_op_node_from_desc(self, op_desc: OpDesc) -> IrOpNode:
        """A node of a new op with this description."""
        return IrOpNode(self.graph.create_op_node(op_desc))

    def update_input_link(
        self, old_input_node: IrNode, new_input_node: IrNode, op_node: IrOpNode
    ) -> None:
        """Make an op read another node in place of one that it reads. Raises FluidValueError for
        nodes of other graphs.
        """
        self._check(old_input_node, new_input_node, op_node)
        old_input_node.remove_output(op_node)
        op_node.remove_input(old_input_node)
        self.link_to(new_input_node, op_node)
        op_node.rename_input(old_input_node.name(), new_input_node.name())

    def update_output_link(
        self, old_output_node: IrNode, new_output_node: IrNode, op_node: IrOpNode
    ) -> None:
        """Make an op write another node in place of one that it writes. Raises FluidValueError for
        nodes of other graphs.
        """
        self._check(old_output_node, new_output_node, op_node)
        old_output_node.remove_input(op_node)
        op_node.remove_output(old_output_node)
        self.link_to(op_node, new_output_node)
        op_node.rename_output(old_output_node.name(), new_output_node.name())

    def link_to(self, node_in: IrNode, node_out: IrNode) -> None:
        """Link one node to another. Raises FluidValueError for nodes of other graphs."""
        self._check(node_in, node_out)
        node_in.append_output(node_out)
        node_out.append_input(node_in)

    def _check(self, *nodes: IrNode) -> None:
        strange = [n.name() for n in nodes if n.node not in self.graph]
        if strange:
            raise FluidValueError(
                f"nodes {', '.join(strange)} are not in this graph; were they removed from it?"
            )

    def safe_remove_nodes(self, remove_nodes: Any) -> None:
        """Remove one node or several, with their links."""
        nodes = remove_nodes if isinstance(remove_nodes, Iterable) else [remove_nodes]
        self.graph.remove(n.node for n in nodes)

    def resolve_hazard(self) -> None:
        """Make each op that writes a variable wait for the ops that wrote and read it before, in
        the current order.
        """
        versions: dict[str, list[Node]] = {}
        for node in self.graph.sorted_ops():
            for name in node.op().input_arg_names():
                if name not in versions:
                    versions[name] = [self._find_node_by_name(IrOpNode(node).inputs, name).node]
            for name in node.op().output_arg_names():
                versions.setdefault(name, []).append(
                    self._find_node_by_name(IrOpNode(node).outputs, name).node
                )
        self.graph.resolve_hazard(versions)

    def has_circle(self) -> bool:
        """Whether some ops depend on one another."""
        try:
            self.graph.sorted_ops()
        except FluidValueError:
            return True
        return False

    def graph_num(self) -> int:
        """The number of connected parts of the ops."""
        return len(components({op, *needed} for op, needed in self.graph.op_links().items()))

    def topology_sort(self) -> list[IrNode]:
        """The ops, each behind the ops that it needs. Raises FluidValueError for a circle."""
        return [IrNode(n) for n in self.graph.sorted_ops()]

    def build_adjacency_list(self) -> dict[IrNode, set[IrNode]]:
        """For each op, the ops that it needs."""
        return {
            IrNode(op): {IrNode(n) for n in needed} for op, needed in self.graph.op_links().items()
        }

    def draw(
        self, save_path: str, name: str, marked_nodes: Any = None, remove_ctr_var: bool = True
    ) -> None:
        """Write the graph in DOT as save_path/name.dot; marked nodes are filled. remove_ctr_var:
        leave out nodes that stand for orders.
        """
        if remove_ctr_var:
            self.safe_remove_nodes([n for n in self.all_var_nodes() if n.is_ctrl_var()])
        marked = {
            n.node
            for n in (
                marked_nodes
                if isinstance(marked_nodes, Iterable)
                else [marked_nodes]
                if marked_nodes
                else []
            )
        }
        lines = ["digraph G {"]
        for node in self.graph.nodes():
            look = f"shape={'box' if node.is_op() else 'ellipse'}" + (
                ", style=filled, fillcolor=yellow" if node in marked else ""
            )
            lines.append(f"  n{node.id()} [label={quoted(node.name())}, {look}];")
            lines += [f"  n{node.id()} -> n{n.id()};" for n in node.outputs]
        Path(save_path).mkdir(parents=True, exist_ok=True)
        (Path(save_path) / f"{name}.dot").write_text("\n".join([*lines, "}", ""]), encoding="utf-8")

    def to_program(self) -> Program:
        """The program of the graph. Raises FluidValueError for a circle."""
        return Program.from_desc(self.graph.to_desc())

    def _find_node_by_name(self, nodes: Iterable[Any], node_name: str) -> Any:
        """As node_named."""
        return node_named(nodes, node_name)


def node_named(nodes: Iterable[Any], name: str) -> Any:
    """The last node of this name. Raises FluidValueError if there is none."""
    found = [n for n in nodes if n.name() == name]
    if not found:
        raise FluidValueError(f"none of these nodes is named {name!r}")
    return found[-1]


def _names(nodes: Any) -> list[str]:
    return [n.name() for n in (nodes if isinstance(nodes, list | tuple) else [nodes])]
