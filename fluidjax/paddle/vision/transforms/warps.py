"""Rotation, shearing, perspective and erasing of images: functions, and transforms with random
parameters.

RandomAffine and RandomPerspective use Python's `random`, RandomErasing also NumPy's global
generator, as in Paddle.
"""

from __future__ import annotations

import math
import numbers
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import FluidTypeError
from ....layers._build import require
from .base import BaseTransform
from .functional import WAYS, _way
from .images import by_pillow, is_array, pillow, size_of


def _mapped(
    img: Any, kind: str, numbers_: Sequence[float], interpolation: str, fill: Any, what: str
) -> Any:
    """The result of Pillow's transform, in the image's size; fill: a number for all channels, or
    one per channel.
    """
    way = _way(interpolation, WAYS[:3], what)

    def mapped(image: Any) -> Any:
        bands = len(image.getbands())
        colour = (
            fill
            if not isinstance(fill, numbers.Number)
            else fill
            if bands == 1
            else (fill,) * bands
        )
        kinds = pillow().Image.Transform
        filled = tuple(colour) if isinstance(colour, list) else colour
        return image.transform(image.size, getattr(kinds, kind), numbers_, way, fillcolor=filled)

    return by_pillow(img, mapped, what)


def _pair(value: Any, what: str) -> tuple[float, float]:
    if not isinstance(value, list | tuple):
        raise FluidTypeError(f"{what} is two numbers, not {value!r}")
    require(len(value) == 2, f"{what} is two numbers, not {len(value)}")
    return float(value[0]), float(value[1])


def affine(
    img: Any,
    angle: float,
    translate: Any,
    scale: float,
    shear: Any,
    interpolation: str = "nearest",
    fill: Any = 0,
    center: Any = None,
) -> Any:
    """An image rotated by `angle` degrees clockwise, sheared, scaled around its centre or
    `center` (x, y), and moved.

    translate: pixels to the right and down; shear: degrees along x, or [along x, along y].
    interpolation: nearest, bilinear, bicubic. fill: the value outside, a number for all channels or
    one per channel. Raises FluidTypeError, FluidValueError for other arguments.
    """
    if not isinstance(angle, int | float):
        raise FluidTypeError(f"affine's angle is a number, not {angle!r}")
    require(scale > 0, f"affine's scale is above 0, not {scale}")
    shear = (
        [shear, 0.0]
        if isinstance(shear, numbers.Number)
        else [shear[0]] * 2
        if len(shear) == 1
        else shear
    )
    (tx, ty), (sx, sy) = (
        _pair(translate, "affine's translate"),
        (math.radians(v) for v in _pair(shear, "affine's shear")),
    )
    width, height = size_of(img)
    cx, cy = (width * 0.5, height * 0.5) if center is None else _pair(center, "affine's center")
    turn = math.radians(angle)
    # computed in Paddle's order, to match its last digits
    cos, sin = math.cos(turn - sy), math.sin(turn - sy)
    a, c = cos / math.cos(sy), sin / math.cos(sy)
    b = -cos * math.tan(sx) / math.cos(sy) - math.sin(turn)
    d = -sin * math.tan(sx) / math.cos(sy) + math.cos(turn)
    # Pillow takes the inverse map, from result to source
    inverse = [v / scale for v in (d, -b, -c, a)]
    x = inverse[0] * (-cx - tx) + inverse[1] * (-cy - ty) + cx
    y = inverse[2] * (-cx - tx) + inverse[3] * (-cy - ty) + cy
    return _mapped(
        img,
        "AFFINE",
        [inverse[0], inverse[1], x, inverse[2], inverse[3], y],
        interpolation,
        fill,
        "affine",
    )


