"""IMDB reviews: words as numbers, and 0 for a positive review, 1 for a negative one; from the local
archive.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import FluidValueError
from .archives import Archive

ARCHIVE = Archive("imdb", "imdb%2FaclImdb_v1.tar.gz", "7c2ac02c03563afcf9b574c7e56c153a")
_PUNCTUATION = string.punctuation.encode()

Sample = tuple[list[int], int]


def tokenize(pattern: re.Pattern[str]) -> Iterator[list[bytes]]:
    """The words of each text whose name matches a pattern, in the order of the archive: lower case,
    without punctuation.
    """
    with ARCHIVE.tar() as tar:
        for _, file in ARCHIVE.matching(tar, pattern):
            yield file.read().rstrip(b"\n\r").translate(None, _PUNCTUATION).lower().split()


def build_dict(pattern: re.Pattern[str], cutoff: int) -> dict[Any, int]:
    """Numbers for the words (bytes) that occur more than `cutoff` times: the most frequent first,
    ties by their bytes; then "<unk>".

    Raises MissingFileError, and FluidValueError for a damaged archive or if no word is left.
    """
    counts = Counter(word for words in tokenize(pattern) for word in words)
    kept = sorted((-n, word) for word, n in counts.items() if n > cutoff)
    if not kept:
        raise FluidValueError(
            f"{ARCHIVE.path()}: no word occurs more than {cutoff} times in files whose names fit"
            f" {pattern.pattern!r}"
        )
    numbers: dict[Any, int] = {word: i for i, (_, word) in enumerate(kept)}
    return numbers | {"<unk>": len(kept)}


def _reader(part: str, word_idx: Mapping[Any, int]) -> Callable[[], Iterator[Sample]]:
    unknown = word_idx["<unk>"]
    samples = [
        ([word_idx.get(word, unknown) for word in words], label)
        for label, kind in enumerate(("pos", "neg"))
        for words in tokenize(re.compile(rf"aclImdb/{part}/{kind}/.*\.txt$"))
    ]

    def reader() -> Iterator[Sample]:
        yield from samples

    return reader


def train(word_idx: Mapping[Any, int]) -> Callable[[], Iterator[Sample]]:
    """A reader of the training samples: the numbers of a review's words, and 0 (positive) or 1. All
    are read at this call.
    """
    return _reader("train", word_idx)


def test(word_idx: Mapping[Any, int]) -> Callable[[], Iterator[Sample]]:
    """A reader of the test samples. All are read at this call."""
    return _reader("test", word_idx)


def word_dict() -> dict[Any, int]:
    """Numbers for the words that occur more than 150 times in all reviews."""
    return build_dict(re.compile(r"aclImdb/((train)|(test))/((pos)|(neg))/.*\.txt$"), 150)


def fetch() -> None:
    """Check that the file exists. Raises MissingFileError."""
    ARCHIVE.path()


__all__ = ["build_dict", "test", "train"]
