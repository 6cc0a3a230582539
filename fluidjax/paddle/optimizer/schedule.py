"""LRScheduler: what learning rates of paddle.optimizer.lr have in common."""

from __future__ import annotations

from typing import Any

from ...errors import FluidTypeError, FluidValueError
from ...layers._build import require


class LRScheduler:
    """A learning rate for paddle.optimizer: self() is the present one, step() goes on to the next.

    A subclass defines get_lr(), from self.base_lr and self.last_epoch, which counts from 0.
    last_epoch: what was counted before (-1: nothing). verbose: step() prints the rate. Raises
    FluidTypeError, FluidValueError for a rate that is no number or negative.
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
        """Go on by one, or to `epoch`."""
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
        """What state_dict holds is in self.keys; a subclass may set them here."""

    def state_dict(self) -> dict[str, Any]:
        """What to go on from."""
        self.state_keys()
        return {key: getattr(self, key) for key in self.keys if hasattr(self, key)}

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what state_dict gave. Raises FluidValueError where a key is missing; then
        nothing is set.
        """
        self.state_keys()
        lacking = [key for key in self.keys if key not in state_dict]
        if lacking:
            raise FluidValueError(f"the state of {type(self).__name__} has no {', '.join(lacking)}")
        vars(self).update({key: state_dict[key] for key in self.keys})

    set_dict = set_state_dict


__all__ = ["LRScheduler"]
