"""Loops within a program, and arrays of tensors that they read and write."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..backward.differentiate import gradients_of
from ..base.dtypes import VarType
from ..base.loc import located, user_line, warn
from ..errors import FluidTypeError, FluidValueError
from ..graph.block import Block
from ..graph.variable import Variable
from ..ir.desc import EMPTY
from ..layer_helper import LayerHelper
from ..ops.endless import decided_outside
from ._build import BOOL, append, typed, variable
from .branches import declared
from .tensor import assign
from .utils import assert_same_structure, map_structure


def _array(value: Any, what: str, layer: str) -> Variable:
    variable(value, what, layer)
    if value.type != VarType.LOD_TENSOR_ARRAY:
        raise FluidTypeError(
            f"{layer}'s {what} is an array, but variable {value.name!r} is a {value.desc.kind};"
            " create_array makes one"
        )
    return value


def _new_array(helper: LayerHelper, dtype: Any) -> Variable:
    block = helper.main_program.current_block()
    return block.create_var(name=f"{helper.name}.out", type=VarType.LOD_TENSOR_ARRAY, dtype=dtype)


@located
def create_array(dtype: Any) -> Variable:
    """An array without entries, for tensors of this dtype."""
    return _new_array(LayerHelper("array"), dtype)


@located
def array_write(x: Variable, i: Variable, array: Variable | None = None) -> Variable:
    """array[i] = x, for an int64 variable i of one element; returns the array (default: a new one)."""
    variable(i, "i", "array_write", ("int64",))
    variable(x, "x", "array_write")
    if array is not None:
        _array(array, "array", "array_write")
    helper = LayerHelper("array_write")
    array = _new_array(helper, x.dtype) if array is None else array
    helper.append_op(type="write_to_array", inputs={"X": [x], "I": [i]}, outputs={"Out": [array]})
    return array


@located
def array_read(array: Variable, i: Variable) -> Variable:
    """array[i], for an int64 variable i of one element. The entry must have been written when the
    program runs.
    """
    variable(i, "i", "array_read", ("int64",))
    _array(array, "array", "array_read")
    return append(
        LayerHelper("array_read"),
        {"X": [array], "I": [i]},
        {"Out": array.dtype},
        kind="read_from_array",
    )


@located
def array_length(array: Variable) -> Variable:
    """The number of entries, int64 [1]: one more than the highest that was written."""
    _array(array, "array", "array_length")
    return append(
        LayerHelper("array_length"),
        {"X": [array]},
        {"Out": "int64"},
        kind="lod_array_length",
        stop="Out",
    )


@located
def tensor_array_to_tensor(
    input: Variable, axis: int = 1, name: str | None = None, use_stack: bool = False
) -> tuple[Variable, Variable]:
    """The entries of an array joined along `axis`, or stacked there; and the size of each along it,
    int32.
    """
    _array(input, "input", "tensor_array_to_tensor")
    helper = LayerHelper("tensor_array_to_tensor", name=name)
    return append(
        helper,
        {"X": [input]},
        {"Out": input.dtype, "OutIndex": "int32"},
        {"axis": axis, "use_stack": use_stack},
    )


class While:
    """A block that runs repeatedly while `cond`, a bool variable of one element, is true::

        loop = layers.While(cond=layers.less_than(i, n))
        with loop.block():
            ...
            layers.increment(i)
            layers.less_than(i, n, cond=cond)

    The block must update the condition; a warning points out a block that does not. Outer variables
    that the block writes keep their last values afterwards, and must keep their shapes from
    iteration to iteration. is_test: an attribute of the op. Raises FluidTypeError for a condition
    that is not a bool of one element.
    """

    def __init__(self, cond: Variable, is_test: bool = False, name: str | None = None) -> None:
        self.helper = LayerHelper("while", name=name)
        variable(cond, "cond", "While")
        if cond.desc.dtype not in BOOL:
            raise FluidTypeError(
                f"While's cond is a bool variable, but {cond.name!r} is {cond.desc.dtype}; compare"
                " first"
            )
        if math.prod(cond.desc.shape or ()) != 1:
            raise FluidTypeError(
                f"While's cond has one element, but {cond.name!r} has the shape {list(cond.shape)}"
            )
        self.cond_var = cond
        self.is_test = is_test

    def block(self) -> WhileGuard:
        """A context: ops appended within go to the block. After an exception no op runs it."""
        return WhileGuard(self)

    def _complete(self, inside: Block, outside: Block) -> None:
        if gradients_of(inside) is not None:
            raise FluidValueError(
                "minimize and append_backward within a While would train nothing; call them"
                " outside, or in a case"
            )
        reads, writes = _captured(inside, self.cond_var.name)
        self._warn_if_endless(inside)
        scope = outside.create_var(type=VarType.STEP_SCOPES)
        outside.append_op(
            type="while",
            inputs={"X": declared(reads, outside), "Condition": [self.cond_var]},
            outputs={"Out": declared(writes, outside), "StepScopes": [scope]},
            attrs={"sub_block": inside, "is_test": self.is_test},
        )

    def _warn_if_endless(self, inside: Block) -> None:
        name = self.cond_var.name
        if not _writes(inside, name):
            problem = (
                f"does not write {name!r}, which it tests, so it never ends once it has begun;"
                " write it by less_than(i, n, cond=...)"
            )
        elif decided_outside([op.desc for op in inside.ops], name):
            problem = (
                f"changes nothing that its condition {name!r} depends on, so it ends after one"
                " iteration or never; count there"
            )
        else:
            return
        warn(f"the block of this While ({user_line()}) {problem}")


def _captured(block: Block, condition: str) -> tuple[list[str], list[str]]:
    """Names that the ops of a loop's block read before they write them, except the condition; and
    names that they write, with the condition.
    """
    reads: dict[str, None] = {}
    writes: dict[str, None] = {condition: None}
    for op in block.ops:
        reads.update(dict.fromkeys(n for n in op.desc.reads if n not in writes and n != EMPTY))
        writes.update(dict.fromkeys(n for n in op.desc.writes if n != EMPTY))
    return list(reads), list(writes)


def _writes(block: Block, name: str) -> bool:
    return any(name in op.desc.writes for op in block.ops)


class WhileGuard:
    """Appends to a While's block between enter and exit."""

    def __init__(self, while_op: While) -> None:
        typed(while_op, "while_op", While, "WhileGuard")
        self._loop = while_op

    def __enter__(self) -> None:
        self._program = self._loop.helper.main_program
        self._inside = self._program._create_block()

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._program._rollback()
        if kind is None:
            self._loop._complete(self._inside, self._program.block(self._inside.parent_idx))


