"""The three products of a convolution.

    output(x, w),  input_gradient(w, dy),  filter_gradient(x, dy)

Each is linear in both arguments, and its derivatives are the other two, so gradients of every order
are made of these. They are XLA's own convolution unless the step has another implementation
(`Target.convolve`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import loops
from .concrete import are_numbers
from .convolution_geometry import Geometry
from .registry import Array
from .target import Target

OUTPUT, INPUT_GRADIENT, FILTER_GRADIENT = range(3)


def output(geo: Geometry, x: Array, w: Array, target: Target) -> jax.Array:
    """conv(x, w), of the shape geo.y."""
    return _product(OUTPUT, geo, x, w, target)


def input_gradient(geo: Geometry, w: Array, dy: Array, target: Target) -> jax.Array:
    """The gradient of sum(dy * conv(x, w)) with respect to x, which is the transposed convolution
    of dy.
    """
    return _product(INPUT_GRADIENT, geo, w, dy, target)


def filter_gradient(geo: Geometry, x: Array, dy: Array, target: Target) -> jax.Array:
    """The gradient of sum(dy * conv(x, w)) with respect to w."""
    return _product(FILTER_GRADIENT, geo, x, dy, target)


def _product(product: int, geo: Geometry, a: Array, b: Array, target: Target) -> jax.Array:
    if target.convolve is not None:
        found: jax.Array = target.convolve(product, geo, a, b, target.nested)
        return found
    return plain(product, geo, a, b)


def plain(product: int, geo: Geometry, a: Array, b: Array) -> jax.Array:
    """The product by XLA's own convolution. JAX cannot transpose one with symbolic sizes (a step
    exported for any batch), so gradients are written out.
    """
    return (XLA if are_numbers(geo.sides) else NATIVE)[product](geo, a, b)


# XLA's own


def xla_output(geo: Geometry, x: Array, w: Array) -> jax.Array:
    """conv(x, w)."""
    return lax.conv_general_dilated(
        x,
        w,
        geo.strides,
        geo.pads,
        rhs_dilation=geo.dilations,
        feature_group_count=geo.groups,
        dimension_numbers=geo.names(),
    )


def xla_input_gradient(geo: Geometry, w: Array, dy: Array) -> jax.Array:
    """The gradient of sum(dy * conv(x, w)) with respect to x."""
    if not _ends_xla(geo):
        return jax.linear_transpose(lambda x: xla_output(geo, x, w), _like(dy, geo.x))(dy)[0]
    sides = tuple(n + lo + hi for n, (lo, hi) in zip(geo.sides, geo.pads, strict=True))
    x = (geo.x[0], *sides, geo.x[-1]) if geo.last else (*geo.x[:2], *sides)
    padded = xla_input_gradient(replace(geo, x=x, pads=((0, 0),) * len(sides)), w, dy)
    widths = [(0, 0, 0)] * len(x)
    widths[geo.first : geo.first + len(sides)] = [(-lo, -hi, 0) for lo, hi in geo.pads]
    return lax.pad(padded, np.zeros((), dy.dtype), widths)


def _ends_xla(geo: Geometry) -> bool:
    """Whether the gradient of the input might crash the process: XLA:CPU (in jax 0.10 and 0.12)
    fails a check when it exchanges a small image with a filter of two cells, stride 2 and padding
    1. It does not if the padding is part of the image.
    """
    reach = [d * (k - 1) for d, k in zip(geo.dilations, geo.w[2:], strict=True)]
    return any(
        s > 1 and lo == r > 0 for s, (lo, _), r in zip(geo.strides, geo.pads, reach, strict=True)
    )


def xla_filter_gradient(geo: Geometry, x: Array, dy: Array) -> jax.Array:
    """The gradient of sum(dy * conv(x, w)) with respect to w."""
    return jax.linear_transpose(lambda w: xla_output(geo, x, w), _like(dy, geo.w))(dy)[0]


def _like(dy: Array, shape: tuple[int, ...]) -> Any:
    """The type of an argument of that shape, varying over the mesh axes of its output's gradient."""
    return jax.eval_shape(lambda: loops.varying(jnp.zeros(shape, dy.dtype), loops.axes_of(dy)))


# Native: channels last and the filter's outputs last, the only form with a fast kernel in XLA:CPU.
# XLA transposes the convolutions of a program itself, but none within a loop or a branch, where its
# slow loops take twenty times as long. For groups it transposes the output alone.


