"""LRScheduler: the base of learning rates of paddle.optimizer.lr."""

from __future__ import annotations

from typing import Any

from ...errors import FluidTypeError, FluidValueError
from ...layers._build import require


class LRScheduler:
    """A learning rate for paddle.optimizer: self() is the current one, step() advances to the next.

    A subclass defines get_lr(), from self.base_lr and self.last_epoch, which counts from 0.
    last_epoch: the count so far (-1: none). verbose: step() prints the rate. Raises FluidTypeError,
    FluidValueError for a rate that is not a number or negative.
    """

    keys: tuple[str, ...] = ("last_epoch", "last_lr")

    def __init__(
        self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        if not isinstance(learning_rate, float | int):
            raise FluidTypeError(
                f"{type(self).__name__}'s learning_rate is a number, not {learning_rate!r}"
            )
        require(
            learning_rate >= 0,
            f"{type(self).__name__}'s learning_rate is not negative, as {learning_rate} is",
        )
        self.base_lr = self.last_lr = float(learning_rate)
        self.last_epoch, self.verbose = last_epoch, verbose
        self.step()

    def __call__(self) -> float:
        return self.last_lr

    def get_lr(self) -> float:
        """The rate at self.last_epoch."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr")

    def step(self, epoch: int | None = None) -> None:
        """Advance by one, or to `epoch`."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.last_lr = self.get_lr()
        self._tell()

    def _tell(self) -> None:
        if self.verbose:
            print(
                f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to"
                f" {self.last_lr}."
            )

    def state_keys(self) -> None:
        """Set self.keys, the keys of state_dict; a subclass may override this."""

    def state_dict(self) -> dict[str, Any]:
        """The state to resume from."""
        self.state_keys()
        return {key: getattr(self, key) for key in self.keys if hasattr(self, key)}

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Resume from a state_dict. Raises FluidValueError if a key is missing; then nothing is
        set.
        """
        self.state_keys()
        lacking = [key for key in self.keys if key not in state_dict]
        if lacking:
            raise FluidValueError(f"the state of {type(self).__name__} has no {', '.join(lacking)}")
        vars(self).update({key: state_dict[key] for key in self.keys})

    set_dict = set_state_dict


__all__ = ["LRScheduler"]
