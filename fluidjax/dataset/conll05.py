"""CoNLL-2005, semantic roles: a sentence, a verb and the role of each word, from local files: the
test set and three dictionaries.

Roles are numbered in the order of their first use; in 1.8.5 the numbers differ between processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..errors import FluidValueError
from .archives import Archive

DATA = Archive("conll05st", "conll05st-tests.tar.gz", "387719152ae52d60422c016e92a742fc")
WORDS = Archive("conll05st", "conll05st%2FwordDict.txt", "ea7fb7d4c75cc6254716f0177a506baa")
VERBS = Archive("conll05st", "conll05st%2FverbDict.txt", "0d2977293bbb6cbefab5b0f97db1e77c")
ROLES = Archive("conll05st", "conll05st%2FtargetDict.txt", "d8c7f03ceb5fc2e5a0fa7503a4353751")
EMBEDDING = Archive("conll05st", "conll05st%2Femb", "bf436eb0faa1f6f9103017f8be57cdb7")
UNK_IDX = 0
_FOLDER = "conll05st-release/test.wsj"

Sentence = tuple[list[str], str, list[str]]


def _lines(file: Archive) -> list[str]:
    with file.reading() as path:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]


def _roles(lines: Iterable[str]) -> dict[str, int]:
    names = dict.fromkeys(line[2:] for line in lines if line.startswith(("B-", "I-")))
    return {
        label: i
        for i, label in enumerate([f"{mark}-{name}" for name in names for mark in "BI"] + ["O"])
    }


def get_dict() -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Numbers of words, of verbs and of labels. Raises MissingFileError, FluidValueError."""
    words, verbs = ({word: i for i, word in enumerate(_lines(file))} for file in (WORDS, VERBS))
    return words, verbs, _roles(_lines(ROLES))


def get_embedding() -> str:
    """The path of the file of word vectors. Raises MissingFileError."""
    return str(EMBEDDING.path())


def corpus_reader() -> Iterator[Sentence]:
    """Words, verb, and the label of each word; once for every verb of a sentence."""
    with DATA.tar() as tar:
        files = [
            DATA.unzipped(DATA.member(tar, f"{_FOLDER}/{kind}/test.wsj.{kind}.gz"))
            for kind in ("words", "props")
        ]
        words: list[str] = []
        columns: list[list[str]] = []
        for i, (word, props) in enumerate(zip(*files, strict=False), 1):
            where = f"{DATA.path()}: line {i} of test.wsj.props.gz"
            fields = DATA.text(props, where).split()
            if fields:
                if columns and len(fields) != len(columns[0]):
                    raise FluidValueError(
                        f"{where} has {len(fields)} columns, the lines before it {len(columns[0])}"
                    )
                words.append(DATA.text(word, where).strip())
                columns.append(fields)
                continue
            yield from _sentence(words, columns, where)
            words, columns = [], []


def _sentence(words: list[str], columns: list[list[str]], where: str) -> Iterator[Sentence]:
    first, *others = zip(*columns, strict=True) if columns else [()]
    verbs = [verb for verb in first if verb != "-"]
    if len(verbs) < len(others):
        raise FluidValueError(
            f"{where}: the sentence before it has {len(verbs)} verbs and {len(others)} columns of"
            " roles"
        )
    for verb, roles in zip(verbs, others, strict=False):
        yield words, verb, list(_labels(roles, where))


def _labels(roles: Iterable[str], where: str) -> Iterator[str]:
    """Bracketed spans as the labels B-, I- and O."""
    name, within = "O", False
    for role in roles:
        if "(" in role:
            name, within = role[1 : role.find("*")], ")" not in role
            yield f"B-{name}"
        elif role == "*":
            yield f"I-{name}" if within else "O"
        elif role == "*)":
            within = False
            yield f"I-{name}"
        else:
            raise FluidValueError(
                f"{where}: {role!r} in the sentence before it is not a role: (NAME*, *, *) or"
                " (NAME*) is expected"
            )


def _sample(
    sentence: Sentence, words: Mapping[str, int], verbs: Mapping[str, int], roles: Mapping[str, int]
) -> tuple[Any, ...]:
    text, verb, labels = sentence
    if "B-V" not in labels:
        raise FluidValueError(f"{DATA.path()}: the sentence {' '.join(text)[:60]!r} has no role V")
    at, count = labels.index("B-V"), len(text)
    near = range(-2, 3)
    mark = [1 if i - at in near else 0 for i in range(len(labels))]
    around = [
        text[at + k] if 0 <= at + k < len(labels) else ("bos" if k < 0 else "eos") for k in near
    ]
    context = [[words.get(word, UNK_IDX)] * count for word in around]
    numbers = [words.get(word, UNK_IDX) for word in text]
    return (
        numbers,
        *context,
        [verbs.get(verb)] * count,
        mark,
        [roles.get(label) for label in labels],
    )


def test() -> Callable[[], Iterator[tuple[Any, ...]]]:
    """A reader of the test set: words, the five words around the verb, the verb, a mark of these
    five, labels; all as long as the sentence.

    Raises MissingFileError; its iteration FluidValueError for damaged files.
    """
    dicts = get_dict()
    DATA.path()

    def reader() -> Iterator[tuple[Any, ...]]:
        for sentence in corpus_reader():
            yield _sample(sentence, *dicts)

    return reader


def fetch() -> None:
    """Check that the files exist. Raises MissingFileError."""
    for file in (WORDS, VERBS, ROLES, EMBEDDING, DATA):
        file.path()


__all__ = ["get_dict", "get_embedding", "test"]
