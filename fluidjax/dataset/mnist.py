"""MNIST: images of 784 numbers from -1 to 1 and labels 0 to 9, from the four local IDX files (plain
or .gz).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from . import idx
from .common import find

# MD5 sums of the published files: images, labels
MD5 = {
    "train": ("f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432"),
    "test": ("9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c"),
}

Sample = tuple[np.ndarray, int]


def _reader(part: str) -> Callable[[], Iterator[Sample]]:
    # the reader's constructor looks for both files; its use reads them
    places = _places(part)

    def reader() -> Iterator[Sample]:
        images, labels = idx.mnist(places[0].parent, part)
        for image, label in zip(images, labels, strict=True):
            yield (
                image.ravel().astype("float32") / np.float32(255.0) * np.float32(2.0)
                - np.float32(1.0),
                int(label),
            )

    return reader


def _places(part: str) -> list[Path]:
    names = zip(idx.MNIST[part], MD5[part], strict=True)
    return [
        find("mnist", name + ".gz", name, name.replace("-idx", ".idx"), md5=md5)
        for name, md5 in names
    ]


def train() -> Callable[[], Iterator[Sample]]:
    """A reader of the training samples: an image [784] (float32) and its label. Raises
    MissingFileError, FluidValueError.
    """
    return _reader("train")


def test() -> Callable[[], Iterator[Sample]]:
    """A reader of the test samples: an image [784] (float32) and its label. Raises
    MissingFileError, FluidValueError.
    """
    return _reader("test")


def fetch() -> None:
    """Check that the files exist. Raises MissingFileError."""
    _places("train"), _places("test")


__all__ = ["test", "train"]
