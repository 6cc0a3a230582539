"""Arithmetic of sizes, which are numbers, or symbolic while a step is exported for any batch; and
what ops compute of such sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

from ..ir import dims
from .concrete import are_numbers, index_type, is_number

# From attributes and arrays of sizes (dtype object) to an array of sizes; None: it has none.
Rule = Callable[..., "np.ndarray | None"]


def _either(word: str, a: Any, b: Any) -> Any:
    """max or min; for symbolic sizes, which do not compare, jax.export's."""
    if are_numbers([a, b]):
        return max(a, b) if word == "max" else min(a, b)
    scope = next(n.scope for n in (a, b) if export.is_symbolic_dim(n))
    return export.symbolic_shape(f"{word}({a}, {b})", scope=scope)[0]


largest, smallest = partial(_either, "max"), partial(_either, "min")
# The functions in texts of sizes (ir/dims.py).
OF_SIZES: dims.Functions = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": largest,
    "min": smallest,
}


def take(x: Any, index: Any, axis: int) -> jax.Array:
    """jnp.take along an axis of any length; an index beyond it takes its end, and nan of an
    axis that turns out to be empty.
    """
    size = x.shape[axis]
    index = index.astype(index_type([size])) if is_number(size) else index
    missing = largest(1 - size, 0)
    if not is_number(missing):  # JAX takes nothing of an axis that may be empty
        nothing = jnp.asarray(jnp.nan if jnp.issubdtype(x.dtype, jnp.floating) else 0, x.dtype)
        x = lax.pad(x, nothing, [(0, missing if a == axis else 0, 0) for a in range(x.ndim)])
    return jnp.take(x, index, axis=axis, mode="clip")


def same(attrs: Mapping[str, Any], x: np.ndarray) -> np.ndarray:
    return x


def _slice(attrs: Mapping[str, Any], x: np.ndarray) -> np.ndarray | None:
    first = attrs["axes"] == (0,) and len(attrs["starts"]) == len(attrs["ends"]) == 1
    return x[attrs["starts"][0] : attrs["ends"][0]] if first and x.ndim == 1 else None


def _scale(attrs: Mapping[str, Any], x: np.ndarray) -> np.ndarray | None:
    by, bias = attrs["scale"], attrs["bias"]
    if by != int(by) or bias != int(bias):
        return None
    return x * int(by) + int(bias) if attrs["bias_after_scale"] else (x + int(bias)) * int(by)


def _pairwise(function: Callable[[Any, Any], Any]) -> Rule:
    each = np.frompyfunc(function, 2, 1)
    return lambda attrs, x, y: np.asarray(each(x, y), object)


RULES: dict[str, Rule] = {
    "slice": _slice,
    "scale": _scale,
    "cast": same,
    "concat": lambda attrs, *x: np.concatenate([np.atleast_1d(one) for one in x]),
    "stack": lambda attrs, *x: np.stack(x),
    "elementwise_add": _pairwise(lambda a, b: a + b),
    "elementwise_sub": _pairwise(lambda a, b: a - b),
    "elementwise_mul": _pairwise(lambda a, b: a * b),
    **{f"elementwise_{name}": _pairwise(function) for name, function in OF_SIZES.items()},
}
