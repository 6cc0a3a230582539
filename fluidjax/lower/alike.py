"""One trace for ops that are alike: a net has the same block many times, and an optimizer the same
update for each parameter.

Ops are alike where they have one type, equal attributes and inputs of equal types. Python runs the
first of them; for the others JAX writes down once more what that one did, primitive by primitive
(`jax.jit(inline=True)`). So the step has the primitives that it has without, in the same order, and
XLA sees no calls, around which it would fuse otherwise. The optimised executable of a step is
traced from what the quick one left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import jax

from ..ir.desc import OpDesc
from ..ops import channels
from ..ops.channels import ChannelsLast
from ..ops.enclosed import surroundings
from ..ops.registry import HINTS, GradDef, OpDef, lookup, pullback

Slots = Mapping[str, Any]
Run = Callable[[Slots, Any], Any]


class _Other(Exception):
    """An op gives other values than arrays of the running step: one that is known while the step is
    traced, on which sizes may depend, or ragged rows, whose LoD is a new one for each op.
    """


class Alike:
    """What was traced of a program's ops, where others are like them."""

    def __init__(self, ops: Iterable[OpDesc] = ()) -> None:
        counts = Counter(_kind(lookup(op.type), op.attrs) for op in ops if op.inputs)
        self._several = {kind for kind, count in counts.items() if count > 1}
        # jitted functions; None for those with other results than arrays
        self._traced: dict[Any, Any] = {}
        self._pull = jax.jit(lambda pull, gradients: pull(gradients), inline=True)

    def call(
        self,
        definition: OpDef,
        inputs: Slots,
        attrs: Slots,
        key: Any,
        wanted: Mapping[str, int] | None,
    ) -> dict[str, Any]:
        """As channels.call."""

        def run(inputs: Slots, key: Any) -> Any:
            return channels.call(definition, inputs, attrs, key, wanted)

        found: dict[str, Any] = self._once(
            definition, attrs, None if wanted is None else tuple(wanted.items()), run, inputs, key
        )
        return found

    def pullback(
        self,
        definition: OpDef,
        graddef: GradDef,
        inputs: Slots,
        attrs: Slots,
        key: Any,
        wanted: set[str],
    ) -> tuple[Any, Any]:
        """As ops.registry.pullback."""

        def run(inputs: Slots, key: Any) -> Any:
            return pullback(definition, graddef, inputs, definition.arguments(attrs), key, wanted)

        result, pull = self._once(definition, attrs, frozenset(wanted), run, inputs, key)
        if self._traced.get(
            (_kind(definition, attrs), frozenset(wanted), surroundings())
        ) is None or not _are_arrays((inputs, key)):
            return result, pull
        return (
            result,
            lambda gradients: (
                self._pull(pull, gradients) if _are_arrays(gradients) else pull(gradients)
            ),
        )

    def _once(
        self, definition: OpDef, attrs: Slots, wanted: Any, run: Run, inputs: Slots, key: Any
    ) -> Any:
        """`run`, or what JAX remembers of it."""
        kind = _kind(definition, attrs)
        if (
            kind not in self._several
            or definition.traits.ranks.together
            or not _are_arrays((inputs, key))
        ):
            return run(inputs, key)
        name = kind, wanted, surroundings()
        if name not in self._traced:
            self._traced[name] = jax.jit(_of_arrays(run), inline=True)
        if self._traced[name] is not None:
            try:
                return self._traced[name](inputs, key)
            except _Other:
                self._traced[name] = None
        return run(inputs, key)


def _kind(definition: OpDef, attrs: Slots) -> tuple[str, str]:
    """The type and those of the attributes that it computes with, as text: 0.0 is not -0.0."""
    return definition.type, repr(
        sorted((n, v) for n, v in attrs.items() if n in definition.attrs or n not in HINTS)
    )


def _of_arrays(run: Run) -> Run:
    def checked(inputs: Slots, key: Any) -> Any:
        found = run(inputs, key)
        results, pull = found if isinstance(found, tuple) else (found, ())
        if not (_are_arrays(results) and all(map(_is_traced, jax.tree.leaves(pull)))):
            raise _Other
        return found

    return checked


def _are_arrays(values: Any) -> bool:
    """Whether there are values, and all are arrays of the running step."""
    leaves = jax.tree.leaves(values, is_leaf=_is_one)
    return bool(leaves) and all(map(_is_traced, leaves))


def _is_one(value: Any) -> bool:
    return value is not None and not isinstance(value, dict | list | tuple | ChannelsLast)


def _is_traced(value: Any) -> bool:
    return isinstance(value, jax.Array) and type(value) is not _array()


@cache
def _array() -> type:
    """JAX's type of arrays that are there."""
    with jax.ensure_compile_time_eval():
        return type(jax.device_put(0))
