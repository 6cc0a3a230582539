"""Collective ops over the trainers of a job, appended to the program that is built.

A tensor is written in place, as in Paddle. A program with such ops runs under ``python -m fluidjax
launch``, on one device of each trainer; a single process runs it as the only trainer, so that
values do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import layers
from ...base.loc import located
from ...errors import FluidTypeError, FluidValueError
from ...graph.variable import Variable
from .parallel import all_of_the_job, get_world_size


class ReduceOp:
    """The reductions over trainers."""

    SUM = 0
    MAX = 1
    MIN = 2
    PROD = 3


_REDUCTIONS = ("sum", "max", "min", "prod")


def _variable(tensor: Any, name: str, call: str) -> Variable:
    if not isinstance(tensor, Variable):
        raise FluidTypeError(
            f"paddle.distributed.{call}: {name} is a variable of a static program, not {tensor!r}"
        )
    return tensor


def _rank(value: Any, name: str, call: str) -> int:
    count = get_world_size()
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
        raise FluidValueError(
            f"paddle.distributed.{call}: {name} is a trainer's number, 0 to {count - 1}, not"
            f" {value!r}"
        )
    return value


def _append(type: str, tensor: Variable, out: Variable | None = None, **attrs: Any) -> Variable:
    """Append an op that writes `out`, by default the tensor itself. With a single trainer it is an
    assign.
    """
    out = tensor if out is None else out
    if get_world_size() == 1:
        return tensor if out is tensor else layers.assign(tensor, out)
    tensor.block.program.current_block().append_op(
        type=type,
        inputs={"X": tensor},
        outputs={"Out": out},
        attrs={"ring_id": 0, "use_calc_stream": True, **attrs},
    )
    return out


def _reduction(op: Any, call: str) -> str:
    if op not in range(len(_REDUCTIONS)):
        raise FluidValueError(
            f"paddle.distributed.{call}: op is ReduceOp.SUM, MAX, MIN or PROD, not {op!r}"
        )
    return _REDUCTIONS[op]


@located
def all_reduce(
    tensor: Variable,
    op: int = ReduceOp.SUM,
    group: Any = None,
    use_calc_stream: bool = True,
    sync_op: bool = True,
) -> None:
    """tensor = sum (maximum, minimum, product) of the trainers' tensors, element by element.

    use_calc_stream, sync_op: ignored, since data flow orders ops. Raises FluidTypeError,
    FluidValueError for arguments that do not fit, UnsupportedError for a group.
    """
    all_of_the_job(group)
    _append(
        f"c_allreduce_{_reduction(op, 'all_reduce')}", _variable(tensor, "tensor", "all_reduce")
    )


@located
def reduce(
    tensor: Variable,
    dst: int,
    op: int = ReduceOp.SUM,
    group: Any = None,
    use_calc_stream: bool = True,
    sync_op: bool = True,
) -> None:
    """tensor = sum (maximum, minimum, product) of the trainers' tensors, on trainer dst; others
    keep theirs. Other arguments and errors as in all_reduce.
    """
    all_of_the_job(group)
    kind, root = f"c_reduce_{_reduction(op, 'reduce')}", _rank(dst, "dst", "reduce")
    _append(kind, _variable(tensor, "tensor", "reduce"), root_id=root)


@located
def broadcast(
    tensor: Variable,
    src: int,
    group: Any = None,
    use_calc_stream: bool = True,
    sync_op: bool = True,
) -> None:
    """tensor = the tensor of trainer src. Other arguments and errors as in all_reduce."""
    all_of_the_job(group)
    _append(
        "c_broadcast", _variable(tensor, "tensor", "broadcast"), root=_rank(src, "src", "broadcast")
    )


@located
def all_gather(
    tensor_list: list[Any],
    tensor: Variable,
    group: Any = None,
    use_calc_stream: bool = True,
    sync_op: bool = True,
) -> None:
    """Append the tensors of all trainers, in their order, to the empty tensor_list. Other arguments
    and errors as in all_reduce.
    """
    all_of_the_job(group)
    if not isinstance(tensor_list, list) or tensor_list:
        raise FluidValueError(
            "paddle.distributed.all_gather: tensor_list is an empty list, which is filled"
        )
    count, given = get_world_size(), _variable(tensor, "tensor", "all_gather")
    if count == 1:
        tensor_list.append(layers.assign(given))
        return
    first, *rest = given.shape
    out = given.block.create_var(
        dtype=given.dtype, shape=[first if first < 0 else first * count, *rest]
    )
    _append("c_allgather", given, out, nranks=count)
    tensor_list += layers.split(out, count, 0)


@located
def scatter(
    tensor: Variable,
    tensor_list: Sequence[Variable] | None = None,
    src: int = 0,
    group: Any = None,
    use_calc_stream: bool = True,
    sync_op: bool = True,
) -> None:
    """tensor = this trainer's entry of trainer src's tensor_list. Every trainer's program has a
    tensor_list, but only that of src counts. Other arguments and errors as in all_reduce; also
    raises FluidValueError if the list's length is not the number of trainers.
    """
    all_of_the_job(group)
    count, root = get_world_size(), _rank(src, "src", "scatter")
    given = [_variable(t, "each of tensor_list", "scatter") for t in tensor_list or ()]
    if len(given) != count:
        raise FluidValueError(
            f"paddle.distributed.scatter: tensor_list has a tensor for each of the {count}"
            f" trainers, not {len(given)}"
        )
    if count == 1:
        layers.assign(given[0], tensor)
        return
    all_of_src, out = layers.stack(given), layers.stack(given[:1])
    _append("c_scatter", all_of_src, out, nranks=count, root=root)
    layers.assign(layers.squeeze(out, [0]), _variable(tensor, "tensor", "scatter"))


@located
def barrier(group: Any = None) -> None:
    """Append an op that every trainer waits for: a sum of zeros. Arguments and errors as in
    all_reduce.
    """
    all_of_the_job(group)
    all_reduce(layers.fill_constant([1], "int32", 0))


__all__ = ["ReduceOp", "all_gather", "all_reduce", "barrier", "broadcast", "reduce", "scatter"]
