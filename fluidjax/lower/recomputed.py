"""Keeps recomputed segments of the backward pass recomputed.

XLA merges equal computations, and so keeps values in memory that the program wants to free. The
inputs of a segment are therefore tied to the gradient that arrives at its end: ``where(known only
then, x, 0)``, where the condition is always true but XLA cannot know that. A barrier
(`jax.lax.optimization_barrier`) does not help, because XLA drops it on the CPU before it schedules.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..ir.desc import OpDesc, VarDesc
from ..ir.edit import BACKWARD, role
from ..ir.recomputed import HOST, segment


@dataclass(frozen=True)
class Tie:
    """names: the delayed values, such as a segment's outer inputs. after: the values that must
    exist first, such as the gradient that arrives at its end.
    """

    names: tuple[str, ...]
    after: tuple[str, ...]

    def hold(self, env: dict[str, Any]) -> None:
        """Tie the values; a value that is not floating point, or is empty, cannot be tied to."""
        bits = [bit for name in self.after if (bit := _bit(env.get(name))) is not None]
        if not bits:
            return
        true = reduce(operator.add, bits) < len(bits) + 1
        for name in self.names:
            # nothing can be computed on values there, so a barrier is used
            if name.endswith(HOST) and name in env:
                env[name], _ = jax.lax.optimization_barrier((env[name], true))
            elif name in env:
                env[name] = jax.tree.map(partial(_tied, true), env[name])


def _tied(true: Any, value: Any) -> Any:
    if not _computed(value):
        return value
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):  # numbers drawn again hang on their key
        data = _tied(true, jax.random.key_data(value))
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(value))
    return jnp.where(true, value, np.zeros((), value.dtype))


def on_host(env: dict[str, Any], names: Iterable[str], there: bool) -> None:
    """Place the values that wait on the host in its memory, or back in the device's."""
    space = jax.memory.Space.Host if there else jax.memory.Space.Device
    env.update((n, jax.device_put(env[n], space)) for n in names if n.endswith(HOST))


def _computed(value: Any) -> bool:
    """Whether the step computes a value; otherwise it is NumPy's. (Asking a tracer for its value
    takes jax a tenth of a second.)
    """
    return isinstance(value, jax.Array)


def _bit(value: Any) -> Any:
    """A 0 or 1 that depends on the value; None if that is impossible."""
    for v in jax.tree.leaves(value):
        if _computed(v) and jnp.issubdtype(v.dtype, jnp.floating) and v.size:
            first = v[(0,) * v.ndim].astype(np.float32)
            return jax.lax.bitcast_convert_type(first, np.int32) & 1
    return None


def ties(ops: Sequence[OpDesc], vars: Mapping[str, VarDesc]) -> dict[int, Tie]:
    """The ties of a step's segments, by the position of a segment's first op."""
    spans: dict[int, list[int]] = {}
    for i, op in enumerate(ops):
        number = segment(op)
        if number is not None:
            spans.setdefault(number, []).append(i)
    gradients = _gradients(ops) if spans else {}
    found = {}
    for at in spans.values():
        made = {n for i in at for n in ops[i].writes}
        reads = dict.fromkeys(n for i in at for n in ops[i].reads)
        names = tuple(n for n in reads if n not in made and not (n in vars and vars[n].persistable))
        gradient = _arriving(ops, at, gradients)
        if names and gradient is not None:
            found[at[0]] = Tie(names, (gradient,))
    return found


def _arriving(ops: Sequence[OpDesc], at: Sequence[int], made: Mapping[str, int]) -> str | None:
    """The earliest gradient that the first op after a segment takes. (A later one, such as that of a
    sequence beside that of its last step, would keep alive for longer what the earlier ends.)
    """
    for op in ops[at[-1] + 1 :]:
        there = [n for n in op.reads if made.get(n, at[0]) < at[0]]
        if there:
            return min(there, key=lambda n: made[n])
    return None


def _gradients(ops: Sequence[OpDesc]) -> dict[str, int]:
    """The values that the backward pass computes, and the position of the first op that does.
    Values that depend only on constants, such as the gradient of the loss, always exist.
    """
    constant: set[str] = set()
    found: dict[str, int] = {}
    for i, op in enumerate(ops):
        if not op.blocks and constant.issuperset(op.reads):
            constant.update(op.writes)
        elif role(op) & BACKWARD and segment(op) is None:
            found.update(dict.fromkeys(op.writes, i))
    return found
