"""Boxes that a network starts from, at every place of a feature map: prior_box, density_prior_box,
anchor_generator.

They follow from shapes and attributes alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...errors import FluidValueError, ShapeError
from ..concrete import numbers_of
from ..infer import Spec
from ..registry import Array, Floats, Ints, op
from ..traits import mixes

NEAR = 1e-6  # aspect ratios that differ by less are one


def _sizes(op_type: str, **images: Any) -> list[tuple[int, int]]:
    """Height and width of each image [N, C, H, W]. Raises ShapeError for other ranks."""
    for slot, image in images.items():
        if len(image.shape) != 4:
            raise ShapeError(f"op '{op_type}' takes {slot} [N, C, H, W], not {list(image.shape)}")
    return [(image.shape[2], image.shape[3]) for image in images.values()]


def _four(op_type: str, variances: Sequence[float]) -> None:
    if len(variances) != 4 or min(variances) <= 0:
        raise FluidValueError(f"op '{op_type}' takes four variances above 0, not {list(variances)}")


def _ratios(given: Sequence[float], flip: bool) -> list[float]:
    """1, then each ratio that is not there yet, with its inverse if `flip`."""
    found = [1.0]
    for ratio in np.asarray(given, np.float32):
        if all(abs(float(ratio) - r) >= NEAR for r in found):
            found += [float(ratio), float(np.float32(1) / ratio)] if flip else [float(ratio)]
    return found


def _halves(
    mins: Sequence[float], maxs: Sequence[float], ratios: Sequence[float], squares_first: bool
) -> np.ndarray:
    """Half a width and a height of every prior at a place, [priors, 2]."""
    found: list[tuple[float, float]] = []
    for i, size in enumerate(mins):
        square = [(math.sqrt(size * maxs[i]) / 2,) * 2] if maxs else []
        shaped = [
            (size * math.sqrt(r) / 2, size / math.sqrt(r) / 2)
            for r in ratios
            if not squares_first or abs(r - 1) >= NEAR
        ]
        found += [(size / 2, size / 2), *square, *shaped] if squares_first else [*shaped, *square]
    return np.array(found).reshape(-1, 2)


def _centres(count: int, offset: float, step: float, dtype: Any) -> Any:
    return (jnp.arange(count, dtype=dtype) + np.asarray(offset, dtype)) * jnp.asarray(step, dtype)


def _steps(
    feature: tuple[int, int], image: tuple[int, int], step_h: float, step_w: float
) -> tuple[float, float]:
    if step_w == 0 or step_h == 0:
        return image[0] / feature[0], image[1] / feature[1]
    return step_h, step_w


def _boxes(centre_y: Any, centre_x: Any, halves: np.ndarray) -> Any:
    """[H, W, priors, 4] around centres [H] and [W]."""
    half = jnp.asarray(halves, centre_x.dtype)
    x, y, shape = (
        centre_x[None, :, None],
        centre_y[:, None, None],
        (centre_y.shape[0], centre_x.shape[0], halves.shape[0]),
    )
    edges = x - half[:, 0], y - half[:, 1], x + half[:, 0], y + half[:, 1]
    return jnp.stack([jnp.broadcast_to(e, shape) for e in edges], -1)


def _relative(boxes: Any, image: tuple[int, int]) -> Any:
    xp = numbers_of(image)
    high, wide = (xp.asarray(n, boxes.dtype) for n in image)
    return boxes / xp.stack([wide, high, wide, high])


def _variances(variances: Sequence[float], shape: Sequence[int], dtype: Any) -> Any:
    return jnp.broadcast_to(np.asarray(variances, dtype), tuple(shape))


def _prior_count(
    op_type: str, mins: Sequence[float], maxs: Sequence[float], ratios: Sequence[float], flip: bool
) -> int:
    """The number of priors of a place. Raises FluidValueError for invalid sizes."""
    if not mins or min(mins) <= 0:
        raise FluidValueError(f"op '{op_type}' takes min_sizes above 0, not {list(mins)}")
    if maxs and (len(maxs) != len(mins) or any(b <= a for a, b in zip(mins, maxs, strict=True))):
        raise FluidValueError(
            f"op '{op_type}' takes for each of the min_sizes {list(mins)} a larger one in"
            f" max_sizes, not {list(maxs)}"
        )
    return len(_ratios(ratios, flip)) * len(mins) + len(maxs)


def _prior_spec(Input: Spec, Image: Spec, **attrs: Any) -> tuple[Spec, Spec]:
    (high, wide), _ = _sizes("prior_box", Input=Input, Image=Image)
    _four("prior_box", attrs["variances"])
    if attrs["step_w"] < 0 or attrs["step_h"] < 0:
        raise FluidValueError(
            f"op 'prior_box' takes steps from 0, not {attrs['step_h']} and {attrs['step_w']}"
        )
    count = _prior_count(
        "prior_box", attrs["min_sizes"], attrs["max_sizes"], attrs["aspect_ratios"], attrs["flip"]
    )
    return (Spec((high, wide, count, 4), Input.dtype),) * 2


@op(
    outs="Boxes Variances",
    infer=_prior_spec,
    rows=mixes(),
    shape_of=("Input", "Image"),
)
def prior_box(
    Input: Array, Image: Array, *, min_sizes: Floats, max_sizes: Floats = (), aspect_ratios: Floats, variances: Floats,
    flip: bool = True, clip: bool = True, step_w: float = 0.0, step_h: float = 0.0, offset: float = 0.5,
    min_max_aspect_ratios_order: bool = False,
):  # fmt: skip
    """Boxes [H, W, priors, 4] = (x1, y1, x2, y2) around each place of Input [N, C, H, W], as parts
    of Image [N, C, h, w].

    For each of min_sizes m: m * sqrt(r) by m / sqrt(r) for r in 1 and aspect_ratios (with flip, 1 /
    r too), and a square of sqrt(m * M) for its M in max_sizes; with min_max_aspect_ratios_order the
    squares first. Centres are (place + offset) * step, in pixels; steps of 0: the image's size
    divided by the map's. clip: to [0, 1]. Variances: the four numbers at each box.
    """
    feature, image = _sizes("prior_box", Input=Input, Image=Image)
    steps = _steps(feature, image, step_h, step_w)
    halves = _halves(
        min_sizes, max_sizes, _ratios(aspect_ratios, flip), min_max_aspect_ratios_order
    )
    y, x = (_centres(feature[a], offset, steps[a], Input.dtype) for a in (0, 1))
    boxes = _relative(_boxes(y, x, halves), image)
    return jnp.clip(boxes, 0, 1) if clip else boxes, _variances(variances, boxes.shape, Input.dtype)


def _density_spec(Input: Spec, Image: Spec, **attrs: Any) -> tuple[Spec, Spec]:
    (high, wide), image = _sizes("density_prior_box", Input=Input, Image=Image)
    if 0 <= image[0] <= high or 0 <= image[1] <= wide:
        raise ShapeError(
            f"op 'density_prior_box' takes a feature map smaller than the image, not {[high, wide]}"
            f" of {list(image)}"
        )
    _four("density_prior_box", attrs["variances"])
    sizes, densities = attrs["fixed_sizes"], attrs["densities"]
    if (
        len(sizes) != len(densities)
        or min([1, *densities]) <= 0
        or min([1, *sizes, *attrs["fixed_ratios"]]) <= 0
    ):
        raise FluidValueError(
            "op 'density_prior_box' takes as many fixed_sizes as densities and ratios, all above"
            f" 0, not {list(sizes)}, {list(densities)} and {list(attrs['fixed_ratios'])}"
        )
    count = len(attrs["fixed_ratios"]) * sum(n * n for n in densities)
    if attrs["flatten_to_2d"]:
        return (Spec((high * wide * count if min(high, wide) >= 0 else -1, 4), Input.dtype),) * 2
    return (Spec((high, wide, count, 4), Input.dtype),) * 2


@op(
    outs="Boxes Variances",
    infer=_density_spec,
    rows=mixes(),
    shape_of=("Input", "Image"),
)
def density_prior_box(
    Input: Array, Image: Array, *, variances: Floats, clip: bool = True, flatten_to_2d: bool = False, step_w: float = 0.0,
    step_h: float = 0.0, offset: float = 0.5, fixed_sizes: Floats = (), fixed_ratios: Floats = (), densities: Ints = (),
):  # fmt: skip
    """Boxes [H, W, priors, 4] = as in prior_box, but size i with each of fixed_ratios is at
    densities[i]^2 shifted centres.

    Shifts divide the whole mean step by the density; edges are cut at the image. flatten_to_2d: [H
    * W * priors, 4].
    """
    feature, image = _sizes("density_prior_box", Input=Input, Image=Image)
    steps = _steps(feature, image, step_h, step_w)
    xp = numbers_of((*feature, *image))
    step = xp.floor(xp.asarray(sum(steps), Input.dtype) * 0.5)
    shifts: list[Any] = []
    halves = []
    for size, density in zip(fixed_sizes, densities, strict=True):
        shift = step // density
        at = [n * shift - step / 2 + shift / 2 for n in range(density)]
        for ratio in np.sqrt(np.asarray(fixed_ratios, np.float32)):
            shifts += [(x, y) for y in at for x in at]
            halves += [(size * float(ratio) / 2, size / float(ratio) / 2)] * density**2
    y, x = (_centres(feature[a], offset, steps[a], Input.dtype) for a in (0, 1))
    places = _boxes(y, x, np.zeros((len(halves), 2)))
    move, half = (xp.asarray(v, Input.dtype).reshape(-1, 2) for v in (shifts, halves))
    edges = places + xp.concatenate([move - half, move + half], 1)
    boxes = _relative(edges, image)
    boxes = jnp.concatenate([jnp.maximum(boxes[..., :2], 0), jnp.minimum(boxes[..., 2:], 1)], -1)
    boxes = jnp.clip(boxes, 0, 1) if clip else boxes
    boxes = boxes.reshape(-1, 4) if flatten_to_2d else boxes
    return boxes, _variances(variances, boxes.shape, Input.dtype)


def _anchor_spec(Input: Spec, **attrs: Any) -> tuple[Spec, Spec]:
    ((high, wide),) = _sizes("anchor_generator", Input=Input)
    _four("anchor_generator", attrs["variances"])
    for name in ("anchor_sizes", "aspect_ratios", "stride"):
        if not attrs[name] or min(attrs[name]) <= 0 or (name == "stride" and len(attrs[name]) != 2):
            raise FluidValueError(
                f"op 'anchor_generator' takes {name} above 0, two strides among them, not"
                f" {list(attrs[name])}"
            )
    return (
        Spec(
            (high, wide, len(attrs["anchor_sizes"]) * len(attrs["aspect_ratios"]), 4), Input.dtype
        ),
    ) * 2


def _rounded(x: float) -> float:
    """To the nearest whole number, halves away from 0."""
    return math.floor(x + 0.5)


@op(
    outs="Anchors Variances",
    infer=_anchor_spec,
    rows=mixes(),
    shape_of=("Input",),
)
def anchor_generator(
    Input: Array,
    *,
    anchor_sizes: Floats,
    aspect_ratios: Floats,
    variances: Floats,
    stride: Floats = (16.0, 16.0),
    offset: float = 0.5,
):
    """Anchors [H, W, ratios * sizes, 4] = (x1, y1, x2, y2) in pixels, around each place of Input
    [N, C, H, W].

    stride: the distance of neighbouring places, across and down. An anchor has whole sides of the
    stride's area in its ratio, scaled by size / stride; its last pixel belongs to it. Variances:
    the four numbers at each anchor.
    """
    ((high, wide),) = _sizes("anchor_generator", Input=Input)
    halves = []
    for ratio in aspect_ratios:
        base = _rounded(math.sqrt(np.asarray(stride[0] * stride[1] / ratio, Input.dtype)))
        sides = base, _rounded(base * ratio)
        halves += [
            [0.5 * (size / stride[a] * sides[a] - 1) for a in (0, 1)] for size in anchor_sizes
        ]
    axes = ((high, stride[1]), (wide, stride[0]))
    y, x = (
        jnp.arange(n, dtype=Input.dtype) * np.asarray(s, Input.dtype)
        + np.asarray(offset * (s - 1), Input.dtype)
        for n, s in axes
    )
    anchors = _boxes(y, x, np.array(halves))
    return anchors, _variances(variances, anchors.shape, Input.dtype)