def native_output(geo: Geometry, x: Array, w: Array) -> jax.Array:
    """The native form of xla_output."""
    return _native(
        geo.names(),
        x,
        w,
        geo.strides,
        geo.pads,
        rhs_dilation=geo.dilations,
        feature_group_count=geo.groups,
    )


def native_input_gradient(geo: Geometry, w: Array, dy: Array) -> jax.Array:
    """The native form of xla_input_gradient: dy, dilated by the strides, convolved with the flipped
    filter.
    """
    layout, kernel, _ = geo.names()
    reach = [d * (k - 1) for d, k in zip(geo.dilations, geo.w[2:], strict=True)]
    ends = zip(geo.sides, reach, geo.pads, geo.outs, geo.strides, strict=True)
    pads = [(r - lo, n - 1 + lo - (o - 1) * s) for n, r, (lo, _), o, s in ends]
    flipped = lax.rev(w, range(2, w.ndim))
    if geo.groups > 1:  # [O / groups, channels, ...]
        flipped = jnp.moveaxis(flipped.reshape(geo.groups, -1, *w.shape[1:]), 0, 1).reshape(
            -1, geo.channels, *w.shape[2:]
        )
    names = layout, "IO" + kernel.removeprefix("OI"), layout
    more = {
        "lhs_dilation": geo.strides,
        "rhs_dilation": geo.dilations,
        "feature_group_count": geo.groups,
    }
    return _native(names, dy, flipped, None, pads, **more)


def native_filter_gradient(geo: Geometry, x: Array, dy: Array) -> jax.Array:
    """The native form of xla_filter_gradient: x convolved with dy, which has strides - 1 zeros
    between its cells; samples and channels exchange places.

    Each group has its own samples, and a group's channels take the place of samples.
    """
    layout, kernel, _ = geo.names()
    cells = zip(geo.sides, geo.w[2:], geo.dilations, geo.pads, geo.outs, geo.strides, strict=True)
    pads = [(lo, d * (k - 1) + (o - 1) * s + 1 - n - lo) for n, k, d, (lo, _), o, s in cells]
    names = (
        layout.translate(_swapped("NC")),
        layout.translate(str.maketrans("NC", "IO")),
        kernel.translate(str.maketrans("IO", "NC")),
    )
    if geo.groups > 1:
        x = _groups_with_samples(geo, x)
    return _native(
        names, x, dy, geo.dilations, pads, rhs_dilation=geo.strides, feature_group_count=geo.groups
    )


def _groups_with_samples(geo: Geometry, x: Array) -> Array:
    """x with [groups, N] in place of N, and with the channels of one group."""
    at = x.ndim - 1 if geo.last else 1
    apart = x.reshape(*x.shape[:at], geo.groups, -1, *x.shape[at + 1 :])
    return jnp.moveaxis(apart, at, 0).reshape(-1, *x.shape[1:at], geo.w[1], *x.shape[at + 1 :])


def _swapped(pair: str) -> dict[int, int]:
    return str.maketrans(pair, pair[::-1])


def _native(
    names: tuple[str, str, str],
    lhs: Array,
    rhs: Array,
    strides: Sequence[int] | None,
    pads: Sequence[tuple[int, int]],
    **dilations: Any,
) -> jax.Array:
    """A convolution of arrays with these axis names, computed with N..C and ..IO and transposed
    back.
    """
    letters = "".join(letter for letter in names[0] if letter not in "NC")
    own = f"N{letters}C", f"{letters}IO", f"N{letters}C"
    lhs, rhs = (
        jnp.transpose(a, [n.index(c) for c in o])
        for a, n, o in zip((lhs, rhs), names[:2], own[:2], strict=True)
    )
    strides = (1,) * len(letters) if strides is None else strides
    if not all(map(are_numbers, pads)):  # JAX's convolution takes numbers alone
        between = dilations.pop("lhs_dilation", (1,) * len(letters))
        widths = [
            (0, 0, 0),
            *((lo, hi, d - 1) for (lo, hi), d in zip(pads, between, strict=True)),
            (0, 0, 0),
        ]
        lhs, pads = lax.pad(lhs, np.zeros((), lhs.dtype), widths), [(0, 0)] * len(letters)
    found = lax.conv_general_dilated(lhs, rhs, strides, pads, dimension_numbers=own, **dilations)
    return jnp.transpose(found, [own[2].index(c) for c in names[2]])


XLA = (xla_output, xla_input_gradient, xla_filter_gradient)
NATIVE = (native_output, native_input_gradient, native_filter_gradient)
