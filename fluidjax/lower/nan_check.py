"""FLAGS_check_nan_inf: the check for values of a step that are not finite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import NanInfError
from ..ir import text
from ..ir.desc import OpDesc
from ..ops.ragged import Ragged, filled
from ..ops.selected import values_of


class Finite:
    """Watches a trace: which outputs of `ops` are floats, and whether all their elements are
    finite.

    Ops of other blocks are skipped: their values are unknown outside of the branch that runs them,
    and results that leave the branch are outputs of the op with the block.
    """

    def __init__(self, ops: Iterable[OpDesc]) -> None:
        self._ops = frozenset(op.uid for op in ops)
        self.watched: list[tuple[OpDesc, str]] = []
        self.flags: list[Any] = []

    def watch(self, op: OpDesc, env: Mapping[str, Any]) -> None:
        for name in op.writes if op.uid in self._ops else ():
            value = env.get(name)
            value = filled(value, 0) if isinstance(value, Ragged) else values_of(value)
            if (
                value is not None
                and getattr(value, "dtype", None) is not None
                and jnp.issubdtype(value.dtype, jnp.floating)
            ):
                self.watched.append((op, name))
                self.flags.append(jnp.isfinite(value).all())

    def refuse(self, flags: Sequence[Any]) -> None:
        """Raises NanInfError for the first output that is not finite, given the flags that the step
        returned.
        """
        for (op, name), good in zip(self.watched, flags, strict=True):
            if not all(np.all(s.data) for s in good.addressable_shards):
                raise _found(op, name)


def refuse_left(ops: Iterable[OpDesc], names: Iterable[str], env: Mapping[str, Any]) -> None:
    """Raises NanInfError for the first of `ops`, which have run, that wrote a value that is not
    finite to one of these names.
    """
    looked_at = frozenset(names)
    for op in ops:
        for name in looked_at.intersection(op.writes):
            value = env.get(name)
            leaves = [filled(value, 0)] if isinstance(value, Ragged) else jax.tree.leaves(value)
            if any(
                jnp.issubdtype(v.dtype, jnp.floating) and not np.all(np.isfinite(np.asarray(v)))
                for v in leaves
            ):
                raise _found(op, name)


def _found(op: OpDesc, name: str) -> NanInfError:
    what = f"{text.op_called(op)} wrote NaN or infinity to {name!r}"
    return NanInfError(f"{what}: {text.op_text(op)}")
