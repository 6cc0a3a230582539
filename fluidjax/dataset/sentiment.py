"""NLTK's movie reviews: words as numbers, and 0 for a negative review, 1 for a positive one; from
the local archive, without NLTK.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ..errors import FluidValueError
from .archives import Archive

ARCHIVE = Archive("corpora", "movie_reviews.zip", "155de2b77c6834dd8eea7cbe88e93acb")
NUM_TRAINING_INSTANCES, NUM_TOTAL_INSTANCES = 1600, 2000
_WORD = re.compile(r"\w+|[^\w\s]+")
_REVIEW = re.compile(r"movie_reviews/(neg|pos)/[^/.][^/]*\.txt$")

Sample = tuple[list[int], int]


@cache
def _reviews(path: Path, changed: int) -> dict[str, tuple[list[str], ...]]:
    """The words of each review of the kinds "neg" and "pos", by the names of the files."""
    with ARCHIVE.zip() as package:
        names = sorted(name for name in package.namelist() if _REVIEW.match(name))
        texts = {
            name: ARCHIVE.text(ARCHIVE.packed(package, name).read(), name, "ascii")
            for name in names
        }
    if not names:
        raise ARCHIVE.lacks("reviews such as movie_reviews/neg/cv000_29416.txt")
    return {
        kind: tuple(_WORD.findall(t) for n, t in texts.items() if f"/{kind}/" in n)
        for kind in ("neg", "pos")
    }


def _all() -> dict[str, tuple[list[str], ...]]:
    path = ARCHIVE.path()
    return _reviews(path, path.stat().st_mtime_ns)


def get_word_dict() -> list[tuple[str, int]]:
    """(word, number), the most frequent words first, ties in the order of their first use."""
    counts = Counter(word for reviews in _all().values() for words in reviews for word in words)
    return [(word, i) for i, word in enumerate(sorted(counts, key=lambda w: -counts[w]))]


def load_sentiment_data() -> list[Sample]:
    """The numbers of each review's words, and 0 or 1; negative and positive reviews alternate."""
    numbers, reviews = dict(get_word_dict()), _all()
    try:
        pairs = zip(reviews["neg"], reviews["pos"], strict=False)
        return [
            ([numbers[w.lower()] for w in words], label)
            for pair in pairs
            for label, words in enumerate(pair)
        ]
    except KeyError as error:
        raise FluidValueError(
            f"{ARCHIVE.path()}: the word {error.args[0]!r} occurs only with capital letters"
        ) from None


def train() -> Iterator[Sample]:
    """The first 1,600 reviews. Raises MissingFileError, FluidValueError."""
    return iter(load_sentiment_data()[:NUM_TRAINING_INSTANCES])


def test() -> Iterator[Sample]:
    """The reviews after these."""
    return iter(load_sentiment_data()[NUM_TRAINING_INSTANCES:])


def fetch() -> None:
    """Check that the file exists. Raises MissingFileError."""
    ARCHIVE.path()


__all__ = ["get_word_dict", "test", "train"]
