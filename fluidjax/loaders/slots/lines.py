"""Lines of slots: for each slot the number of its values, then the values, separated by blanks.

    2 1926 8 1 0.5 1 1

are two whole numbers, one decimal one, and one whole number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import FluidValueError
from .numbers import Text, decimal, whole
from .records import Records


@dataclass(frozen=True)
class Slot:
    """One variable's part of a line. kind: "uint64" or "float". shape: the declared shape of a
    dense slot (-1: any); else None.

    used: False for a slot that is skipped.
    """

    name: str
    kind: str
    shape: tuple[int, ...] | None = None
    used: bool = True

    def width(self) -> int | None:
        """The number of values of a dense slot in each sample; None if any number is allowed."""
        if self.shape is None:
            return None
        rest = self.shape[1:]
        return None if any(n < 0 for n in rest) else int(np.prod(rest, dtype=np.int64))


class _Lines:
    """A text with the words of each line; errors name the file and the line."""

    def __init__(self, content: bytes, path: str, number: int, slots: Sequence[Slot]) -> None:
        self.text = Text.of(content)
        breaks = np.flatnonzero(self.text.data == 10)
        ends = (
            breaks
            if content.endswith(b"\n") or not content
            else np.append(breaks, len(content) + Text.FRONT)
        )
        self.stop = np.searchsorted(self.text.starts, ends)
        self.at = np.concatenate([[0], self.stop])[: len(ends)].astype(np.int64)
        self.path, self.number, self.slots = path, number, slots

    def refuse(self, bad: np.ndarray, why: str) -> None:
        """Raise FluidValueError for the first line for which this is true. why: the message, with
        {word} for the current word.
        """
        if not bad.any():
            return
        line = int(np.flatnonzero(bad)[0])
        word = (
            repr(self.text.word(int(self.at[line])))
            if self.at[line] < self.stop[line]
            else "the end of the line"
        )
        self.fail(line, why.format(word=word))

    def fail(self, line: int, why: str) -> None:
        form = " ".join(f"[n {s.name}...]" for s in self.slots)
        raise FluidValueError(
            f"{self.path}:{self.number + line}: {why}; a line holds, for each slot, n and then n"
            f" values: {form}"
        )

    def line_of(self, word: int) -> int:
        return int(np.searchsorted(self.stop, word, side="right"))


def parse(content: bytes, slots: Sequence[Slot], path: str = "text", number: int = 1) -> Records:
    """The samples in some lines, the first of which is line `number` of `path`. The last may end
    without a line break.

    Whole numbers are taken modulo 2**64 as int64, like hashed features; decimal ones become the
    nearest float32. Raises FluidValueError, which names the file, the line and the slot, for a line
    with too few or too many words, a slot without a value, a dense slot of another width than its
    variable's, and words that are not such numbers.
    """
    lines = _Lines(content, path, number, slots)
    words, offsets = zip(*(_words(lines, slot) for slot in slots), strict=True)
    lines.refuse(lines.at < lines.stop, "too long: {word} is behind the last slot")
    values: list[np.ndarray] = [np.zeros(0)] * len(slots)
    for kind, read in (("uint64", whole), ("float", decimal)):
        here = [i for i, slot in enumerate(slots) if slot.kind == kind and slot.used]
        if here:
            numbers, bad = read(lines.text, np.concatenate([words[i] for i in here]))
            if bad.any():
                _refuse_word(lines, kind, np.concatenate([words[i] for i in here])[bad])
            ends = np.cumsum([len(words[i]) for i in here])
            for i, part in zip(here, np.split(numbers, ends[:-1]), strict=True):
                values[i] = part
    used = [i for i, slot in enumerate(slots) if slot.used]
    return Records(tuple(values[i] for i in used), np.stack([offsets[i] for i in used]))


def _words(lines: _Lines, slot: Slot) -> tuple[np.ndarray, np.ndarray]:
    """The words of a slot's values, and the offsets of each line's values. Advances the lines
    behind them.
    """
    lines.refuse(lines.at >= lines.stop, f"too short: slot {slot.name!r} is missing")
    count, bad = whole(lines.text, lines.at)
    lines.refuse(
        bad | (count <= 0),
        f"slot {slot.name!r} begins with how many values it has, at least 1, not {{word}}",
    )
    lines.refuse(
        count > lines.stop - lines.at - 1,
        f"too short for the {{word}} values of slot {slot.name!r}",
    )
    width = slot.width()
    if width is not None:
        shape = list(slot.shape or ())
        lines.refuse(
            count != width,
            f"dense slot {slot.name!r} has {{word}} values, where its shape {shape} asks for"
            f" {width}",
        )
    offsets = np.concatenate([[0], np.cumsum(count)])
    first = lines.at + 1
    if len(count) and (count == count[0]).all():
        words = first if count[0] == 1 else (first[:, None] + np.arange(count[0])).ravel()
    else:
        words = np.repeat(first - offsets[:-1], count) + np.arange(offsets[-1])
    lines.at = first + count
    return words, offsets


def _refuse_word(lines: _Lines, kind: str, bad: np.ndarray) -> None:
    word = int(bad.min())
    what = {"uint64": "a whole number of at most 64 bits", "float": "a number"}[kind]
    lines.fail(lines.line_of(word), f"{lines.text.word(word)!r} is not {what}")


__all__ = ["Slot", "parse"]
