"""The three products of a convolution, each in the way that XLA:CPU computes fastest for its
shapes.

`way` chooses by shapes alone: a run computes the same whenever it is repeated. Other platforms take
XLA's convolution, which is cuDNN's on a GPU; which platform it is, is known when the step is
lowered.

What it brings, in CPU seconds a step against XLA's own convolution everywhere (2026-11-28, jax
0.10.2, as recorded models of the zoo train): ResNet-50 0.09 for 0.40; convolutions with groups, of
which XLA computes the filter's gradient in plain loops, 1 ms for 700 (2x256x16x16, 32 groups).
`python -m benchmarks convolutions` prints a table. At equal speed the way is XLA's, because columns
take memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from ..ops.convolution import NATIVE, plain
from ..ops.convolution_geometry import Geometry, few_pixels
from ..ops.registry import Array
from . import convolution_ways as ways

MOST_TAPS = 49  # a depthwise filter up to 7x7 is unrolled
# elements; up to 4 MB columns gain a tenth of the time, and are no memory to speak of
SMALL_COLUMNS = 2**20

WAYS = {
    "columns": (ways.columns_output, ways.columns_input_gradient, ways.columns_filter_gradient),
    "samples": (ways.samples_output, ways.samples_input_gradient, ways.samples_filter_gradient),
    "last": (ways.last_output, ways.last_input_gradient, ways.last_filter_gradient),
    "native": NATIVE,
    "taps": (ways.taps_output, ways.taps_input_gradient, ways.columns_filter_gradient),
}


def way(geo: Geometry) -> str:
    """The way of these shapes on a CPU, a name of WAYS or xla (which is native within a loop or a
    branch).
    """
    if not geo.known:
        return "native"
    if geo.groups == 1:
        if geo.window > 1 or any(map(any, geo.pads)):
            return "columns" if _columns_pay(geo) else "xla"
        if geo.last:
            return "last"
        if few_pixels(geo) or _great_filter(geo):
            return "columns"
        # with strides the input's gradient has to be spread out, which takes longer than it saves
        return "samples" if all(s == 1 for s in geo.strides) else "xla"
    if geo.groups == geo.channels and geo.window <= MOST_TAPS:
        return "taps"
    return "columns"


def _columns_pay(geo: Geometry) -> bool:
    """Whether XLA's own transposition of the filter costs more than columns do.

    With more pixels large columns take as long as XLA, and stand in memory from the output to the
    filter's gradient, which shares them.
    """
    cells = geo.window * geo.w[1]
    return 8 * geo.pixels <= cells or (few_pixels(geo) and cells * geo.pixels <= SMALL_COLUMNS)


def _great_filter(geo: Geometry) -> bool:
    """Whether a copy of the filter for each sample would cost more than that sample's transpose."""
    outs, channels = geo.w[:2]
    return outs * channels > math.prod(geo.outs) * (outs + channels)


def convolve(product: int, geo: Geometry, a: Array, b: Array, nested: bool) -> jax.Array:
    """A product of ops.convolution, as `Target.convolve` gives it."""
    usual, chosen = partial(plain, product, geo), way(geo)
    if chosen != "xla":
        quick = partial(_precise, partial(WAYS[chosen][product], geo))
    elif nested:
        quick = partial(NATIVE[product], geo)
    else:
        return usual(a, b)
    found: jax.Array = lax.platform_dependent(a, b, cpu=quick, default=usual)
    return found


def _precise(function: Callable[..., jax.Array], *args: Array) -> jax.Array:
    """With sums in float32 where the arguments are 16-bit floats."""
    dtype = args[0].dtype
    if dtype.itemsize > 2:
        return function(*args)
    return function(*(a.astype(jnp.float32) for a in args)).astype(dtype)
