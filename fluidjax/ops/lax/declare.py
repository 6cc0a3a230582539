"""``@lax_op``: an op type named after a JAX function; and the text forms of its attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax

from ...base.dtypes import numpy_dtype
from ..registry import op
from ..traits import mixes

Fn = Callable[..., Any]


def lax_op(
    kind: str, *, outs: str = "Out", grad: str | None = None, nograd: str = "", heavy: bool = False
) -> Callable[[Fn], Fn]:
    """Declare ``jax.<kind>``. grad: the input slots; the gradient op ``jax.<kind>_vjp`` is jax.vjp
        at exactly those.

    None: it has no gradient.

    It gets the rows of a LoD as plain arrays of exact sizes, because a JAX op does not know
    padding.
    """
    return op(
        f"jax.{kind}",
        outs=outs,
        grad=grad,
        nograd=nograd,
        grad_type=f"jax.{kind}_vjp",
        rows=mixes(),
        heavy=heavy,
    )


def scalar(value: bool | int | float, like: Any) -> np.ndarray:
    """A literal operand, in the dtype of the other operand."""
    return np.asarray(value, like.dtype)


def dtype(name: str) -> Any:
    """The dtype of a name; None if it is empty."""
    return numpy_dtype(name) if name else None


def precision(text: str) -> Any:
    """A precision as its name, as two names for the two operands, or None if none is given."""
    if not text:
        return None
    if text.startswith("algorithm "):
        return lax.DotAlgorithmPreset[text.removeprefix("algorithm ")]
    each = tuple(lax.Precision[word] for word in text.split(","))
    return each[0] if len(each) == 1 else each


def pairs(flat: list[int]) -> list[tuple[int, int]]:
    """(low, high) of every axis from one list of them all."""
    return list(zip(flat[::2], flat[1::2], strict=True))


def over_leading(fn: Fn, value: jax.Array, axes: int) -> Any:
    """`fn` mapped over the entries along the first axes."""
    for _ in range(axes):
        fn = jax.vmap(fn)
    return fn(value)
