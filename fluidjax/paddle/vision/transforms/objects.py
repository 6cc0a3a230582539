"""Transforms of an image's colours and orientation. Random ones use Python's `random`."""

from __future__ import annotations

import numbers
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import FluidTypeError
from ....layers._build import require
from . import functional as F
from .base import BaseTransform, Compose


class ToTensor(BaseTransform):
    """functional.to_tensor: an array to feed to a program."""

    def __init__(self, data_format: str = "CHW", keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.data_format = data_format

    def _apply_image(self, img: Any) -> np.ndarray:
        return F.to_tensor(img, self.data_format)


class Normalize(BaseTransform):
    """functional.normalize; one number is used for three channels."""

    def __init__(
        self,
        mean: Any = 0.0,
        std: Any = 1.0,
        data_format: str = "CHW",
        to_rgb: bool = False,
        keys: Sequence[str] | None = None,
    ) -> None:
        super().__init__(keys)
        self.mean, self.std = ([v] * 3 if isinstance(v, numbers.Number) else v for v in (mean, std))
        self.data_format, self.to_rgb = data_format, to_rgb

    def _apply_image(self, img: Any) -> np.ndarray:
        return F.normalize(img, self.mean, self.std, self.data_format, self.to_rgb)


class Transpose(BaseTransform):
    """An image as an array with its dimensions in this order; one without channels gets a last
    dimension.
    """

    def __init__(self, order: Any = (2, 0, 1), keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.order = order

    def _apply_image(self, img: Any) -> np.ndarray:
        array = np.asarray(img)
        return (array[..., None] if array.ndim == 2 else array).transpose(self.order)


class RandomHorizontalFlip(BaseTransform):
    """functional.hflip with probability `prob`."""

    def __init__(self, prob: float = 0.5, keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.prob = prob

    def _apply_image(self, img: Any) -> Any:
        return F.hflip(img) if random.random() < self.prob else img


class RandomVerticalFlip(BaseTransform):
    """functional.vflip with probability `prob`."""

    def __init__(self, prob: float = 0.5, keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.prob = prob

    def _apply_image(self, img: Any) -> Any:
        return F.vflip(img) if random.random() < self.prob else img


class RandomRotation(BaseTransform):
    """functional.rotate by a random angle between two numbers, or between -degrees and degrees.
    Raises FluidValueError for a negative number.
    """

    def __init__(
        self, degrees: Any, interpolation: str = "nearest", expand: bool = False, center: Any = None, fill: Any = 0,
        keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(keys)
        if isinstance(degrees, int | float):
            require(degrees >= 0, f"RandomRotation's degrees are not negative, as {degrees} is")
            degrees = (-degrees, degrees)
        require(
            len(degrees) == 2, f"RandomRotation's degrees are one number or two, not {len(degrees)}"
        )
        self.degrees, self.interpolation, self.expand, self.center, self.fill = (
            degrees,
            interpolation,
            expand,
            center,
            fill,
        )

    def _apply_image(self, img: Any) -> Any:
        angle = random.uniform(*self.degrees)
        return F.rotate(img, angle, self.interpolation, self.expand, self.center, self.fill)


def _range(
    value: Any, what: str, center: float = 1.0, low: float = 0.0, high: float = float("inf")
) -> Any:
    """The range of a random factor: a distance around `center`, or (least, most); None if it is
    always `center`.
    """
    if isinstance(value, int | float):
        require(value >= 0, f"{what} is not negative, as {value} is")
        value = (center - float(value), center + float(value))
        value = (max(value[0], 0.0), value[1]) if center else value
    elif not (isinstance(value, list | tuple) and len(value) == 2):
        raise FluidTypeError(f"{what} is a number or (least, most), not {value!r}")
    require(
        low <= value[0] <= value[1] <= high,
        f"{what} lies between {low} and {high}, unlike {tuple(value)}",
    )
    return None if value[0] == value[1] == center else tuple(value)


class _Jitter(BaseTransform):
    """A random factor of a colour, between two numbers."""

    value: Any

    def _apply_image(self, img: Any) -> Any:
        return img if self.value is None else self._adjusted(img, random.uniform(*self.value))

    def _adjusted(self, img: Any, factor: float) -> Any:
        raise NotImplementedError


class BrightnessTransform(_Jitter):
    """functional.adjust_brightness by a factor between 1 - value and 1 + value, or between two."""

    def __init__(self, value: Any, keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.value = _range(value, "brightness")

    def _adjusted(self, img: Any, factor: float) -> Any:
        return F.adjust_brightness(img, factor)


class ContrastTransform(_Jitter):
    """functional.adjust_contrast by a factor between 1 - value and 1 + value, or between two."""

    def __init__(self, value: Any, keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.value = _range(value, "contrast")

    def _adjusted(self, img: Any, factor: float) -> Any:
        return F.adjust_contrast(img, factor)


class SaturationTransform(_Jitter):
    """functional.adjust_saturation by a factor between 1 - value and 1 + value, or between two."""

    def __init__(self, value: Any, keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.value = _range(value, "saturation")

    def _adjusted(self, img: Any, factor: float) -> Any:
        return F.adjust_saturation(img, factor)


class HueTransform(_Jitter):
    """functional.adjust_hue by a factor between -value and value, at most 0.5, or between two."""

    def __init__(self, value: Any, keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.value = _range(value, "hue", 0.0, -0.5, 0.5)

    def _adjusted(self, img: Any, factor: float) -> Any:
        return F.adjust_hue(img, factor)


class ColorJitter(BaseTransform):
    """Brightness, contrast, saturation and hue by factors, in a new random order for every image."""

    def __init__(
        self,
        brightness: Any = 0,
        contrast: Any = 0,
        saturation: Any = 0,
        hue: Any = 0,
        keys: Sequence[str] | None = None,
    ) -> None:
        super().__init__(keys)
        self.brightness, self.contrast, self.saturation, self.hue = (
            brightness,
            contrast,
            saturation,
            hue,
        )

    def _apply_image(self, img: Any) -> Any:
        kinds = (BrightnessTransform, ContrastTransform, SaturationTransform, HueTransform)
        values = (self.brightness, self.contrast, self.saturation, self.hue)
        transforms = [
            kind(value) for kind, value in zip(kinds, values, strict=True) if value is not None
        ]
        random.shuffle(transforms)
        return Compose(transforms)(img)


class Grayscale(BaseTransform):
    """functional.to_grayscale."""

    def __init__(self, num_output_channels: int = 1, keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.num_output_channels = num_output_channels

    def _apply_image(self, img: Any) -> Any:
        return F.to_grayscale(img, self.num_output_channels)


__all__ = [
    "BrightnessTransform", "ColorJitter", "ContrastTransform", "Grayscale", "HueTransform", "Normalize", "RandomHorizontalFlip",
    "RandomRotation", "RandomVerticalFlip", "SaturationTransform", "ToTensor", "Transpose",
]  # fmt: skip
