"""BuildStrategy and ExecutionStrategy: Paddle's options of compiled programs, with its names,
defaults and checks.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ..errors import EnforceNotMet, FluidError, FluidTypeError, near
from .units import bytes_of

Option = tuple[Any, Callable[[Any], Any]]  # the default, and what checks and converts a value


class UnknownOptionError(FluidError, AttributeError):
    """A strategy has no such option."""


class ReduceStrategy(enum.IntEnum):
    """How gradients are reduced: on all devices, or each on the device that updates its
    parameter.
    """

    AllReduce = 0
    Reduce = 1


class GradientScaleStrategy(enum.IntEnum):
    """The gradient of each device's loss: 1 / devices, 1, or fed as ``<loss>@GRAD``."""

    CoeffNumDevice = 0
    One = 1
    Customized = 2


def _bool(value: Any) -> bool:
    if value is not None and not isinstance(value, int | float):
        raise TypeError("True or False")
    return bool(value)


def _int(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError("an integer")
    return int(value)


def _count(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise TypeError("an integer that is not negative")
    return int(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a string")
    return value


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list | tuple | str) or not all(isinstance(v, str) for v in value):
        raise TypeError("a list of strings")
    return list(value)


def _names(value: Any) -> set[str]:
    if not isinstance(value, set) or not all(isinstance(v, str) for v in value):
        raise TypeError("a set of strings")
    return set(value)


def _maybe(value: Any) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise EnforceNotMet(f"BuildStrategy.memory_optimize is None, False or True, not {value!r}")
    return value


def _budget(value: Any) -> int | None:
    return None if value is None else bytes_of(value)


def _member(kind: type[enum.IntEnum]) -> Callable[[Any], Any]:
    def member(value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError(f"a {kind.__name__}, such as {kind.__name__}.{next(iter(kind)).name}")
        return value

    return member


class _Options:
    """Attributes from a table of defaults and checks; any other name or type is refused."""

    _table: ClassVar[Mapping[str, Option]] = {}

    def __init__(self) -> None:
        for name, (default, _) in self._table.items():
            object.__setattr__(
                self, name, default.copy() if isinstance(default, list | set) else default
            )

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._table:
            raise self._unknown(name)
        try:
            object.__setattr__(self, name, self._table[name][1](value))
        except TypeError as exc:
            raise FluidTypeError(f"{type(self).__name__}.{name} is {exc}, not {value!r}") from None

    def __getattr__(self, name: str) -> Any:
        raise self._unknown(name)

    def _unknown(self, name: str) -> UnknownOptionError:
        return UnknownOptionError(
            f"{type(self).__name__} has no option {name!r}{near(name, self._table)}"
        )


def _flags(default: bool, names: str) -> dict[str, Option]:
    return {name: (default, _bool) for name in names.split()}


class BuildStrategy(_Options):
    """Options of a CompiledProgram, with Paddle's names and defaults.

    These have an effect:

    - ``reduce_strategy``: AllReduce sums every gradient on all devices. With Reduce every device
      sums, updates and keeps the optimizer state of its shard of every parameter, and the shards of
      the parameters are gathered: equal results, and 1 / devices of the optimizer's memory.
    - ``gradient_scale_strategy``: the gradient of each device's loss is 1 / devices
      (CoeffNumDevice), 1 (One), or fed as ``<loss>@GRAD`` with a value for each device
      (Customized).
    - ``sync_batch_norm``: batch_norm takes its statistics from the batches of all devices.
    - ``fuse_all_reduce_ops``: small gradients are summed in one message.
    - ``memory_optimize``: True makes XLA order the step for the least memory (on the CPU; on GPUs
      it always does).
    - ``memory_budget`` (not in Paddle): the most bytes, or text such as "2GB", that each device may
      need, by the compiler's own figure. At the first run, when the feeds are known, the values to
      recompute in the backward pass are chosen as by ``fluid.memory_optimize(budget=)``;
      ``CompiledProgram.budget_reports`` lists them.
    - ``debug_graphviz_path``: the file to which the program of every device is written, for
      graphviz.
    - ``num_trainers``, ``trainer_id``: checked against the running job of several processes.

    XLA does these by itself, in any program, so they change nothing: ``fuse_elewise_add_act_ops``,
    ``fuse_bn_act_ops``, ``fuse_relu_depthwise_conv``, ``fuse_broadcast_ops``,
    ``fuse_all_optimizer_ops``, ``enable_auto_fusion`` (it fuses what it can), ``enable_inplace``
    (the state is donated), ``remove_unnecessary_lock``, ``enable_sequential_execution``,
    ``enable_backward_optimizer_op_deps`` (data flow orders the ops, so results never depend on it),
    ``cache_runtime_context`` (a step is compiled once), ``nccl_comm_num``,
    ``use_hierarchical_allreduce``, ``hierarchical_allreduce_inter_nranks`` (it plans the routes of
    messages). ``async_mode``, ``is_distribution``, ``trainers_endpoints`` repeat what the
    DistributeTranspiler knows; ``mkldnn_enabled_op_types`` belongs to a library that is not used.

    Setting an unknown option raises UnknownOptionError (an AttributeError), a wrong type
    FluidTypeError (a TypeError).
    """

    ReduceStrategy = ReduceStrategy
    GradientScaleStrategy = GradientScaleStrategy

    _table: ClassVar[Mapping[str, Option]] = {
        "reduce_strategy": (ReduceStrategy.AllReduce, _member(ReduceStrategy)),
        "gradient_scale_strategy": (
            GradientScaleStrategy.CoeffNumDevice,
            _member(GradientScaleStrategy),
        ),
        "debug_graphviz_path": ("", _text),
        "memory_optimize": (None, _maybe),
        "memory_budget": (None, _budget),
        "num_trainers": (1, _int),
        "trainer_id": (0, _int),
        "trainers_endpoints": ([], _texts),
        "nccl_comm_num": (1, _count),
        "hierarchical_allreduce_inter_nranks": (0, _count),
        "mkldnn_enabled_op_types": (set(), _names),
        **_flags(
            True, "remove_unnecessary_lock fuse_broadcast_ops fuse_all_reduce_ops enable_inplace"
        ),
        **_flags(True, "enable_backward_optimizer_op_deps"),
        **_flags(
            False,
            "enable_sequential_execution fuse_elewise_add_act_ops fuse_bn_act_ops"
            " fuse_relu_depthwise_conv",
        ),
        **_flags(
            False,
            "fuse_all_optimizer_ops enable_auto_fusion sync_batch_norm async_mode is_distribution",
        ),
        **_flags(False, "cache_runtime_context use_hierarchical_allreduce"),
    }


class ExecutionStrategy(_Options):
    """Options of how a program is run, with Paddle's names and defaults.

    ``num_iteration_per_run``: the number of steps of one run, each with the same feed; the results
    of the last step are returned. The other options concern threads and scopes that a compiled step
    does not have, and change nothing: ``num_threads``, ``num_iteration_per_drop_scope``,
    ``allow_op_delay``, ``use_thread_barrier``, ``use_experimental_executor``, ``use_cuda`` (the
    places decide that).

    Setting an unknown option raises UnknownOptionError (an AttributeError), a wrong type
    FluidTypeError (a TypeError).
    """

    _table: ClassVar[Mapping[str, Option]] = {
        "num_threads": (0, _count),
        "num_iteration_per_drop_scope": (100, _count),
        "num_iteration_per_run": (1, _count),
        **_flags(True, "use_cuda use_experimental_executor"),
        **_flags(False, "allow_op_delay use_thread_barrier _dry_run"),
    }


def checked(what: str, value: Any, kind: type) -> Any:
    """`value` if it is None or a `kind`. Raises FluidTypeError."""
    if value is not None and not isinstance(value, kind):
        raise FluidTypeError(f"{what} is a {kind.__name__}, not {type(value).__name__}")
    return value
