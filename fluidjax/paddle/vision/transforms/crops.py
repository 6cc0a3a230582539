"""Transforms that crop and resize images. Random ones use Python's `random`."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....layers._build import require
from . import functional as F
from .base import BaseTransform
from .images import size_of


def _pair(size: Any) -> tuple[int, int]:
    return (int(size), int(size)) if isinstance(size, int | float) else tuple(size)


class Resize(BaseTransform):
    """functional.resize to `size`."""

    def __init__(
        self, size: Any, interpolation: str = "bilinear", keys: Sequence[str] | None = None
    ) -> None:
        super().__init__(keys)
        self.size, self.interpolation = size, interpolation

    def _apply_image(self, img: Any) -> Any:
        return F.resize(img, self.size, self.interpolation)


class CenterCrop(BaseTransform):
    """The middle of an image, of `size`: [height, width], or an integer for both."""

    def __init__(self, size: Any, keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.size = _pair(size)

    def _apply_image(self, img: Any) -> Any:
        return F.center_crop(img, self.size)


class Pad(BaseTransform):
    """functional.pad."""

    def __init__(
        self,
        padding: Any,
        fill: Any = 0,
        padding_mode: str = "constant",
        keys: Sequence[str] | None = None,
    ) -> None:
        super().__init__(keys)
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def _apply_image(self, img: Any) -> Any:
        return F.pad(img, self.padding, self.fill, self.padding_mode)


class RandomCrop(BaseTransform):
    """A random part of `size` ([height, width], or an integer for both), all equally likely.

    padding: functional.pad first. pad_if_needed: a smaller image is padded on both sides to `size`.
    Raises FluidValueError for an image that is still smaller.
    """

    def __init__(
        self, size: Any, padding: Any = None, pad_if_needed: bool = False, fill: Any = 0, padding_mode: str = "constant",
        keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(keys)
        self.size, self.padding, self.pad_if_needed = _pair(size), padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    def _padded(self, img: Any, padding: Any) -> Any:
        return F.pad(img, padding, self.fill, self.padding_mode)

    def _apply_image(self, img: Any) -> Any:
        img = img if self.padding is None else self._padded(img, self.padding)
        wanted, (width, height) = self.size, size_of(img)
        if self.pad_if_needed and width < wanted[1]:
            img = self._padded(img, (wanted[1] - width, 0))
        if self.pad_if_needed and height < wanted[0]:
            img = self._padded(img, (0, wanted[0] - height))
        width, height = size_of(img)
        if (height, width) == wanted:
            return img
        fits = height >= wanted[0] and width >= wanted[1]
        require(
            fits,
            f"RandomCrop takes {list(wanted)} of an image, and this one has [{height}, {width}];"
            " give pad_if_needed",
        )
        top = random.randint(0, height - wanted[0])
        left = random.randint(0, width - wanted[1])
        return F.crop(img, top, left, *wanted)


class RandomResizedCrop(BaseTransform):
    """A random part of an image, resized to `size`: its area is a random fraction in `scale` of the
    image's, and its width / height is in `ratio`.

    If ten samples do not fit, it is the largest central part with such a ratio. Fractions and
    ratios are sampled by numpy.random, positions by `random`, as in Paddle.
    """

    def __init__(
        self, size: Any, scale: Any = (0.08, 1.0), ratio: Any = (3.0 / 4, 4.0 / 3), interpolation: str = "bilinear",
        keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(keys)
        for what, (low, high) in (("scale", scale), ("ratio", ratio)):
            require(low <= high, f"RandomResizedCrop's {what} is (least, most), not {(low, high)}")
        self.size, self.scale, self.ratio, self.interpolation = (
            _pair(size),
            scale,
            ratio,
            interpolation,
        )

    def _part(self, width: int, height: int) -> tuple[int, int, int, int]:
        """Top, left, height and width of the part."""
        low, high = (math.log(r) for r in self.ratio)
        for _ in range(10):
            area = np.random.uniform(*self.scale) * (height * width)
            ratio = math.exp(np.random.uniform(low, high))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                return random.randint(0, height - h), random.randint(0, width - w), h, w
        w, h = width, height
        if width / height < min(self.ratio):
            h = round(width / min(self.ratio))
        elif width / height > max(self.ratio):
            w = round(height * max(self.ratio))
        return (height - h) // 2, (width - w) // 2, h, w

    def _apply_image(self, img: Any) -> Any:
        return F.resize(F.crop(img, *self._part(*size_of(img))), self.size, self.interpolation)


__all__ = ["CenterCrop", "Pad", "RandomCrop", "RandomResizedCrop", "Resize"]
