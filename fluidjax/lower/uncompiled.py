"""Startup programs op by op: no compiler, and the same bits.

A compiled startup program costs about 0.2 s for each parameter that is drawn. Its ops have nothing to do with one another,
so where each says that it computes by itself what it computes in a compiled step (trait `eager`), they are run one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import jax

from ..ir.desc import OpDesc
from ..ops.registry import OpDef, lookup, traits
from ..ops.threefry import KnownKey, in_use
from .env import Context, Env, op_key, read_slots, write_slots
from .step import Step
from .told import told


def is_eager(step: Step) -> bool:
    """Whether a step is a startup program, which takes nothing in, and each of its ops may run by itself."""
    made = step.uses[1]
    return not step.reads and not step.feeds and all(n in made for n in step.fetches) and in_use() and all(map(_is_eager, step.ops))


def _is_eager(op: OpDesc) -> bool:
    eager = traits(op.type).eager
    return eager is not None and eager.when({**lookup(op.type).defaults, **op.attrs})


def run_eagerly(step: Step, key: KnownKey | None) -> tuple[Mapping[str, Any], list[Any]]:
    """The persistable variables that the step writes, and its fetches: NumPy arrays, large ones on the default device.

    Equal to the compiled step, bit for bit. Raises what its ops object to, with the op's text and the user's line.
    """
    env: Env = {}
    ctx = Context(step.desc, key)
    for op in step.ops:
        with told(op), jax.enable_x64(True):
            definition = _definition(op.type)
            inputs = read_slots(op, definition, env)
            write_slots(op, definition, definition(inputs, op.attrs, op_key(op, ctx) if definition.random else None), env)
    return {n: env[n] for n in step.writes if n in env}, [env[n] for n in step.fetches]


@cache
def _definition(kind: str) -> OpDef:
    """The op type with the function that computes it by itself."""
    found = lookup(kind)
    assert found.traits.eager is not None
    return replace(found, fn=found.traits.eager.fn or found.fn)