def perspective(
    img: Any, startpoints: Any, endpoints: Any, interpolation: str = "nearest", fill: Any = 0
) -> Any:
    """An image warped so that the four points startpoints [[x, y], ...] move to endpoints: top
    left, top right, bottom right, bottom left.

    interpolation, fill: as in affine. Raises FluidValueError unless there are four points each.
    """
    starts, ends = np.asarray(startpoints, float), np.asarray(endpoints, float)
    require(
        starts.shape == ends.shape == (4, 2),
        f"perspective takes four points [x, y] each, not {startpoints!r} and {endpoints!r}",
    )
    rows = []
    for (x, y), (u, v) in zip(ends, starts, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    found = np.linalg.lstsq(np.array(rows), starts.reshape(8), rcond=None)[0]
    return _mapped(img, "PERSPECTIVE", found.tolist(), interpolation, fill, "perspective")


def erase(img: Any, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Any:
    """An image with v (a number, or an array that broadcasts to [h, w, C]) in h rows from i on and
    w columns from j on.

    inplace: write to the given array. Numbers for Pillow's images become uint8 by NumPy's cast.
    """
    if is_array(img):
        made = img if inplace else img.copy()
        made[i : i + h, j : j + w, ...] = v
        return made
    made = np.array(img, np.uint8)
    made[i : i + h, j : j + w, ...] = v
    return pillow().Image.fromarray(made)


def _span(value: Any, what: str, sizes: tuple[int, ...] = (2,)) -> list[float]:
    """[least, most], from a number (with both signs) or a list of numbers."""
    if isinstance(value, int | float):
        require(value >= 0, f"{what} is not negative, as {value} is")
        return [-float(value), float(value)]
    if not isinstance(value, list | tuple):
        raise FluidTypeError(f"{what} is a number or a list, not {value!r}")
    require(
        len(value) in sizes,
        f"{what} is a number or {' or '.join(map(str, sizes))} of them, not {len(value)}",
    )
    return [float(v) for v in value]


class RandomAffine(BaseTransform):
    """affine by a random angle, translation, scale and shear.

    degrees: between -degrees and degrees, or two numbers; translate: the greatest fractions of
    width and height; scale: two numbers; shear: like degrees, along x, or four numbers for both
    axes. Raises FluidTypeError, FluidValueError for others.
    """

    def __init__(
        self, degrees: Any, translate: Any = None, scale: Any = None, shear: Any = None, interpolation: str = "nearest", fill: Any = 0,
        center: Any = None, keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(keys)
        self.degrees = _span(degrees, "RandomAffine's degrees")
        self.translate = None if translate is None else _pair(translate, "RandomAffine's translate")
        shares = self.translate is None or all(0 <= t <= 1 for t in self.translate)
        require(shares, f"RandomAffine's translate is of shares, not {translate}")
        self.scale = None if scale is None else _pair(scale, "RandomAffine's scale")
        require(
            self.scale is None or min(self.scale) > 0,
            f"RandomAffine's scale is above 0, unlike {scale}",
        )
        self.shear = None if shear is None else _span(shear, "RandomAffine's shear", (2, 4))
        self.interpolation, self.fill, self.center = (
            interpolation,
            0 if fill is None else fill,
            center,
        )

    def _apply_image(self, img: Any) -> Any:
        width, height = size_of(img)
        angle = random.uniform(*self.degrees)
        moved = (0, 0)
        if self.translate is not None:
            dx, dy = self.translate[0] * width, self.translate[1] * height
            moved = int(random.uniform(-dx, dx)), int(random.uniform(-dy, dy))
        scale = 1.0 if self.scale is None else random.uniform(*self.scale)
        shears = self.shear or [0.0, 0.0]
        along_x = random.uniform(*shears[:2]) if self.shear else 0.0
        along_y = random.uniform(*shears[2:]) if len(shears) == 4 else 0.0
        return affine(
            img, angle, moved, scale, (along_x, along_y), self.interpolation, self.fill, self.center
        )


class RandomPerspective(BaseTransform):
    """perspective, with probability prob, from the corners to points within distortion_scale of
    half the sides.

    Raises FluidValueError for a probability or a scale outside of [0, 1].
    """

    def __init__(
        self, prob: float = 0.5, distortion_scale: float = 0.5, interpolation: str = "nearest", fill: Any = 0,
        keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(keys)
        require(0 <= prob <= 1, f"RandomPerspective's prob lies between 0 and 1, not {prob}")
        require(
            0 <= distortion_scale <= 1,
            f"RandomPerspective's distortion_scale lies between 0 and 1, not {distortion_scale}",
        )
        self.prob, self.distortion_scale, self.interpolation, self.fill = (
            prob,
            distortion_scale,
            interpolation,
            fill,
        )

    def get_params(
        self, width: int, height: int, distortion_scale: float
    ) -> tuple[list[list[int]], list[list[int]]]:
        """(the corners, their random new positions)."""
        dx, dy = int(distortion_scale * (width // 2)), int(distortion_scale * (height // 2))

        def drawn(left: bool, top: bool) -> list[int]:
            x = random.uniform(0, dx + 1) if left else random.uniform(width - dx - 1, width)
            y = random.uniform(0, dy + 1) if top else random.uniform(height - dy - 1, height)
            return [int(x), int(y)]

        ends = [drawn(True, True), drawn(False, True), drawn(False, False), drawn(True, False)]
        return [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]], ends

    def _apply_image(self, img: Any) -> Any:
        width, height = size_of(img)
        if random.random() >= self.prob:
            return img
        starts, ends = self.get_params(width, height, self.distortion_scale)
        return perspective(img, starts, ends, self.interpolation, self.fill)


class RandomErasing(BaseTransform):
    """erase, with probability prob, of a random rectangle with a fraction of the area within
    `scale` and height / width within `ratio`.

    value: a number, one for each of three channels, or "random" (255 times normal numbers). A
    rectangle that does not fit is sampled again, up to ten times; then the image does not change.
    Raises FluidTypeError, FluidValueError for other arguments.
    """

    def __init__(
        self, prob: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3), value: Any = 0,
        inplace: bool = False, keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(keys)
        self.scale, self.ratio = (
            _pair(scale, "RandomErasing's scale"),
            _pair(ratio, "RandomErasing's ratio"),
        )
        require(
            0 <= self.scale[0] <= self.scale[1] <= 1,
            f"RandomErasing's scale is (least, most) within 0 and 1, not {scale}",
        )
        require(
            0 < self.ratio[0] <= self.ratio[1],
            f"RandomErasing's ratio is (least, most) above 0, not {ratio}",
        )
        require(0 <= prob <= 1, f"RandomErasing's prob lies between 0 and 1, not {prob}")
        if not isinstance(value, numbers.Number | str | list | tuple):
            raise FluidTypeError(
                f"RandomErasing's value is a number, three of them or 'random', not {value!r}"
            )
        known = (
            isinstance(value, numbers.Number)
            or value == "random"
            or (not isinstance(value, str) and len(value) in (1, 3))
        )
        require(
            known, f"RandomErasing's value is a number, three of them or 'random', not {value!r}"
        )
        self.prob, self.value, self.inplace = prob, value, inplace

    def _apply_image(self, img: Any) -> Any:
        if random.random() >= self.prob:
            return img
        width, height = size_of(img)
        channels = (img.shape[2] if img.ndim == 3 else 1) if is_array(img) else len(img.getbands())
        for _ in range(10):
            area = np.random.uniform(*self.scale) * height * width
            ratio = np.exp(np.random.uniform(*np.log(self.ratio)))
            h, w = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if h >= height or w >= width:
                continue
            value: Any = self.value
            if isinstance(value, str):
                value = np.random.normal(size=[h, w, channels]) * 255
                value = value if channels > 1 else value[..., 0] if np.ndim(img) == 2 else value
            top, left = np.random.randint(0, height - h + 1), np.random.randint(0, width - w + 1)
            return erase(img, top, left, h, w, value, self.inplace)
        return img


__all__ = ["RandomAffine", "RandomErasing", "RandomPerspective", "affine", "erase", "perspective"]
