"""Pascal VOC 2012, segmentation: images [height, width, 3] and the class of each pixel [height,
width], from the local archive.

Needs Pillow. 1.8.5 finds no image on Python 3, because it looks for names that are bytes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..errors import FluidValueError, UnsupportedError
from .archives import Archive

ARCHIVE = Archive("voc2012", "VOCtrainval_11-May-2012.tar", "6cd6e144f989b92b3379bac3b3de84fd")
_FOLDER = "VOCdevkit/VOC2012"

Sample = tuple[np.ndarray, np.ndarray]


def _array(data: bytes, where: str) -> np.ndarray:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise UnsupportedError(
            "paddle.dataset.voc2012 reads images by Pillow; install pillow"
        ) from None
    try:
        return np.array(Image.open(io.BytesIO(data)))
    except (
        UnidentifiedImageError,
        OSError,
        ValueError,
        SyntaxError,
        Image.DecompressionBombError,
    ) as error:
        raise FluidValueError(f"{ARCHIVE.path()}: {where} holds no image: {error}") from None


def _reader(part: str) -> Callable[[], Iterator[Sample]]:
    ARCHIVE.path()

    def reader() -> Iterator[Sample]:
        with ARCHIVE.tar() as tar:
            names: list[Any] = list(
                ARCHIVE.member(tar, f"{_FOLDER}/ImageSets/Segmentation/{part}.txt")
            )
            for i, line in enumerate(names, 1):
                name = ARCHIVE.text(line, f"{part}.txt line {i}").strip()
                files = (
                    f"{_FOLDER}/JPEGImages/{name}.jpg",
                    f"{_FOLDER}/SegmentationClass/{name}.png",
                )
                image, classes = (_array(ARCHIVE.member(tar, file).read(), file) for file in files)
                yield image, classes

    return reader


def train() -> Callable[[], Iterator[Sample]]:
    """A reader of the images for training and validation: image and classes, both uint8. Raises
    MissingFileError, FluidValueError.
    """
    return _reader("trainval")


def test() -> Callable[[], Iterator[Sample]]:
    """A reader of only the training images, which 1.8.5 calls the test part."""
    return _reader("train")


def val() -> Callable[[], Iterator[Sample]]:
    """A reader of the images for validation."""
    return _reader("val")


__all__ = ["test", "train", "val"]
