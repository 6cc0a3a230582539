"""Compiles a step's executable before the call that needs it, and reports how long that took."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import jax

from ..base.loc import user_line
from ..base.progress import waiting
from ..compiling.compilations import Compilation, types_of
from ..compiling.kind import Kind
from ..compiling.reasons import MadeFor, fed, types
from .compiled import Compiled
from .executables import Executable


def build(
    compiled: Compiled,
    kind: Kind,
    args: Sequence[Any],
    refuse: Callable[[str], Exception] | None = None,
) -> Executable:
    """Compile a call for arguments like these.

    refuse: given the name of a fetch that has a LoD, makes the error that is raised instead.
    """
    with waiting(f"compiling a step of {len(compiled.step.ops):,} ops"):
        fn, times = compiled.function(kind), [time.perf_counter()]
        made = fn.trace(*args)
        times.append(time.perf_counter())
        lowered = made.lower()
        times.append(time.perf_counter())
        ragged = compiled.with_lod(made.out_info[2])
        if ragged is not None and refuse is not None:
            raise refuse(ragged)
        compile_lowered(lowered)
        times.append(time.perf_counter())
    trace, lower, compile = (after - before for before, after in pairwise(times))
    origin = MadeFor(
        compiled.step.desc, compiled.fetches, kind, types(compiled.shapes), fed(args[2])
    )
    report = Compilation(
        kind.value,
        compiled.fetches,
        types_of(args[2]),
        trace,
        lower,
        compile,
        compiled.recompiles.reasons.of(origin),
        user_line(),
    )
    compiled.report(report)
    return compiled.executables.built(compiled.signature(kind, args[2]), fn, ragged)


def compile_lowered(lowered: Any) -> None:
    """lowered.compile(), in which Ctrl-C raises KeyboardInterrupt.

    From jax 0.12 on, Python code visits a module's operations to make a cache key. An exception
    raised there arrives as the text of a RuntimeError.
    """
    try:
        lowered.compile()
    except RuntimeError as error:
        if str(error).rstrip().rstrip(":").endswith("\nKeyboardInterrupt"):
            raise KeyboardInterrupt from error
        raise


@contextlib.contextmanager
def tracing(device: Any) -> Iterator[None]:
    """The context in which steps are traced and run. device: the default one; None: JAX's."""
    chosen = contextlib.nullcontext() if device is None else jax.default_device(device)
    with jax.enable_x64(True), chosen:
        yield
