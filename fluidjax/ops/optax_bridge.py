"""Ops that run an optax transformation: its state is in variables, its code in a table of this
process.

A program names the transformation by a key, with its settings in words. A key cannot be rebound
(compiled steps rely on it). A key from :func:`identify` is equal in every process that builds the
same optimizer; a process that only loads the program must call :func:`register_transformation`
first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..base.dtypes import NAMES, numpy_dtype
from ..errors import EnforceNotMet, FluidError, FluidTypeError, FluidValueError, near
from . import optax_identity
from .registry import Array, Floats, Strs, op
from .traits import mixes, updates_whole

TRANSFORMATIONS: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array of a transformation's state as a variable: its parameter (None: all), and its
    field's name.
    """

    param: str | None
    field: str
    shape: tuple[int, ...]
    dtype: str


def register_transformation(key: str, transformation: Any) -> None:
    """Let ops that carry `key` run `transformation`, an ``optax.GradientTransformation``.

    Raises FluidTypeError for an object without ``init`` and ``update``, FluidValueError if the key
    is bound to another.
    """
    if not isinstance(key, str) or not key:
        raise FluidTypeError(f"a transformation's key is a non-empty string, not {key!r}")
    check(transformation)
    if TRANSFORMATIONS.setdefault(key, transformation) is not transformation:
        raise FluidValueError(
            f"key {key!r} is bound to another transformation in this process; take a new key"
        )


def check(transformation: Any) -> None:
    """Raises FluidTypeError for an object without ``init`` and ``update``."""
    if not (
        callable(getattr(transformation, "init", None))
        and callable(getattr(transformation, "update", None))
    ):
        raise FluidTypeError(
            f"an optax.GradientTransformation has init and update, which {transformation!r} has not"
        )


def identify(
    transformation: Any, params: Mapping[str, tuple[tuple[int, ...], str]], loss: str | None
) -> tuple[str | None, str]:
    """(digest of what the transformation computes, its setting in words) for parameters of these
    shapes and dtypes.

    loss: the dtype of the loss that it takes, None for none. Both are equal in every process; the
    digest is None for a transformation that calls back to the host. Raises FluidValueError if its
    update cannot be traced.
    """
    given = {
        n: jax.ShapeDtypeStruct(shape, numpy_dtype(dtype)) for n, (shape, dtype) in params.items()
    }
    value = None if loss is None else jax.ShapeDtypeStruct((1,), numpy_dtype(loss))
    with _width(v.dtype for v in given.values()):
        try:
            state = _state_of(transformation, given)

            def update(grads: Any, leaves: Any, values: Any, loss: Any) -> Any:
                return _update(transformation, grads, state.tree.unflatten(leaves), values, loss)

            traced = (
                jax.make_jaxpr(transformation.init)(given),
                jax.make_jaxpr(update)(given, state.specs, given, value),
            )
        except FluidError:
            raise
        except Exception as exc:
            raise FluidValueError(
                f"the optax transformation cannot update the parameters {sorted(given)}: {exc}"
            ) from exc
    found = optax_identity.digest(sorted(given), state.tree, *traced)
    setting = optax_identity.describe(transformation)
    return found, setting if found is None else f"{setting} #{found}"


def _find(key: str) -> Any:
    if key not in TRANSFORMATIONS:
        raise EnforceNotMet(
            f"this process has no optax transformation {key!r}{near(key, TRANSFORMATIONS)}: the"
            " program was built in another; call"
            f" fluidjax.ops.optax_bridge.register_transformation({key!r}, ...) here with the one"
            " that it was built with"
        )
    return TRANSFORMATIONS[key]


@dataclass(frozen=True, slots=True)
class _State:
    """The structure of a state: a spec per leaf, the kind of each leaf that is a random key, and
    the tree.
    """

    specs: list[Any]
    impls: list[Any]
    tree: Any


def _state_of(transformation: Any, params: Mapping[str, Any]) -> _State:
    """The state for parameters of these shapes and dtypes, without computing it."""
    impls: list[Any] = []

    def run(values: Any) -> Any:
        state = transformation.init(values)
        impls.extend(jax.random.key_impl(v) if _is_key(v) else None for v in jax.tree.leaves(state))
        return state

    shapes = {n: jax.ShapeDtypeStruct(v.shape, v.dtype) for n, v in params.items()}
    specs, tree = jax.tree.flatten(jax.eval_shape(run, shapes))
    return _State(specs, impls, tree)


