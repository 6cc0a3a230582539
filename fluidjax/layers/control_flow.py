"""Conditions within a program: Switch and the block that runs when a condition holds; counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base.absent import reporter
from ..base.dtypes import VarType
from ..base.loc import located
from ..errors import FluidTypeError, FluidValueError
from ..graph.block import Block
from ..graph.variable import Variable
from ..initializer import ConstantInitializer
from ..ir.desc import EMPTY
from ..layer_helper import LayerHelper
from ._build import BOOL, FLOATS, INTS, append, typed, variable
from .compare import equal, greater_equal, greater_than, less_equal, less_than, not_equal
from .elementwise import logical_and, logical_not
from .missing import HINTS


@located
def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """x + value for a variable of one element; in_place writes x itself."""
    variable(x, "x", "increment", (*FLOATS, *INTS))
    helper = LayerHelper("increment")
    try:
        step = float(value)
    except (TypeError, ValueError):
        raise FluidValueError(f"increment's value is a number, not {value!r}") from None
    return append(helper, {"X": [x]}, {"Out": x if in_place else x.dtype}, {"step": step})


@located
def is_empty(x: Variable, cond: Variable | None = None) -> Variable:
    """Whether x has no elements: one bool. cond: a variable to write instead of a new one."""
    variable(x, "x", "is_empty", (*FLOATS, *INTS))
    typed(cond, "cond", (Variable, type(None)), "is_empty")
    out = append(LayerHelper("is_empty"), {"X": [x]}, {"Out": "bool" if cond is None else cond})
    if cond is None:
        out.stop_gradient = True
    return out


@located
def autoincreased_step_counter(counter_name: str | None = None, begin: int = 1, step: int = 1) -> Variable:
    """A persistable int64 counter that is `begin` in the first run and grows by `step` at the start of each run.

    Calls with one counter_name share one counter (and its first begin and step).
    """
    helper = LayerHelper("global_step_counter")
    name = "@STEP_COUNTER@" if counter_name is None else counter_name
    counter, new = helper.create_or_get_global_variable(name, dtype="int64", shape=[1], persistable=True)
    if new:
        helper.set_variable_initializer(counter, ConstantInitializer(begin - 1, force_cpu=True))
        helper.main_program.global_block()._prepend_op(
            type="increment", inputs={"X": [counter]}, outputs={"Out": [counter]}, attrs={"step": float(step)}
        )
        counter.stop_gradient = True
    return counter


def captured(block: Block) -> tuple[list[str], list[str]]:
    """Names that the ops of `block` read before they write them, and names that they write, in order."""
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    for op in block.ops:
        reads.update(dict.fromkeys(n for n in op.desc.reads if n not in writes))
        writes.update(dict.fromkeys(op.desc.writes))
    return [n for n in reads if n != EMPTY], [n for n in writes if n != EMPTY]


class ConditionalBlock:
    """A block that runs only where a condition holds: ``with ConditionalBlock([cond]).block(): ...``.

    inputs: the condition, a bool variable of one element if is_scalar_condition; otherwise variables that must all
    have elements. Variables from outside that the block assigns keep their value where it does not run.
    """

    def __init__(self, inputs: Sequence[Variable], is_scalar_condition: bool = False, name: str | None = None) -> None:
        for v in inputs:
            typed(v, "inputs", Variable, "ConditionalBlock")
        self.inputs = list(inputs)
        self.is_scalar_condition = is_scalar_condition
        self.helper = LayerHelper("conditional_block", name=name)

    def block(self) -> ConditionalBlockGuard:
        """A context: ops appended within go to the block. After an exception no op runs it."""
        return ConditionalBlockGuard(self)

    def _complete(self, inside: Block, outside: Block) -> None:
        """Append the conditional_block op: what the block reads from outside, and what it writes there."""
        reads, writes = captured(inside)
        scope = outside.create_var(type=VarType.STEP_SCOPES)
        outside.append_op(
            type="conditional_block",
            inputs={
                "Cond": self.inputs,
                "Input": [n for n in reads if outside._find_var_recursive(n) is not None],
            },
            outputs={
                "Out": [n for n in writes if outside._find_var_recursive(n) is not None],
                "Scope": [scope],
            },
            attrs={"sub_block": inside, "is_scalar_condition": self.is_scalar_condition},
        )


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
    """Runs the first case whose condition holds, else the default::

        with Switch() as switch:
            with switch.case(step < boundary):
                layers.assign(one, rate)
            with switch.default():
                layers.assign(two, rate)

    Conditions are bool variables of one element. Only assignments to variables from outside are seen afterwards.
    Raises FluidValueError for a case outside of ``with``, or a default without a case; FluidTypeError for a condition
    that is no bool.
    """

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("switch", name=name)
        self._inside = False
        self._none_so_far: Variable | None = None  # true where no case before held

    def __enter__(self) -> Switch:
        self._inside = True
        return self

    def __exit__(self, *_: Any) -> None:
        self._inside = False

    def case(self, condition: Variable) -> ConditionalBlockGuard:
        """The block of ops that runs where `condition` holds and none before did."""
        if not self._inside:
            raise FluidValueError("Switch.case stands within the switch's own `with`")
        if not isinstance(condition, Variable) or condition.desc.dtype not in BOOL:
            what = condition.desc.dtype if isinstance(condition, Variable) else repr(condition)
            raise FluidTypeError(
                f"Switch.case takes a bool variable, not {what}; compare first, for instance by layers.less_than"
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
        """The block of ops that runs where no case held."""
        if self._none_so_far is None:
            raise FluidValueError("Switch.default comes after at least one case")
        return ConditionalBlock([self._none_so_far], is_scalar_condition=True).block()


__all__ = [
    "Switch", "autoincreased_step_counter", "equal", "greater_equal", "greater_than", "increment", "is_empty",
    "less_equal", "less_than", "not_equal",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.layers.control_flow", __all__, HINTS)
