"""``fluid.watch``: shows a training while it runs, in one line and as curves."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Protocol

import numpy as np

from ..base import progress
from ..errors import FluidTypeError, FluidValueError
from ..look.curves import curves, short
from ..look.picture import Picture
from ..look.shown import Shown

LINES, PICTURES = 0.1, 2.0  # seconds between two lines, and two pictures in a notebook


class Compiles(Protocol):
    """An object that reports its compilations, as Executor does."""

    def compilations(self, program: Any = None) -> Sequence[Any]: ...


class Watch(Shown):
    """The values of a training, step by step, as ``fluid.watch`` makes it.

    Within ``with``, if progress is shown (FLAGS_progress), a line shows the rate, the newest values
    and the compilations. A notebook also shows curves, redrawn every two seconds. values: name ->
    the values of all steps, NaN for steps without one.
    """

    def __init__(
        self,
        executor: Compiles | None = None,
        program: Any = None,
        total: int | None = None,
        title: str = "training",
    ) -> None:
        """executor, program: their compilations are counted. total: the number of steps, if known.

        Raises FluidTypeError for an executor that has no compilations(), FluidValueError for a
        total below 1.
        """
        if executor is not None and not callable(getattr(executor, "compilations", None)):
            raise FluidTypeError(f"watch takes an executor, not {type(executor).__name__}")
        if total is not None and total < 1:
            raise FluidValueError(f"watch takes a total of at least 1 step, not {total}")
        self.title = title
        self.values: dict[str, list[float]] = {}
        self.steps = 0
        self.seconds = 0.0
        self._executor, self._program, self._total = executor, program, total
        self._bar = progress.Bar(None)
        self._open = ExitStack()
        self._began = 0.0
        self._line = self._picture = 0.0
        self._display: Any = None

    def __enter__(self) -> Watch:
        self._bar = self._open.enter_context(progress.bar(self.title, self._total, "step"))
        self._began = time.monotonic() - self.seconds
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self._draw(last=True)
        self._bar, self._began = progress.Bar(None), 0.0

    def __call__(self, **values: Any) -> None:
        """Add a step with its values: numbers, or arrays, of which the mean counts."""
        for name, value in values.items():
            if name not in self.values:
                self.values[name] = [float("nan")] * self.steps
            self.values[name].append(float(np.mean(np.asarray(value, dtype=np.float64))))
        self.steps += 1
        for known in self.values.values():
            known += [float("nan")] * (self.steps - len(known))
        now = time.monotonic()
        if self._began:
            self.seconds = now - self._began
        status = ""
        if now - self._line >= LINES:
            self._line, status = now, self._status()
        self._bar.step(status)
        if now - self._picture >= PICTURES:
            self._picture = now
            self._draw()

    @property
    def rate(self) -> float:
        """Steps a second within ``with``; 0 before the first."""
        return self.steps / self.seconds if self.seconds else 0.0

    @property
    def compilations(self) -> list[Any]:
        """The compilations of the program by the executor."""
        return list(self._executor.compilations(self._program)) if self._executor else []

    def curves(self) -> Picture:
        """The values over the steps, as a picture."""
        return curves(self.title, self.values)

    def _status(self) -> str:
        made = self.compilations
        parts = [f"{name} {short(v[-1])}" for name, v in self.values.items()]
        if made:
            parts.append(f"{len(made)} compiled")
        return ", ".join(parts)

    def _draw(self, last: bool = False) -> None:
        """Show the curves in a notebook, in place of the old ones."""
        display = sys.modules.get("IPython.display")
        if not (self.values and progress.shown() and progress.in_notebook() and display):
            return
        if self._display is None:
            if not last:  # a short run's cell shows the object itself, if it is the last expression
                self._display = display.display(self.curves(), display_id=True)
        else:
            self._display.update(self.curves())

    def __str__(self) -> str:
        values = [
            f"{name} {short(v[-1])} ({short(v[0])} at first)" for name, v in self.values.items()
        ]
        steps = f"{self.steps:,} step" + ("" if self.steps == 1 else "s")
        head = f"{steps} in {self.seconds:.3g} s ({self.rate:,.3g}/s)" if self.seconds else steps
        parts = [f"{head}: {', '.join(values)}" if values else head]
        made = self.compilations
        if made:
            count = "1 compilation" if len(made) == 1 else f"{len(made)} compilations"
            parts.append(f"{count}, {sum(m.seconds for m in made):.2f} s")
        return "; ".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.curves()._repr_html_()
