"""Segments that the backward pass computes again really are computed again.

XLA keeps one of two equal computations, and with it what the program wanted to forget. So what enters a segment is tied to the
gradient that arrives at its end: ``where(known only then, x, 0)``, where the condition is always true and XLA cannot tell. Barriers
(`jax.lax.optimization_barrier`) XLA drops on the CPU before it orders the work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..ir.desc import OpDesc, VarDesc
from ..ir.recomputed import segment
from ..ops.concrete import known
from ..ops.registry import GRAD


@dataclass(frozen=True)
class Tie:
    """names: what a segment reads from outside. gradient: the one that is there when the segment begins."""

    names: tuple[str, ...]
    gradient: str

    def hold(self, env: dict[str, Any]) -> None:
        """Tie the values; where the gradient is none of floating point, or empty, nothing is tied."""
        found = [v for v in jax.tree.leaves(env.get(self.gradient)) if known(v) is None]
        found = [v for v in found if jnp.issubdtype(v.dtype, jnp.floating) and v.size]
        if not found:
            return
        first = found[0][(0,) * found[0].ndim].astype(np.float32)
        true = (jax.lax.bitcast_convert_type(first, np.int32) & 1) < 2
        for name in self.names:
            if name in env:
                env[name] = jax.tree.map(lambda x: x if known(x) is not None else jnp.where(true, x, np.zeros((), x.dtype)), env[name])


def ties(ops: Sequence[OpDesc], vars: Mapping[str, VarDesc]) -> dict[int, Tie]:
    """The ties of a step's segments, by the position of a segment's first op."""
    spans: dict[int, list[int]] = {}
    for i, op in enumerate(ops):
        number = segment(op)
        if number is not None:
            spans.setdefault(number, []).append(i)
    found = {}
    for at in spans.values():
        made = {n for i in at for n in ops[i].writes}
        reads = dict.fromkeys(n for i in at for n in ops[i].reads)
        names = tuple(n for n in reads if n not in made and not (n in vars and vars[n].persistable))
        gradient = _arriving(ops, at)
        if names and gradient is not None:
            found[at[0]] = Tie(names, gradient)
    return found


def _arriving(ops: Sequence[OpDesc], at: Sequence[int]) -> str | None:
    """The first gradient that is read after a segment of those that are there before it."""
    there = {n for op in ops[: at[0]] for n in op.writes if GRAD in n}
    return next((n for op in ops[at[-1] + 1 :] for n in op.reads if n in there), None)
