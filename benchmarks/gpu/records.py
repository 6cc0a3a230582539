"""JSON lines, one a finding, written so that whatever ends a process keeps the lines before."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Found = dict[str, Any]
DIGITS = 5


class Records:
    """A file of JSON lines that several processes add to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, case: str, found: Found) -> None:
        """One line, in one write."""
        line = (
            json.dumps(
                {
                    "case": case,
                    "at": round(time.time(), 1),
                    **{k: _plain(v) for k, v in found.items()},
                }
            )
            + "\n"
        )
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)

    def read(self) -> Iterator[Found]:
        """The lines that are whole."""
        for line in self.path.read_text().splitlines() if self.path.exists() else ():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:  # the last one of a machine that was taken away
                continue


def _plain(value: Any) -> Any:
    """Numbers of NumPy's as Python's, to DIGITS digits; what is not finite as text, which JSON has
    no number for.
    """
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, bool | str | int) or value is None:
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    if not math.isfinite(number):
        return str(number)
    return float(f"{number:.{DIGITS}g}")
