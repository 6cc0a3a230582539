"""Numbers in text, many at a time: where the words of a text are, and what whole and decimal numbers they spell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_SPACE = np.zeros(256, bool)
_SPACE[[9, 10, 11, 12, 13, 32]] = True
_ZEROS = 0x3030303030303030
# in a word of n characters at the upper bytes: what "0" to the left of them looks like
_LEADING = np.array([_ZEROS >> (8 * n) if n < 8 else 0 for n in range(9)], np.uint64)
_SHIFT = np.array([8 * (8 - n) if n else 0 for n in range(9)], np.uint64)
_KEPT = np.array([0, *([2**64 - 1] * 8)], np.uint64)
_LONGEST = 24  # characters of a whole number that are looked at; 20 are the most that 64 bits need
_LARGEST = 2**64 - 1


@dataclass(frozen=True)
class Text:
    """A text and where its words begin and end. eights[i]: the eight bytes from i on, as one number."""

    data: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    eights: np.ndarray

    @staticmethod
    def of(content: bytes) -> Text:
        """The words of a text: what stands between blanks."""
        padded = np.frombuffer(content + b" " * (_LONGEST + 8), np.uint8)
        data = padded[: len(content)]
        space = np.concatenate([[True], _SPACE[data], [True]])
        edges = np.flatnonzero(space[1:] != space[:-1])
        eights = np.ndarray((len(content) + _LONGEST,), "<u8", padded, strides=(1,))
        return Text(data, edges[::2], edges[1::2], eights)

    def word(self, index: int) -> str:
        """A word, for a message."""
        text = bytes(self.data[self.starts[index] : self.ends[index]]).decode(errors="backslashreplace")
        return text if len(text) <= 40 else text[:37] + "..."


def whole(text: Text, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The whole numbers that these words spell, modulo 2**64 as int64, and which words spell none (or one beyond 64 bits)."""
    at, end = text.starts[words], text.ends[words]
    first = text.data[at] if len(at) else np.zeros(0, np.uint8)
    negative = first == ord("-")
    at = at + (negative | (first == ord("+")))
    length = end - at
    low, bad = _eight(text, end - np.minimum(length, 8), np.minimum(length, 8))
    bad |= length < 1
    if length.max(initial=0) > 8:
        long = np.flatnonzero(length > 8)
        low[long], wrong = _long(text, end[long], length[long], low[long])
        bad[long] |= wrong
    return np.where(negative, np.negative(low), low).view(np.int64), bad


def _long(text: Text, end: np.ndarray, length: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of 9 to 24 digits, of which the last eight are known."""
    middle, bad = _eight(text, end - np.minimum(length, 16), np.minimum(length, 16) - 8)
    rest = np.minimum(length, _LONGEST)
    high, wrong = _eight(text, end - rest, np.maximum(rest - 16, 0))
    lower = middle * np.uint64(10**8) + low
    top = np.uint64(_LARGEST // 10**16)
    over = (high > top) | ((high == top) & (lower > np.uint64(_LARGEST % 10**16))) | (length > _LONGEST)
    return high * np.uint64(10**16) + lower, bad | wrong | over


def _eight(text: Text, at: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of up to eight digits each, all digits of one at once, and which have something else among them."""
    digits = ((text.eights[at] & _KEPT[length]) << _SHIFT[length] | _LEADING[length]) ^ np.uint64(_ZEROS)
    digits[length == 0] = 0
    bad = ((digits + np.uint64(0x7676767676767676)) | digits) & np.uint64(0x8080808080808080) != 0
    pairs = (digits * np.uint64(10 * 2**8 + 1)) >> np.uint64(8) & np.uint64(0x00FF00FF00FF00FF)
    fours = (pairs * np.uint64(100 * 2**16 + 1)) >> np.uint64(16) & np.uint64(0x0000FFFF0000FFFF)
    return (fours * np.uint64(10000 * 2**32 + 1)) >> np.uint64(32), bad


def decimal(text: Text, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The float32 numbers nearest to what these words spell, and which words spell no number."""
    at, length = text.starts[words], text.ends[words] - text.starts[words]
    values, bad = _plain(text, at, length)
    rest = np.flatnonzero(bad)
    for i in rest.tolist():  # exponents, long ones, infinities
        try:
            values[i], bad[i] = _nearest(bytes(text.data[at[i] : at[i] + length[i]])), False
        except ValueError:
            values[i] = np.nan
    return values.astype(np.float32), bad


def _plain(text: Text, at: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of up to 15 digits with a point in them or none: digits / 10**n, rounded once. Which are not such ones."""
    first = text.data[at] if len(at) else np.zeros(0, np.uint8)
    negative = first == ord("-")
    at, length = at + negative, length - negative
    point = _points(text, at, length)
    before, after = point, np.maximum(length - point - 1, 0)
    bad = (length < 1) | (before > 8) | (after > 8) | (before + after > 15) | (before + after == 0)
    before, after = np.where(bad, 0, before), np.where(bad, 0, after)
    left, wrong = _eight(text, at, before)
    right, wrong_too = _eight(text, at + before + 1, after)
    scale = 10.0**after
    values = (left.astype(np.float64) * scale + right.astype(np.float64)) / scale
    values[negative] *= -1.0
    halfway = values.view(np.uint64) & np.uint64(2**29 - 1) == np.uint64(2**28)  # float32's rounding might be a second one
    return values, bad | wrong | wrong_too | halfway


def _points(text: Text, at: np.ndarray, length: np.ndarray) -> np.ndarray:
    """How many characters stand before the point, or in all."""
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
    return float(min((n for n in sides if np.isfinite(n)), key=lambda n: (abs(Fraction(float(n)) - exact), int(n.view(np.uint32)) & 1)))


__all__ = ["Text", "decimal", "whole"]
