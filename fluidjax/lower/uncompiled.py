"""Runs startup programs op by op: nothing is compiled, and the values are bitwise equal.

Compiling a startup program costs about 0.2 s for each random parameter. Its ops do not depend on
one another, so an op that gives bitwise equal results outside of a compiled step (trait `eager`)
runs separately. Ops that compute with the results, such as the norms of weight norm, become one
small compiled function.

On a mesh each rank samples separately and then takes rank 0's values (`c_broadcast`), so all ranks
end with those. Any process could sample rank 0's numbers; the process of rank 0 sends its own
nevertheless, because other processors may round differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import jax

from ..ir.desc import OpDesc
from ..ops.described import described
from ..ops.registry import OpDef, lookup, traits
from ..ops.threefry import KnownKey, in_use
from ..ops.traits import Runs
from .divergence import divergent
from .env import Context, Env, op_key, read_slots, write_slots
from .step import Step, run_op


class Uncompiled:
    """A startup program: the ops `alone` run one by one, then `rest` at once."""

    def __init__(
        self,
        step: Step,
        alone: tuple[OpDesc, ...],
        rest: tuple[OpDesc, ...],
        rank: int | None = None,
    ) -> None:
        """rank: the rank of these values, if several ranks run the program."""
        self._step, self.alone, self.rest, self._rank = step, alone, rest, rank
        made = {n for op in rest for n in op.writes}
        self._reads = tuple(
            dict.fromkeys(
                n
                for op in rest
                for n in op.reads
                if n not in made or n in {w for o in alone for w in o.writes}
            )
        )
        self._results = tuple(n for n in made if n in step.writes or n in step.fetches)

    def run(self, key: KnownKey | None) -> tuple[Mapping[str, Any], list[Any]]:
        """The persistable variables that the step writes, and its fetches: NumPy arrays, large ones
        on the default device.

        Bitwise equal to the compiled step, except for the results of `rest`. Raises the errors of
        its ops, with the op's text and the user's line.
        """
        env: Env = {}
        ctx = Context(self._step.desc, key, rank=self._rank)
        for op in self.alone:
            with described(op), jax.enable_x64(True):
                if _gets_from_rank_0(op):  # the values are already rank 0's
                    env[op.output("Out")[0]] = env[op.input("X")[0]]
                    continue
                definition = _definition(op.type)
                inputs = read_slots(op, definition, env)
                key = op_key(op, ctx, inputs) if definition.is_random(op.attrs) else None
                write_slots(op, definition, definition(inputs, op.attrs, key), env)
        if self.rest:
            with jax.enable_x64(True):
                env.update(self._compiled({n: env[n] for n in self._reads}))
        return {n: env[n] for n in self._step.writes if n in env}, [
            env[n] for n in self._step.fetches
        ]

    @cached_property
    def _compiled(self) -> Any:
        return jax.jit(self._traced)

    def _traced(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        env, ctx = dict(given), self._step.context(None, None)
        for op in self.rest:
            run_op(op, env, ctx, ())
        return {n: env[n] for n in self._results}


def uncompiled(step: Step, together: bool = False) -> Uncompiled | None:
    """How to run a startup program, which has no inputs, without compiling it whole; None for any
    other step.

    together: ranks on separate devices run it; then also None unless all of them end with rank 0's
    values and nothing is fetched.
    """
    made = step.uses[1]
    if step.reads or step.feeds or not all(n in made for n in step.fetches) or not in_use():
        return None
    if (
        step.fetches or divergent(step)
        if together
        else any(traits(op.type).ranks.together for op in step.ops)
    ):
        return None
    alone: list[OpDesc] = []
    rest: list[OpDesc] = []
    read: set[str] = set()  # by the rest
    written: set[str] = set()
    for op in step.ops:
        if (
            (_is_eager(op) or _gets_from_rank_0(op))
            and written.isdisjoint((*op.reads, *op.writes))
            and read.isdisjoint(op.writes)
        ):
            alone.append(op)
        elif _computes(op):
            rest.append(op)
            read.update(op.reads)
            written.update(op.writes)
        else:
            return None
    return Uncompiled(step, tuple(alone), tuple(rest), 0 if together else None) if alone else None


def _gets_from_rank_0(op: OpDesc) -> bool:
    """Whether the op broadcasts a value of rank 0."""
    root = traits(op.type).ranks.root
    return bool(root) and {**lookup(op.type).defaults, **op.attrs}[root] == 0


def _is_eager(op: OpDesc) -> bool:
    eager = traits(op.type).eager
    return eager is not None and eager.when({**lookup(op.type).defaults, **op.attrs})


def _computes(op: OpDesc) -> bool:
    """Whether the op is a function of its inputs alone."""
    definition = lookup(op.type)
    traits = definition.traits
    says = (
        traits.runs is not Runs.STEP
        or traits.ranks.together
        or traits.bounds is not None
        or traits.refuses is not None
    )
    # a step knows such values, or is divided
    sized = traits.chosen is not None or (traits.sizes is not None and traits.sizes.needed(op))
    return definition.fn is not None and not definition.random and not says and not sized


@cache
def _definition(kind: str) -> OpDef:
    """The op type with the function for uncompiled runs."""
    found = lookup(kind)
    assert found.traits.eager is not None
    return replace(found, fn=found.traits.eager.fn or found.fn)
