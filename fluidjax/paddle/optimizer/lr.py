"""paddle.optimizer.lr: learning rates as functions of a count, which step() increments; every run
of a program uses the current one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import FluidTypeError
from ...layers._build import one_of, require
from .cycles import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from .cycles import CyclicLR as CyclicLR
from .cycles import LinearLR as LinearLR
from .cycles import OneCycleLR as OneCycleLR
from .schedule import LRScheduler as LRScheduler


class NoamDecay(LRScheduler):
    """learning_rate * d_model^-0.5 * min(n^-0.5, n * warmup_steps^-1.5) at n = 0, 1, ... (0 at 0)."""

    def __init__(
        self,
        d_model: float,
        warmup_steps: int,
        learning_rate: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        require(d_model > 0, f"NoamDecay's d_model is above 0, not {d_model}")
        self.d_model, self.warmup_steps = d_model, warmup_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        n = self.last_epoch
        return (
            self.base_lr
            * self.d_model**-0.5
            * min(n**-0.5 if n else 1.0, n * self.warmup_steps**-1.5)
        )


class PiecewiseDecay(LRScheduler):
    """values[i] before boundaries[i], the last of `values` from the last boundary on."""

    def __init__(
        self,
        boundaries: Sequence[int],
        values: Sequence[float],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        fits = 0 < len(boundaries) < len(values)
        require(
            fits,
            f"PiecewiseDecay has a value more than boundaries, not {len(values)} for"
            f" {len(boundaries)}",
        )
        self.boundaries, self.values = boundaries, values
        super().__init__(last_epoch=last_epoch, verbose=verbose)

    def get_lr(self) -> float:
        return self.values[
            next(
                (i for i, b in enumerate(self.boundaries) if self.last_epoch < b),
                len(self.values) - 1,
            )
        ]


class _ByGamma(LRScheduler):
    def __init__(
        self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)


class NaturalExpDecay(_ByGamma):
    """learning_rate * e^(-gamma n)."""

    def get_lr(self) -> float:
        return self.base_lr * math.exp(-self.gamma * self.last_epoch)


class InverseTimeDecay(_ByGamma):
    """learning_rate / (1 + gamma n)."""

    def get_lr(self) -> float:
        return self.base_lr / (1 + self.gamma * self.last_epoch)


class ExponentialDecay(_ByGamma):
    """learning_rate * gamma^n."""

    def get_lr(self) -> float:
        return self.base_lr * self.gamma**self.last_epoch


class PolynomialDecay(LRScheduler):
    """(learning_rate - end_lr) * (1 - n / decay_steps)^power + end_lr, with n up to decay_steps.

    cycle: n is not limited, and decay_steps grows to its next multiple above n.
    """

    def __init__(
        self, learning_rate: float, decay_steps: int, end_lr: float = 0.0001, power: float = 1.0, cycle: bool = False,
        last_epoch: int = -1, verbose: bool = False,
    ) -> None:  # fmt: skip
        require(
            decay_steps > 0 and power > 0,
            f"PolynomialDecay's decay_steps and power are above 0, not {decay_steps} and {power}",
        )
        self.decay_steps, self.end_lr, self.power, self.cycle = decay_steps, end_lr, power, cycle
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        n, steps = self.last_epoch, self.decay_steps
        if self.cycle:
            steps *= max(1, math.ceil(n / steps))
        else:
            n = min(n, steps)
        return (self.base_lr - self.end_lr) * (1 - n / steps) ** self.power + self.end_lr


class LinearWarmup(LRScheduler):
    """A linear rise from start_lr to end_lr over warmup_steps, then learning_rate: a number, or a
    scheduler that begins then.
    """

    def __init__(
        self,
        learning_rate: Any,
        warmup_steps: int,
        start_lr: float,
        end_lr: float,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(learning_rate, float | int | LRScheduler):
            raise FluidTypeError(
                f"LinearWarmup's learning_rate is a number or a scheduler, not {learning_rate!r}"
            )
        require(warmup_steps > 0, f"LinearWarmup's warmup_steps are above 0, not {warmup_steps}")
        require(
            end_lr > start_lr, f"LinearWarmup's end_lr {end_lr} is above its start_lr {start_lr}"
        )
        self.learning_rate, self.warmup_steps, self.start_lr, self.end_lr = (
            learning_rate,
            warmup_steps,
            start_lr,
            end_lr,
        )
        super().__init__(start_lr, last_epoch, verbose)

    def get_lr(self) -> float:
        n = self.last_epoch
        if n < self.warmup_steps:
            return (self.end_lr - self.start_lr) * n / self.warmup_steps + self.start_lr
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(n - self.warmup_steps)
            return self.learning_rate()
        return float(self.learning_rate)

    def state_dict(self) -> dict[str, Any]:
        inner = (
            {"LinearWarmup_LR": self.learning_rate.state_dict()}
            if isinstance(self.learning_rate, LRScheduler)
            else {}
        )
        return super().state_dict() | inner

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().set_state_dict(state_dict)
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.set_state_dict(state_dict["LinearWarmup_LR"])

    set_dict = set_state_dict


class MultiStepDecay(LRScheduler):
    """learning_rate * gamma^k after k of the milestones."""

    def __init__(
        self,
        learning_rate: float,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        rising = list(milestones) == sorted(set(milestones))
        require(
            rising and gamma < 1,
            f"MultiStepDecay's milestones rise and gamma is below 1, unlike {list(milestones)},"
            f" {gamma}",
        )
        self.milestones, self.gamma = milestones, gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.gamma ** sum(self.last_epoch >= m for m in self.milestones)


class StepDecay(LRScheduler):
    """learning_rate * gamma^(n // step_size)."""

    def __init__(
        self,
        learning_rate: float,
        step_size: int,
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        require(
            step_size > 0 and gamma < 1,
            f"StepDecay's step_size is above 0 and gamma below 1, unlike {step_size}, {gamma}",
        )
        self.step_size, self.gamma = step_size, gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.gamma ** (self.last_epoch // self.step_size)


class _ByFunction(LRScheduler):
    def __init__(
        self,
        learning_rate: float,
        lr_lambda: Callable[[int], float],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not callable(lr_lambda):
            raise FluidTypeError(
                f"{type(self).__name__}'s lr_lambda is a function of the count, not {lr_lambda!r}"
            )
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)


class LambdaDecay(_ByFunction):
    """learning_rate * lr_lambda(n)."""

    def get_lr(self) -> float:
        return self.base_lr * self.lr_lambda(self.last_epoch)


class MultiplicativeDecay(_ByFunction):
    """learning_rate * lr_lambda(1) * ... * lr_lambda(n)."""

    def get_lr(self) -> float:
        return self.base_lr * math.prod(self.lr_lambda(k) for k in range(1, self.last_epoch + 1))


class CosineAnnealingDecay(LRScheduler):
    """eta_min + (learning_rate - eta_min) * (1 + cos(pi n / T_max)) / 2."""

    def __init__(
        self,
        learning_rate: float,
        T_max: int,
        eta_min: float = 0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        require(T_max > 0, f"CosineAnnealingDecay's T_max is above 0, not {T_max}")
        self.T_max, self.eta_min = T_max, float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return (
            self.eta_min
            + (self.base_lr - self.eta_min)
            * (1 + math.cos(math.pi * self.last_epoch / self.T_max))
            / 2
        )


class ReduceOnPlateau(LRScheduler):
    """The rate, multiplied by factor whenever a measure has not improved for more than `patience`
    steps: step(measure).

    mode: "min" or "max" is better, by more than threshold: relative to the best ("rel"), or
    absolute ("abs"). cooldown: steps after a change in which measures do not count. min_lr: the
    least rate; changes up to epsilon are skipped.
    """

    keys = ("cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr")

    def __init__(
        self, learning_rate: float, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: float = 0, epsilon: float = 1e-8, verbose: bool = False,
    ) -> None:  # fmt: skip
        one_of(mode.lower(), "mode", "ReduceOnPlateau", ("min", "max"))
        one_of(threshold_mode.lower(), "threshold_mode", "ReduceOnPlateau", ("rel", "abs"))
        require(factor < 1, f"ReduceOnPlateau's factor is below 1, not {factor}")
        self.mode, self.threshold_mode, self.factor, self.patience = (
            mode.lower(),
            threshold_mode.lower(),
            factor,
            patience,
        )
        self.threshold, self.cooldown, self.min_lr, self.epsilon = (
            threshold,
            cooldown,
            min_lr,
            epsilon,
        )
        self.cooldown_counter, self.num_bad_epochs = 0, 0
        self.best: float | None = None
        super().__init__(learning_rate, -1, verbose)

    def get_lr(self) -> float:
        return self.last_lr

    def step(self, metrics: Any = None, epoch: int | None = None) -> None:  # type: ignore[override]
        """Advance with a measure: a number, or an array of one. Raises FluidTypeError for anything
        else.
        """
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if metrics is None and self.last_epoch == 0:
            return  # the initial state
        if np.size(metrics) != 1 or np.asarray(metrics).dtype.kind not in "fiu":
            raise FluidTypeError(f"ReduceOnPlateau.step takes a number, not {metrics!r}")
        measure = float(np.asarray(metrics).ravel()[0])
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        better = self.best is None or self._better(measure, self.best)
        self.best, self.num_bad_epochs = (
            (measure, 0) if better else (self.best, self.num_bad_epochs + 1)
        )
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            new = max(self.last_lr * self.factor, self.min_lr)
            if self.last_lr - new > self.epsilon:
                self.last_lr = new
                self._tell()

    def _better(self, measure: float, best: float) -> bool:
        by = best * self.threshold if self.threshold_mode == "rel" else self.threshold
        return measure < best - by if self.mode == "min" else measure > best + by


__all__ = [
    "CosineAnnealingDecay", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialDecay", "InverseTimeDecay", "LRScheduler",
    "LambdaDecay", "LinearLR", "LinearWarmup", "MultiStepDecay", "MultiplicativeDecay", "NaturalExpDecay", "NoamDecay", "OneCycleLR",
    "PiecewiseDecay", "PolynomialDecay", "ReduceOnPlateau", "StepDecay",
]  # fmt: skip
