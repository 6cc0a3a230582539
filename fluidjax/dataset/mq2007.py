"""LETOR's MQ2007: queries, documents as 46 numbers, and relevance scores; from the local files of
the unpacked archive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ..errors import FluidValueError
from .archives import Archive
from .common import find

ARCHIVE = Archive(
    "MQ2007", "7b6dbbe2-842c-11e4-a536-bcaec51b9163_MQ2007.rar", "7be1640ae95c6408dab0ae7207bdc706"
)
_PARTS = 48  # the score, the query, 46 features


class Query:
    """A document for a query: its relevance, and its features."""

    def __init__(
        self,
        query_id: int = -1,
        relevance_score: int = -1,
        feature_vector: list[float] | None = None,
        description: str = "",
    ) -> None:
        self.query_id = query_id
        self.relevance_score = relevance_score
        self.feature_vector = [] if feature_vector is None else feature_vector
        self.description = description

    def __str__(self) -> str:
        return f"{self.relevance_score} {self.query_id} {' '.join(map(str, self.feature_vector))}"


class QueryList:
    """The documents of one query. Raises FluidValueError for documents of another query."""

    def __init__(self, querylist: list[Query] | None = None) -> None:
        self.query_id = -1
        self.querylist: list[Query] = []
        for query in querylist or ():
            self._add_query(query)

    def __iter__(self) -> Iterator[Query]:
        return iter(self.querylist)

    def __len__(self) -> int:
        return len(self.querylist)

    def __getitem__(self, i: int) -> Query:
        return self.querylist[i]

    def ranked(self) -> QueryList:
        """Itself, sorted by relevance, the best first; ties keep their order."""
        self.querylist.sort(key=lambda query: -query.relevance_score)
        return self

    def _add_query(self, query: Query) -> None:
        if self.query_id == -1:
            self.query_id = query.query_id
        elif self.query_id != query.query_id:
            raise FluidValueError(
                f"a QueryList holds documents of one query, {self.query_id}, not of"
                f" {query.query_id} too"
            )
        self.querylist.append(query)


Queries = QueryList | list[Query]


def _ranked(queries: Queries) -> QueryList:
    return (queries if isinstance(queries, QueryList) else QueryList(queries)).ranked()


def gen_plain_txt(querylist: Queries) -> Iterator[tuple[int, int, np.ndarray]]:
    """(query, score, features) of each document, the best first."""
    found = _ranked(querylist)
    for query in found:
        yield found.query_id, query.relevance_score, np.array(query.feature_vector)


def gen_point(querylist: Queries) -> Iterator[tuple[int, np.ndarray]]:
    """(score, features) of each document, the best first."""
    for query in _ranked(querylist):
        yield query.relevance_score, np.array(query.feature_vector)


def gen_pair(
    querylist: Queries, partial_order: str = "full"
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """([1], features of the better, features of the worse) for each pair of documents of different
    relevance.
    """
    found = _ranked(querylist)
    for i, better in enumerate(found):
        for worse in found.querylist[i + 1 :]:
            if better.relevance_score > worse.relevance_score:
                yield np.array([1]), np.array(better.feature_vector), np.array(worse.feature_vector)


def gen_list(querylist: Queries) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(scores [n, 1], features [n, 46]) of the documents, the best first."""
    found = _ranked(querylist)
    yield (
        np.array([[q.relevance_score] for q in found]),
        np.array([q.feature_vector for q in found]),
    )


def query_filter(querylists: Iterable[QueryList]) -> list[QueryList]:
    """The queries with a relevant document."""
    return [found for found in querylists if sum(query.relevance_score for query in found) != 0]


def load_from_text(filepath: str, shuffle: bool = False, fill_missing: int = -1) -> list[QueryList]:
    """The queries of a file below the data set's folder, such as "MQ2007/MQ2007/Fold1/train.txt".

    A line is ``score qid:query 1:feature ... 46:feature #comment``. Raises FluidValueError, which
    names file and line, for any other line.
    """
    try:
        path = find(ARCHIVE.folder, filepath)
    except FileNotFoundError as error:
        if ARCHIVE.path():  # if it is missing there too, its own error names it
            raise FluidValueError(
                f"{error}; unpack {ARCHIVE.path().name} there, which Python cannot"
            ) from None
    found: list[QueryList] = []
    with ARCHIVE.open_text(path) as lines:
        for i, line in enumerate(lines, 1):
            query = _parsed(line, f"{path}:{i}")
            if not found or found[-1].query_id != query.query_id:
                found.append(QueryList())
            found[-1]._add_query(query)
    return found


def _parsed(line: str, where: str) -> Query:
    content, _, comment = line.partition("#")
    parts = content.split()
    if len(parts) != _PARTS:
        raise FluidValueError(
            f"{where} has {len(parts)} fields, not {_PARTS}: score, qid:query, and 46 features as"
            " number:value"
        )
    try:
        features = [float(part.split(":")[1]) for part in parts[2:]]
        return Query(int(parts[1].split(":")[1]), int(parts[0]), features, comment.strip())
    except (ValueError, IndexError):
        raise FluidValueError(
            f"{where}: score, qid:query and number:value are expected, not {content[:60]!r}"
        ) from None


def _reader(
    filepath: str, format: str = "pairwise", shuffle: bool = False, fill_missing: int = -1
) -> Iterator[Any]:
    made: dict[str, Callable[[Queries], Iterator[Any]]] = {
        "plain_txt": gen_plain_txt, "pointwise": gen_point, "pairwise": gen_pair, "listwise": gen_list,
    }  # fmt: skip
    if format not in made:
        raise FluidValueError(f"mq2007's format is one of {', '.join(made)}, not {format!r}")
    for queries in query_filter(load_from_text(filepath, shuffle, fill_missing)):
        if format == "pairwise":
            yield from gen_pair(queries)
        else:  # one for each query, as in 1.8.5
            yield next(made[format](queries))


train = partial(_reader, filepath="MQ2007/MQ2007/Fold1/train.txt")
test = partial(_reader, filepath="MQ2007/MQ2007/Fold1/test.txt")


def fetch() -> str:
    """The path of the archive. Raises MissingFileError."""
    return str(ARCHIVE.path())


__all__ = [
    "Query", "QueryList", "fetch", "gen_list", "gen_pair", "gen_plain_txt", "gen_point", "load_from_text", "query_filter", "test", "train",
]  # fmt: skip
