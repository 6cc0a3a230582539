"""The three products of a convolution, each in the way that is fastest for its shapes.

    output(x, w),  input_gradient(w, dy),  filter_gradient(x, dy)

Each is linear in both arguments, and the derivatives of any are the others, so that gradients of
every order are made of these. On the CPU `way` chooses, by shapes alone: a run computes the same
whenever it is repeated. Other platforms take XLA's convolution, which is cuDNN's on a GPU; which
platform it is, is known when the step is lowered.

Milliseconds, one core of an AMD EPYC (jax 0.10.2, minima of interleaved turns), channels first; in
brackets XLA's own, whose filter's gradient of groups is a plain loop. Where the way is XLA's, the
first number is that of the columns. `python -m benchmarks convolutions` prints such a table.

    input, filter, groups                      output         input's gradient   filter's gradient
    way 2x256x16x16, 256x8x3x3, 32                 0.63 (2.18)    0.56 (2.31)        1.15 (737)
    columns 1x512x14x14, 512x16x3x3, 32                0.58 (1.43)    0.55 (1.48)        1.09 (491)
    columns 8x256x28x28, 256x8x3x3, 32                 18 (68)        8.4 (59)           47 (8,833)
    columns, by samples 8x32x112x112, 32x1x3x3, 32                 12 (128)       3.6 (107)
    22 (-)              taps; columns, by samples 8x64x112x112, 64x1x3x3, 64, stride 2       4.7
    (74)       4.4 (798)          25 (-)              taps; columns, by samples 2x512x2x2,
    512x512x3x3                     0.65 (40)      1.2 (36)           0.61 (3.1)          columns
    2x256x4x4, 512x256x3x3, stride 2           0.29 (1.5)     0.42 (9.5)         0.35 (1.7)
    columns 2x128x8x8, 128x128x3x3                     0.52 (0.59)    0.51 (0.61)        0.56 (0.56)
    columns 2x224x17x17, 256x224x7x1                   6.0 (6.4)      5.5 (6.2)          5.8 (11)
    columns 8x256x8x8, 256x256x3x3                     6.8 (6.9)      7.3 (6.8)          7.1 (7.1)
    XLA's 64x512x4x4, 512x512x3x3                    57 (55)        50 (56)            58 (58)
    XLA's 2x64x16x16, 64x64x3x3                      0.63 (0.57)    0.50 (0.55)        0.64 (0.50)
    XLA's 32x64x32x32, 64x64x3x3                     49 (42)        38 (33)            51 (32)
    XLA's 8x256x56x56, 64x256x1x1                    14 (29)        8.8 (27)           17 (36)
    samples 8x64x56x56, 256x64x1x1                     12 (27)        9.0 (26)           10 (95)
    samples 2x512x4x4, 1024x512x1x1                    0.43 (2.2)     0.39 (0.45)        0.40 (1.6)
    columns 2x2048x2x2, 1024x2048x1x1                  0.38 (9.6)     1.4 (1.7)          2.0 (6.1)
    columns 64x1x28x28, 6x1x5x5                        0.38 (1.2)     -                  0.54 (0.49)
    thin: columns, XLA's filter's gradient 64x3x32x32, 6x3x5x5                        1.5 (2.4)
    1.7 (5.7)          1.8 (2.4)           thin

Two ways lost everywhere: a product for each filter cell, and columns with the channels last (up to
five times as slow where there are groups). One filter for all groups with zeros between them would
make nan of infinities. At equal speed the way is XLA's, because columns take memory
(`_columns_pay`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from . import convolution_ways as ways
from .concrete import are_numbers
from .convolution_geometry import Geometry, few_pixels
from .enclosed import filters_are_turned, is_enclosed
from .registry import Array

MOST_TAPS = 49  # a depthwise filter up to 7x7 is unrolled
# elements; up to 4 MB columns gain a tenth of the time, and are no memory to speak of
SMALL_COLUMNS = 2**20


def way(geo: Geometry) -> str:
    """The way of these shapes on a CPU, a name of _WAYS or xla (which is native within a loop or a
    branch).
    """
    if not geo.known:
        return "native"
    if geo.groups == 1:
        if geo.window > 1 or any(map(any, geo.pads)):
            if not _columns_pay(geo):
                return "thin" if _is_thin(geo) else "xla"
            return "columns"
        if geo.last:
            return "last"
        return "columns" if few_pixels(geo) or _great_filter(geo) else "samples"
    if geo.groups == geo.channels and geo.window <= MOST_TAPS:
        return "taps"
    return "columns"


def _output_way(geo: Geometry) -> str:
    """The output's: where the filter lies as XLA's own kernel reads it, that is the fastest but for
    few pixels, one product of rows.
    """
    if not (
        geo.known
        and geo.last
        and geo.groups == 1
        and len(geo.strides) == 2
        and filters_are_turned()
    ):
        return way(geo)
    if geo.window > 1 or any(map(any, geo.pads)):
        return "rows" if _columns_pay(geo) else "native"
    return "last"


def _columns_pay(geo: Geometry) -> bool:
    """Whether XLA's own turning of the filter costs more than columns do.

    With more pixels large columns take as long as XLA, and stand in memory from the output to the
    filter's gradient, which shares them.
    """
    cells = geo.window * geo.w[1]
    return 8 * geo.pixels <= cells or (few_pixels(geo) and cells * geo.pixels <= SMALL_COLUMNS)


def _is_thin(geo: Geometry) -> bool:
    """Whether XLA's kernel, which goes by vectors of outputs, has too few to fill them. Columns
    that are made for one sample at a time

    find what they are made of in memory: made for all, they would compute it anew for each cell of
    the filter.
    """
    return geo.w[0] <= 16 and geo.channels <= 8 and ways.are_made_by_samples(geo)


def _great_filter(geo: Geometry) -> bool:
    """Whether a copy of the filter for each sample would cost more than that sample's transpose."""
    outs, channels = geo.w[:2]
    return outs * channels > math.prod(geo.outs) * (outs + channels)


