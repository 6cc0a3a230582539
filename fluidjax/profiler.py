"""fluid.profiler: measures the time of each op of a program, as a table and as a trace.

While a profile is on, executors run programs op by op, each op compiled by itself and waited for.
So the figures show how the time of a step is distributed over its ops, and steps are slower than
otherwise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from .base.absent import reporter
from .devices.place import gpus
from .errors import FluidValueError
from .executor import Executor
from .functional import read_state, write_state
from .graph.program import Program
from .profiling.costs import Profile, of_recording
from .profiling.events import RECORDER, Recording
from .profiling.report import SORTED, report, trace
from .profiling.watching import Compiles, Watch
from .saved.files import write_files
from .state.scope import Scope

_STATES = ("CPU", "GPU", "All")
_OPTIONS = ("Default", "OpDetail", "AllOpDetail")


def start_profiler(state: str, tracer_option: str = "Default") -> None:
    """Begin to record. Does nothing if a profile is on already.

    state: "CPU", "GPU" or "All"; the latter two split the time into the call (CPU) and the wait for
    its results (GPU). tracer_option: "Default"; "OpDetail" has rows for these two parts,
    "AllOpDetail" also for each single op. Raises FluidValueError for other states and options.
    """
    if RECORDER.on is not None:
        return
    if state not in _STATES:
        raise FluidValueError(
            f"start_profiler: the state is one of {', '.join(_STATES)}, not {state!r}"
        )
    if tracer_option not in _OPTIONS:
        raise FluidValueError(
            f"start_profiler: tracer_option is one of {', '.join(_OPTIONS)}, not {tracer_option!r}"
        )
    RECORDER.on = Recording(state, tracer_option)


def stop_profiler(sorted_key: str | None = None, profile_path: str = "/tmp/profile") -> None:
    """End the profile, print its table, write its trace. Does nothing if none is on.

    sorted_key: None (the order in which ops first ended), "calls", "total", "max", "min" or "ave".
    profile_path: the file for ui.perfetto.dev or chrome://tracing (JSON).
    Raises FluidValueError for another key, and the profile goes on; OSError for a file that cannot
    be written.
    """
    recording = RECORDER.on
    if recording is None:
        return
    key = "default" if sorted_key is None else sorted_key
    if key not in SORTED:
        raise FluidValueError(
            f"stop_profiler: sorted_key is None, calls, total, max, min or ave, not {sorted_key!r}"
        )
    RECORDER.on = None
    print(report(recording, key))
    where = Path(profile_path)
    write_files(where.parent, {where.name: lambda: [trace(recording)]})


def reset_profiler() -> None:
    """Drop the recorded events; a running profile continues."""
    if RECORDER.on is not None:
        RECORDER.on.clear()


@contextlib.contextmanager
def profiler(
    state: str,
    sorted_key: str | None = None,
    profile_path: str = "/tmp/profile",
    tracer_option: str = "Default",
) -> Iterator[None]:
    """start_profiler before the block and stop_profiler after it. If the block raises, the profile
    ends without a table.
    """
    start_profiler(state, tracer_option)
    try:
        yield
    except BaseException:
        RECORDER.on = None
        raise
    stop_profiler(sorted_key, profile_path)


@contextlib.contextmanager
def cuda_profiler(
    output_file: str, output_mode: str | None = None, config: list[str] | None = None
) -> Iterator[None]:
    """Trace the GPU within the block: jax.profiler.trace into the folder `output_file`.

    output_mode: None, "csv" or "kvp", config: accepted as in Fluid; the trace is for TensorBoard
    and Perfetto. Raises FluidValueError for other modes, and if JAX sees no GPU.
    """
    if output_mode not in (None, "csv", "kvp"):
        raise FluidValueError(f"cuda_profiler: output_mode is csv or kvp, not {output_mode!r}")
    if not gpus():
        raise FluidValueError(
            "cuda_profiler: JAX sees no GPU; profiler('CPU') tells the times of ops here"
        )
    with jax.profiler.trace(output_file, create_perfetto_trace=True):
        yield


def watch(
    executor: Compiles | None = None,
    program: Any = None,
    total: int | None = None,
    title: str = "training",
) -> Watch:
    """Show the progress of a training: one line while it runs, if stderr is watched, and curves.

        with fluid.watch(exe, main) as log:
            for feed in loader():
                value, = exe.run(main, feed=feed, fetch_list=[loss])
                log(loss=value)
        print(log)     # 1,000 steps in 4.7 s (212/s): loss 0.0123 (2.31 at first); 2 compilations, 0.61 s

    executor, program: their compilations are counted; default none, and the default main program.
    total: the number of steps, if known. The result holds the values of all steps (`values`), and
    notebooks show them as curves. Raises FluidTypeError for anything but an executor,
    FluidValueError for a total below 1.
    """
    return Watch(executor, program, total, title)


def profile(
    program: Program, feed: Any = None, fetch_list: Any = None, steps: int = 3, scope: Any = None
) -> Profile:
    """The implementation of `Program.profile`."""
    if steps < 1:
        raise FluidValueError(f"profile: steps is at least 1, not {steps}")
    if RECORDER.on is not None:
        raise FluidValueError("profile: a profile is on already; stop_profiler ends it")
    own = Scope()
    write_state(read_state(program, scope), program, own)
    executor = Executor()
    RECORDER.on = recording = Recording("CPU", "Default")
    try:
        # the first run compiles each op; its times are not counted
        for at in range(steps + 1):
            if at == 1:
                recording.clear()
            executor.run(program, feed=feed, fetch_list=fetch_list, scope=own)
    finally:
        RECORDER.on = None
    if not recording.events:
        raise FluidValueError(
            "profile: nothing that the program computes is asked for; name results in fetch_list"
        )
    return of_recording(recording, steps)


__all__ = [
    "cuda_profiler",
    "profiler",
    "reset_profiler",
    "start_profiler",
    "stop_profiler",
    "watch",
]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.profiler", __all__)
