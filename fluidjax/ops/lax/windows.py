"""Reductions over windows (pools), and the parts of their gradients."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..registry import Array, Ints, Sizes
from .declare import lax_op, pairs


def _least(kind: Any) -> Any:
    return (
        -np.inf
        if jnp.issubdtype(kind, jnp.inexact)
        else (False if jnp.issubdtype(kind, jnp.bool_) else jnp.iinfo(kind).min)
    )


def _greatest(kind: Any) -> Any:
    return (
        np.inf
        if jnp.issubdtype(kind, jnp.inexact)
        else (True if jnp.issubdtype(kind, jnp.bool_) else jnp.iinfo(kind).max)
    )


_KINDS: dict[str, tuple[Any, Any]] = {
    "max": (lax.max, _least),
    "min": (lax.min, _greatest),
    "sum": (lax.add, lambda kind: 0),
}


def _reduced(
    kind: str, X: Any, dims: Any, strides: Any, padding: Any, base: Any = (), window: Any = ()
) -> Any:
    function, start = _KINDS[kind]
    first = np.asarray(start(X.dtype), X.dtype)
    return lax.reduce_window(
        X,
        first,
        function,
        tuple(dims),
        tuple(strides),
        pairs(padding),
        tuple(base) or None,
        tuple(window) or None,
    )


def _declare(kind: str) -> None:
    def run(
        X: Array,
        *,
        window_dimensions: Sizes,
        window_strides: Ints,
        padding: Sizes,
        base_dilation: Ints = (),
        window_dilation: Ints = (),
    ):
        return _reduced(
            kind, X, window_dimensions, window_strides, padding, base_dilation, window_dilation
        )

    run.__doc__ = f"""Out = the {kind} over windows of X. padding: before and behind, of each axis in turn; dilations that are not
    given are 1."""
    lax_op(f"reduce_window_{kind}", grad="X")(run)


for _kind in _KINDS:
    _declare(_kind)


MOST_CELLS = 49  # of a window whose cells are compared one by one


def _apart(x: Array, dims: Any, strides: Any, padding: Any) -> bool:
    """Whether every element is in one window at most, of known sizes."""
    known = all(isinstance(n, int) for n in (*x.shape, *dims, *padding))
    return (
        known
        and not any(padding)
        and all(d <= s for d, s in zip(dims, strides, strict=True))
        and math.prod(dims) <= MOST_CELLS
    )


def _to_the_greatest(source: Array, x: Array, select: str, dims: Any, strides: Any) -> Any:
    """Each element of `source` at the chosen element of its window, where windows do not overlap.

    XLA makes an index for each element and axis, so that its way takes at least so many times the
    memory of x. Here the cells of a window are compared in its order: a cell that is no greater (no
    less), and no nan, does not displace an earlier one.
    """
    keeps = lax.ge if select == "ge" else lax.le
    place, most = None, None
    for tap in np.ndindex(*dims):
        ends = [t + (n - 1) * s + 1 for t, n, s in zip(tap, source.shape, strides, strict=True)]
        cell, number = (
            lax.slice(x, tap, ends, strides),
            np.int32(np.ravel_multi_index(tap, strides)),
        )
        if most is None:
            place, most = lax.full(source.shape, number), cell
            continue
        stays = keeps(most, cell)
        place, most = (
            lax.select(stays, place, lax.full_like(place, number)),
            lax.select(stays, most, cell),
        )
    wanted = np.zeros((), np.int32)
    for axis, (n, s) in enumerate(zip(x.shape, strides, strict=True)):
        cells = (np.arange(n) % s).astype(np.int32)
        wanted = jnp.asarray(wanted * np.int32(s)) + cells.reshape(
            [-1 if a == axis else 1 for a in range(x.ndim)]
        )
    found, given = (_spread(v, x.shape, strides) for v in (place, source))
    return jnp.where(found == wanted, given, jnp.zeros((), source.dtype))


def _spread(values: Any, shape: Any, strides: Any) -> Any:
    """For each element what its window has; beyond the last window zero, and of no cell."""
    for axis, (n, s) in enumerate(zip(shape, strides, strict=True)):
        have = values.shape
        if s > 1:
            wide = jnp.broadcast_to(
                jnp.expand_dims(values, axis + 1), (*have[: axis + 1], s, *have[axis + 1 :])
            )
            values = wide.reshape(*have[:axis], have[axis] * s, *have[axis + 1 :])
        values = lax.slice_in_dim(values, 0, min(n, values.shape[axis]), axis=axis)
        if (left := n - values.shape[axis]) > 0:
            widths = [(0, left if a == axis else 0, 0) for a in range(len(have))]
            values = lax.pad(values, jnp.zeros((), values.dtype), widths)
    return values


@lax_op("select_and_scatter_add", grad="Source", nograd="")
def select_and_scatter_add(
    Source: Array,
    X: Array,
    *,
    select: str = "ge",
    window_dimensions: Sizes,
    window_strides: Ints,
    padding: Sizes,
):
    """Out = each element of Source added at the greatest (select "ge") or least ("le") element of
    its window of X.
    """
    if _apart(X, window_dimensions, window_strides, padding):
        return _to_the_greatest(Source, X, select, window_dimensions, window_strides)
    kind = "max" if select == "ge" else "min"
    _, pull = jax.vjp(lambda x: _reduced(kind, x, window_dimensions, window_strides, padding), X)
    return pull(Source)[0]


@lax_op("select_and_gather_add", grad="Tangents", nograd="")
def select_and_gather_add(
    Tangents: Array,
    X: Array,
    *,
    select: str = "ge",
    window_dimensions: Sizes,
    window_strides: Ints,
    padding: Sizes,
    base_dilation: Ints = (),
    window_dilation: Ints = (),
):
    """Out = the element of Tangents, in each window, at the greatest (select "ge") or least ("le")
    element of X.
    """
    kind = "max" if select == "ge" else "min"

    def pooled(x: Any) -> Any:
        return _reduced(
            kind, x, window_dimensions, window_strides, padding, base_dilation, window_dilation
        )

    return jax.jvp(pooled, (X,), (Tangents,))[1]
