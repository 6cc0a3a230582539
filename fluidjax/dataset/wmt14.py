"""WMT14, French to English, as Paddle prepared it: sentences as numbers of words, from the local
archive with its two dictionaries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from .archives import Archive

ARCHIVE = Archive("wmt14", "wmt14.tgz", "0791583d57d5beb693b9414c5b36798c")
START, END, UNK = "<s>", "<e>", "<unk>"
UNK_IDX = 2
_LONGEST = 80

Sample = tuple[list[int], list[int], list[int]]


def _dict(name: str, size: int) -> dict[str, int]:
    with ARCHIVE.tar() as tar:
        found = [member for member in tar if member.name.endswith(name)]
        if len(found) != 1:
            raise ARCHIVE.lacks(f"single file whose name ends in {name}, but {len(found)} of them")
        lines = islice(ARCHIVE.content(tar, found[0]), size)
        return {
            ARCHIVE.text(line.strip(), f"{found[0].name} line {i + 1}"): i
            for i, line in enumerate(lines)
        }


def _reader(part: str, dict_size: int) -> Callable[[], Iterator[Sample]]:
    ARCHIVE.path()

    def reader() -> Iterator[Sample]:
        source, target = _dict("src.dict", dict_size), _dict("trg.dict", dict_size)
        for mark in (START, END):
            if mark not in target:
                raise ARCHIVE.lacks(f"{mark} among the first {dict_size} words of trg.dict")
        with ARCHIVE.tar() as tar:
            for member in [m for m in tar if m.name.endswith(part)]:
                for i, line in enumerate(ARCHIVE.content(tar, member), 1):
                    pair = ARCHIVE.text(line, f"{member.name} line {i}").strip().split("\t")
                    if len(pair) != 2:
                        continue
                    ids = [source.get(w, UNK_IDX) for w in [START, *pair[0].split(), END]]
                    aims = [target.get(w, UNK_IDX) for w in pair[1].split()]
                    if max(len(ids), len(aims)) <= _LONGEST:
                        yield ids, [target[START], *aims], [*aims, target[END]]

    return reader


def train(dict_size: int) -> Callable[[], Iterator[Sample]]:
    """A reader of training pairs: a source sentence with its marks, the target after a start mark,
    the target before an end mark.

    Pairs with more than 80 words are left out. dict_size: the number of words with numbers; other
    words are 2.
    """
    return _reader("train/train", dict_size)


def test(dict_size: int) -> Callable[[], Iterator[Sample]]:
    """A reader of test pairs."""
    return _reader("test/test", dict_size)


def gen(dict_size: int) -> Callable[[], Iterator[Sample]]:
    """A reader of the pairs for generation."""
    return _reader("gen/gen", dict_size)


def get_dict(
    dict_size: int, reverse: bool = True
) -> tuple[dict[int, str] | dict[str, int], dict[int, str] | dict[str, int]]:
    """The source and the target dictionary, number -> word; reverse=False: word -> number."""
    found = _dict("src.dict", dict_size), _dict("trg.dict", dict_size)
    if not reverse:
        return found
    source, target = ({i: word for word, i in words.items()} for words in found)
    return source, target


def fetch() -> None:
    """Check that the file exists. Raises MissingFileError."""
    ARCHIVE.path()


__all__ = ["get_dict", "test", "train"]
