"""The three products of a convolution, each in the way that XLA:CPU computes fastest for its
shapes.

`way` chooses by shapes alone, so repeated runs give the same results. Other platforms use XLA's
convolution, which is cuDNN's on a GPU. The platform is known when the step is lowered.

The gain, in CPU seconds a step compared with XLA's own convolution everywhere (2026-11-28, jax
0.10.2, recorded models of the zoo in training): ResNet-50 takes 0.09 instead of 0.40. The filter's
gradient of a convolution with groups, which XLA computes in plain loops, takes 1 ms instead of 700
(2x256x16x16, 32 groups). `python -m benchmarks convolutions` prints a table. At equal speed XLA's
convolution is used, because columns take memory.
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
# Outputs of a grey image's convolution: so many sums of taps take less time than XLA's columns of
# single channels, which it gathers one by one.
FEW_OUTPUTS = 16
# elements; columns of up to 4 MB save a tenth of the time for little memory
SMALL_COLUMNS = 2**20

WAYS = {
    "columns": (ways.columns_output, ways.columns_input_gradient, ways.columns_filter_gradient),
    "samples": (ways.samples_output, ways.samples_input_gradient, ways.samples_filter_gradient),
    "last": (ways.last_output, ways.last_input_gradient, ways.last_filter_gradient),
    "native": NATIVE,
    "grey": (ways.taps_output, *NATIVE[1:]),
    "taps": (ways.taps_output, ways.taps_input_gradient, ways.columns_filter_gradient),
}


def way(geo: Geometry) -> str:
    """The way for these shapes on a CPU: a name of WAYS, or xla (native within a loop or a
    branch).
    """
    if not geo.known:
        return "native"
    if geo.channels == 1 and geo.w[0] <= FEW_OUTPUTS and geo.window <= MOST_TAPS:
        return "grey"
    if geo.groups == 1:
        if geo.window > 1 or any(map(any, geo.pads)):
            return "columns" if _columns_pay(geo) else "xla"
        if geo.last:
            return "last"
        if few_pixels(geo) or _filter_copies_cost_more(geo):
            return "columns"
        # with strides the input's gradient must be spread out, which costs more time than it saves
        return "samples" if all(s == 1 for s in geo.strides) else "xla"
    if geo.groups == geo.channels and geo.window <= MOST_TAPS:
        return "taps"
    return "columns"


def _columns_pay(geo: Geometry) -> bool:
    """Whether XLA's own transposition of the filter costs more than columns do.

    With more pixels, large columns take as long as XLA's convolution. They also stay in memory from
    the output to the filter's gradient, which reuses them.
    """
    cells = geo.window * geo.w[1]
    return 8 * geo.pixels <= cells or (few_pixels(geo) and cells * geo.pixels <= SMALL_COLUMNS)


def _filter_copies_cost_more(geo: Geometry) -> bool:
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
    """The way with sums in float32 for 16-bit floats."""
    dtype = args[0].dtype
    if dtype.itemsize > 2:
        return function(*args)
    return function(*(a.astype(jnp.float32) for a in args)).astype(dtype)
