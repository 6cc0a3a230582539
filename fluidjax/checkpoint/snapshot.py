"""A program's state out of a scope, in copies that later steps do not touch, and back into one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet
from ..ranks import Rows, rows
from ..saved.values import listed
from ..scope import Scope, ScopeVar
from .record import Lod


@dataclass(frozen=True)
class Snapshot:
    """alike: name -> value in the declared shape. own: name -> a row for each rank, where these have their own values."""

    alike: Mapping[str, Any]
    own: Mapping[str, Any]
    lods: Mapping[str, Lod]


def take(names: list[str], scope: Scope) -> Snapshot:
    """The values of these variables. Raises EnforceNotMet naming all that have none.

    A step donates its arrays to the next one, so they are copied: on the device where that is the host's own memory,
    else by orbax, which has the bytes on the host before its save returns.
    """
    found = {n: var for n in names if (var := scope.find_var(n)) is not None and var.value is not None}
    missing = [n for n in names if n not in found]
    if missing:
        raise EnforceNotMet(f"nothing to save for {listed(missing)}: not initialised in the scope; run the startup program first")
    alike, own = {}, {}
    with jax.enable_x64(True):
        for name, var in found.items():
            alike[name] = _kept(var.value)
            every = every_rank(var)
            if every is not None:
                own[name] = _kept(every)
    return Snapshot(alike, own, {n: v.lod for n, v in found.items() if v.lod})


def every_rank(var: ScopeVar) -> Any:
    """[ranks, ...] of a variable of which every rank has its own value; None of others."""
    if var._bank is not None:
        return var._bank.every_rank(var.name)
    return np.asarray(var._value) if isinstance(var._value, Rows) else None


def _kept(value: Any) -> Any:
    if not isinstance(value, jax.Array):
        return np.array(value)
    if value.is_fully_replicated or (value.is_fully_addressable and jax.process_count() > 1):
        return np.array(value)  # one copy is enough; and of several processes orbax takes arrays of all or of none
    device: Any = next(iter(value.sharding.device_set))
    return jnp.copy(value) if device.platform == "cpu" else value


def put(snapshot: Snapshot, scope: Scope, ranks: int) -> None:
    """Store all values. ranks: on how many the program runs; where as many had their own values, they get them again."""
    for name, value in snapshot.alike.items():
        var = scope.find_var(name) or scope.var(name)
        every = snapshot.own.get(name)
        var.value = rows(every) if every is not None and len(every) == ranks else value
        var.lod = snapshot.lods.get(name, ())