def _width(dtypes: Iterable[Any]) -> Any:
    """JAX's default 32 bits while a transformation runs, as with plain optax; 64 for float64
    parameters.
    """
    return jax.enable_x64(any(np.dtype(d) == np.float64 for d in dtypes))


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _stored(leaf: Any) -> Any:
    """A leaf in a form that Fluid can store: random keys as words, unsigned words as int32, scalars
    as [1].
    """
    value = jax.random.key_data(leaf) if _is_key(leaf) else jnp.asarray(leaf)
    if value.dtype == jnp.uint32:
        value = jax.lax.bitcast_convert_type(value, jnp.int32)
    return value.reshape(value.shape or (1,))


def _restored(stored: Any, spec: Any, impl: Any) -> Any:
    """The leaf from which :func:`_stored` made `stored`; `spec` and `impl` describe it."""
    if impl is not None:
        words = jax.lax.bitcast_convert_type(stored, jnp.uint32)
        return jax.random.wrap_key_data(words.reshape((*spec.shape, -1)), impl=impl)
    if spec.dtype == jnp.uint32:
        stored = jax.lax.bitcast_convert_type(stored, jnp.uint32)
    return stored.reshape(spec.shape)


def state_leaves(
    transformation: Any, params: Mapping[str, tuple[tuple[int, ...], str]]
) -> list[Leaf]:
    """The variables that hold the state for parameters of these shapes and dtypes, in the order of
    the ops' State slot.

    Raises FluidTypeError for a leaf of a dtype that Fluid does not have.
    """
    given = {
        n: jax.ShapeDtypeStruct(shape, numpy_dtype(dtype)) for n, (shape, dtype) in params.items()
    }
    with _width(v.dtype for v in given.values()):
        state = _state_of(transformation, given)
        found, _ = jax.tree_util.tree_flatten_with_path(state.tree.unflatten(state.specs))
        result = []
        for path, spec in found:
            param, field = _address(path, params)
            stored = jax.eval_shape(_stored, spec)
            if stored.dtype.name not in NAMES:
                raise FluidTypeError(
                    f"the transformation's state {jax.tree_util.keystr(path)} is {spec.dtype},"
                    " which no variable can be"
                )
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


@op(outs="State*", rows=mixes("Params"))
def optax_init(Params: list[Array], *, setting: str = "", transformation: str, names: Strs):
    """State = init({name: param}): the first state of an optax transformation, leaf by leaf.

    names: the parameters' names when the program was built. setting: the transformation in words,
    for readers and for comparisons of programs. Raises EnforceNotMet if this process does not have
    the transformation.
    """
    tx = _find(transformation)
    params = dict(zip(names, map(jnp.asarray, Params), strict=True))
    with _width(v.dtype for v in params.values()):
        return [_stored(leaf) for leaf in jax.tree.leaves(tx.init(params))]


@op(
    outs="ParamsOut* StateOut*",
    inplace={"ParamsOut": "Params", "StateOut": "State"},
    update=updates_whole("State"),
)
def optax_update(
    Params: list[Array],
    Grads: list[Array],
    State: list[Array] | None,
    Loss: Array | None,
    *,
    setting: str = "",
    transformation: str,
    names: Strs,
    scales: Floats,
):
    """ParamsOut = Params + scales * updates, where updates, StateOut = update(Grads, State,
    Params).

    names, scales: the parameters' names when the program was built, and a factor for each one's
    update. setting: as in optax_init. Loss, if given, is passed as ``value``. Raises EnforceNotMet
    if this process does not have the transformation.
    """
    tx = _find(transformation)
    params = dict(zip(names, map(jnp.asarray, Params), strict=True))
    grads = {n: jnp.asarray(g).astype(params[n].dtype) for n, g in zip(names, Grads, strict=True)}
    with _width(v.dtype for v in params.values()):
        made = _state_of(tx, params)
        leaves = [
            _restored(jnp.asarray(s), *of)
            for s, *of in zip(State or (), made.specs, made.impls, strict=True)
        ]
        updates, new = _update(tx, grads, made.tree.unflatten(leaves), params, Loss)
        moved = [
            (params[n] + updates[n] if factor == 1.0 else params[n] + factor * updates[n]).astype(
                params[n].dtype
            )
            for n, factor in zip(names, scales, strict=True)
        ]
        kept = [_stored(leaf) for leaf in made.tree.flatten_up_to(new)]
    return moved, [leaf.astype(old.dtype) for leaf, old in zip(kept, State or (), strict=True)]


def _update(tx: Any, grads: Any, state: Any, params: Any, loss: Any) -> tuple[Any, Any]:
    """Run the transformation; one with extra arguments also gets the loss."""
    extended = any(k.__name__ == "GradientTransformationExtraArgs" for k in type(tx).__mro__)
    if extended and loss is not None:
        return tx.update(grads, state, params, value=jnp.asarray(loss).reshape(()))
    return tx.update(grads, state, params)
