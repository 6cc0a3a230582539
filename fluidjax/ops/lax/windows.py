"""Reductions over windows (pools), and the parts of their gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..concrete import are_numbers
from ..pool_gradient import MOST_TAPS, gathered_by_position, positions
from ..registry import Array, Ints, Sizes
from ..window import Windows
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


def _apart(dims: Any, strides: Any, padding: Any) -> bool:
    """Whether every element is in one window at most."""
    known = are_numbers((*dims, *padding)) and not any(padding)
    return known and all(d <= s for d, s in zip(dims, strides, strict=True))


def _to_the_greatest(source: Array, x: Array, select: str, win: Windows) -> Any:
    """Each element of `source` at the chosen element of its window, where windows do not overlap.

    XLA makes an index for each element and axis, so that its way takes at least so many times the
    memory of x. Here the cells of a window are compared in its order: a cell that is no greater (no
    less), and no nan, does not displace an earlier one.
    """
    keeps = lax.ge if select == "ge" else lax.le
    first, *rest = zip(positions(win), win.taps(x, 0.0), strict=True)
    place, most = jnp.full(source.shape, first[0]), first[1]
    for number, cell in rest:
        stays = keeps(most, cell)
        place, most = jnp.where(stays, place, number), jnp.where(stays, most, cell)
    return gathered_by_position(place, source, x, win)


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
    if _apart(window_dimensions, window_strides, padding):
        axes = tuple(a for a in range(X.ndim) if window_dimensions[a] > 1 or window_strides[a] > 1)
        cells, sizes, steps, outs = (
            tuple(of[a] for a in axes)
            for of in (X.shape, window_dimensions, window_strides, Source.shape)
        )
        win = Windows(axes, cells, sizes, steps, (0,) * len(axes), outs)
        if win.few(MOST_TAPS):
            return _to_the_greatest(Source, X, select, win)
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