@located
def while_loop(
    cond: Callable[..., Variable],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    is_test: bool = False,
    name: str | None = None,
) -> Any:
    """loop_vars = body(*loop_vars), while cond(*loop_vars) is true; returns loop_vars.

    cond returns a bool variable of one element, body as many variables (or arrays, or lists of
    them) as loop_vars, of the same shapes and dtypes. Both are called once, now (cond twice).

    Raises FluidTypeError for arguments of other types, FluidValueError for no loop_vars, or if body
    returns another structure.
    """
    LayerHelper("while_loop", name=name)
    for what, fn in (("cond", cond), ("body", body)):
        if not callable(fn):
            raise FluidTypeError(f"while_loop's {what} is a function of loop_vars, not {fn!r}")
    typed(loop_vars, "loop_vars", (list, tuple), "while_loop")
    if not loop_vars:
        raise FluidValueError("while_loop's loop_vars are at least one variable")
    before = cond(*loop_vars)
    loop = While(before, is_test, name)
    with loop.block():
        found = body(*_copied(loop_vars))
        found = list(found) if isinstance(found, list | tuple) else [found]
        try:
            assert_same_structure(found, list(loop_vars), check_types=False)
        except FluidValueError as error:
            raise FluidValueError(
                f"while_loop's body returns what loop_vars are, of the same structure: {error}"
            ) from None
        now = cond(*found)
        map_structure(assign, found, list(loop_vars))
        assign(now, before)
    return loop_vars


def _copied(values: Any) -> Any:
    """The same variables in copied lists and dicts, so that body may modify these."""
    if isinstance(values, list | tuple):
        return type(values)(map(_copied, values))
    return {k: _copied(v) for k, v in values.items()} if isinstance(values, dict) else values


__all__ = [
    "While",
    "array_length",
    "array_read",
    "array_write",
    "create_array",
    "tensor_array_to_tensor",
    "while_loop",
]
