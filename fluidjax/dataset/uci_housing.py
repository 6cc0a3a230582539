"""UCI housing: 13 features and a price, from the local file housing.data; train is the first 80 %,
test the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

from ..errors import FluidValueError
from .common import find

feature_names = [
    "CRIM",
    "ZN",
    "INDUS",
    "CHAS",
    "NOX",
    "RM",
    "AGE",
    "DIS",
    "RAD",
    "TAX",
    "PTRATIO",
    "B",
    "LSTAT",
]
_COLUMNS = len(feature_names) + 1
_SHARE = 0.8

Sample = tuple[np.ndarray, np.ndarray]


def load_data(filename: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """(train, test) rows of 14 numbers (float64), each feature as (value - mean) / (maximum -
    minimum) over all rows.

    Raises FluidValueError, which names the file, if it does not hold rows of 14 numbers separated
    by blanks.
    """
    path = Path(filename)
    try:
        values = np.array(path.read_text().split(), dtype="float64")
    except (ValueError, OSError) as exc:
        raise FluidValueError(f"{path} holds no table of numbers: {exc}") from None
    if not values.size or values.size % _COLUMNS or not np.isfinite(values).all():
        raise FluidValueError(
            f"{path} should hold rows of {_COLUMNS} finite numbers; it holds {values.size} numbers"
        )
    rows = values.reshape(-1, _COLUMNS)
    features = rows[:, :-1]
    spread = features.max(axis=0) - features.min(axis=0)
    if not spread.all():
        raise FluidValueError(
            f"{path}: feature {feature_names[int(np.argmin(spread))]} is the same in every row"
        )
    rows[:, :-1] = (features - features.sum(axis=0) / len(rows)) / spread
    split = int(len(rows) * _SHARE)
    return rows[:split], rows[split:]


@cache
def _loaded(path: Path, changed: int) -> tuple[np.ndarray, np.ndarray]:
    return load_data(path)


def _path() -> Path:
    return find("uci_housing", "housing.data", md5="d4accdce7a25600298819f8e28e8d593")


def _rows(part: int) -> np.ndarray:
    path = _path()
    return _loaded(path, path.stat().st_mtime_ns)[part]


def _reader(part: int) -> Callable[[], Iterator[Sample]]:
    rows = _rows(part)

    def reader() -> Iterator[Sample]:
        for row in rows:
            yield row[:-1], row[-1:]

    return reader


def train() -> Callable[[], Iterator[Sample]]:
    """A reader of the training samples: 13 features and a price. Raises MissingFileError,
    FluidValueError.
    """
    return _reader(0)


def test() -> Callable[[], Iterator[Sample]]:
    """A reader of the test samples: 13 features and a price. Raises MissingFileError,
    FluidValueError.
    """
    return _reader(1)


def predict_reader() -> tuple[np.ndarray]:
    """The features of the first test sample. Raises MissingFileError, FluidValueError."""
    return (_rows(1)[0][:-1],)


def fetch() -> None:
    """Check that the file exists. Raises MissingFileError."""
    _path()


__all__ = ["feature_names", "load_data", "predict_reader", "test", "train"]
