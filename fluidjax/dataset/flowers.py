"""Oxford's 102 flowers: images of 3 * 224 * 224 numbers and labels 0 to 101, from the local archive
and its two tables.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ..errors import FluidValueError
from ..loaders.decorators import map_readers, xmap_readers
from .archives import Archive
from .image import load_image_bytes, simple_transform
from .matlab import table

DATA = Archive("flowers", "102flowers.tgz", "52808999861908f626f3c1f4e79d11fa")
LABELS = Archive("flowers", "imagelabels.mat", "e0620be6f572b9609742df49c70aed4d")
SETS = Archive("flowers", "setid.mat", "a5357ecc9cb78c4bef273ce3793fc85c")
# the larger part is for training, as in 1.8.5
TRAIN_FLAG, TEST_FLAG, VALID_FLAG = "tstid", "trnid", "valid"

Sample = tuple[Any, int]


def default_mapper(is_train: bool, sample: tuple[bytes, int]) -> tuple[np.ndarray, int]:
    """The image [3 * 224 * 224] (float32, minus the means of the channels) for its bytes, and the
    label.
    """
    image, label = sample
    made = simple_transform(
        load_image_bytes(image), 256, 224, is_train, mean=[103.94, 116.78, 123.68]
    )
    return made.flatten().astype("float32"), label


train_mapper, test_mapper = partial(default_mapper, True), partial(default_mapper, False)


def _table(file: Archive, name: str) -> np.ndarray:
    """A row of whole numbers in a MATLAB file. Raises FluidValueError for another file."""
    with file.reading() as path:
        try:
            found = table(path.read_bytes(), name)
        except (ValueError, zlib.error) as error:
            raise FluidValueError(
                f"{path} is not a MATLAB file with a table {name!r}: {error}"
            ) from None
    if found.ndim != 2 or not len(found) or not np.isfinite(found).all():
        raise FluidValueError(
            f"{path}: {name!r} is not a row of numbers but {found.dtype} {list(found.shape)}"
        )
    return found[0]


def _reader(
    part: str, mapper: Any, buffered_size: int, use_xmap: bool, cycle: bool
) -> Callable[[], Iterator[Sample]]:
    DATA.path()
    labels = _table(LABELS, "labels")
    numbers = [int(i) for i in _table(SETS, part)]
    if numbers and not 1 <= min(numbers) <= max(numbers) <= len(labels):
        named = f"{SETS.path()} names images {min(numbers)} to {max(numbers)}"
        raise FluidValueError(f"{named}; {LABELS.path()} has labels for 1 to {len(labels)}")
    wanted = {f"jpg/image_{i:05d}.jpg": int(labels[i - 1]) - 1 for i in numbers}

    def reader() -> Iterator[Sample]:
        while True:
            with DATA.tar() as tar:
                for member in tar:
                    if member.name in wanted:
                        yield DATA.content(tar, member).read(), wanted[member.name]
            if not cycle:
                return

    if use_xmap:
        return xmap_readers(mapper, reader, min(4, os.cpu_count() or 1), buffered_size, order=True)  # type: ignore[return-value]
    return map_readers(mapper, reader)  # type: ignore[return-value]


def train(
    mapper: Any = train_mapper,
    buffered_size: int = 1024,
    use_xmap: bool = True,
    cycle: bool = False,
) -> Callable[[], Iterator[Sample]]:
    """A reader of ``mapper((bytes of the image, label))`` of the training images, in the order of
    the archive.

    use_xmap: map in threads, which read buffered_size samples ahead. cycle: repeat without end.
    Raises MissingFileError, FluidValueError.
    """
    return _reader(TRAIN_FLAG, mapper, buffered_size, use_xmap, cycle)


def test(
    mapper: Any = test_mapper, buffered_size: int = 1024, use_xmap: bool = True, cycle: bool = False
) -> Callable[[], Iterator[Sample]]:
    """A reader of the test images, as `train`."""
    return _reader(TEST_FLAG, mapper, buffered_size, use_xmap, cycle)


def valid(
    mapper: Any = test_mapper, buffered_size: int = 1024, use_xmap: bool = True
) -> Callable[[], Iterator[Sample]]:
    """A reader of the validation images, as `train`."""
    return _reader(VALID_FLAG, mapper, buffered_size, use_xmap, False)


def fetch() -> None:
    """Check that the files exist. Raises MissingFileError."""
    DATA.path(), LABELS.path(), SETS.path()


__all__ = ["test", "train", "valid"]
