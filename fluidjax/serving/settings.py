"""Settings of a served model: batching and limits."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import FluidValueError


@dataclass(frozen=True)
class Settings:
    """name: of the model in addresses (default: its folder's).

    batch_sizes: rows of waiting requests run together, padded up to the smallest of these sizes
    that holds them; () makes every request run by itself. wait: the seconds that the first request
    waits for more; 0 takes only waiting ones. threads: the number of batches that run at once.

    executables: the number that is kept, one for each form of the inputs; the least recently used
    one is dropped.

    These are refused: a body of more than `body` bytes, an input of more than `elements` elements,
    more than `waiting` requests at once, a body that takes more than `seconds` to arrive.

    Raises FluidValueError for invalid numbers.
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
