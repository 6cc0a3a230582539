"""Branches within a program: blocks that run if a condition is true, and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..backward.differentiate import GRAD, gradients_of
from ..base.dtypes import VarType
from ..base.loc import located
from ..base.roles import OP_ROLE, OpRole
from ..errors import FluidTypeError, FluidValueError, OutOfRangeError
from ..graph.block import Block
from ..graph.operator import Operator
from ..graph.variable import Variable
from ..ir.desc import EMPTY, BlockRef, FrozenMap, OpDesc, VarDesc
from ..layer_helper import LayerHelper
from ._build import BOOL, typed, variable
from .compare import equal
from .elementwise import logical_and, logical_not
from .tensor import assign, cast, fill_constant
from .utils import assert_same_structure, map_structure

Branch = Callable[[], Any]


def captured(block: Block) -> tuple[list[str], list[str]]:
    """Names that the ops of `block` read before they write them, and names that they write, in
    order.
    """
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    for op in block.ops:
        reads.update(dict.fromkeys(n for n in op.desc.reads if n not in writes))
        writes.update(dict.fromkeys(op.desc.writes))
    return [n for n in reads if n != EMPTY], [n for n in writes if n != EMPTY]


def declared(names: Sequence[str], block: Block) -> list[str]:
    """The names among these that `block` or an outer one declares."""
    return [n for n in names if block._find_var_recursive(n) is not None]


class ConditionalBlock:
    """A block that runs only if a condition is true: ``with ConditionalBlock([cond]).block():
    ...``.

    inputs: the condition, a bool variable of one element if is_scalar_condition; otherwise
    variables that must all have elements. Outer variables that the block assigns keep their value
    if it does not run.
    """

    def __init__(
        self, inputs: Sequence[Variable], is_scalar_condition: bool = False, name: str | None = None
    ) -> None:
        for v in inputs:
            typed(v, "inputs", Variable, "ConditionalBlock")
        self.inputs = list(inputs)
        self.is_scalar_condition = is_scalar_condition
        self.helper = LayerHelper("conditional_block", name=name)

    def block(self) -> ConditionalBlockGuard:
        """A context: ops appended within go to the block. After an exception no op runs it."""
        return ConditionalBlockGuard(self)

    def _complete(self, inside: Block, outside: Block) -> None:
        """Append the conditional_block op, with the outer variables that the block reads and
        writes.
        """
        reads, writes = captured(inside)
        scope = outside.create_var(type=VarType.STEP_SCOPES)
        op = outside.append_op(
            type="conditional_block",
            inputs={
                "Cond": self.inputs,
                "Input": declared(reads, outside),
            },
            outputs={
                "Out": declared(writes, outside),
                "Scope": [scope],
            },
            attrs={"sub_block": inside, "is_scalar_condition": self.is_scalar_condition},
        )
        self._complete_gradient(op, inside, outside)

    def _complete_gradient(self, op: Operator, inside: Block, outside: Block) -> None:
        """Append the op that runs the gradient block, if minimize or append_backward has made one
        inside.
        """
        block = gradients_of(inside)
        if block is None:
            return
        reads, _ = captured(block)
        inputs, outs = declared(reads, outside), op.desc.output("Out")
        for name in inputs:
            if block._find_var_recursive(name + GRAD) is None:
                like = outside._var_recursive(name).desc
                block.vars[name + GRAD] = Variable.of(
                    block, VarDesc(name + GRAD, like.shape, like.dtype)
                )
        out_grads = [n + GRAD for n in outs]
        given = {
            "Cond": op.desc.input("Cond"),
            "Input": inputs,
            "Out": outs,
            "Out" + GRAD: out_grads,
            "Scope": op.desc.output("Scope"),
        }
        attrs = {
            "sub_block": BlockRef(block.idx),
            "is_scalar_condition": self.is_scalar_condition,
            OP_ROLE: int(OpRole.Backward),
        }
        ins = FrozenMap({slot: tuple(names) for slot, names in given.items()})
        outs_ = FrozenMap({"Input" + GRAD: tuple(n + GRAD for n in inputs)})
        desc = OpDesc(
            outside.program.next_uid(),
            "conditional_block_grad",
            ins,
            outs_,
            FrozenMap(attrs),
            op.desc.loc,
        )
        # unchanged: unwanted gradients are not declared
        outside.ops.append(Operator(outside, desc))
        outside.program.touch()


class ConditionalBlockGuard:
    """Appends to a ConditionalBlock's block between enter and exit."""

    def __init__(self, block: ConditionalBlock) -> None:
        typed(block, "block", ConditionalBlock, "ConditionalBlockGuard")
        self._conditional = block

    def __enter__(self) -> None:
        self._program = self._conditional.helper.main_program
        self._inside = self._program._create_block()

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._program._rollback()
        if kind is None:
            self._conditional._complete(self._inside, self._program.block(self._inside.parent_idx))


