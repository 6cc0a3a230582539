"""Places as ranks: on one device each if there are enough devices, otherwise in turn on one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.loc import warn
from ...devices.place import CUDAPlace, Place, cpu_devices, too_few
from ...devices.placement import Mesh, Placement, Turns


def ranks_on(places: Sequence[Place]) -> Placement:
    """A rank for each place. CPU places take JAX's CPU devices, one after another.

    Warns if several places share a device.
    """
    devices = devices_of(places)
    if len(set(devices)) == len(places):
        return Mesh(devices)
    more = too_few(len(places)) if devices[0].platform == "cpu" else "name different GPUs"
    warn(
        f"{len(places)} places share {len(set(devices))} {devices[0].platform} device(s), so they"
        f" run one after another; {more}, to have a device for each",
        RuntimeWarning,
    )
    return Turns(devices[0], len(places))


def devices_of(places: Sequence[Place]) -> tuple[Any, ...]:
    """This process's devices for these places, possibly fewer."""
    if all(isinstance(p, CUDAPlace) for p in places):
        return tuple(p.device() for p in places)
    found = cpu_devices(len(places))
    return tuple(found[i % len(found)] for i in range(len(places)))
