"""Images as arrays [height, width, 3], blue, green, red: read, resized (these two by
opencv-python), cropped, flipped.
"""

from __future__ import annotations

import os
import pickle
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FluidValueError, UnsupportedError


def _cv2() -> Any:
    try:
        import cv2  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise UnsupportedError(
            "paddle.dataset.image reads and resizes images by OpenCV; install opencv-python"
        ) from None
    return cv2


def load_image_bytes(bytes: bytes, is_color: bool = True) -> np.ndarray:
    """The image in the bytes of a JPEG or PNG file, uint8; without colour [height, width]. Raises
    FluidValueError for other bytes.
    """
    image = _cv2().imdecode(np.frombuffer(bytes, np.uint8), 1 if is_color else 0) if bytes else None
    if image is None:
        raise FluidValueError(f"these {len(bytes)} bytes are not an image")
    return np.asarray(image)


def load_image(file: str, is_color: bool = True) -> np.ndarray:
    """The image in a file. Raises FluidValueError for a missing file or one without an image."""
    try:
        return load_image_bytes(Path(file).read_bytes(), is_color)
    except OSError as error:
        raise FluidValueError(f"cannot read {file}: {error.strerror or error}") from None
    except FluidValueError:
        raise FluidValueError(f"{file} holds no image") from None


def resize_short(im: np.ndarray, size: int) -> np.ndarray:
    """The image with its shorter side of this size, by cubic interpolation."""
    cv2 = _cv2()
    height, width = im.shape[:2]
    new = (size, size * height // width) if height > width else (size * width // height, size)
    return np.asarray(cv2.resize(im, new, interpolation=cv2.INTER_CUBIC))


def to_chw(im: np.ndarray, order: Sequence[int] = (2, 0, 1)) -> np.ndarray:
    """The image with its axes in this order: channels first. Raises FluidValueError for another
    number of axes.
    """
    if im.ndim != len(order):
        raise FluidValueError(
            f"to_chw turns {len(order)} axes; the image has shape {list(im.shape)}"
        )
    return im.transpose(order)


def _cropped(im: np.ndarray, top: int, left: int, size: int) -> np.ndarray:
    return im[top : top + size, left : left + size]


def center_crop(im: np.ndarray, size: int, is_color: bool = True) -> np.ndarray:
    """The square of this size in the middle."""
    height, width = im.shape[:2]
    return _cropped(im, (height - size) // 2, (width - size) // 2, size)


def random_crop(im: np.ndarray, size: int, is_color: bool = True) -> np.ndarray:
    """A square of this size at a position from ``numpy.random``. Raises FluidValueError for an
    image that is smaller.
    """
    height, width = im.shape[:2]
    if min(height, width) < size:
        raise FluidValueError(f"no square of {size} fits into an image of {height} x {width}")
    top = np.random.randint(0, height - size + 1)
    return _cropped(im, top, np.random.randint(0, width - size + 1), size)


def left_right_flip(im: np.ndarray, is_color: bool = True) -> np.ndarray:
    """The image with left and right exchanged."""
    return im[:, ::-1]


def simple_transform(
    im: np.ndarray,
    resize_size: int,
    crop_size: int,
    is_train: bool,
    is_color: bool = True,
    mean: Any = None,
) -> np.ndarray:
    """The image resized, cropped and channels first, float32, minus `mean` (of each channel, or an
    image).

    is_train: crop and flip at random, by ``numpy.random``; else crop the middle.
    """
    im = resize_short(im, resize_size)
    if is_train:
        im = random_crop(im, crop_size)
        if np.random.randint(2) == 0:
            im = left_right_flip(im)
    else:
        im = center_crop(im, crop_size)
    im = (to_chw(im) if im.ndim == 3 else im).astype("float32")
    if mean is not None:
        less = np.array(mean, np.float32)
        im -= less[:, np.newaxis, np.newaxis] if less.ndim == 1 and is_color else less
    return im


def load_and_transform(
    filename: str,
    resize_size: int,
    crop_size: int,
    is_train: bool,
    is_color: bool = True,
    mean: Any = None,
) -> np.ndarray:
    """simple_transform of the image in a file."""
    return simple_transform(
        load_image(filename, is_color), resize_size, crop_size, is_train, is_color, mean
    )


def batch_images_from_tar(
    data_file: str, dataset_name: str, img2label: Mapping[str, Any], num_per_batch: int = 1024
) -> str:
    """Write the labelled images of an archive as pickles of {"label": [...], "data": [bytes, ...]},
    and return the file that lists them.

    They are in the folder ``data_file_batch/dataset_name`` and are not written again if it exists.
    Raises FluidValueError for anything but an archive.
    """
    folder = Path(f"{data_file}_batch") / dataset_name
    listed = folder.with_name(f"{dataset_name}.txt")
    if folder.exists():
        return str(listed)
    try:
        with tarfile.open(data_file) as archive:
            wanted = [m for m in archive.getmembers() if m.name in img2label and m.isfile()]
            folder.mkdir(parents=True)
            files: list[Path] = []
            for begin in range(0, len(wanted), num_per_batch):
                part = wanted[begin : begin + num_per_batch]
                batch = {
                    "label": [img2label[m.name] for m in part],
                    "data": [_bytes(archive, m) for m in part],
                }
                files.append(folder / f"batch_{len(files)}")
                files[-1].write_bytes(pickle.dumps(batch, protocol=2))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise FluidValueError(f"{data_file} cannot be read as an archive: {error}") from None
    listed.write_text("".join(f"{os.path.abspath(file)}\n" for file in files))
    return str(listed)


def _bytes(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return b"" if file is None else file.read()


__all__ = [
    "batch_images_from_tar", "center_crop", "left_right_flip", "load_and_transform", "load_image", "load_image_bytes", "random_crop",
    "resize_short", "simple_transform", "to_chw",
]  # fmt: skip
