"""Ops that run an optax transformation: its state is visible, its code is in a table of this process.

A program names the transformation by a key. The key is bound once and for all (compiled steps rely on it), and a
program that comes from another process finds nothing under it until :func:`register_transformation` was called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..dtypes import NAMES, numpy_dtype
from ..errors import EnforceNotMet, FluidTypeError, FluidValueError, near
from .registry import Array, Floats, Strs, op

TRANSFORMATIONS: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Leaf:
    """One array of a transformation's state as a variable: which parameter it belongs to (None: all), its field's name."""

    param: str | None
    field: str
    shape: tuple[int, ...]
    dtype: str


def register_transformation(key: str, transformation: Any) -> None:
    """Let ops that carry `key` run `transformation`, an ``optax.GradientTransformation``.

    Raises FluidTypeError for an object without ``init`` and ``update``, FluidValueError if the key is bound to another.
    """
    if not isinstance(key, str) or not key:
        raise FluidTypeError(f"a transformation's key is a non-empty string, not {key!r}")
    if not (callable(getattr(transformation, "init", None)) and callable(getattr(transformation, "update", None))):
        raise FluidTypeError(f"an optax.GradientTransformation has init and update, which {transformation!r} has not")
    if TRANSFORMATIONS.setdefault(key, transformation) is not transformation:
        raise FluidValueError(f"key {key!r} is bound to another transformation in this process; take a new key")


def _find(key: str) -> Any:
    if key not in TRANSFORMATIONS:
        raise EnforceNotMet(
            f"this process has no optax transformation {key!r}{near(key, TRANSFORMATIONS)}: the program comes from another one; "
            f"call fluidjax.ops.optax_bridge.register_transformation({key!r}, ...) with the transformation that it was built with"
        )
    return TRANSFORMATIONS[key]


def _init_specs(transformation: Any, params: Mapping[str, Any]) -> Any:
    """The state's tree with shapes and dtypes as leaves."""
    specs = {n: jax.ShapeDtypeStruct(v.shape, v.dtype) for n, v in params.items()}
    return jax.eval_shape(transformation.init, specs)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _stored(leaf: Any) -> Any:
    """A leaf as Fluid can hold it: random keys as their words, unsigned words as int32, scalars as [1]."""
    value = jax.random.key_data(leaf) if _is_key(leaf) else jnp.asarray(leaf)
    if value.dtype == jnp.uint32:
        value = jax.lax.bitcast_convert_type(value, jnp.int32)
    return value.reshape(value.shape or (1,))


def _restored(stored: Any, spec: Any) -> Any:
    """The leaf that :func:`_stored` made `stored` of; `spec` says what it was."""
    if _is_key(spec):
        words = jax.lax.bitcast_convert_type(stored, jnp.uint32)
        return jax.random.wrap_key_data(words.reshape((*spec.shape, -1)), impl=jax.random.key_impl(spec))
    if spec.dtype == jnp.uint32:
        stored = jax.lax.bitcast_convert_type(stored, jnp.uint32)
    return stored.reshape(spec.shape)


def state_leaves(transformation: Any, params: Mapping[str, tuple[tuple[int, ...], str]]) -> list[Leaf]:
    """The variables that hold the state for parameters of these shapes and dtypes, in the order of the ops' State slot.

    Raises FluidTypeError for a leaf of a dtype that Fluid does not have.
    """
    given = {n: jax.ShapeDtypeStruct(shape, numpy_dtype(dtype)) for n, (shape, dtype) in params.items()}
    with jax.enable_x64(True):
        specs = _init_specs(transformation, given)
        found, _ = jax.tree_util.tree_flatten_with_path(specs)
        result = []
        for path, spec in found:
            param, field = _address(path, params)
            stored = jax.eval_shape(_stored, spec)
            if stored.dtype.name not in NAMES:
                raise FluidTypeError(f"the transformation's state {jax.tree_util.keystr(path)} is {spec.dtype}, which no variable can be")
            result.append(Leaf(param, field, stored.shape, stored.dtype.name))
    return result


def _address(path: Sequence[Any], params: Mapping[str, Any]) -> tuple[str | None, str]:
    """The parameter in a leaf's path, and the names of fields and keys in it (indices say nothing)."""
    param, words = None, []
    for part in path:
        word = getattr(part, "name", getattr(part, "key", None))
        if isinstance(word, str) and word in params and isinstance(part, jax.tree_util.DictKey):
            param = word
        elif isinstance(word, str):
            words.append(word)
    return param, "_".join(words[-1:]) or "state"


@op(outs="State*")
def optax_init(Params: list[Array], *, transformation: str, names: Strs):
    """State = init({name: param}): the first state of an optax transformation, leaf by leaf.

    names: the parameters' names when the program was built. Raises EnforceNotMet where this process does not have the
    transformation.
    """
    state = _find(transformation).init(dict(zip(names, map(jnp.asarray, Params), strict=True)))
    return [_stored(leaf) for leaf in jax.tree.leaves(state)]


@op(outs="ParamsOut* StateOut*", inplace={"ParamsOut": "Params", "StateOut": "State"})
def optax_update(
    Params: list[Array], Grads: list[Array], State: list[Array] | None, Loss: Array | None,
    *, transformation: str, names: Strs, scales: Floats,
):  # fmt: skip
    """ParamsOut = Params + scales * updates, where updates, StateOut = update(Grads, State, Params).

    names, scales: the parameters' names when the program was built, and a factor for each one's update. Loss, if given,
    is passed as ``value``. Raises EnforceNotMet where this process does not have the transformation.
    """
    tx = _find(transformation)
    params = dict(zip(names, map(jnp.asarray, Params), strict=True))
    grads = {n: jnp.asarray(g).astype(params[n].dtype) for n, g in zip(names, Grads, strict=True)}
    specs, tree = jax.tree.flatten(_init_specs(tx, params))
    state = tree.unflatten([_restored(jnp.asarray(s), spec) for s, spec in zip(State or (), specs, strict=True)])
    updates, new = _update(tx, grads, state, params, Loss)
    factors = dict(zip(names, np.asarray(scales, np.float32).tolist(), strict=True))
    moved = [(params[n] + factors[n] * updates[n]).astype(params[n].dtype) for n in names]
    leaves = [_stored(leaf) for leaf in tree.flatten_up_to(new)]
    return moved, [leaf.astype(old.dtype) for leaf, old in zip(leaves, State or (), strict=True)]


def _update(tx: Any, grads: Any, state: Any, params: Any, loss: Any) -> tuple[Any, Any]:
    """Run the transformation; those of the extended kind (they take further arguments) also get the loss."""
    extended = any(k.__name__ == "GradientTransformationExtraArgs" for k in type(tx).__mro__)
    if extended and loss is not None:
        return tx.update(grads, state, params, value=jnp.asarray(loss).reshape(()))
    return tx.update(grads, state, params)
