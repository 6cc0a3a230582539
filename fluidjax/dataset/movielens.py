"""MovieLens 1M: a user, a movie and a rating from -3 to 5, from the local archive.

Words of titles and categories are numbered in the order of their first use; in 1.8.5 the numbers
differ between processes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FluidValueError
from .archives import Archive, whole_number

ARCHIVE = Archive("movielens", "movielens%2Fml-1m.zip", "c4d9eecfca2ab87c1945afe126590906")
age_table = [1, 18, 25, 35, 45, 50, 56]
_TITLE = re.compile(r"^(.*)\((\d+)\)$")


@dataclass(eq=False)
class MovieInfo:
    """A movie: its number, the names of its categories, its title without the year."""

    index: int
    categories: list[str]
    title: str

    def value(self) -> list[Any]:
        """[number, numbers of the categories, numbers of the title's words]."""
        meta = _meta()
        return [
            self.index,
            [meta.categories[c] for c in self.categories],
            [meta.words[w.lower()] for w in self.title.split()],
        ]

    def __repr__(self) -> str:
        return f"<MovieInfo id({self.index}), title({self.title}), categories({self.categories})>"

    __str__ = __repr__


@dataclass(eq=False)
class UserInfo:
    """A user. age: the index in age_table."""

    index: int
    is_male: bool
    age: int
    job_id: int

    def value(self) -> list[int]:
        """[number, 0 for a man and 1 for a woman, index of the age, number of the job]."""
        return [self.index, 0 if self.is_male else 1, self.age, self.job_id]

    def __repr__(self) -> str:
        return (
            f"<UserInfo id({self.index}), gender({'M' if self.is_male else 'F'}),"
            f" age({age_table[self.age]}), job({self.job_id})>"
        )

    __str__ = __repr__


@dataclass(frozen=True, eq=False)
class _Meta:
    movies: dict[int, MovieInfo]
    users: dict[int, UserInfo]
    words: dict[str, int]
    categories: dict[str, int]


def _fields(name: str, count: int) -> Iterator[tuple[list[str], str]]:
    """The fields of each line of a file in the archive, and the line's position."""
    with ARCHIVE.zip() as package:
        if name not in package.namelist():
            raise ARCHIVE.lacks(f"file {name!r}")
        with ARCHIVE.packed(package, name) as file:
            for i, line in enumerate(file, 1):
                where = f"{ARCHIVE.path()}: {name} line {i}"
                fields = line.decode("latin1").strip().split("::")
                if len(fields) != count:
                    raise FluidValueError(
                        f"{where} has {len(fields)} fields apart by ::, not {count}"
                    )
                yield fields, where


def _meta() -> _Meta:
    path = ARCHIVE.path()
    return _read(path, path.stat().st_mtime_ns)


@cache
def _read(path: Path, changed: int) -> _Meta:
    meta = _Meta({}, {}, {}, {})
    for (number, title, kinds), where in _fields("ml-1m/movies.dat", 3):
        found = _TITLE.match(title)
        if not found:
            raise FluidValueError(
                f"{where}: title {title[:60]!r} does not end in a year such as (1995)"
            )
        movie = MovieInfo(whole_number(number, where), kinds.split("|"), found[1])
        meta.movies[movie.index] = movie
        for kind in movie.categories:
            meta.categories.setdefault(kind, len(meta.categories))
        for word in movie.title.split():
            meta.words.setdefault(word.lower(), len(meta.words))
    for (number, gender, age, job, _), where in _fields("ml-1m/users.dat", 5):
        years = whole_number(age, where)
        if years not in age_table:
            raise FluidValueError(f"{where}: age {years} is none of {age_table}")
        user = UserInfo(
            whole_number(number, where),
            gender == "M",
            age_table.index(years),
            whole_number(job, where),
        )
        meta.users[user.index] = user
    return meta


def _reader(is_test: bool, rand_seed: int = 0, test_ratio: float = 0.1) -> Iterator[list[Any]]:
    meta, draw = _meta(), np.random.RandomState(rand_seed)
    for (user, movie, rating, _), where in _fields("ml-1m/ratings.dat", 4):
        if (draw.random_sample() < test_ratio) != is_test:
            continue
        who, what = (
            meta.users.get(whole_number(user, where)),
            meta.movies.get(whole_number(movie, where)),
        )
        if who is None or what is None:
            raise FluidValueError(
                f"{where}: there is no {'user ' + user if who is None else 'movie ' + movie}"
            )
        try:
            score = float(rating) * 2 - 5.0
        except ValueError:
            raise FluidValueError(f"{where}: {rating[:40]!r} is not a rating") from None
        yield [*who.value(), *what.value(), [score]]


def train(rand_seed: int = 0, test_ratio: float = 0.1) -> Callable[[], Iterator[list[Any]]]:
    """A reader of the training ratings: [user, gender, age, job, movie, categories, words of the
    title, [rating]].

    rand_seed decides which ratings are for training and which for testing. Raises MissingFileError,
    FluidValueError.
    """
    ARCHIVE.path()
    return lambda: _reader(False, rand_seed, test_ratio)


def test(rand_seed: int = 0, test_ratio: float = 0.1) -> Callable[[], Iterator[list[Any]]]:
    """A reader of the test ratings, as `train`."""
    ARCHIVE.path()
    return lambda: _reader(True, rand_seed, test_ratio)


def get_movie_title_dict() -> dict[str, int]:
    """Numbers of the words in titles, in lower case."""
    return _meta().words


def movie_categories() -> dict[str, int]:
    """Numbers of the categories."""
    return _meta().categories


def max_movie_id() -> int:
    """The largest number of a movie."""
    return max(_meta().movies)


def max_user_id() -> int:
    """The largest number of a user."""
    return max(_meta().users)


def max_job_id() -> int:
    """The largest number of a job."""
    return max(user.job_id for user in _meta().users.values())


def user_info() -> dict[int, UserInfo]:
    """All users by number."""
    return _meta().users


def movie_info() -> dict[int, MovieInfo]:
    """All movies by number."""
    return _meta().movies


def fetch() -> None:
    """Check that the file exists. Raises MissingFileError."""
    ARCHIVE.path()


__all__ = [
    "age_table", "get_movie_title_dict", "max_job_id", "max_movie_id", "max_user_id", "movie_categories", "movie_info", "test", "train",
    "user_info",
]  # fmt: skip
