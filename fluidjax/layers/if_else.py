"""IfElse: two blocks, one for the rows where a condition is true and one for the others."""

from __future__ import annotations

from typing import Any

from .. import unique_name
from ..base.loc import located
from ..errors import FluidTypeError, FluidValueError
from ..graph.block import Block
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import require, typed
from .branches import ConditionalBlock
from .rank_tables import merge_lod_tensor
from .tensor import assign


class IfElse:
    """Computes the rows where `cond`, a bool variable [N, 1], is true by one block, and the others
    by another::

        branch = IfElse(less_than(x, limit))
        with branch.true_block():
            branch.output(scale(branch.input(x), 2.0))
        with branch.false_block():
            branch.output(branch.input(x))
        (out,) = branch()                              # in the order of x

    A block without rows does not run. If x has a LoD, cond has a row for each sequence.
    """

    OUT_IF_ELSE_BLOCKS = 0
    IN_IF_ELSE_TRUE_BLOCKS = 1
    IN_IF_ELSE_FALSE_BLOCKS = 2

    def __init__(self, cond: Variable, name: str | None = None) -> None:
        typed(cond, "cond", Variable, "IfElse")
        typed(name, "name", (str, type(None)), "IfElse")
        self.helper = LayerHelper("ifelse", name=name)
        self.cond = cond
        self.input_table: dict[int, tuple[Variable, Variable]] = {}
        self.status = IfElse.OUT_IF_ELSE_BLOCKS
        self.conditional_true_block = ConditionalBlock(inputs=[cond])
        self.conditional_false_block = ConditionalBlock(inputs=[cond])
        # of the false block, of the true one
        self.output_table: tuple[list[Variable], list[Variable]] = ([], [])

    @located
    def input(self, x: Variable) -> Variable:
        """This block's rows of x."""
        require(self.status != IfElse.OUT_IF_ELSE_BLOCKS, "input must in true/false blocks")
        typed(x, "x", Variable, "IfElse.input")
        if id(x) not in self.input_table:
            outside = self._outside()
            name = "ifelse_input" + self.helper.name
            true, false = (
                outside.create_var(
                    name=unique_name.generate_with_ignorable_key(name), dtype=x.dtype
                )
                for _ in range(2)
            )
            ins, outs = {"X": x, "Mask": self.cond}, {"OutTrue": true, "OutFalse": false}
            outside.append_op(type="split_lod_tensor", inputs=ins, outputs=outs, attrs={"level": 0})
            self.input_table[id(x)] = (true, false)
        true, false = self.input_table[id(x)]
        return true if self.status == IfElse.IN_IF_ELSE_TRUE_BLOCKS else false

    def true_block(self) -> IfElseBlockGuard:
        """A context: ops appended within compute the rows where the condition is true."""
        return IfElseBlockGuard(True, self)

    def false_block(self) -> IfElseBlockGuard:
        """A context: ops appended within compute the other rows."""
        return IfElseBlockGuard(False, self)

    @located
    def output(self, *outs: Variable) -> None:
        """Make these outputs; the other block has as many, in the same order."""
        require(
            self.status != IfElse.OUT_IF_ELSE_BLOCKS, "output can only be invoked in the sub-block"
        )
        outside = self._outside()
        for each in outs:
            typed(each, "each output", Variable, "IfElse.output")
            name = unique_name.generate_with_ignorable_key("_".join([self.helper.name, "output"]))
            out = outside.create_var(name=name, dtype=each.dtype)
            self.output_table[int(self.status == IfElse.IN_IF_ELSE_TRUE_BLOCKS)].append(out)
            assign(input=each, output=out)

    def __call__(self) -> list[Variable]:
        """The outputs, with rows in the condition's order; if there is only one block, its outputs."""
        require(
            self.status == IfElse.OUT_IF_ELSE_BLOCKS, "IfElse::__call__ must be out of sub-block"
        )
        false, true = self.output_table
        if not false and not true:
            raise FluidValueError("Must invoke true_block/false_block before __call__")
        if not false or not true:
            return false or true
        require(len(false) == len(true), "The output side must be same")
        return [
            merge_lod_tensor(in_true=t, in_false=f, mask=self.cond, x=self.cond, level=0)
            for f, t in zip(false, true, strict=True)
        ]

    def _outside(self) -> Block:
        """The block that contains this one."""
        program = self.helper.main_program
        return program.block(program.current_block().parent_idx)


class IfElseBlockGuard:
    """Appends to one of an IfElse's blocks between enter and exit; after an exception no op runs
    it.
    """

    def __init__(self, is_true: bool, ifelse: IfElse) -> None:
        if not isinstance(ifelse, IfElse):
            raise FluidTypeError("ifelse must be an instance of IfElse class")
        require(
            ifelse.status == IfElse.OUT_IF_ELSE_BLOCKS,
            "You cannot invoke IfElse.block() inside a block",
        )
        self.is_true = is_true
        self.ie = ifelse
        self.cond_block = (
            ifelse.conditional_true_block if is_true else ifelse.conditional_false_block
        ).block()

    def __enter__(self) -> None:
        self.ie.status = (
            IfElse.IN_IF_ELSE_TRUE_BLOCKS if self.is_true else IfElse.IN_IF_ELSE_FALSE_BLOCKS
        )
        self.cond_block.__enter__()

    def __exit__(self, kind: Any, *rest: Any) -> None:
        self.cond_block.__exit__(kind, *rest)
        if kind is None:
            require(bool(self.ie.output_table[int(self.is_true)]), "Must set output inside block")
        self.ie.status = IfElse.OUT_IF_ELSE_BLOCKS


__all__ = ["IfElse"]
