"""Parses many numbers in text at once: finds the words of a text, and converts whole and decimal
numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

_ZEROS = np.uint64(0x3030303030303030)
# masks of the bytes that belong to a word of n characters, among the eight that end with it
_OWN = np.array([2**64 - 2 ** (64 - 8 * n) for n in range(9)], np.uint64)
_EIGHT = 8
_TENS = 10.0 ** np.arange(9)
_LONGEST = 24  # characters of a whole number that are parsed; 64 bits need at most 20
_LARGEST = 2**64 - 1


@dataclass(frozen=True)
class Text:
    """A text with blanks around it, and the positions at which its words begin and end. eights[i]:
    the eight bytes before i, as one number.
    """

    data: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    eights: np.ndarray

    FRONT: ClassVar = _LONGEST  # blanks before the text

    @staticmethod
    def of(content: bytes) -> Text:
        """The words of a text, which are separated by blanks."""
        whole = np.frombuffer(b"".join((b" " * (Text.FRONT + 1), content, b" ")), np.uint8)
        space = whole - np.uint8(9)  # tab, line break, ..., carriage return
        space = (space <= 4) | (whole == ord(" "))
        data = whole[1:]  # aligns each change with the position behind it
        edges = np.flatnonzero(space[1:] != space[:-1])
        eights = np.ndarray((len(data) - _EIGHT + 1,), "<u8", whole, 1, (1,))
        return Text(data, edges[::2].copy(), edges[1::2].copy(), eights)

    def word(self, index: int) -> str:
        """A word, for a message."""
        text = bytes(self.data[self.starts[index] : self.ends[index]]).decode(
            errors="backslashreplace"
        )
        return text if len(text) <= 40 else text[:37] + "..."


def whole(text: Text, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The whole numbers that these words spell, modulo 2**64 as int64, and a mask of words that
    spell none (or one beyond 64 bits).
    """
    end = text.ends[words]
    at = text.starts[words]
    length, first = end - at, text.data[at]
    longest = int(length.max(initial=0))
    if longest <= 1:  # a number of values nearly always has one digit
        value = first - np.uint8(ord("0"))
        return value.astype(np.int64), value > 9
    negative = None
    if int(first.min(initial=255)) < ord("0"):
        negative = first == ord("-")
        length -= negative | (first == ord("+"))
        longest = int(length.max(initial=0))
    low, bad = _eight(text, end, length if longest <= _EIGHT else np.minimum(length, _EIGHT))
    if negative is not None:
        bad |= length < 1
    if longest > _EIGHT:
        long = np.flatnonzero(length > _EIGHT)
        low[long], wrong = _long(text, end[long], length[long], low[long])
        bad[long] |= wrong
    if negative is not None:
        np.negative(low, out=low, where=negative)
    return low.view(np.int64), bad


def _long(
    text: Text, end: np.ndarray, length: np.ndarray, low: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of 9 to 24 digits, whose last eight are known."""
    middle, bad = _eight(text, end - 8, np.minimum(length, 16) - 8)
    high, wrong = _eight(text, end - 16, np.clip(length - 16, 0, _EIGHT))
    lower = middle * np.uint64(10**8) + low
    top = np.uint64(_LARGEST // 10**16)
    over = (
        (high > top)
        | ((high == top) & (lower > np.uint64(_LARGEST % 10**16)))
        | (length > _LONGEST)
    )
    return high * np.uint64(10**16) + lower, bad | wrong | over


def _eight(text: Text, end: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of up to eight digits that end there, with all digits converted at once, and a
    mask of those that contain other characters.
    """
    digits = text.eights[end - _EIGHT]
    digits ^= _ZEROS
    digits &= _OWN[length]
    other = digits + np.uint64(0x7676767676767676)
    other |= digits
    other &= np.uint64(0x8080808080808080)
    for factor, width, kept in _STEPS:
        digits *= factor
        digits >>= width
        digits &= kept
    return digits, other != 0


_STEPS = [  # pairs of digits, then of pairs, then of fours become one number
    (np.uint64(10 * 2**8 + 1), np.uint64(8), np.uint64(0x00FF00FF00FF00FF)),
    (np.uint64(100 * 2**16 + 1), np.uint64(16), np.uint64(0x0000FFFF0000FFFF)),
    (np.uint64(10000 * 2**32 + 1), np.uint64(32), np.uint64(2**64 - 1)),
]


def decimal(text: Text, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest float32 to each of these words, and a mask of words that are not numbers."""
    at, length = text.starts[words], text.ends[words] - text.starts[words]
    values, bad = _plain(text, at, length)
    rest = np.flatnonzero(bad)
    for i in rest.tolist():  # exponents, long numbers, infinities
        try:
            values[i], bad[i] = _nearest(bytes(text.data[at[i] : at[i] + length[i]])), False
        except ValueError:
            values[i] = np.nan
    return values.astype(np.float32), bad


def _plain(text: Text, at: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of up to 15 digits with at most one point: digits / 10**n, rounded once; and a mask
    of words that are not of this form.
    """
    first = text.data[at] if len(at) else np.zeros(0, np.uint8)
    negative = first == ord("-")
    at, length = at + negative, length - negative
    before = _points(text, at, length)
    after = np.maximum(length - before - 1, 0)
    both = before + after
    bad = (before > 8) | (after > 8) | (both > 15) | (both == 0)
    if bad.any():
        before, after, length = (np.where(bad, 0, n) for n in (before, after, length))
    left, wrong = _eight(text, at + before, before)
    right, wrong_too = _eight(text, at + length, after)
    scale = _TENS[after]
    values = left.astype(np.float64)
    values *= scale
    values += right
    values /= scale
    np.negative(values, out=values, where=negative)
    # the conversion to float32 might round a second time
    halfway = values.view(np.uint64) & np.uint64(2**29 - 1) == np.uint64(2**28)
    return values, bad | wrong | wrong_too | halfway


def _points(text: Text, at: np.ndarray, length: np.ndarray) -> np.ndarray:
    """The number of characters before the point, or of all."""
    found = length.copy()
    for k in range(min(int(length.max(initial=0)), 9) - 1, -1, -1):
        found[(text.data[np.minimum(at + k, len(text.data) - 1)] == ord(".")) & (k < length)] = k
    return found


def _nearest(word: bytes) -> float:
    """The float32 nearest to a number. Raises ValueError for other words."""
    if b"_" in word:
        raise ValueError(word)
    value = float(word)
    with np.errstate(over="ignore"):
        near = np.float32(value)
    if not np.isfinite(near) or float(near) == value:
        return float(near)
    from fractions import Fraction

    exact = Fraction(word.decode())
    sides = (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf)))
    return float(
        min(
            (n for n in sides if np.isfinite(n)),
            key=lambda n: (abs(Fraction(float(n)) - exact), int(n.view(np.uint32)) & 1),
        )
    )


__all__ = ["Text", "decimal", "whole"]
