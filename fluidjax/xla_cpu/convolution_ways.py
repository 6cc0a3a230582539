"""Convolutions as matrix products and multiply-adds, which XLA:CPU computes faster than its own
convolution.

Each way has three products, all bilinear: the output, and the gradients of the input and of the
filter.

- columns (im2col): the input's cells under each filter cell side by side, then one matrix product
  (one for each group). A 1x1 filter has only one such cell. Large columns are made for one sample,
  or some groups, at a time, so that they fit into a cache.
- samples: a 1x1 convolution of many pixels, channels first, as a product for each sample: nothing
  is transposed.
- last: a 1x1 convolution, channels last, as one product over all pixels.
- taps: a depthwise convolution, or one of a grey image, as a sum of shifted inputs times a weight
  for each channel.

No way multiplies by zeros that a convolution does not have (the padding aside), so infinities and
nan spread as in a convolution. Sums are float32 for 16-bit floats, as in XLA's convolution.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..ops import loops
from ..ops.convolution_geometry import Geometry, few_pixels
from ..ops.registry import Array

LARGE = 3 << 18  # columns with more elements do not fit into a cache
SMALL = 1 << 16  # up to so many are gathered one by one: 2 ns each, half the compile time


# Columns. Within this way arrays are [channels, N, ...] in every layout.


def columns_output(geo: Geometry, x: Array, w: Array) -> jax.Array:
    """conv(x, w) as w [groups, O / groups, C / groups * window] times the columns."""
    if are_made_by_samples(geo):
        one = geo.sample()
        return lax.map(lambda sample: columns_output(one, sample[None], w)[0], x)
    parts = _parts(geo)
    if parts > 1:
        some = geo.block(parts)
        blocks = _channels_first(geo, x).reshape(parts, *some.x), w.reshape(parts, *some.w)
        y = lax.map(lambda block: columns_output(some, *block), blocks)
        return _channels_back(geo, y.reshape(1, geo.w[0], *geo.outs))
    y = _product(_grouped(geo, w), _columns(geo, x), 2, 1)
    return _from_channels(geo, y.reshape(geo.w[0], geo.x[0], *geo.outs))


def columns_filter_gradient(geo: Geometry, x: Array, dy: Array) -> jax.Array:
    """dy [groups, O / groups, pixels] times the columns' transpose."""
    if are_made_by_samples(geo):
        one = geo.sample()
        zeros = jnp.zeros(geo.w, x.dtype)
        return loops.scan(
            lambda w, s: (w + columns_filter_gradient(one, s[0][None], s[1][None]), None),
            zeros,
            (x, dy),
        )[0]
    parts = _parts(geo)
    if parts > 1:
        some = geo.block(parts)
        blocks = (
            _channels_first(geo, x).reshape(parts, *some.x),
            _channels_first(geo, dy).reshape(parts, *some.y),
        )
        return lax.map(lambda block: columns_filter_gradient(some, *block), blocks).reshape(geo.w)
    return _product(_by_groups(geo, dy), _columns(geo, x), 2, 2).reshape(geo.w)


def columns_input_gradient(geo: Geometry, w: Array, dy: Array) -> jax.Array:
    """The columns of the gradient, a product of w and dy, added up in the input's cells (col2im).

    The larger operand is never the one that is transposed.
    """
    if are_made_by_samples(geo):
        one = geo.sample()
        return lax.map(lambda sample: columns_input_gradient(one, w, sample[None])[0], dy)
    w, dy = _grouped(geo, w), _by_groups(geo, dy)
    shape = (geo.channels, geo.window, geo.x[0], *geo.outs)
    if few_pixels(geo):
        columns = jnp.moveaxis(_product(dy, w, 1, 1), 1, 2)
    else:
        columns = _product(w, dy, 1, 1)
    return _from_channels(geo, _scattered(geo, columns.reshape(shape)))


def are_made_by_samples(geo: Geometry) -> bool:
    """Whether the columns of all samples at once are too large, and those of one sample large
    enough for an efficient product.
    """
    return geo.x[0] > 1 and columns_are_large(geo) and not few_pixels(geo)


def columns_are_large(geo: Geometry) -> bool:
    """Whether the columns of all samples do not fit into a cache."""
    return _columns_size(geo) > LARGE


def _columns_size(geo: Geometry) -> int:
    return geo.channels * geo.window * geo.pixels


