"""Shapes and dtypes of an op's outputs, before anything runs.

The default rule runs the op's function twice under jax.eval_shape, with two sizes in place of -1:
an output dimension that differs is unknown (-1). If the op does not accept one size for all of
them, open_sizes.py finds sizes that fit. Results are memoised. An op whose output depends on more
than its inputs' shapes, or which must accept unknown dimensions that clash, has its own rule
(``@op(infer=...)``): a function of the same signature over :class:`Spec` values. A few very common
ops have one too, because eval_shape takes milliseconds; such a rule returns None for unusual
inputs, and the function is run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import jax
import jax.numpy as jnp

from ..base.dtypes import numpy_dtype
from ..errors import EnforceNotMet, FluidError, UnsupportedError
from ..ir.desc import FrozenMap
from .objection import refusal
from .open_sizes import Place, Sizes, aligned, fitting, unknown
from .registry import OpDef

# sizes for an unknown dimension: divisible by most divisors of reshapes
FILL = (5040, 7560)


@dataclass(frozen=True, slots=True)
class Spec:
    """Shape (-1: unknown) and dtype name of an array that does not exist yet."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def as_dtype(self, dtype: str) -> Spec:
        return Spec(self.shape, dtype)

    def like(self, *shape: int) -> Spec:
        """The same with another shape."""
        return Spec(shape, self.dtype)


Specs = Mapping[str, Any]  # slot -> Spec, or a tuple of Specs for a repeatable slot


