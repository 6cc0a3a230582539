"""A user's function, written with layers, inserted between a variable and an op of a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .... import unique_name
from ....errors import FluidTypeError, FluidValueError
from ....graph.core_graph import Graph
from ....graph.ir_graph import IrGraph
from ....graph.ir_nodes import IrOpNode, IrVarNode
from ....graph.program import Program, program_guard
from ....graph.variable import Variable
from ....input import data
from ....ir.edit import LOSS
from ....layers import mean
from ....ops.registry import GRAD
from ....state.scope import scope_guard


@dataclass
class Functions:
    """Inserts functions into one graph. scope, executor: for the first values of their parameters,
    which optimizer() updates.
    """

    graph: IrGraph
    scope: Any
    executor: Any
    optimizer: Callable[[], Any] | None

    def put(
        self, what: str, function: Callable[[Variable], Variable], var: IrVarNode, op: IrOpNode
    ) -> IrVarNode:
        """Make the op and its gradient op read function(var); the gradient flows on through the
        function's gradient to var.

        A separate optimizer trains the function's own parameters. what: the name of the function's
        argument. Raises FluidTypeError for a function that does not return a new variable.
        """
        gradient = None if self.graph.is_test() else _gradient_of(self.graph, op)
        made, given, out = self._program(what, function, var, gradient is not None)
        ops = [node for node in IrGraph(Graph(made.desc)).all_op_nodes() if not _of_loss(node, out)]
        nodes = {var.name(): var}
        renamed = {given: var.name()}
        ends = None
        if gradient is not None:
            ends = self._lead_back(var, op, gradient, out, nodes)
            renamed[given + GRAD] = ends.name() if ends is not None else given + GRAD
        for node in ops:
            self._copy(node, made, nodes, renamed, ends)
        for reader in (op, gradient) if gradient is not None else (op,):
            if var.name() in reader.input_arg_names():
                self.graph.update_input_link(_read(reader, var.name()), nodes[out], reader)
        self.graph.out_node_mapping_table[out] = var.name()
        return nodes[out]

    def _program(
        self, what: str, function: Any, var: IrVarNode, trains: bool
    ) -> tuple[Program, str, str]:
        """The function as a program, with its gradient and the update of its parameters; and the
        names of its input and output.
        """
        main, startup = Program(), Program()
        with program_guard(main, startup), unique_name.guard(f"{var.name()}_"):
            given = data(f"{var.name()}_tmp_input", var.shape(), "float32")
            given.stop_gradient = not trains
            out = function(given)
            if not isinstance(out, Variable) or out is given:
                raise FluidTypeError(
                    f"{what} takes a variable and gives another one, which it computes by layers;"
                    f" for {var.name()!r} it gave"
                    f" {'what it was given' if out is given else type(out).__name__}"
                )
            if trains:
                if self.optimizer is None:
                    raise FluidValueError(
                        f"{what} needs optimizer_func, a function that makes the optimizer of its"
                        " parameters"
                    )
                self.optimizer().minimize(mean(out))
        if self.executor is None or self.scope is None:
            raise FluidValueError(
                f"{what} needs an executor and a scope, for the first values of what the function"
                " makes"
            )
        if startup.global_block().ops:
            with scope_guard(self.scope):
                self.executor.run(startup)
        return main, given.name, out.name

    def _lead_back(
        self,
        var: IrVarNode,
        op: IrOpNode,
        gradient: IrOpNode,
        out: str,
        nodes: dict[str, IrVarNode],
    ) -> IrVarNode | None:
        """Make the gradient op compute the gradient of `out` instead of var's; returns var's, which
        the function's gradient must compute, or None.
        """
        name = next(
            (n for n in gradient.output_arg_names() if n.startswith(var.name() + GRAD)), None
        )
        slot = next(s for s in op.op().input_names() if var.name() in op.input(s))
        if name is None:  # nothing before it needs a gradient, but the function's parameters do
            node = self.graph.create_var_node(out + GRAD, var.type(), var.shape(), var.dtype())
            gradient.op().set_output(slot + GRAD, [out + GRAD])
            self.graph.link_to(gradient, node)
            nodes[out + GRAD] = node
            return None
        old = next(n for n in gradient.outputs if n.name() == name)
        node = self.graph.create_var_node(out + GRAD, old.type(), old.shape(), old.dtype())
        self.graph.update_output_link(old, node, gradient)
        nodes[out + GRAD] = node
        return old

    def _copy(
        self,
        node: IrOpNode,
        made: Program,
        nodes: dict[str, IrVarNode],
        renamed: dict[str, str],
        ends: IrVarNode | None,
    ) -> None:
        """A copy of this op of the function's program, linked to the current nodes."""
        new = self.graph.create_op_node_from_desc(node.op())
        block = {n.name(): n for n in (*node.inputs, *node.outputs)}
        for name in dict.fromkeys(n for n in node.input_arg_names() if n in block):
            known = renamed.get(name, name)
            if known not in nodes:
                nodes[known] = self.graph.create_var_node_from_desc(block[name].var())
            self.graph.link_to(nodes[known], new)
            new.rename_input(name, known)
        for name in dict.fromkeys(n for n in node.output_arg_names() if n in block):
            known = renamed.get(name, name)
            if ends is not None and known == ends.name():
                nodes[known] = ends
            else:
                nodes[known] = self.graph.create_var_node_from_desc(block[name].var())
            self.graph.link_to(new, nodes[known])
            new.rename_output(name, known)


def _gradient_of(graph: IrGraph, op: IrOpNode) -> IrOpNode | None:
    """The gradient op of an op; None if the loss does not need it."""
    flowing = {n + GRAD for n in op.output_arg_names()}
    return next(
        (
            o
            for o in graph.all_op_nodes()
            if o.name() == f"{op.name()}_grad" and flowing & set(o.input_arg_names())
        ),
        None,
    )


def _of_loss(op: IrOpNode, out: str) -> bool:
    """Whether an op belongs to the mean used as loss: the mean, its gradient, and the first
    gradient op.
    """
    if op.name() in ("mean", "mean_grad"):
        return op.input("X") == [out]
    return op.name() == "fill_constant" and not op.inputs and op.op().attr("op_role") & LOSS != 0


def _read(op: IrOpNode, name: str) -> Any:
    return next(n for n in op.inputs if n.name() == name)