def _parts(geo: Geometry) -> int:
    """The number of parts of the groups whose columns fit into a cache: a divisor of the number of
    groups.
    """
    if geo.x[0] > 1 or geo.groups == 1 or few_pixels(geo):
        return 1
    least = -(-_columns_size(geo) // LARGE)
    return next(p for p in range(min(least, geo.groups), geo.groups + 1) if geo.groups % p == 0)


def _channels_first(geo: Geometry, x: Array) -> Array:
    return jnp.moveaxis(x, -1, 1) if geo.last else x


def _channels_back(geo: Geometry, x: Array) -> Array:
    return jnp.moveaxis(x, 1, -1) if geo.last else x


def _to_channels(geo: Geometry, x: Array) -> Array:
    """An array in the geometry's layout as [channels, N, ...]."""
    return jnp.moveaxis(x, -1, 0) if geo.last else jnp.swapaxes(x, 0, 1)


def _from_channels(geo: Geometry, x: Array) -> jax.Array:
    return jnp.moveaxis(x, 0, -1) if geo.last else jnp.swapaxes(x, 0, 1)


def _grouped(geo: Geometry, w: Array) -> Array:
    """[groups, O / groups, C / groups * window]."""
    return w.reshape(geo.groups, geo.w[0] // geo.groups, geo.w[1] * geo.window)


def _by_groups(geo: Geometry, dy: Array) -> Array:
    """[groups, O / groups, pixels]."""
    return _to_channels(geo, dy).reshape(geo.groups, geo.w[0] // geo.groups, geo.pixels)


def _product(a: Array, b: Array, over_a: int, over_b: int) -> jax.Array:
    """A product over these axes for each group; for one group an ordinary product."""
    if a.shape[0] == 1:
        return lax.dot_general(a[0], b[0], (((over_a - 1,), (over_b - 1,)), ((), ())))[None]
    return lax.dot_general(a, b, (((over_a,), (over_b,)), ((0,), (0,))))


def _columns(geo: Geometry, x: Array) -> Array:
    """[groups, C / groups * window, pixels], window in the filter's order: one axis after the
    other, last first.
    """
    x = _to_channels(geo, x)
    if any(map(any, geo.pads)):
        x = lax.pad(
            x, jnp.zeros((), x.dtype), [(0, 0, 0)] * 2 + [(lo, hi, 0) for lo, hi in geo.pads]
        )
    if geo.window > 1 and _columns_size(geo) <= SMALL:
        x = _gathered(geo, x)
    else:
        for i in reversed(range(len(geo.strides))):
            x = _side_by_side(geo, x, i)
    return lax.reshape(x, (geo.groups, geo.channels // geo.groups * geo.window, geo.pixels))


def _side_by_side(geo: Geometry, x: Array, i: int) -> Array:
    """x [C, ..., sides] with a new second axis: the cells under each filter cell of spatial axis
    i.
    """
    axis, stride, cells = x.ndim - len(geo.strides) + i, geo.strides[i], []
    for tap in range(geo.w[2 + i]):
        at = tap * geo.dilations[i]
        cell = lax.slice_in_dim(x, at, at + (geo.outs[i] - 1) * stride + 1, stride, axis)
        cells.append(lax.reshape(cell, (cell.shape[0], 1, *cell.shape[1:])))
    return lax.concatenate(cells, 1)


def _gathered(geo: Geometry, x: Array) -> Array:
    """The columns [C, window, N, pixels of a sample] of the padded x [C, N, sides...]."""
    rank, places = len(geo.strides), np.zeros((), np.int32)
    for i, (k, d, o, s) in enumerate(
        zip(geo.w[2:], geo.dilations, geo.outs, geo.strides, strict=True)
    ):
        shape = [1] * (2 * rank)
        shape[i], shape[rank + i] = k, o
        places = places * x.shape[2 + i] + np.add.outer(np.arange(k) * d, np.arange(o) * s).reshape(
            shape
        ).astype(np.int32)
    return lax.gather(
        lax.reshape(x, (*x.shape[:2], math.prod(x.shape[2:]))), places.reshape(geo.window, math.prod(geo.outs), 1),
        lax.GatherDimensionNumbers(offset_dims=(0, 2), collapsed_slice_dims=(2,), start_index_map=(2,)),
        (*x.shape[:2], 1), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )  # fmt: skip


def _scattered(geo: Geometry, columns: Array) -> jax.Array:
    """The sums [C, N, sides...] over each input cell of the columns [C, window, N, outs...]."""
    parts = (
        (tap, lax.index_in_dim(columns, i, 1, False))
        for i, tap in enumerate(np.ndindex(*geo.w[2:]))
    )
    return spread(geo, parts, 2)


def spread(geo: Geometry, parts: Iterator[tuple[tuple[int, ...], Array]], first: int) -> jax.Array:
    """The sum of all parts, each [..., outs, ...] for one filter cell, added to the input cells
    under that filter cell.

    Input cells that are equal modulo the strides meet the same filter cells, so there is one sum
    for each residue, and the sums are interleaved.
    """
    strides, rank = geo.strides, len(geo.strides)
    reach = [
        (o - 1) * s + d * (k - 1) + 1
        for o, s, d, k in zip(geo.outs, strides, geo.dilations, geo.w[2:], strict=True)
    ]
    needed = [max(r, lo + n) for r, (lo, _), n in zip(reach, geo.pads, geo.sides, strict=True)]
    blocks = [-(-n // s) for n, s in zip(needed, strides, strict=True)]
    sums: dict[tuple[int, ...], jax.Array] = {}
    for tap, part in parts:
        at = [t * d for t, d in zip(tap, geo.dilations, strict=True)]
        widths = [(0, 0, 0)] * part.ndim
        for i in range(rank):
            # without interleaving the padding's cells can be left out at once
            skip, size = (geo.pads[i][0], geo.sides[i]) if strides[i] == 1 else (0, blocks[i])
            before = at[i] // strides[i] - skip
            widths[first + i] = (before, size - before - geo.outs[i], 0)
        part = lax.pad(part, jnp.zeros((), part.dtype), widths)
        residue = tuple(a % s for a, s in zip(at, strides, strict=True))
        sums[residue] = sums[residue] + part if residue in sums else part
    some = next(iter(sums.values()))
    every = [sums.get(r) for r in np.ndindex(*strides)]
    return _interleaved(geo, [jnp.zeros_like(some) if e is None else e for e in every], first)


def _interleaved(geo: Geometry, parts: list[jax.Array], first: int) -> jax.Array:
    """The parts interleaved: cell m of the part of residue r becomes cell m * stride + r of every
    axis. The padding's cells are left out.
    """
    shape = list(parts[0].shape)
    for i in reversed(range(len(geo.strides))):
        axis, s = first + i, geo.strides[i]
        if s > 1:
            shape[axis] *= s
            parts = [
                jnp.stack(parts[n : n + s], axis + 1).reshape(shape)
                for n in range(0, len(parts), s)
            ]
    for i, (s, (lo, _), n) in enumerate(zip(geo.strides, geo.pads, geo.sides, strict=True)):
        if s > 1:
            parts = [lax.slice_in_dim(parts[0], lo, lo + n, axis=first + i)]
    return parts[0]


# One product for each sample, or over all pixels


def _strided_cells(geo: Geometry, x: Array) -> Array:
    """The cells of x that a 1x1 filter without padding reads."""
    if all(s == 1 for s in geo.strides):
        return x
    steps = [1] * x.ndim
    steps[geo.first : geo.first + len(geo.strides)] = geo.strides
    return lax.slice(x, [0] * x.ndim, x.shape, steps)


def _for_each_sample(geo: Geometry, w: Array) -> jax.Array:
    """[N, ...]: the filter for each sample."""
    return jnp.broadcast_to(w, (geo.x[0], *w.shape))


def _planes(geo: Geometry, x: Array) -> Array:
    """[N, channels, pixels of a sample]."""
    return x.reshape(*x.shape[:2], math.prod(geo.outs))


def samples_output(geo: Geometry, x: Array, w: Array) -> jax.Array:
    """w [O, C] times each sample [C, pixels]."""
    return _product(
        _for_each_sample(geo, w.reshape(geo.w[:2])), _planes(geo, _strided_cells(geo, x)), 2, 1
    ).reshape(geo.y)


def samples_input_gradient(geo: Geometry, w: Array, dy: Array) -> jax.Array:
    """w's transpose times each sample of dy."""
    columns = _product(_for_each_sample(geo, w.reshape(geo.w[:2]).T), _planes(geo, dy), 2, 1)
    return spread(
        geo, iter([((0,) * len(geo.outs), columns.reshape(geo.x[0], geo.channels, *geo.outs))]), 2
    )


def samples_filter_gradient(geo: Geometry, x: Array, dy: Array) -> jax.Array:
    """The sum over samples of dy times x's transpose."""
    return (
        _product(_planes(geo, dy), _planes(geo, _strided_cells(geo, x)), 2, 2).sum(0).reshape(geo.w)
    )


def last_output(geo: Geometry, x: Array, w: Array) -> jax.Array:
    """[..., C] times w's transpose."""
    return lax.dot_general(
        _strided_cells(geo, x), w.reshape(geo.w[:2]), (((x.ndim - 1,), (1,)), ((), ()))
    )


def last_input_gradient(geo: Geometry, w: Array, dy: Array) -> jax.Array:
    """dy [..., O] times w."""
    columns = lax.dot_general(dy, w.reshape(geo.w[:2]), (((dy.ndim - 1,), (0,)), ((), ())))
    return spread(geo, iter([((0,) * len(geo.outs), columns)]), 1)


def last_filter_gradient(geo: Geometry, x: Array, dy: Array) -> jax.Array:
    """dy's transpose times x."""
    rows = (
        dy.reshape(geo.pixels, geo.w[0]),
        _strided_cells(geo, x).reshape(geo.pixels, geo.channels),
    )
    return lax.dot_general(*rows, (((0,), (0,)), ((), ()))).reshape(geo.w)


# Taps


def _repeated(geo: Geometry, x: Array) -> Array:
    """Each channel repeated once for each of its outputs: output c * m + j reads channel c."""
    times = geo.w[0] // geo.channels
    return x if times == 1 else jnp.repeat(x, times, axis=-1 if geo.last else 1)


def _cells(geo: Geometry, x: Array) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Each filter cell with the input's cells under it, one channel for each output."""
    return _windows(geo, _repeated(geo, x))


def _windows(geo: Geometry, x: Array) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Each filter cell with the input's cells under it."""
    widths = [(0, 0, 0)] * x.ndim
    widths[geo.first : geo.first + len(geo.pads)] = [(lo, hi, 0) for lo, hi in geo.pads]
    if any(map(any, geo.pads)):
        x = lax.pad(x, jnp.zeros((), x.dtype), widths)
    steps = [1] * x.ndim
    steps[geo.first : geo.first + len(geo.strides)] = geo.strides
    for tap in np.ndindex(*geo.w[2:]):
        begin, end = [0] * x.ndim, list(x.shape)
        for i, (t, d, s, o) in enumerate(
            zip(tap, geo.dilations, geo.strides, geo.outs, strict=True)
        ):
            begin[geo.first + i], end[geo.first + i] = t * d, t * d + (o - 1) * s + 1
        yield tap, lax.slice(x, begin, end, steps)


def _weights(geo: Geometry, w: Array) -> dict[tuple[int, ...], Array]:
    """The filter's weights at each cell, one for each output channel.

    With channels last, the weights of a cell are gathered to be contiguous. Otherwise XLA
    transposes within the loops over pixels, and reads a vector of weights number by number.
    """
    taps, outs = list(np.ndindex(*geo.w[2:])), geo.w[0]
    if not geo.last:
        return {t: w[(slice(None), 0, *t)].reshape((-1,) + (1,) * len(geo.outs)) for t in taps}
    places = np.add.outer(np.arange(geo.window), geo.window * np.arange(outs))
    cells = jnp.asarray(w).reshape(-1).at[places.astype(np.int32)].get(mode="promise_in_bounds")
    return {t: cells[i] for i, t in enumerate(taps)}


def taps_output(geo: Geometry, x: Array, w: Array) -> jax.Array:
    """The sum over filter cells of the shifted input times a weight for each channel.

    With channels first, it is computed sample by sample, or some channels at a time. The 1x1
    convolution behind it takes pixels as one axis. Without the loop XLA fuses the sum into that
    axis and divides at every element to find its row, which takes three times as long as sum and
    product.
    """
    parts = (
        1
        if geo.last or geo.pixels * geo.w[0] * geo.window <= SMALL
        else _smallest_division(geo.groups)
    )
    if parts == 1:
        return _sum_of_taps(geo, x, w)
    if geo.x[0] > 1:
        one = geo.sample()
        return lax.map(lambda sample: _sum_of_taps(one, sample[None], w)[0], x)
    some = geo.block(parts)
    blocks = x.reshape(parts, *some.x), w.reshape(parts, *some.w)
    return lax.map(lambda block: _sum_of_taps(some, *block), blocks).reshape(geo.y)


def _smallest_division(count: int) -> int:
    """The smallest number of equal parts from 2 to 16; 1 if there is none."""
    return next((n for n in range(2, 17) if count % n == 0), 1)


def _sum_of_taps(geo: Geometry, x: Array, w: Array) -> jax.Array:
    weights = _weights(geo, w)
    return reduce(operator.add, (cells * weights[tap] for tap, cells in _cells(geo, x)))


def taps_input_gradient(geo: Geometry, w: Array, dy: Array) -> jax.Array:
    """At stride 1, dy convolved with the flipped filter; else dy times each weight, summed in the
    input's cells.
    """
    if geo.w[0] == geo.channels and all(s == 1 for s in geo.strides):
        return taps_output(geo.of_input_gradient(), dy, lax.rev(w, range(2, w.ndim)))
    grad = spread(geo, ((tap, dy * cell) for tap, cell in _weights(geo, w).items()), geo.first)
    times = geo.w[0] // geo.channels
    if geo.last:
        return grad.reshape(*geo.x[:-1], geo.channels, times).sum(-1)
    return grad.reshape(*geo.x[:2], times, *geo.sides).sum(2)
