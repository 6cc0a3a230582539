"""WMT16's multimodal pairs, English and German: sentences as numbers of words, from the local
archive.

The dictionaries are made from the training pairs at each use and kept in memory; 1.8.5 writes them
beside the archive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from ..errors import FluidValueError
from .archives import Archive

ARCHIVE = Archive("wmt16", "wmt16.tar.gz", "0c38be43600334966403524a40dcd81e")
TOTAL_EN_WORDS, TOTAL_DE_WORDS = 11250, 19220
START_MARK, END_MARK, UNK_MARK = "<s>", "<e>", "<unk>"

Sample = tuple[list[int], list[int], list[int]]


def _pairs(name: str) -> Iterator[list[str]]:
    with ARCHIVE.tar() as tar:
        for i, line in enumerate(ARCHIVE.member(tar, name), 1):
            pair = ARCHIVE.text(line, f"{name} line {i}").strip().split("\t")
            if len(pair) == 2:
                yield pair


@cache
def _words(path: Path, changed: int, lang: str) -> list[str]:
    """The marks, and the words of a language by frequency; ties in the order of their first use."""
    counts = Counter(
        w for pair in _pairs("wmt16/train") for w in pair[0 if lang == "en" else 1].split()
    )
    return [START_MARK, END_MARK, UNK_MARK, *sorted(counts, key=lambda w: -counts[w])]


def _list(lang: str, size: int) -> list[str]:
    """The first `size` words; fewer than the marks mean all, as in 1.8.5."""
    path = ARCHIVE.path()
    words = _words(path, path.stat().st_mtime_ns, lang)
    return words[:size] if size >= 3 else words


def _dict(lang: str, size: int) -> dict[str, int]:
    return {w: i for i, w in enumerate(_list(lang, size))}


def _checked(lang: str) -> str:
    if lang not in ("en", "de"):
        raise FluidValueError(f"wmt16 has the languages 'en' and 'de', not {lang!r}")
    return lang


def _size(lang: str, size: int) -> int:
    return min(size, TOTAL_EN_WORDS if lang == "en" else TOTAL_DE_WORDS)


def _reader(
    part: str, src_dict_size: int, trg_dict_size: int, src_lang: str
) -> Callable[[], Iterator[Sample]]:
    trg_lang = "de" if _checked(src_lang) == "en" else "en"
    ARCHIVE.path()

    def reader() -> Iterator[Sample]:
        source, target = (
            _dict(src_lang, _size(src_lang, src_dict_size)),
            _dict(trg_lang, _size(trg_lang, trg_dict_size)),
        )
        start, end, unknown = source[START_MARK], source[END_MARK], source[UNK_MARK]
        column = 0 if src_lang == "en" else 1
        for pair in _pairs(part):
            ids = [start, *(source.get(w, unknown) for w in pair[column].split()), end]
            aims = [target.get(w, unknown) for w in pair[1 - column].split()]
            yield ids, [start, *aims], [*aims, end]

    return reader


def train(
    src_dict_size: int, trg_dict_size: int, src_lang: str = "en"
) -> Callable[[], Iterator[Sample]]:
    """A reader of training pairs: a source sentence with its marks, the target after a start mark,
    the target before an end mark.

    Raises FluidValueError for another language than "en" and "de" and for a damaged archive,
    MissingFileError.
    """
    return _reader("wmt16/train", src_dict_size, trg_dict_size, src_lang)


def test(
    src_dict_size: int, trg_dict_size: int, src_lang: str = "en"
) -> Callable[[], Iterator[Sample]]:
    """A reader of test pairs."""
    return _reader("wmt16/test", src_dict_size, trg_dict_size, src_lang)


def validation(
    src_dict_size: int, trg_dict_size: int, src_lang: str = "en"
) -> Callable[[], Iterator[Sample]]:
    """A reader of validation pairs."""
    return _reader("wmt16/val", src_dict_size, trg_dict_size, src_lang)


def get_dict(lang: str, dict_size: int, reverse: bool = False) -> dict[int, str] | dict[str, int]:
    """The dictionary of a language, word -> number; reverse: number -> word."""
    words = _list(_checked(lang), _size(lang, dict_size))
    return dict(enumerate(words)) if reverse else {w: i for i, w in enumerate(words)}


def fetch() -> None:
    """Check that the file exists. Raises MissingFileError."""
    ARCHIVE.path()


__all__ = ["fetch", "get_dict", "test", "train", "validation"]