class Switch:
    """Runs the first case whose condition is true, else the default::

        with Switch() as switch:
            with switch.case(step < boundary):
                layers.assign(one, rate)
            with switch.default():
                layers.assign(two, rate)

    Conditions are bool variables of one element. Only assignments to outer variables remain
    afterwards. Raises FluidValueError for a case outside of ``with``, or a default without a case;
    FluidTypeError for a condition that is not a bool.
    """

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("switch", name=name)
        self._inside = False
        self._none_so_far: Variable | None = None  # true if no earlier case was true

    def __enter__(self) -> Switch:
        self._inside = True
        return self

    def __exit__(self, *_: Any) -> None:
        self._inside = False

    def case(self, condition: Variable) -> ConditionalBlockGuard:
        """The block of ops that runs if `condition` is true and no earlier one was."""
        if not self._inside:
            raise FluidValueError("Switch.case is called within the switch's own `with`")
        if not isinstance(condition, Variable) or condition.desc.dtype not in BOOL:
            what = condition.desc.dtype if isinstance(condition, Variable) else repr(condition)
            raise FluidTypeError(
                f"Switch.case takes a bool variable, not {what}; compare first, for instance by"
                " layers.less_than"
            )
        otherwise = logical_not(condition)
        if self._none_so_far is None:
            self._none_so_far = otherwise
        else:
            before = self._none_so_far
            self._none_so_far = logical_and(before, otherwise)
            condition = logical_and(before, condition)
        return ConditionalBlock([condition], is_scalar_condition=True).block()

    def default(self) -> ConditionalBlockGuard:
        """The block of ops that runs if no case was true."""
        if self._none_so_far is None:
            raise FluidValueError("Switch.default comes after at least one case")
        return ConditionalBlock([self._none_so_far], is_scalar_condition=True).block()


@located
def select_input(inputs: Sequence[Variable], mask: Variable) -> Variable:
    """inputs[mask], for an int32 variable of one element; the variables have one shape and dtype."""
    typed(inputs, "inputs", (list, tuple), "select_input")
    variable(mask, "mask", "select_input", ("int32",))
    helper = LayerHelper("select_input")
    first = variable(inputs[0], "inputs", "select_input")
    out = helper.main_program.current_block().create_var(
        dtype=first.dtype, shape=first.shape, type=first.type
    )
    helper.append_op(type="select_input", inputs={"X": inputs, "Mask": mask}, outputs={"Out": out})
    return out


@located
def select_output(
    input: Variable, outputs: Sequence[Variable], mask: Variable
) -> Sequence[Variable]:
    """Copy `input` to outputs[mask], for an int32 variable of one element; the other outputs get no
    value. Returns outputs.
    """
    variable(input, "input", "select_output")
    typed(outputs, "outputs", (list, tuple), "select_output")
    variable(mask, "mask", "select_output", ("int32",))
    LayerHelper("select_output").append_op(
        type="select_output", inputs={"X": input, "Mask": mask}, outputs={"Out": list(outputs)}
    )
    return outputs


@located
def cond(
    pred: Variable,
    true_fn: Branch | None = None,
    false_fn: Branch | None = None,
    name: str | None = None,
) -> Any:
    """The result of true_fn() if `pred`, a bool of one element, is true, else that of false_fn().

    Each function is called once, now; the ops that it appends run only in its case. Both return a
    variable, or lists, tuples or dicts of variables with one structure, or None. A variable of the
    result has one shape and dtype in both cases.

    Raises FluidTypeError for a pred that is not a bool variable and for a function that is not
    callable; FluidValueError if the two return different structures.
    """
    variable(pred, "pred", "cond", BOOL)
    typed(name, "name", (str, type(None)), "cond")
    for what, fn in (("true_fn", true_fn), ("false_fn", false_fn)):
        if fn is not None and not callable(fn):
            raise FluidTypeError(f"cond's {what} is a function without arguments, not {fn!r}")
    LayerHelper("cond", name=name)
    true = None if true_fn is None else _branch(pred, true_fn)
    false = None if false_fn is None else _branch(logical_not(pred), false_fn)
    if true is None and false is None:
        return None
    if true is None or false is None:
        some, none = ("true_fn", "false_fn") if false is None else ("false_fn", "true_fn")
        raise FluidValueError(
            f"cond's {none} returns None, but {some} does not; both return variables of one"
            " structure, or both None"
        )
    try:
        assert_same_structure(true, false, check_types=False)
    except FluidValueError as error:
        raise FluidValueError(
            f"cond's true_fn and false_fn return different structures: {error}"
        ) from None
    mask = cast(pred, "int32")
    return map_structure(lambda f, t: select_input([f, t], mask), false, true)


