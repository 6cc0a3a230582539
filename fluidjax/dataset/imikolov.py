"""The Penn Treebank as Mikolov prepared it: n-grams of words, or sentences and the words that
follow; from the local archive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import FluidValueError
from .archives import Archive

ARCHIVE = Archive("imikolov", "imikolov%2Fsimple-examples.tgz", "30177ea32e27c525793142b6bf2c8e2d")
_TRAIN, _TEST = "./simple-examples/data/ptb.train.txt", "./simple-examples/data/ptb.valid.txt"


class DataType:
    """The form of a reader's samples."""

    NGRAM = 1
    SEQ = 2


def _lines(name: str) -> Iterator[list[Any]]:
    with ARCHIVE.tar() as tar:
        for line in ARCHIVE.member(tar, name):
            yield line.split()


def build_dict(min_word_freq: int = 50) -> dict[Any, int]:
    """Numbers for the words (bytes; the marks "<s>" and "<e>" are texts) that occur more than
    min_word_freq times, then "<unk>".

    The most frequent come first, ties by their letters. As in 1.8.5 on Python 3 the text's own
    b"<unk>" is a word.
    """
    counts: Counter[Any] = Counter()
    for name in (_TRAIN, _TEST):
        for words in _lines(name):
            counts.update(words)
            counts.update(("<s>", "<e>"))
    kept = sorted(
        (
            (-n, w if isinstance(w, bytes) else w.encode(), w)
            for w, n in counts.items()
            if n > min_word_freq
        ),
        key=lambda t: t[:2],
    )
    if not kept:
        raise FluidValueError(f"{ARCHIVE.path()}: no word occurs more than {min_word_freq} times")
    return {word: i for i, (_, _, word) in enumerate(kept)} | {"<unk>": len(kept)}


def _reader(
    name: str, word_idx: Mapping[Any, int], n: int, data_type: int
) -> Callable[[], Iterator[tuple[Any, ...]]]:
    if data_type not in (DataType.NGRAM, DataType.SEQ):
        raise FluidValueError(
            f"imikolov's data_type is DataType.NGRAM or DataType.SEQ, not {data_type!r}"
        )
    if data_type == DataType.NGRAM and n < 0:
        raise FluidValueError(f"an n-gram has a length from 0, not {n}")
    ARCHIVE.path()

    def reader() -> Iterator[tuple[Any, ...]]:
        unknown = word_idx["<unk>"]
        for words in _lines(name):
            if data_type == DataType.SEQ:
                numbers = [word_idx.get(w, unknown) for w in words]
                if not 0 < n < len(numbers) + 1:
                    yield [word_idx["<s>"], *numbers], [*numbers, word_idx["<e>"]]
                continue
            numbers = [word_idx.get(w, unknown) for w in ["<s>", *words, "<e>"]]
            for end in range(n, len(numbers) + 1):
                yield tuple(numbers[end - n : end])

    return reader


def train(
    word_idx: Mapping[Any, int], n: int, data_type: int = DataType.NGRAM
) -> Callable[[], Iterator[tuple[Any, ...]]]:
    """A reader of the training text: tuples of n numbers; with DataType.SEQ a sentence and the
    words that follow.

    n: with DataType.SEQ the longest sentence, marks included; 0: any. Raises MissingFileError,
    FluidValueError.
    """
    return _reader(_TRAIN, word_idx, n, data_type)


def test(
    word_idx: Mapping[Any, int], n: int, data_type: int = DataType.NGRAM
) -> Callable[[], Iterator[tuple[Any, ...]]]:
    """A reader of the validation text, as `train`."""
    return _reader(_TEST, word_idx, n, data_type)


def fetch() -> None:
    """Check that the file exists. Raises MissingFileError."""
    ARCHIVE.path()


__all__ = ["build_dict", "test", "train"]
