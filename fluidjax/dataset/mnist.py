"""MNIST: images of 784 numbers from -1 to 1 and labels 0 to 9, from the four local IDX files (plain or .gz)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from . import idx
from .common import find

Sample = tuple[np.ndarray, int]


def _reader(part: str) -> Callable[[], Iterator[Sample]]:
    # both files are looked for when the reader is made, and read when it is used
    places = [find("mnist", name + ".gz", name, name.replace("-idx", ".idx")) for name in idx.MNIST[part]]

    def reader() -> Iterator[Sample]:
        images, labels = idx.mnist(places[0].parent, part)
        for image, label in zip(images, labels, strict=True):
            yield image.ravel().astype("float32") / np.float32(255.0) * np.float32(2.0) - np.float32(1.0), int(label)

    return reader


def train() -> Callable[[], Iterator[Sample]]:
    """A reader of the training samples: an image [784] (float32) and its label. Raises MissingFileError, FluidValueError."""
    return _reader("train")


def test() -> Callable[[], Iterator[Sample]]:
    """A reader of the test samples: an image [784] (float32) and its label. Raises MissingFileError, FluidValueError."""
    return _reader("test")


__all__ = ["test", "train"]