def _branch(condition: Variable, fn: Branch) -> Any:
    """The result of `fn`, run if the condition is true, as variables of the outer block."""
    with ConditionalBlock([condition], is_scalar_condition=True).block():
        found = fn()
        return None if found is None else map_structure(_handed_out, found)


def _handed_out(var: Any) -> Any:
    """A variable of the parent block that the current one assigns `var` to."""
    if var is None:
        return None
    typed(var, "result of a branch", Variable, "cond")
    program = var.block.program
    parent = program.block(program.current_block().parent_idx)
    out = parent.create_var(dtype=var.dtype, shape=var.shape, type=var.type)
    assign(var, out)
    return out


@located
def case(
    pred_fn_pairs: Sequence[tuple[Variable, Branch]],
    default: Branch | None = None,
    name: str | None = None,
) -> Any:
    """The result of the function of the first pair whose pred is true, else that of default(); see
    :func:`cond`.

    Without a default, the last function is the default. Raises FluidTypeError for anything but
    pairs of a bool variable and a function, OutOfRangeError for no pairs.
    """
    typed(pred_fn_pairs, "pred_fn_pairs", (list, tuple), "case")
    if not pred_fn_pairs:
        raise OutOfRangeError("case needs at least one pair of a condition and a function")
    for pair in pred_fn_pairs:
        pred, fn = _pair(pair, "pred_fn_pairs", "case")
        variable(pred, "pred", "case", BOOL)
        _callable(fn, f"the function for {pred.name}", "case")
    pairs = list(pred_fn_pairs)
    chosen: Branch = _callable(pairs.pop()[1] if default is None else default, "default", "case")
    for pred, fn in reversed(pairs):
        chosen = partial(cond, pred, fn, chosen)
    return chosen()


@located
def switch_case(
    branch_index: Variable,
    branch_fns: Mapping[int, Branch] | Sequence[Any],
    default: Branch | None = None,
    name: str | None = None,
) -> Any:
    """The result of the function with number `branch_index`, else that of default(); see
    :func:`cond`.

    branch_index: a uint8, int32 or int64 variable of one element. branch_fns: functions by number,
    as a dict or as pairs, or a list of functions numbered 0, 1, ... Without a default, the function
    with the highest number is the default.

    Raises FluidTypeError for arguments of other types, FluidValueError for a repeated number.
    """
    variable(branch_index, "branch_index", "switch_case", ("uint8", "int32", "int64"))
    pairs = _numbered(branch_fns)
    index = branch_index if branch_index.desc.dtype == "int64" else cast(branch_index, "int64")
    if default is None:
        pairs.sort(key=lambda pair: pair[0])
        default = pairs.pop()[1]
    _callable(default, "default", "switch_case")
    preds = [(equal(index, fill_constant([1], "int64", number)), fn) for number, fn in pairs]
    chosen: Branch = default
    for pred, fn in preds:
        chosen = partial(cond, pred, fn, chosen)
    return chosen()


def _numbered(branch_fns: Any) -> list[tuple[int, Branch]]:
    typed(branch_fns, "branch_fns", (list, tuple, dict), "switch_case")
    given = list(branch_fns.items() if isinstance(branch_fns, dict) else branch_fns)
    if given and all(callable(fn) for fn in given):
        given = list(enumerate(given))
    seen = set()
    for each in given:
        number, fn = _pair(each, "branch_fns", "switch_case")
        typed(number, "key in branch_fns", int, "switch_case")
        if number in seen:
            raise FluidValueError(
                f"The key in 'branch_fns' must be unique, but '{number}' appears more than once."
            )
        seen.add(number)
        _callable(fn, f"the function for {number}", "switch_case")
    if not given:
        raise OutOfRangeError("switch_case needs at least one function in branch_fns")
    return given


def _pair(value: Any, what: str, layer: str) -> tuple[Any, Any]:
    if not isinstance(value, tuple) or len(value) != 2:
        raise FluidTypeError(f"{layer}'s {what} holds pairs, not {value!r}")
    return value


def _callable(fn: Any, what: str, layer: str) -> Branch:
    if not callable(fn):
        raise FluidTypeError(f"{what} in {layer} is a function without arguments, not {fn!r}")
    return fn


__all__ = ["Switch", "case", "cond", "switch_case"]
