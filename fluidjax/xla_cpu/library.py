"""Rewrites a traced function so that a library (YNNPACK) that runs its loops over elements gives
XLA's values.

The library differs from XLA in two operations: its maximum or minimum of nan and a number is the
number, and it rounds in a conversion to small integers. Both are rewritten: a maximum as a clamp,
which keeps nan, and a conversion to a small integer by way of a large one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, jaxpr_as_fun

# XLA must recognise their functions of two scalars
REDUCERS = ("reduce", "scatter", "select_and", "argm", "sort")


def kept_apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """The rewritten function, to be traced for a compilation with the library."""

    def run(*args: Any) -> Any:
        traced, made = jax.make_jaxpr(function, return_shape=True)(*args)
        found = jaxpr_as_fun(_closed(traced))(*jax.tree.leaves(args))
        return jax.tree.unflatten(jax.tree.structure(made), found)

    return run


def _closed(traced: Any) -> Any:
    return ClosedJaxpr(_rewritten(traced.jaxpr), traced.consts)


def _rewritten(body: Jaxpr) -> Jaxpr:
    return body.replace(eqns=[_equation(e) for e in body.eqns])


def _equation(eqn: JaxprEqn) -> JaxprEqn:
    name = eqn.primitive.name
    if name.startswith(REDUCERS):
        return eqn
    instead = _OTHERWISE.get(name) or (
        _SMALL.get(eqn.params["new_dtype"]) if name == "convert_element_type" else None
    )
    if name in _RUNNING:
        instead = _running_extreme(_RUNNING[name], eqn.params["axis"], eqn.params["reverse"])
    if instead is not None and jnp.issubdtype(eqn.invars[0].aval.dtype, jnp.floating):  # type: ignore[attr-defined]
        return _with_function(eqn, instead)
    params = {n: _rewritten_parameter(v) for n, v in eqn.params.items()}
    return (
        eqn.replace(params=params)
        if any(params[n] is not v for n, v in eqn.params.items())
        else eqn
    )


def _rewritten_parameter(value: Any) -> Any:
    """A parameter of an equation, with the jaxprs in it rewritten."""
    if isinstance(value, ClosedJaxpr) and not isinstance(value, Jaxpr):
        return _closed(value)
    if isinstance(value, Jaxpr):
        return _rewritten(value)
    if isinstance(value, tuple) and any(isinstance(v, ClosedJaxpr | Jaxpr) for v in value):
        return tuple(map(_rewritten_parameter, value))
    return value


def _with_function(eqn: JaxprEqn, function: Callable[..., Any]) -> JaxprEqn:
    """The equation with a call of another function in place of its primitive."""
    call = _call(function, tuple(v.aval for v in eqn.invars))
    return eqn.replace(primitive=call.primitive, params=call.params)


@lru_cache
def _call(function: Callable[..., Any], types: tuple[Any, ...]) -> JaxprEqn:
    (call,) = jax.make_jaxpr(jax.jit(function))(*types).jaxpr.eqns
    return call


def _maximum(x: Any, y: Any) -> Any:
    x, bound = _with_bound(x, y)
    return lax.clamp(bound, x, np.array(np.inf, x.dtype))


def _minimum(x: Any, y: Any) -> Any:
    x, bound = _with_bound(x, y)
    return lax.clamp(np.array(-np.inf, x.dtype), x, bound)


def _with_bound(x: Any, y: Any) -> list[Any]:
    """The operands in the form that clamp takes: of one shape, or an array and a number. A maximum
    also broadcasts sizes of 1.
    """
    if x.ndim and y.ndim:
        return list(jnp.broadcast_arrays(x, y))
    return [x, y] if x.ndim else [y, x]


@lru_cache
def _running_extreme(
    extreme: Callable[[Any, Any], Any], axis: int, reverse: bool
) -> Callable[[Any], Any]:
    """The running extreme along an axis, as explicit operations; JAX writes its own only when it
    lowers.
    """
    return lambda x: lax.associative_scan(extreme, x, reverse, axis)


def _small(dtype: Any) -> Callable[[Any], Any]:
    ends = np.iinfo(dtype)

    def converted(x: Any) -> Any:
        """Converts as XLA does: rounds towards zero, clamps what is out of range, and turns nan
        into 0.
        """
        return lax.clamp(np.int32(ends.min), x.astype(np.int32), np.int32(ends.max)).astype(dtype)

    return converted


_RUNNING = {"cummax": _maximum, "cummin": _minimum}
_OTHERWISE = {"max": _maximum, "min": _minimum}
_SMALL = {np.dtype(dtype): _small(dtype) for dtype in (np.int8, np.uint8)}
