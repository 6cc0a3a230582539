"""Shapes and dtypes of an op's outputs, before anything runs.

The default rule runs the op's function under jax.eval_shape twice, every -1 filled with another size: a dimension that
comes out different is unknown (-1). Results are memoised. An op whose output depends on more than its inputs' shapes,
or which must accept unknown dimensions that clash, has a rule of its own (``@op(infer=...)``): a function of the same
signature over :class:`Spec` values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp

from ..base.dtypes import numpy_dtype
from ..errors import FluidError, ShapeError
from ..ir.desc import FrozenMap
from .registry import OpDef

FILL = (5040, 7560)  # sizes for an unknown dimension: divisible by most things that a reshape divides by


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


Specs = Mapping[str, Any]  # slot -> Spec, or a tuple of Specs for a repeatable slot


def infer(definition: OpDef, inputs: Specs, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Slot -> Spec (a tuple for a repeatable slot) of the outputs.

    Raises ShapeError saying what the op was given and what it objected to.
    """
    try:
        return _infer(definition.type, definition, FrozenMap(inputs), FrozenMap({n: attrs[n] for n in definition.attrs if n in attrs}))
    except FluidError:
        raise
    except Exception as exc:  # whatever JAX objects to: its first line says what
        given = ", ".join(f"{slot}{_show(spec)}" for slot, spec in inputs.items())
        reason = str(exc).strip().splitlines()[0] if str(exc).strip() else type(exc).__name__
        raise ShapeError(f"op '{definition.type}' cannot take {given}: {reason}") from exc


def _show(spec: Any) -> str:
    if isinstance(spec, tuple):
        return "(" + ", ".join(map(_show, spec)) + ")"
    return f"{list(spec.shape)}:{spec.dtype}"


@lru_cache(maxsize=8192)
def _infer(kind: str, definition: OpDef, inputs: FrozenMap, attrs: FrozenMap) -> dict[str, Any]:
    if definition.infer is not None:
        given = {s.name: inputs.get(s.name) for s in definition.inputs}
        result = definition.infer(**given, **definition.arguments(attrs))
        results = (result,) if len(definition.outputs) == 1 else result
        return {s.name: _plain(spec) for s, spec in zip(definition.outputs, results, strict=True)}
    first = _evaluate(definition, inputs, attrs, FILL[0])
    unknown = any(-1 in s.shape for spec in inputs.values() for s in (spec if isinstance(spec, tuple) else (spec,)))
    second = _evaluate(definition, inputs, attrs, FILL[1]) if unknown else first
    return {slot: _merge(first[slot], second[slot]) for slot in first}


def _plain(spec: Any) -> Any:
    """What a rule of an op's own says, with plain ints (sizes may come from LONG attributes or NumPy)."""
    if spec is None:
        return None
    if isinstance(spec, list | tuple):
        return tuple(map(_plain, spec))
    return Spec(tuple(map(int, spec.shape)), spec.dtype)


def _merge(a: Any, b: Any) -> Any:
    if a is None:
        return None
    if isinstance(a, list | tuple):
        return tuple(_merge(x, y) for x, y in zip(a, b, strict=True))
    return Spec(tuple(m if m == n else -1 for m, n in zip(a.shape, b.shape, strict=True)), a.dtype.name)


def _evaluate(definition: OpDef, inputs: FrozenMap, attrs: FrozenMap, fill: int) -> dict[str, Any]:
    def array(spec: Any) -> Any:
        if isinstance(spec, tuple):
            return [array(s) for s in spec]
        return jax.ShapeDtypeStruct(tuple(fill if n < 0 else n for n in spec.shape), numpy_dtype(spec.dtype))

    def run(values: dict[str, Any]) -> dict[str, Any]:
        key = jax.random.key(0) if definition.random else None
        result = definition(values, attrs, key)
        return {slot: jax.tree.map(jnp.asarray, value) for slot, value in result.items()}

    with jax.enable_x64(True):
        return jax.eval_shape(run, {slot: array(spec) for slot, spec in inputs.items()})
