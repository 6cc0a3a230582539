"""CIFAR-10 and CIFAR-100: images of 3 * 32 * 32 numbers from 0 to 1 and labels, from the local
archives of Python batches.

The batches are pickles; they are read without running any code in them (saved/pickles.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..errors import FluidValueError
from ..saved import pickles
from .archives import Archive

CIFAR10 = Archive("cifar", "cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a")
CIFAR100 = Archive("cifar", "cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85")

Sample = tuple[np.ndarray, int]


def _reader(archive: Archive, part: str, cycle: bool = False) -> Callable[[], Iterator[Sample]]:
    archive.path()

    def reader() -> Iterator[Sample]:
        while True:
            yield from _samples(archive, part)
            if not cycle:
                return

    return reader


def _samples(archive: Archive, part: str) -> Iterator[Sample]:
    found = False
    with archive.tar() as tar:
        for member in tar:
            if part not in member.name or member.isdir():
                continue
            found = True
            where = f"{archive.path()}: {member.name}"
            images, labels = _batch(
                pickles.loads(archive.content(tar, member).read(), where), where
            )
            for image, label in zip(images, labels, strict=True):
                yield (image / 255.0).astype(np.float32), int(label)
    if not found:
        raise archive.lacks(f"file with {part!r} in its name")


def _batch(batch: object, where: str) -> tuple[np.ndarray, list[int]]:
    """Images and labels. Raises FluidValueError for anything but a batch of CIFAR."""
    if isinstance(batch, dict):
        images, labels = batch.get(b"data"), batch.get(b"labels", batch.get(b"fine_labels"))
        whole = isinstance(labels, list) and all(isinstance(n, int) for n in labels)
        if (
            isinstance(images, np.ndarray)
            and images.ndim == 2
            and isinstance(labels, list)
            and whole
            and len(images) == len(labels)
        ):
            return images, labels
    raise FluidValueError(
        f"{where} is not a batch of images: a dict with 'data', a row for each image, and as many"
        " 'labels' or 'fine_labels'"
    )


def train100() -> Callable[[], Iterator[Sample]]:
    """A reader of CIFAR-100's training samples: an image [3072] (float32) and its label. Raises
    MissingFileError, FluidValueError.
    """
    return _reader(CIFAR100, "train")


def test100() -> Callable[[], Iterator[Sample]]:
    """A reader of CIFAR-100's test samples."""
    return _reader(CIFAR100, "test")


def train10(cycle: bool = False) -> Callable[[], Iterator[Sample]]:
    """A reader of CIFAR-10's training samples: an image [3072] (float32) and its label; cycle:
    repeat without end.
    """
    return _reader(CIFAR10, "data_batch", cycle)


def test10(cycle: bool = False) -> Callable[[], Iterator[Sample]]:
    """A reader of CIFAR-10's test samples; cycle: repeat without end."""
    return _reader(CIFAR10, "test_batch", cycle)


def fetch() -> None:
    """Check that the files exist. Raises MissingFileError."""
    CIFAR10.path(), CIFAR100.path()


__all__ = ["test10", "test100", "train10", "train100"]
