"""The kinds of images: Pillow's, or a NumPy array [H, W] or [H, W, C]; an array is converted to
Pillow's for Pillow's functions, and back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import FluidTypeError, FluidValueError, UnsupportedError


def pillow() -> Any:
    """The package PIL with the modules used here. Raises UnsupportedError if it is not installed."""
    try:
        import PIL.Image
        import PIL.ImageEnhance
        import PIL.ImageOps
    except ImportError:
        raise UnsupportedError(
            "paddle.vision.transforms computes this with Pillow, which is not installed: pip"
            ' install "fluidjax[vision]"'
        ) from None
    return PIL


def is_array(img: Any) -> bool:
    """Whether an image is a NumPy array; else it is Pillow's. Raises FluidTypeError for anything
    else.
    """
    if isinstance(img, np.ndarray):
        if img.ndim not in (2, 3):
            raise FluidTypeError(
                f"an image as an array is [H, W] or [H, W, C], not {list(img.shape)}"
            )
        return True
    if not (type(img).__module__.startswith("PIL.") and hasattr(img, "getbands")):
        raise FluidTypeError(f"an image is Pillow's or a NumPy array, not {type(img).__name__}")
    return False


def size_of(img: Any) -> tuple[int, int]:
    """(width, height)."""
    return (img.shape[1], img.shape[0]) if is_array(img) else img.size


def by_pillow(img: Any, compute: Callable[[Any], Any], what: str, floats: bool = True) -> Any:
    """`compute` applied to an image of Pillow's, or to an array converted to one and back.

    An array of uint8 with 1, 3 or 4 channels becomes one image; with `floats`, each channel of a
    float array becomes one. Raises FluidTypeError for arrays of other dtypes, FluidValueError for
    other numbers of channels.
    """
    if not is_array(img):
        return compute(img)
    if img.dtype == np.uint8:
        return _bytes(img, compute, what)
    if not floats or not np.issubdtype(img.dtype, np.floating):
        raise FluidTypeError(
            f"{what} takes an array of uint8{' or floats' if floats else ''}, not of {img.dtype}"
        )
    channels = [img] if img.ndim == 2 else [img[..., k] for k in range(img.shape[2])]
    made = [
        np.array(compute(pillow().Image.fromarray(np.ascontiguousarray(c, np.float32))), img.dtype)
        for c in channels
    ]
    return made[0] if img.ndim == 2 else np.stack(made, -1)


def _bytes(img: np.ndarray, compute: Callable[[Any], Any], what: str) -> np.ndarray:
    flat = img[..., 0] if img.ndim == 3 and img.shape[2] == 1 else img
    if flat.ndim == 3 and flat.shape[2] not in (3, 4):
        raise FluidValueError(f"{what} takes an array with 1, 3 or 4 channels, not {img.shape[2]}")
    made = np.array(compute(pillow().Image.fromarray(np.ascontiguousarray(flat))))
    return made[..., None] if img.ndim == 3 and made.ndim == 2 else made
