"""Learning rates that rise and fall: linearly, once, in cycles, and with restarts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...errors import FluidTypeError, FluidValueError
from ...layers._build import one_of, require
from .schedule import LRScheduler


def _count(owner: str, what: str, value: Any) -> int:
    """`value` if it is an integer above 0. Raises FluidTypeError, FluidValueError otherwise."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise FluidTypeError(f"{owner}'s {what} is a whole number, not {value!r}")
    require(value > 0, f"{owner}'s {what} is above 0, not {value}")
    return value


class LinearLR(LRScheduler):
    """learning_rate * start_factor at n = 0, linear to learning_rate * end_factor at total_steps,
    then constant.

    Computed from the previous rate as in Paddle: a step(n) that skips steps continues from the
    current rate.
    """

    def __init__(
        self, learning_rate: float, total_steps: int, start_factor: float = 1.0 / 3, end_factor: float = 1.0, last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:  # fmt: skip
        require(
            0 < start_factor <= 1,
            f"LinearLR's start_factor lies above 0 and up to 1, not {start_factor}",
        )
        require(
            0 <= end_factor <= 1, f"LinearLR's end_factor lies between 0 and 1, not {end_factor}"
        )
        self.total_steps = _count("LinearLR", "total_steps", total_steps)
        self.start_factor, self.end_factor = start_factor, end_factor
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        if self.last_epoch == 0:
            return self.base_lr * self.start_factor
        if self.last_epoch > self.total_steps:
            return self.last_lr
        more = self.end_factor - self.start_factor
        return self.last_lr * (
            1 + more / (self.total_steps * self.start_factor + (self.last_epoch - 1) * more)
        )


class OneCycleLR(LRScheduler):
    """The rate rises from max_learning_rate / divide_factor to max_learning_rate, then falls to
    end_learning_rate at total_steps - 1.

    phase_pct: the fraction of steps that rise. three_phase: as many return to the initial rate, and
    the rest go to the end. anneal_strategy: along half a cosine ("cos") or a line ("linear"). A
    step beyond total_steps raises FluidValueError.
    """

    def __init__(
        self, max_learning_rate: float, total_steps: int, divide_factor: float = 25.0, end_learning_rate: float = 0.0001,
        phase_pct: float = 0.3, anneal_strategy: str = "cos", three_phase: bool = False, last_epoch: int = -1, verbose: bool = False,
    ) -> None:  # fmt: skip
        for what, value in (
            ("max_learning_rate", max_learning_rate),
            ("end_learning_rate", end_learning_rate),
        ):
            if not isinstance(value, float | int):
                raise FluidTypeError(f"OneCycleLR's {what} is a number, not {value!r}")
            require(value >= 0, f"OneCycleLR's {what} is not negative, as {value} is")
        require(
            0 <= phase_pct <= 1, f"OneCycleLR's phase_pct lies between 0 and 1, not {phase_pct}"
        )
        require(
            not three_phase or phase_pct < 0.5,
            f"OneCycleLR's phase_pct is below 0.5 with three_phase, not {phase_pct}",
        )
        one_of(anneal_strategy, "anneal_strategy", "OneCycleLR", ("cos", "linear"))
        self.total_steps = _count("OneCycleLR", "total_steps", total_steps)
        first = max_learning_rate / float(divide_factor)
        up = phase_pct * total_steps - 1
        if three_phase:
            self._ends = [0.0, up, 2 * phase_pct * total_steps - 2, total_steps - 1.0]
            self._rates = [first, float(max_learning_rate), first, float(end_learning_rate)]
        else:
            self._ends, self._rates = (
                [0.0, up, total_steps - 1.0],
                [first, float(max_learning_rate), float(end_learning_rate)],
            )
        self._waves = anneal_strategy == "cos"
        super().__init__(first, last_epoch, verbose)

    def get_lr(self) -> float:
        n = self.last_epoch
        if n > self.total_steps:
            raise FluidValueError(f"OneCycleLR has {self.total_steps} steps, and this is step {n}")
        phase = next(
            (k for k in range(1, len(self._ends)) if n <= self._ends[k]), len(self._ends) - 1
        )
        begin, end = self._ends[phase - 1 : phase + 1]
        share = (n - begin) / (end - begin)
        start, stop = self._rates[phase - 1 : phase + 1]
        if self._waves:
            return stop + (start - stop) / 2 * (1 + math.cos(math.pi * share))
        return (stop - start) * share + start


class CyclicLR(LRScheduler):
    """base_learning_rate + (max_learning_rate - base_learning_rate) * height * scale, in cycles.

    height rises from 0 to 1 in step_size_up steps and falls in step_size_down (default as many).
    scale of the cycle c = 1, 2, ... and the step n: 1 ("triangular"), 2^(1 - c) ("triangular2"),
    exp_gamma^n ("exp_range"); or scale_fn of c or n, by scale_mode.
    """

    def __init__(
        self, base_learning_rate: float, max_learning_rate: float, step_size_up: int, step_size_down: int | None = None,
        mode: str = "triangular", exp_gamma: float = 1.0, scale_fn: Callable[[int], float] | None = None, scale_mode: str = "cycle",
        last_epoch: int = -1, verbose: bool = False,
    ) -> None:  # fmt: skip
        if not isinstance(max_learning_rate, float | int):
            raise FluidTypeError(
                f"CyclicLR's max_learning_rate is a number, not {max_learning_rate!r}"
            )
        require(
            max_learning_rate >= 0,
            f"CyclicLR's max_learning_rate is not negative, as {max_learning_rate} is",
        )
        one_of(scale_mode, "scale_mode", "CyclicLR", ("cycle", "iterations"))
        self._up = _count("CyclicLR", "step_size_up", step_size_up)
        self._down = (
            self._up
            if step_size_down is None
            else _count("CyclicLR", "step_size_down", step_size_down)
        )
        self._by_steps = scale_mode == "iterations" if scale_fn is not None else mode == "exp_range"
        if scale_fn is None:
            scales = {
                "triangular": lambda c: 1.0,
                "triangular2": lambda c: 1 / 2.0 ** (c - 1),
                "exp_range": lambda n: exp_gamma**n,
            }
            one_of(mode, "mode", "CyclicLR", tuple(scales))
            scale_fn = scales[mode]
        self._scale, self.amplitude = scale_fn, max_learning_rate - base_learning_rate
        super().__init__(base_learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        total = self._up + self._down
        cycle = 1 + self.last_epoch // total
        share, top = 1 + self.last_epoch / total - cycle, self._up / total
        height = share / top if share <= top else (1 - share) / (1 - top)
        return self.base_lr + self.amplitude * height * self._scale(
            self.last_epoch if self._by_steps else cycle
        )


class CosineAnnealingWarmRestarts(LRScheduler):
    """eta_min + (learning_rate - eta_min) * (1 + cos(pi n / T)) / 2, where n restarts after T
    steps: T_0, T_0 * T_mult, ...
    """

    keys = ("last_epoch", "last_lr", "T_cur", "T_i")

    def __init__(
        self,
        learning_rate: float,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.T_0 = self.T_i = _count("CosineAnnealingWarmRestarts", "T_0", T_0)
        self.T_mult = _count("CosineAnnealingWarmRestarts", "T_mult", T_mult)
        self.eta_min, self.T_cur = float(eta_min), last_epoch
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return (
            self.eta_min
            + (self.base_lr - self.eta_min) * (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        )

    def step(self, epoch: int | None = None) -> None:
        """Advance by one, or to `epoch`. Raises FluidValueError for a negative one."""
        if epoch is None and self.last_epoch >= 0:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
            super().step()
            return
        at = 0 if epoch is None else epoch
        require(at >= 0, f"CosineAnnealingWarmRestarts continues at a step from 0, not to {at}")
        self.T_cur, self.T_i = at, self.T_0
        while self.T_cur >= self.T_i and self.T_mult > 1:
            self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
        self.T_cur %= self.T_i
        super().step(at)


__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "LinearLR", "OneCycleLR"]