def infer(definition: OpDef, inputs: Specs, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Slot -> Spec (a tuple for a repeatable slot) of the outputs.

    Raises ShapeError with the op's inputs and the reason.
    """
    try:
        known = FrozenMap(
            {n: attrs[n] for n in (*definition.attrs, *definition.later) if n in attrs}
        )
        return _infer(definition.type, definition, FrozenMap(inputs), known)
    except FluidError:
        raise
    except Exception as exc:  # whatever JAX objects to
        raise refusal(definition.type, inputs, exc) from exc


@lru_cache(maxsize=8192)
def _infer(kind: str, definition: OpDef, inputs: FrozenMap, attrs: FrozenMap) -> dict[str, Any]:
    run = definition.infer is None
    try:
        found = None if run else by_rule(definition, inputs, attrs)
        run = found is None
        found = found or by_running(definition, inputs, attrs)
    except Exception as exc:
        refusal = exc
    else:
        if not run and definition.uncommon and not unknown(_shapes(inputs)):
            _tried(definition, inputs, attrs)
        return found
    return _with_sizes_that_fit(definition, inputs, attrs, refusal, run)


def _tried(definition: OpDef, inputs: Mapping[str, Any], attrs: FrozenMap) -> None:
    """Raise the error of the op's function for inputs of known sizes that its rule accepts.

    The rules of common ops check everything. An op that must see values or a LoD raises only when
    it runs.
    """
    if any(s.ragged or s.selected for s in definition.inputs):
        return
    with contextlib.suppress(
        UnsupportedError, EnforceNotMet, jax.errors.JAXTypeError, jax.errors.JAXIndexError
    ):
        _evaluate(definition, inputs, attrs)


def specs_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The Specs of arrays by slot; None has no Spec."""

    def spec(value: Any) -> Any:
        return (
            tuple(map(spec, value))
            if isinstance(value, list | tuple)
            else Spec(tuple(value.shape), value.dtype.name)
        )

    return {slot: spec(value) for slot, value in values.items() if value is not None}


def by_rule(
    definition: OpDef, inputs: Mapping[str, Any], attrs: FrozenMap
) -> dict[str, Any] | None:
    """The result of the op's own rule; None if it does not apply."""
    assert definition.infer is not None
    given = {s.name: inputs.get(s.name) for s in definition.inputs}
    result = definition.infer(**given, **definition.arguments(attrs))
    if result is None:
        return None
    results = (result,) if len(definition.outputs) == 1 else result
    return {s.name: _plain(spec) for s, spec in zip(definition.outputs, results, strict=True)}


def by_running(definition: OpDef, inputs: Mapping[str, Any], attrs: FrozenMap) -> dict[str, Any]:
    """The op's function evaluated for two sizes of the unknown dimensions."""
    places = unknown(_shapes(inputs))
    return _merged(
        [
            _evaluate(definition, _sized(inputs, dict.fromkeys(places, n)), attrs)
            for n in (FILL if places else FILL[:1])
        ]
    )


def _with_sizes_that_fit(
    definition: OpDef, inputs: FrozenMap, attrs: FrozenMap, refusal: Exception, ran: bool
) -> dict[str, Any]:
    """The outputs for guessed sizes of the unknown dimensions; if none fits, raises for the sizes
    that the user wrote. ran: the function raised, not a rule.
    """
    shapes = _shapes(inputs)
    if not unknown(shapes):
        raise refusal

    def run(sizes: Sizes) -> dict[str, Any]:
        closed = _sized(inputs, sizes)
        return (by_rule(definition, closed, attrs) if definition.infer else None) or _merged(
            [_evaluate(definition, closed, attrs)]
        )

    found = fitting(run, shapes, attrs, FILL[0])
    if found:
        return _merged(found)
    if ran:
        run(aligned(shapes, otherwise=1))
    raise refusal


def _shapes(inputs: Mapping[str, Any]) -> dict[str, tuple[tuple[int, ...], ...]]:
    return {
        slot: tuple(s.shape for s in (spec if isinstance(spec, tuple) else (spec,)))
        for slot, spec in inputs.items()
    }


def _sized(inputs: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """The inputs with these sizes in place of -1."""

    def closed(slot: str, index: int, spec: Spec) -> Spec:
        dims = tuple(sizes[Place(slot, index, d)] if n < 0 else n for d, n in enumerate(spec.shape))
        return Spec(dims, spec.dtype)

    return {
        slot: tuple(closed(slot, i, s) for i, s in enumerate(spec))
        if isinstance(spec, tuple)
        else closed(slot, 0, spec)
        for slot, spec in inputs.items()
    }


def _plain(spec: Any) -> Any:
    """The result of an op's own rule with plain ints (sizes may come from LONG attributes or
    NumPy).
    """
    if spec is None:
        return None
    if isinstance(spec, list | tuple):
        return tuple(map(_plain, spec))
    return Spec(tuple(map(int, spec.shape)), spec.dtype)


def _merged(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Outputs with -1 where results differ."""
    return {
        slot: reduce(_merge, [r[slot] for r in results[1:]], _as_spec(first))
        for slot, first in results[0].items()
    }


def _as_spec(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return tuple(map(_as_spec, value))
    return Spec(
        tuple(value.shape), value.dtype if isinstance(value.dtype, str) else value.dtype.name
    )


def _merge(a: Any, b: Any) -> Any:
    if a is None:
        return None
    if isinstance(a, tuple):
        return tuple(_merge(x, y) for x, y in zip(a, b, strict=True))
    return Spec(tuple(m if m == n else -1 for m, n in zip(a.shape, b.shape, strict=True)), a.dtype)


def _evaluate(definition: OpDef, inputs: Mapping[str, Any], attrs: FrozenMap) -> dict[str, Any]:
    """The outputs' shapes and dtypes for inputs of known shapes."""

    def array(spec: Any) -> Any:
        if isinstance(spec, tuple):
            return [array(s) for s in spec]
        return jax.ShapeDtypeStruct(spec.shape, numpy_dtype(spec.dtype))

    def run(values: dict[str, Any]) -> dict[str, Any]:
        key = jax.random.key(0) if definition.random else None
        result = definition(values, attrs, key)
        return {slot: jax.tree.map(jnp.asarray, value) for slot, value in result.items()}

    with jax.enable_x64(True):
        return jax.eval_shape(run, {slot: array(spec) for slot, spec in inputs.items()})
