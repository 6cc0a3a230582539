"""Control flow: counters here, branches in branches.py, loops and arrays in loops.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.absent import reporter
from ..base.loc import located
from ..graph.variable import Variable
from ..initializer import ConstantInitializer
from ..layer_helper import LayerHelper
from . import branches, dynamic_rnn, if_else, loops, rank_tables, static_rnn
from ._build import BOOL, FLOATS, INTS, REAL, append, typed, variable
from .branches import *  # noqa: F403
from .branches import ConditionalBlock as ConditionalBlock
from .branches import select_input as select_input
from .branches import select_output as select_output
from .callbacks import Assert as Assert
from .callbacks import Print as Print
from .compare import equal, greater_equal, greater_than, less_equal, less_than, not_equal
from .dynamic_rnn import *  # noqa: F403
from .if_else import *  # noqa: F403
from .loops import *  # noqa: F403
from .missing import HINTS
from .parallel_do import ParallelDo as ParallelDo
from .rank_tables import *  # noqa: F403
from .rank_tables import array_to_lod_tensor as array_to_lod_tensor
from .rank_tables import lod_rank_table as lod_rank_table
from .rank_tables import lod_tensor_to_array as lod_tensor_to_array
from .rank_tables import max_sequence_len as max_sequence_len
from .rank_tables import merge_lod_tensor as merge_lod_tensor
from .rank_tables import shrink_memory as shrink_memory
from .rank_tables import split_lod_tensor as split_lod_tensor
from .static_rnn import *  # noqa: F403


@located
def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """x + value for a variable of one element; in_place overwrites x."""
    variable(x, "x", "increment", (*FLOATS, *INTS))
    helper = LayerHelper("increment")
    step = typed(value, "value", (int, *REAL), "increment")
    return append(helper, {"X": [x]}, {"Out": x if in_place else x.dtype}, {"step": float(step)})


@located
def is_empty(x: Variable, cond: Variable | None = None) -> Variable:
    """Whether x has no elements: one bool. cond: a variable to write instead of a new one."""
    variable(x, "x", "is_empty", (*FLOATS, *INTS))
    if cond is not None:
        variable(cond, "cond", "is_empty", BOOL)
    out = append(LayerHelper("is_empty"), {"X": [x]}, {"Out": "bool" if cond is None else cond})
    if cond is None:
        out.stop_gradient = True
    return out


@located
def autoincreased_step_counter(
    counter_name: str | None = None, begin: int = 1, step: int = 1
) -> Variable:
    """A persistable int64 counter that is `begin` in the first run and grows by `step` at the start
    of each run.

    Calls with one counter_name share one counter (and its first begin and step).
    """
    helper = LayerHelper("global_step_counter")
    name = "@STEP_COUNTER@" if counter_name is None else counter_name
    counter, new = helper.create_or_get_global_variable(
        name, dtype="int64", shape=[1], persistable=True
    )
    if new:
        helper.set_variable_initializer(counter, ConstantInitializer(begin - 1, force_cpu=True))
        helper.main_program.global_block()._prepend_op(
            type="increment",
            inputs={"X": [counter]},
            outputs={"Out": [counter]},
            attrs={"step": float(step)},
        )
        counter.stop_gradient = True
    return counter


__all__ = [
    "autoincreased_step_counter", "equal", "greater_equal", "greater_than", "increment", "is_empty", "less_equal",
    "less_than", "not_equal",
]  # fmt: skip
__all__ += branches.__all__
__all__ += dynamic_rnn.__all__
__all__ += if_else.__all__
__all__ += rank_tables.__all__
__all__ += static_rnn.__all__
__all__ += loops.__all__

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.layers.control_flow", __all__, HINTS)
