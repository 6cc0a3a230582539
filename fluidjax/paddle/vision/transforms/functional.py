"""Functions of images: sizes, crops, flips, paddings, colours. An image is Pillow's or a NumPy
array [H, W] or [H, W, C].

Results are of the input's kind. Paddle processes arrays with OpenCV; here they go through Pillow.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import FluidTypeError, FluidValueError
from ....layers._build import one_of, require
from .images import by_pillow, is_array, pillow, size_of

WAYS = ("nearest", "bilinear", "bicubic", "box", "lanczos", "hamming")


def _way(interpolation: str, known: Sequence[str], what: str) -> Any:
    one_of(interpolation, "interpolation", what, known)
    return getattr(pillow().Image.Resampling, interpolation.upper())


def to_tensor(pic: Any, data_format: str = "CHW") -> np.ndarray:
    """An image as an array [C, H, W] (data_format "HWC": [H, W, C]) to feed: float32, uint8 divided
    by 255; other dtypes of Pillow's are unchanged.

    Raises FluidValueError for another data_format.
    """
    one_of(data_format, "data_format", "to_tensor", ("CHW", "HWC"))
    if is_array(pic):
        array = pic
    elif pic.mode == "1":
        array = np.asarray(pic, np.uint8) * 255
    else:
        array = np.asarray(pic, np.int32) if pic.mode.startswith("I") else np.asarray(pic)
    if array.dtype == np.uint8:
        array = array.astype(np.float32) / 255
    array = array[..., None] if array.ndim == 2 else array
    return np.ascontiguousarray(array.transpose(2, 0, 1) if data_format == "CHW" else array)


def resize(img: Any, size: Any, interpolation: str = "bilinear") -> Any:
    """An image in another size. size: [height, width], or an integer for the shorter edge.

    interpolation: Pillow's nearest, bilinear, bicubic, box, lanczos, hamming. Raises FluidTypeError
    for another size.
    """
    width, height = size_of(img)
    if isinstance(size, numbers.Integral):
        n = int(size)
        if min(width, height) == n:
            return img
        size = (int(n * height / width), n) if width < height else (n, int(n * width / height))
    elif not (isinstance(size, Sequence) and len(size) == 2):
        raise FluidTypeError(f"resize's size is an integer or [height, width], not {size!r}")
    to, way = (int(size[1]), int(size[0])), _way(interpolation, WAYS, "resize")
    return by_pillow(img, lambda image: image.resize(to, way), "resize")


def _sides(padding: Any) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of a padding: one number, or two (left and right, top and bottom),
    or four.
    """
    if isinstance(padding, numbers.Number):
        padding = (padding,)
    if not isinstance(padding, list | tuple):
        raise FluidTypeError(f"a padding is a number or a list of two or four, not {padding!r}")
    require(
        len(padding) in (1, 2, 4), f"a padding has one, two or four numbers, not {len(padding)}"
    )
    left, top, right, bottom = (tuple(padding) * 4)[:4]
    return int(left), int(top), int(right), int(bottom)


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """An image padded on the left, the top, the right and the bottom.

    padding: one number for all sides, two (left and right, top and bottom), or four. padding_mode:
    constant (`fill`: a colour for Pillow's images; for arrays a number for all channels or one per
    channel), edge, reflect (without repeating the edge), symmetric. Raises FluidTypeError,
    FluidValueError for other arguments.
    """
    one_of(padding_mode, "padding_mode", "pad", ("constant", "edge", "reflect", "symmetric"))
    left, top, right, bottom = _sides(padding)
    if padding_mode == "constant" and not is_array(img):
        colour = tuple(fill) if isinstance(fill, list) else fill
        return _kept_palette(
            img, pillow().ImageOps.expand(img, border=(left, top, right, bottom), fill=colour)
        )
    array = np.asarray(img)
    width = ((top, bottom), (left, right), (0, 0))[: array.ndim]
    if padding_mode != "constant":
        made = np.pad(array, width, mode=padding_mode)  # type: ignore[call-overload]
    else:
        made = np.pad(array, width)
        inner = np.pad(np.ones(array.shape[:2], bool), width[:2])
        made[~inner] = fill
    return made if is_array(img) else _kept_palette(img, pillow().Image.fromarray(made))


def _kept_palette(old: Any, new: Any) -> Any:
    if old.mode == "P":
        new.putpalette(old.getpalette())
    return new


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """The part of an image that begins at row `top` and column `left`; for Pillow's images, 0
    outside of the image.
    """
    if is_array(img):
        return img[top : top + height, left : left + width]
    return img.crop((left, top, left + width, top + height))


def center_crop(img: Any, output_size: Any) -> Any:
    """The middle of an image. output_size: [height, width], or an integer for both."""
    th, tw = (int(output_size),) * 2 if isinstance(output_size, int | float) else output_size
    width, height = size_of(img)
    return crop(img, round((height - th) / 2), round((width - tw) / 2), th, tw)