_NATIVE = (ways.native_output, ways.native_input_gradient, ways.native_filter_gradient)
_WAYS = {
    "columns": (ways.columns_output, ways.columns_input_gradient, ways.columns_filter_gradient),
    "samples": (ways.samples_output, ways.samples_input_gradient, ways.samples_filter_gradient),
    "last": (ways.last_output, ways.last_input_gradient, ways.last_filter_gradient),
    "thin": (ways.columns_output, ways.columns_input_gradient, ways.native_filter_gradient),
    "rows": (ways.rows_output, ways.columns_input_gradient, ways.columns_filter_gradient),
    "native": _NATIVE,
    "taps": (ways.taps_output, ways.taps_input_gradient, ways.columns_filter_gradient),
}
_XLA = (ways.xla_output, ways.xla_input_gradient, ways.xla_filter_gradient)


def output(geo: Geometry, x: Array, w: Array) -> jax.Array:
    """conv(x, w), of the shape geo.y."""
    return _fastest(0, geo, x, w)


def input_gradient(geo: Geometry, w: Array, dy: Array) -> jax.Array:
    """The gradient of sum(dy * conv(x, w)) with respect to x, which is the transposed convolution
    of dy.
    """
    return _fastest(1, geo, w, dy)


def filter_gradient(geo: Geometry, x: Array, dy: Array) -> jax.Array:
    """The gradient of sum(dy * conv(x, w)) with respect to w."""
    return _fastest(2, geo, x, dy)


def _fastest(direction: int, geo: Geometry, *args: Array) -> jax.Array:
    plain = partial((_XLA if are_numbers(geo.sides) else _NATIVE)[direction], geo)
    chosen = way(geo) if direction else _output_way(geo)
    if chosen != "xla":
        quick = partial(_precise, partial(_WAYS[chosen][direction], geo))
    elif is_enclosed():
        quick = partial(_WAYS["native"][direction], geo)
    else:
        return plain(*args)
    return lax.platform_dependent(*args, cpu=quick, default=plain)


def _precise(function: Callable[..., jax.Array], *args: Array) -> jax.Array:
    """With sums in float32 where the arguments are 16-bit floats."""
    dtype = args[0].dtype
    if dtype.itemsize > 2:
        return function(*args)
    return function(*(a.astype(jnp.float32) for a in args)).astype(dtype)
