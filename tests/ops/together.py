"""Many small functions compiled as one program, in a quarter of the time that compiling each by
itself takes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import jax

from fluidjax.xla_cpu.options import known

# Compiling takes all the time, so the compiler is told to try less hard: 25 ms a sample instead of
# 75.
QUICK = {
    "xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1,
}  # fmt: skip
SIZE = 24  # functions of a program: more would save little, and a single test would take longer


def attempt(fn: Callable[[], Any]) -> Any:
    """What fn returns, or the exception that it raises: a failure is a matter of the test that asks
    for this very result.
    """
    try:
        return fn()
    except Exception as error:
        return error


def given(result: Any) -> Any:
    """A result of `attempt`."""
    if isinstance(result, Exception):
        raise result
    return result


class Together:
    """Jitted functions with the arguments that they are compiled for."""

    def __init__(self, calls: Sequence[tuple[Any, tuple[Any, ...]]]) -> None:
        self.calls = calls
        self._failed = {
            i: e
            for i, (fn, args) in enumerate(calls)
            if isinstance(e := attempt(lambda: fn.trace(*args)), Exception)  # noqa: B023
        }
        self._there = [i for i in range(len(calls)) if i not in self._failed]

    @cached_property
    def _program(self) -> Callable[..., Any]:
        fns = [self.calls[i][0] for i in self._there]
        return compiled(
            lambda all: [fn(*args) for fn, args in zip(fns, all, strict=True)],
            [self.calls[i][1] for i in self._there],
        )

    def __call__(self, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The result of each function, or why it cannot be traced."""
        results = dict(self._failed)
        if self._there:
            results |= zip(
                self._there, self._program([arguments[i] for i in self._there]), strict=True
            )
        return [results[i] for i in range(len(self.calls))]


def compiled(fn: Callable[..., Any], *inputs: Any) -> Callable[..., Any]:
    """A jitted function, compiled for such inputs in little time."""
    lowered = jax.jit(fn).lower(*inputs)
    with not_kept():
        return lowered.compile(known(QUICK))


@contextmanager
def not_kept() -> Iterator[None]:
    """Nothing is written to this process's cache: no other program is the same, and writing costs a
    twentieth of compiling.
    """
    least = jax.config.jax_persistent_cache_min_compile_time_secs
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:  # one that is kept beyond this process
        jax.config.update("jax_persistent_cache_min_compile_time_secs", float("inf"))
    try:
        yield
    finally:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", least)
