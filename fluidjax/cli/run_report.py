"""The report of ``fluidjax run --report`` after the script: names, compilations, and differences
from Paddle.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from ..compat.compare import ABSENT, DIFFERENT, standing
from ..compiling import compilations
from ..compiling.compilations import Compilation
from ..paddle import names
from .surroundings import stand_ins


class _Seen:
    """Records the events of a run."""

    def __init__(self, old_names: set[str]) -> None:
        self.began, self.before = time.perf_counter(), Counter(names.looked_up)
        self.made: list[Compilation] = []
        self.random: set[str] = set()
        self.old_names = old_names

    def compiled(self, made: Compilation, step: Any) -> None:
        from ..ops.registry import lookup

        self.made.append(made)
        if step is not None:
            self.random |= {
                op.type for block in step.desc.blocks for op in block.ops if lookup(op.type).random
            }

    def __str__(self) -> str:
        return "\n".join([*self._names(), *self._compilations(), *self._differences()])

    def _names(self) -> Iterator[str]:
        used = Counter(names.looked_up) - self.before
        stands = {name: standing(name, methods=False) for name in used}
        leaves = {
            n: c for n, c in used.items() if not any(other.startswith(n + ".") for other in used)
        }
        exact = {n: c for n, c in leaves.items() if stands[n].status not in (DIFFERENT, ABSENT)}
        yield (
            f"fluidjax run: {len(leaves)} names of Paddle were looked up {sum(leaves.values())}"
            f" times; {len(exact)} are exact"
        )
        yield from (
            f"  {count:5d}  {name}"
            for name, count in sorted(exact.items(), key=lambda row: (-row[1], row[0]))
        )
        for status in (DIFFERENT, ABSENT):
            rows = sorted((n, c) for n, c in leaves.items() if stands[n].status == status)
            if rows:
                yield f"{len(rows)} are {status}:"
                yield from (f"  {count:5d}  {name}: {stands[name].reason}" for name, count in rows)

    def _compilations(self) -> Iterator[str]:
        total, spent = time.perf_counter() - self.began, sum(m.seconds for m in self.made)
        steps = "1 step was" if len(self.made) == 1 else f"{len(self.made)} steps were"
        yield f"{steps} compiled: {spent:.2f} s of {total:.2f} s were waited for"
        parts = [("tracing", "trace"), ("lowering", "lower"), ("XLA", "compile")]
        if self.made:
            yield "  " + ", ".join(
                f"{what} {sum(getattr(m, part) for m in self.made):.2f} s" for what, part in parts
            )

    def _differences(self) -> Iterator[str]:
        yield "beside Paddle 1.8.5, besides the last digits of sums:"
        yield from (f"  {row}" for row in self._known_differences())

    def _known_differences(self) -> Iterator[str]:
        drawn = f" and those that {', '.join(sorted(self.random))} draw" if self.random else ""
        yield (
            f"random numbers come from another generator: first values of parameters{drawn} are"
            " others for the same seed"
        )
        if self.old_names:
            yield (
                f"the script's numpy.{', numpy.'.join(sorted(self.old_names))} are no longer in"
                " NumPy; they stood for what they were"
            )
        if stand_ins():
            yield (
                "not installed, so that fluidjax's own small one stood in:"
                f" {', '.join(stand_ins())}"
            )


@contextlib.contextmanager
def watched(old_names: set[str]) -> Iterator[Callable[[], str]]:
    """Watch a run; the result is a function that returns the report. old_names: NumPy's old names
    that the script uses.
    """
    seen = _Seen(old_names)
    compilations.watchers.append(seen.compiled)
    try:
        yield lambda: str(seen)
    finally:
        compilations.watchers.remove(seen.compiled)


__all__ = ["watched"]