def hflip(img: Any) -> Any:
    """An image with left and right exchanged."""
    return (
        img[:, ::-1] if is_array(img) else img.transpose(pillow().Image.Transpose.FLIP_LEFT_RIGHT)
    )


def vflip(img: Any) -> Any:
    """An image with top and bottom exchanged."""
    return img[::-1] if is_array(img) else img.transpose(pillow().Image.Transpose.FLIP_TOP_BOTTOM)


def rotate(
    img: Any,
    angle: float,
    interpolation: str = "nearest",
    expand: bool = False,
    center: Any = None,
    fill: Any = 0,
) -> Any:
    """An image rotated by `angle` degrees counterclockwise, around its centre or `center` (x, y).

    interpolation: nearest, bilinear, bicubic. expand: enlarge to contain the whole image. fill: the
    value outside, a number for all channels or one per channel.
    """
    way = _way(interpolation, WAYS[:3], "rotate")
    middle = None if center is None else tuple(center)

    def rotated(image: Any) -> Any:
        bands = len(image.getbands())
        colour = (
            fill
            if not isinstance(fill, numbers.Number)
            else fill
            if bands == 1
            else (fill,) * bands
        )
        return image.rotate(
            angle,
            way,
            expand,
            middle,
            fillcolor=tuple(colour) if isinstance(colour, list) else colour,
        )

    return by_pillow(img, rotated, "rotate")


def _enhanced(img: Any, kind: str, factor: float, what: str) -> Any:
    def enhanced(image: Any) -> Any:
        return getattr(pillow().ImageEnhance, kind)(image).enhance(factor)

    return by_pillow(img, enhanced, what, floats=False)


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """The image times factor: 0 is black, 1 the image."""
    return _enhanced(img, "Brightness", brightness_factor, "adjust_brightness")


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """An interpolation between the image's mean grey (0) and the image (1), or beyond it."""
    return _enhanced(img, "Contrast", contrast_factor, "adjust_contrast")


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """An interpolation between the image in grey (0) and the image (1), or beyond it."""
    return _enhanced(img, "Color", saturation_factor, "adjust_saturation")


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """An image with its hues rotated by this fraction of a circle, from -0.5 to 0.5; grey images
    are unchanged. Raises FluidValueError for another factor.
    """
    require(
        -0.5 <= hue_factor <= 0.5,
        f"adjust_hue's factor lies between -0.5 and 0.5, not {hue_factor}",
    )

    def shifted(image: Any) -> Any:
        if image.mode in ("L", "1", "I", "F"):
            return image
        hue, saturation, value = image.convert("HSV").split()
        moved = (np.asarray(hue).astype(np.int16) + int(hue_factor * 255)) % 256
        parts = (pillow().Image.fromarray(moved.astype(np.uint8)), saturation, value)
        return pillow().Image.merge("HSV", parts).convert(image.mode)

    return by_pillow(img, shifted, "adjust_hue", floats=False)


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """An image in grey, 0.299 R + 0.587 G + 0.114 B, with one channel or three equal ones. Raises
    FluidValueError for others.
    """
    one_of(num_output_channels, "num_output_channels", "to_grayscale", (1, 3))

    def grey(image: Any) -> Any:
        made = image.convert("L")
        return made if num_output_channels == 1 else pillow().Image.merge("RGB", (made,) * 3)

    return by_pillow(img, grey, "to_grayscale", floats=False)


def normalize(
    img: Any, mean: Any, std: Any, data_format: str = "CHW", to_rgb: bool = False
) -> np.ndarray:
    """(img - mean) / std, channel by channel: float32. to_rgb: convert the channels from BGR first.

    img: an array [C, H, W] (data_format "HWC": [H, W, C]) or an image of Pillow's. Raises
    FluidValueError for another data_format.
    """
    one_of(data_format, "data_format", "normalize", ("CHW", "HWC"))
    array = np.asarray(img, np.float32)
    if array.ndim != 3:
        raise FluidValueError(
            f"normalize takes an image with three dimensions, not {list(array.shape)}"
        )
    shape = (-1, 1, 1) if data_format == "CHW" else (1, 1, -1)
    if to_rgb:
        array = array[::-1] if data_format == "CHW" else array[..., ::-1]
    return (array - np.asarray(mean, np.float32).reshape(shape)) / np.asarray(
        std, np.float32
    ).reshape(shape)


__all__ = [
    "adjust_brightness", "adjust_contrast", "adjust_hue", "adjust_saturation", "center_crop", "crop", "hflip", "normalize", "pad",
    "resize", "rotate", "to_grayscale", "to_tensor", "vflip",
]  # fmt: skip
