"""CompiledProgram and ParallelExecutor with their strategies: on one device, the program as it is."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from .errors import EnforceNotMet, FluidError, FluidTypeError, FluidValueError, UnsupportedError, near
from .executor import Executor
from .place import Place, as_place, cpu_places, cuda_places, is_compiled_with_cuda
from .program import Program, as_program
from .roles import OpRole
from .scope import Scope

Option = tuple[Any, Callable[[Any], Any]]  # the default, and what checks and converts a value


class UnknownOptionError(FluidError, AttributeError):
    """A strategy has no such option."""


class ReduceStrategy(enum.IntEnum):
    """How gradients travel between devices: all to all, or each to the device that updates its parameter."""

    AllReduce = 0
    Reduce = 1


class GradientScaleStrategy(enum.IntEnum):
    """What each device's loss gradient is: 1 / devices, 1, or fed as ``<loss>@GRAD``."""

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


def _member(kind: type[enum.IntEnum]) -> Callable[[Any], Any]:
    def member(value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError(f"a {kind.__name__}, such as {kind.__name__}.{next(iter(kind)).name}")
        return value

    return member


class _Options:
    """Attributes out of a table of defaults and checks; any other name or type is refused."""

    _table: ClassVar[Mapping[str, Option]] = {}

    def __init__(self) -> None:
        for name, (default, _) in self._table.items():
            object.__setattr__(self, name, default.copy() if isinstance(default, list | set) else default)

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
        return UnknownOptionError(f"{type(self).__name__} has no option {name!r}{near(name, self._table)}")


def _flags(default: bool, names: str) -> dict[str, Option]:
    return {name: (default, _bool) for name in names.split()}


class BuildStrategy(_Options):
    """Options of a CompiledProgram, with Paddle's names and defaults.

    reduce_strategy, gradient_scale_strategy and sync_batch_norm change results on several devices; the others tell
    Paddle how to be faster or smaller, and have no meaning here, where XLA compiles the whole step.

    Setting an unknown option raises UnknownOptionError (an AttributeError), a wrong type FluidTypeError (a TypeError).
    """

    ReduceStrategy = ReduceStrategy
    GradientScaleStrategy = GradientScaleStrategy

    _table: ClassVar[Mapping[str, Option]] = {
        "reduce_strategy": (ReduceStrategy.AllReduce, _member(ReduceStrategy)),
        "gradient_scale_strategy": (GradientScaleStrategy.CoeffNumDevice, _member(GradientScaleStrategy)),
        "debug_graphviz_path": ("", _text),
        "memory_optimize": (None, _maybe),
        "num_trainers": (1, _int),
        "trainer_id": (0, _int),
        "trainers_endpoints": ([], _texts),
        "nccl_comm_num": (1, _count),
        "hierarchical_allreduce_inter_nranks": (0, _count),
        "mkldnn_enabled_op_types": (set(), _names),
        **_flags(True, "remove_unnecessary_lock fuse_broadcast_ops fuse_all_reduce_ops enable_inplace"),
        **_flags(True, "enable_backward_optimizer_op_deps"),
        **_flags(
            False, "enable_sequential_execution fuse_elewise_add_act_ops fuse_bn_act_ops fuse_relu_depthwise_conv"
        ),
        **_flags(False, "fuse_all_optimizer_ops enable_auto_fusion sync_batch_norm async_mode is_distribution"),
        **_flags(False, "cache_runtime_context use_hierarchical_allreduce"),
    }


class ExecutionStrategy(_Options):
    """Options of how Paddle's threads run a program, with Paddle's names and defaults; without meaning here.

    Setting an unknown option raises UnknownOptionError (an AttributeError), a wrong type FluidTypeError (a TypeError).
    """

    _table: ClassVar[Mapping[str, Option]] = {
        "num_threads": (0, _count),
        "num_iteration_per_drop_scope": (100, _count),
        "num_iteration_per_run": (1, _count),
        **_flags(True, "use_cuda use_experimental_executor"),
        **_flags(False, "allow_op_delay use_thread_barrier _dry_run"),
    }


class CompiledProgram:
    """A program with options for its compilation; Executor.run takes it in place of the program.

    program_or_graph: a Program. build_strategy: a BuildStrategy. Raises FluidTypeError for anything else.
    """

    def __init__(self, program_or_graph: Program, build_strategy: BuildStrategy | None = None) -> None:
        if not isinstance(program_or_graph, Program):
            raise FluidTypeError(f"CompiledProgram takes a Program, not {type(program_or_graph).__name__}")
        self._program = program_or_graph
        self._build_strategy = _strategy("build_strategy", build_strategy, BuildStrategy)
        self._exec_strategy: ExecutionStrategy | None = None
        self._places: list[Place] | None = None

    def with_data_parallel(
        self,
        loss_name: str | None = None,
        build_strategy: BuildStrategy | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        share_vars_from: CompiledProgram | None = None,
        places: Sequence[Place] | Place | None = None,
    ) -> CompiledProgram:
        """Run data parallel on `places`; on one place that is the program as it is.

        places: default as many CPUs as CPU_NUM says (1), or the GPUs of FLAGS_selected_gpus (all). loss_name: the name
        of the loss, needed where the program has a backward part. share_vars_from: a data parallel CompiledProgram
        whose parameters this one uses; on one place they share the scope's anyway.

        Raises UnsupportedError for several places, which are not there yet; FluidTypeError or FluidValueError for an
        argument that does not fit, and when called twice.
        """
        if self._places is not None:
            raise FluidValueError("already compiled with parallel, cannot be recompiled; make another CompiledProgram")
        if loss_name is not None and not isinstance(loss_name, str):
            raise FluidTypeError(f"loss_name is the name of the loss, a string, not {type(loss_name).__name__}")
        if loss_name is None and any(
            op.desc.attrs.get("op_role", 0) & OpRole.Backward for op in self._program.global_block().ops
        ):
            raise FluidValueError(
                "The loss name of CompiledProgram is None; it should be set (loss_name=loss.name) for a program with a backward part"
            )
        if share_vars_from is not None and getattr(share_vars_from, "_places", None) is None:
            raise FluidValueError("share_vars_from is a CompiledProgram on which with_data_parallel was called")
        self._build_strategy = _strategy("build_strategy", build_strategy, BuildStrategy) or self._build_strategy
        self._exec_strategy = _strategy("exec_strategy", exec_strategy, ExecutionStrategy)
        self._places = _one_place(places)
        return self


def _strategy(what: str, value: Any, kind: type) -> Any:
    if value is not None and not isinstance(value, kind):
        raise FluidTypeError(f"{what} is a {kind.__name__}, not {type(value).__name__}")
    return value


def _one_place(places: Any) -> list[Place]:
    """The places to run on, if it is one."""
    if places is None:
        places = cuda_places() if is_compiled_with_cuda() else cpu_places()
    many = [as_place(p) for p in (places if isinstance(places, list | tuple) else [places])]
    if not many:
        raise FluidValueError("No places for execution; give at least one, or leave places out")
    if len(many) > 1:
        raise UnsupportedError(
            f"data parallel execution on {len(many)} places is not there yet; run on one: places=[{many[0]}] "
            "(CPU_NUM=1, or one GPU in FLAGS_selected_gpus)"
        )
    return many


class ParallelExecutor:
    """Runs one program data parallel; here on one device, where it is an Executor of that program.

    use_cuda: on the GPUs that FLAGS_selected_gpus names (default all), else on as many CPUs as CPU_NUM says (default 1).
    loss_name, share_vars_from, exec_strategy, build_strategy: as CompiledProgram.with_data_parallel takes them, but that
    share_vars_from is a ParallelExecutor. main_program: default the main program. scope: default global_scope().

    Raises FluidValueError for use_cuda without a GPU, UnsupportedError for several devices or trainers, which are not
    there yet, and what with_data_parallel raises.
    """

    def __init__(
        self,
        use_cuda: bool,
        loss_name: str | None = None,
        main_program: Program | None = None,
        share_vars_from: ParallelExecutor | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        build_strategy: BuildStrategy | None = None,
        num_trainers: int = 1,
        trainer_id: int = 0,
        scope: Scope | None = None,
    ) -> None:
        if use_cuda and not is_compiled_with_cuda():
            raise FluidValueError(
                "ParallelExecutor(use_cuda=True): JAX sees no GPU (not compiled with CUDA); use use_cuda=False"
            )
        if share_vars_from is not None and not isinstance(share_vars_from, ParallelExecutor):
            raise FluidTypeError(
                f"The share_vars_from should be ParallelExecutor, not {type(share_vars_from).__name__}"
            )
        if num_trainers != 1:
            raise UnsupportedError(
                f"ParallelExecutor with num_trainers={num_trainers} is not there yet; run one trainer"
            )
        places = _one_place(cuda_places() if use_cuda else cpu_places())
        shared = None if share_vars_from is None else share_vars_from._compiled
        self._compiled: CompiledProgram = CompiledProgram(as_program(main_program)).with_data_parallel(
            loss_name, build_strategy, exec_strategy, shared, places
        )
        self._scope: Scope | None = scope if scope is not None or share_vars_from is None else share_vars_from._scope
        self._executor = Executor(places[0])

    @property
    def device_count(self) -> int:
        """How many devices the program runs on."""
        return 1

    def run(self, fetch_list: Any, feed: Any = None, feed_dict: Any = None, return_numpy: bool = True) -> list[Any]:
        """Run the program once and return the values of `fetch_list`; arguments and errors as of Executor.run.

        feed: a dict of arrays, or a list with such a dict for each device. feed_dict: without meaning, as in 1.8.5.
        """
        return self._executor.run(
            self._compiled._program, feed=feed, fetch_list=fetch_list, scope=self._scope, return_numpy=return_numpy
        )

    def drop_local_exe_scopes(self) -> None:
        """Free temporary variables of earlier runs: a compiled step keeps none, so there is nothing to free."""


__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy", "ParallelExecutor"]
