"""fluid.layers.collective: the ops over all trainers of a job, as layers. Fluid's names for them
begin with an underscore.

Call them to average values yourself; fluid.transpiler.collective and fleet insert such ops to train
a program over several trainers. On one device a sum or a maximum over all trainers is the value
itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import unique_name
from ..base.loc import located
from ..errors import FluidTypeError, FluidValueError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import BOOL, FLOATS, INTS, variable

_REDUCTIONS = ("sum", "prod", "max", "min")  # the numbers of op allreduce


def _reduction(reduce_type: Any) -> str:
    if reduce_type not in _REDUCTIONS:
        raise FluidTypeError(f"reduce_type is one of {', '.join(_REDUCTIONS)}, not {reduce_type!r}")
    return str(reduce_type)


def _append(x: Any, out: Variable, kind: str, attrs: Mapping[str, Any]) -> Variable:
    LayerHelper(kind).append_op(
        type=kind, inputs={"X": [x]}, outputs={"Out": [out]}, attrs=dict(attrs)
    )
    return out


def _like(
    x: Variable, suffix: str, shape: Sequence[int] | None = None, stop_gradient: bool = False
) -> Variable:
    """A variable ``<x>.<suffix>_k`` of x's dtype, for an op's result from x."""
    block = x.block.program.current_block()
    name = block.new_name(lambda: unique_name.generate_with_ignorable_key(f"{x.name}.{suffix}"))
    return block.create_var(
        name=name, shape=x.shape if shape is None else shape, dtype=x.dtype, type=x.type, persistable=x.persistable,
        stop_gradient=stop_gradient,
    )  # fmt: skip


def _checked(x: Any, layer: str) -> None:
    variable(x, "x", layer, (*FLOATS, *INTS, *BOOL))


@located
def _allreduce(
    x: Variable, out: Variable | None = None, reduce_type: str = "sum", sync_mode: bool = False
) -> Variable:
    """The sum, "prod", "max" or "min" of x over the trainers, element by element. out: a variable
    to write instead of a new one.

    Raises FluidTypeError for an x that is not a variable, and for another reduce_type.
    """
    _checked(x, "_allreduce")
    number = _REDUCTIONS.index(_reduction(reduce_type))
    out = _like(x, "tmp", stop_gradient=True) if out is None else out
    return _append(x, out, "allreduce", {"reduce_type": number, "sync_mode": sync_mode})


@located
def _broadcast(x: Variable, root: int, sync_mode: bool = False) -> Variable:
    """The value of x on trainer `root`, written to x. Raises FluidTypeError for an x that is not a
    variable.
    """
    _checked(x, "_broadcast")
    return _append(x, x, "broadcast", {"sync_mode": sync_mode, "root": root})


@located
def _c_allreduce(
    x: Variable,
    out: Variable | None = None,
    reduce_type: str = "sum",
    ring_id: int = 0,
    use_calc_stream: bool = False,
) -> Variable:
    """The sum, "prod", "max" or "min" of x over the trainers of a ring. out: a variable to write
    instead of a new one.

    Raises FluidTypeError for an x that is not a variable, and for another reduce_type (1.8.5 spells
    "prod" as "prob", and has no such op).
    """
    _checked(x, "_c_allreduce")
    kind = f"c_allreduce_{_reduction(reduce_type)}"
    return _append(
        x,
        _like(x, kind) if out is None else out,
        kind,
        {"ring_id": ring_id, "use_calc_stream": use_calc_stream},
    )


@located
def _c_broadcast(
    x: Variable, root: int = 0, ring_id: int = 0, use_calc_stream: bool = False
) -> Variable:
    """The value of x on trainer `root` of a ring, written to x. Raises FluidTypeError for an x that
    is not a variable.
    """
    _checked(x, "_c_broadcast")
    return _append(
        x, x, "c_broadcast", {"root": root, "ring_id": ring_id, "use_calc_stream": use_calc_stream}
    )


@located
def _c_allgather(
    x: Variable, nranks: int, ring_id: int = 0, use_calc_stream: bool = False
) -> Variable:
    """x of all `nranks` trainers, concatenated along dimension 0. Raises FluidTypeError for an x
    that is not a variable.
    """
    _checked(x, "_c_allgather")
    first, *rest = x.shape
    out = _like(x, "c_allgather", [first * nranks if first > 0 else first, *rest])
    return _append(
        x,
        out,
        "c_allgather",
        {"nranks": nranks, "ring_id": ring_id, "use_calc_stream": use_calc_stream},
    )


@located
def _c_reducescatter(
    x: Variable, nranks: int, ring_id: int = 0, use_calc_stream: bool = False
) -> Variable:
    """This trainer's part, along dimension 0, of the sum of x over `nranks` trainers.

    Raises FluidTypeError for an x that is not a variable, FluidValueError if nranks does not divide
    the size of dimension 0.
    """
    _checked(x, "_c_reducescatter")
    first, *rest = x.shape
    if first > 0 and first % nranks:
        raise FluidValueError(
            f"_c_reducescatter: {nranks} trainers do not divide dimension 0 of {x.name!r}, which is"
            f" {first}"
        )
    out = _like(x, "c_reducescatter", [first // nranks if first > 0 else first, *rest])
    return _append(
        x,
        out,
        "c_reducescatter",
        {"nranks": nranks, "ring_id": ring_id, "use_calc_stream": use_calc_stream},
    )


@located
def _c_sync_calc_stream(x: Variable) -> Variable:
    """x; in Paddle the op orders streams, here data flow gives the order."""
    _checked(x, "_c_sync_calc_stream")
    return _append(x, x, "c_sync_calc_stream", {})


@located
def _c_sync_comm_stream(x: Variable, ring_id: int) -> Variable:
    """x; in Paddle the op orders a ring's streams, here data flow gives the order."""
    _checked(x, "_c_sync_comm_stream")
    return _append(x, x, "c_sync_comm_stream", {"ring_id": ring_id})


__all__: list[str] = []
