"""Where programs run: CPUPlace, CUDAPlace, CUDAPinnedPlace, as JAX devices."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax

from .errors import FluidTypeError, FluidValueError


@dataclass(frozen=True)
class CPUPlace:
    """The host's processor."""

    def device(self) -> Any:
        return jax.devices("cpu")[0]

    def __str__(self) -> str:
        return "CPUPlace"


@dataclass(frozen=True)
class CUDAPinnedPlace(CPUPlace):
    """Page-locked host memory; JAX manages it, so this is the host."""

    def __str__(self) -> str:
        return "CUDAPinnedPlace"


@dataclass(frozen=True)
class CUDAPlace:
    """GPU number `device_id`."""

    device_id: int = 0

    def device(self) -> Any:
        """The JAX device. Raises FluidValueError if there is no such GPU."""
        gpus = _gpus()
        if not 0 <= self.device_id < len(gpus):
            raise FluidValueError(
                f"CUDAPlace({self.device_id}): JAX sees {len(gpus)} GPUs; use CPUPlace(), or install jax[cuda] where there is one"
            )
        return gpus[self.device_id]

    def __str__(self) -> str:
        return f"CUDAPlace({self.device_id})"


Place = CPUPlace | CUDAPlace


@cache
def _gpus() -> tuple[Any, ...]:
    try:
        return tuple(jax.devices("gpu"))
    except RuntimeError:
        return ()


def is_compiled_with_cuda() -> bool:
    """Whether JAX sees a GPU."""
    return bool(_gpus())


def default_place() -> Place:
    """The first GPU that JAX sees, or the CPU."""
    return CUDAPlace(0) if is_compiled_with_cuda() else CPUPlace()


def as_place(place: Any) -> Place:
    """`place`, or the default for None. Raises FluidTypeError for anything else."""
    if place is None:
        return default_place()
    if not isinstance(place, CPUPlace | CUDAPlace):
        raise FluidTypeError(f"a place is CPUPlace() or CUDAPlace(id), not {place!r}")
    return place


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """`device_count` CPUPlaces; by default as many as the environment variable CPU_NUM says, or one."""
    count = int(os.environ.get("CPU_NUM", "1")) if device_count is None else device_count
    return [CPUPlace()] * count


def cuda_places(device_ids: list[int] | int | None = None) -> list[CUDAPlace]:
    """CUDAPlaces of these ids; by default of FLAGS_selected_gpus, or of all GPUs."""
    if device_ids is None:
        chosen = os.environ.get("FLAGS_selected_gpus", "")
        device_ids = [int(s) for s in chosen.split(",") if s.strip()] if chosen else list(range(len(_gpus())))
    return [CUDAPlace(i) for i in ([device_ids] if isinstance(device_ids, int) else device_ids)]


def cuda_pinned_places(device_count: int | None = None) -> list[CUDAPinnedPlace]:
    """`device_count` CUDAPinnedPlaces; by default as many as the environment variable CPU_NUM says, or one."""
    return [CUDAPinnedPlace()] * (device_count or int(os.environ.get("CPU_NUM", "1")))
