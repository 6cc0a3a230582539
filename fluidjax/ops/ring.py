"""The ring of collective ops: a mesh axis that is bound while a step is traced, or a single rank."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from ..base.within import within
from ..errors import EnforceNotMet

AXIS = "ranks"  # the axis of the ranks of a program


@dataclass(frozen=True)
class Ring:
    """`size` ranks along the mesh axis `axis`; None: one rank, for which every collective is the
    identity.
    """

    axis: str | None
    size: int

    @property
    def rank(self) -> Any:
        """This rank's number, known when the step runs."""
        return 0 if self.axis is None else jax.lax.axis_index(self.axis)


_current: ContextVar[Ring | None] = ContextVar("ring", default=None)


def bound(ring: Ring) -> AbstractContextManager[None]:
    """Collective ops traced within the block use `ring`."""
    return within(_current, ring)


def ring() -> Ring:
    """The bound ring. Raises EnforceNotMet if there is none."""
    found = _current.get()
    if found is None:
        raise EnforceNotMet(
            "it communicates with other devices, but the program runs on one by itself; run it by"
            " CompiledProgram.with_data_parallel, as a job (python -m fluidjax launch), or run the"
            " program before it was transpiled"
        )
    return found


def mean_over(x: Any) -> Any:
    """The mean of `x` over the ranks."""
    found = ring()
    return x if found.axis is None else jax.lax.psum(x, found.axis) / found.size


def gathered(x: Any) -> Any:
    """`x` of every rank, stacked on a new first dimension."""
    found = ring()
    return jnp.asarray(x)[None] if found.axis is None else jax.lax.all_gather(x, found.axis)
