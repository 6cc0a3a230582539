"""IrNode, IrVarNode, IrOpNode: the nodes of an IrGraph as scripts see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.dtypes import VarType
from ..errors import FluidTypeError
from .core_graph import Node


class IrNode:
    """A node of a graph. Handles of the same node are equal."""

    def __init__(self, node: Node) -> None:
        if not isinstance(node, Node):
            raise FluidTypeError(
                f"an {type(self).__name__} takes a node of core.Graph, not {type(node).__name__}"
            )
        self.node = node

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, IrNode) and other.node is self.node

    def __hash__(self) -> int:
        return hash(self.node)

    def __repr__(self) -> str:
        return repr(self.node)

    def name(self) -> str:
        """The variable's name, or the op's type."""
        return self.node.name()

    def node_type(self) -> str:
        """ "operator" or "variable"."""
        return "operator" if self.node.is_op() else "variable"

    def var(self) -> Any:
        """The variable's description (core.VarDesc), None for an op."""
        return self.node.var()

    def op(self) -> Any:
        """The op's description (core.OpDesc), None for a variable."""
        return self.node.op()

    def id(self) -> int:
        """The node's number in its graph."""
        return self.node.id()

    def is_op(self) -> bool:
        return self.node.is_op()

    def is_var(self) -> bool:
        return self.node.is_var()

    def is_ctrl_var(self) -> bool:
        """Whether it only stands for the order of two ops."""
        return self.node.is_ctrl_var()

    def clear_inputs(self) -> None:
        self.node.inputs.clear()

    def clear_outputs(self) -> None:
        self.node.outputs.clear()

    def append_input(self, node: IrNode) -> None:
        self.node.inputs.append(node.node)

    def append_output(self, node: IrNode) -> None:
        self.node.outputs.append(node.node)

    def remove_input(self, node: IrNode) -> None:
        self.node.inputs[:] = [n for n in self.node.inputs if n is not node.node]

    def remove_output(self, node: IrNode) -> None:
        self.node.outputs[:] = [n for n in self.node.outputs if n is not node.node]

    def remove_input_by_id(self, node_id: int) -> None:
        self.node.inputs[:] = [n for n in self.node.inputs if n.id() != node_id]

    def remove_output_by_id(self, node_id: int) -> None:
        self.node.outputs[:] = [n for n in self.node.outputs if n.id() != node_id]

    @property
    def inputs(self) -> list[Any]:
        """The nodes with a link to it."""
        return [_neighbour_types(self)(n) for n in self.node.inputs]

    @property
    def outputs(self) -> list[Any]:
        """The nodes that it links to."""
        return [_neighbour_types(self)(n) for n in self.node.outputs]


class IrVarNode(IrNode):
    """A variable's node, as one op leaves the variable. Raises FluidTypeError for a node of another
    kind.
    """

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        if not node.is_var():
            raise FluidTypeError(
                f"an IrVarNode takes a variable's node, not that of op {node.name()}"
            )

    def set_shape(self, shape: Sequence[int]) -> None:
        self.var().set_shape(shape)

    def persistable(self) -> bool:
        return self.var() is not None and self.var().persistable()

    def type(self) -> VarType:
        return self.var().type()

    def dtype(self) -> VarType:
        return self.var().dtype()

    def shape(self) -> list[int]:
        return self.var().shape()


class IrOpNode(IrNode):
    """An op's node. Raises FluidTypeError for a node of another kind."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        if not node.is_op():
            raise FluidTypeError(
                f"an IrOpNode takes an op's node, not that of variable {node.name()}"
            )

    def rename_input(self, old_input_name: str, new_input_name: str) -> None:
        self.op()._rename_input(old_input_name, new_input_name)

    def rename_output(self, old_output_name: str, new_output_name: str) -> None:
        self.op()._rename_output(old_output_name, new_output_name)

    def input(self, name: str) -> list[str]:
        """The names in an input slot."""
        return self.op().input(name)

    def output(self, name: str) -> list[str]:
        """The names in an output slot."""
        return self.op().output(name)

    def input_arg_names(self) -> list[str]:
        return self.op().input_arg_names()

    def output_arg_names(self) -> list[str]:
        return self.op().output_arg_names()

    def set_type(self, new_type: str) -> None:
        self.op().set_type(new_type)

    def set_attr(self, name: str, val: Any) -> None:
        self.op()._set_attr(name, val)


def _neighbour_types(node: IrNode) -> Callable[[Node], IrNode]:
    """The types of a node's neighbours."""
    return (
        IrOpNode
        if isinstance(node, IrVarNode)
        else IrVarNode
        if isinstance(node, IrOpNode)
        else IrNode
    )
