"""``LogWriter``: writes the numbers of a training loop as lines of JSON and as TensorBoard's event
files.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import FluidTypeError, FluidValueError

FILE = "metrics.jsonl"


class LogWriter:
    """Writes numbers by name and step into a folder; a context manager.

    Each call adds a line to metrics.jsonl, ``{"step": 12, "time": 1.7e9, "loss": 0.53}``, which
    other processes see at once. NaN and infinities are the words "nan", "inf" and "-inf", because
    JSON has no numbers for them.

    logdir: the folder, which is created. tensorboard: also write event files, by the package
    tensorboardX (``pip install 'fluidjax[tensorboard]'``). after: a step; lines of later steps are
    dropped, for a job that resumes from a checkpoint. trainer: the trainer that writes; default
    PADDLE_TRAINER_ID, and trainer 1's file is metrics.1.jsonl. Raises FluidValueError if the folder
    cannot be written or tensorboardX is missing.
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        tensorboard: bool = False,
        after: int | None = None,
        trainer: int | None = None,
    ) -> None:
        number = str(trainer if trainer is not None else os.environ.get("PADDLE_TRAINER_ID") or 0)
        folder, own = Path(logdir), "" if number == "0" else f".{number}"
        self.path = folder / FILE.replace(".", f"{own}.")
        self._events: Any = None
        if tensorboard:
            self._events = _events(folder if not own else folder / f"trainer{own}", after)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if after is not None:
                self._drop(after)
            self._file = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise FluidValueError(
                f"the log {str(self.path)!r} cannot be written: {error.strerror or error}"
            ) from None

    def _drop(self, after: int) -> None:
        """Keep the complete lines of the steps up to this one."""
        if not self.path.exists():
            return
        kept = [line for line in self.path.read_text().splitlines() if _step(line) <= after]
        new = self.path.with_suffix(".new")
        new.write_text("".join(f"{line}\n" for line in kept))
        new.replace(self.path)

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def add_scalar(self, tag: str, value: Any, step: int) -> None:
        """Write one number, with the signature of VisualDL's writer; see add_scalars."""
        self.add_scalars({tag: value}, step)

    def add_scalars(self, values: Mapping[str, Any], step: int) -> None:
        """Write several numbers of one step in one line.

        values: name -> a number, or an array with one element. Raises FluidTypeError for anything
        else, FluidValueError for the names step and time.
        """
        numbers = {name: _number(name, value) for name, value in values.items()}
        now = time.time()
        line = {"step": int(step), "time": round(now, 3)}
        self._file.write(json.dumps(line | {n: _plain(v) for n, v in numbers.items()}) + "\n")
        self._file.flush()
        if self._events is not None:
            for name, number in numbers.items():
                self._events.add_scalar(name, number, int(step), now)

    def flush(self) -> None:
        """Flush the event files; lines of JSON are written at once."""
        if self._events is not None:
            self._events.flush()

    def close(self) -> None:
        """Write buffered events and close the files."""
        self._file.close()
        if self._events is not None:
            self._events.close()


def _events(folder: Path, after: int | None) -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise FluidValueError(
            "event files need the package tensorboardX: pip install 'fluidjax[tensorboard]'"
        ) from None
    return SummaryWriter(str(folder), purge_step=None if after is None else after + 1)


def _step(line: str) -> float:
    """The step of a line; infinite for one that was cut off."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf


def _number(name: str, value: Any) -> float:
    if name in ("step", "time"):
        raise FluidValueError(
            f"a number named {name!r} would hide the line's own; name it otherwise"
        )
    if isinstance(value, int | float):
        return value
    if getattr(value, "size", 0) == 1 and hasattr(value, "item"):
        return _number(name, value.item())
    shape = f" of shape {tuple(value.shape)}" if hasattr(value, "shape") else ""
    raise FluidTypeError(
        f"{name!r} is a number, or an array with one element, not {type(value).__name__}{shape}"
    )


def _plain(number: float) -> Any:
    if math.isfinite(number):
        return number
    return "nan" if math.isnan(number) else "inf" if number > 0 else "-inf"


__all__ = ["LogWriter"]
