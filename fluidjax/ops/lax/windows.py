"""Reductions over windows (pools), and the parts of their gradients."""

from __future__ import annotations

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
