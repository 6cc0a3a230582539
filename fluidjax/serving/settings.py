"""How a model is served: what is taken together, and what is too much."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import FluidValueError


@dataclass(frozen=True)
class Settings:
    """name: of the model in addresses (default: its folder's).

    batch_sizes: rows of waiting requests run together, padded up to the least of these sizes that
    holds them; () for none, so that every request runs by itself. wait: for how many seconds the
    first of them waits for more; 0 takes those that are there. threads: how many batches run at
    once.

    executables: so many are kept, one for each form of the inputs; the one that was not used for
    longest is dropped.

    Too much, and refused: a body of more than `body` bytes, more than `elements` elements in an
    input, more than `waiting` requests at once, a body that takes more than `seconds` to come.

    Raises FluidValueError for numbers that make no sense.
    """

    name: str = ""
    batch_sizes: tuple[int, ...] = (1, 2, 4, 8)
    wait: float = 0.0
    threads: int = 1
    body: int = 16 << 20
    elements: int = 1 << 22
    waiting: int = 256
    seconds: float = 30.0
    executables: int = 64

    def __post_init__(self) -> None:
        for what in ("threads", "body", "elements", "waiting", "seconds", "executables"):
            if getattr(self, what) <= 0:
                raise FluidValueError(f"{what} is a positive number, not {getattr(self, what)}")
        if self.wait < 0:
            raise FluidValueError(f"wait is not negative, as {self.wait} is")
        if "/" in self.name:
            raise FluidValueError(f"a model's name goes into addresses, so not {self.name!r}")
