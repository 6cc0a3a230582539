"""Where programs run: CPUPlace, CUDAPlace, CUDAPinnedPlace, XPUPlace, as JAX devices."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np

from ..base.loc import warn
from ..errors import FluidTypeError, FluidValueError
from . import forked


class _Kind:
    """The methods of places that scripts of 1.x call."""

    def is_cpu_place(self) -> bool:
        return type(self) is CPUPlace

    def is_gpu_place(self) -> bool:
        return type(self) is CUDAPlace

    def _equals(self, other: Any) -> bool:
        return self == getattr(other, "chosen", other)  # the place in a core.Place


@dataclass(frozen=True)
class CPUPlace(_Kind):
    """The host's processor."""

    def device(self) -> Any:
        return cpu_devices()[0]

    def __str__(self) -> str:
        return "CPUPlace"


@dataclass(frozen=True)
class CUDAPinnedPlace(CPUPlace):
    """Page-locked host memory; JAX manages it, so this is the host."""

    def __str__(self) -> str:
        return "CUDAPinnedPlace"


@dataclass(frozen=True)
class CUDAPlace(_Kind):
    """GPU number `device_id`."""

    device_id: int = 0

    def device(self) -> Any:
        """The JAX device. Raises FluidValueError if there is no such GPU."""
        found = gpus()
        if not 0 <= self.device_id < len(found):
            raise FluidValueError(
                f"CUDAPlace({self.device_id}): JAX sees {len(found)} GPUs; use CPUPlace(), or"
                " install jax[cuda] where there is one"
            )
        return found[self.device_id]

    def __str__(self) -> str:
        return f"CUDAPlace({self.device_id})"


@dataclass(frozen=True)
class XPUPlace(_Kind):
    """Kunlun card number `device_id`, of Paddle 2.0. JAX sees none, so nothing runs there."""

    device_id: int = 0

    def device(self) -> Any:
        """Raises FluidValueError: there is no such card."""
        raise FluidValueError(
            f"{self}: JAX sees no XPUs; use CPUPlace(), or CUDAPlace(0) where there is a GPU"
        )

    def __str__(self) -> str:
        return f"XPUPlace({self.device_id})"


Place = CPUPlace | CUDAPlace | XPUPlace


def is_compiled_with_xpu() -> bool:
    """False: there are no XPUs."""
    return False


def synchronize(place: Place) -> None:
    """Wait until the device of a place has finished all work given to it so far."""
    one = jax.device_put(np.zeros((), np.float32), place.device())
    jax.block_until_ready(one + 1)


def cpu_devices(wanted: int = 1) -> tuple[Any, ...]:
    """The CPU devices of this process. If JAX was not in use before, there are CPU_NUM of them, or
    at least `wanted`.
    """
    forked.devices_asked_for()
    _prepare(max(wanted, cpu_num()))
    return tuple(jax.local_devices(backend="cpu"))


_CPU_DEVICES = "jax_num_cpu_devices"
_prepared = False


def _prepare(count: int) -> None:
    """Make JAX split the CPU into `count` devices. Nothing changes if JAX has been used already."""
    global _prepared
    if _prepared or count == 1 or getattr(jax.config, _CPU_DEVICES) > 1:
        return
    _prepared = True
    with contextlib.suppress(RuntimeError):  # JAX is in use already
        jax.config.update(_CPU_DEVICES, count)


def cpu_num() -> int:
    """The environment variable CPU_NUM, 1 without it. Raises FluidValueError unless it is a whole
    number from 1.
    """
    text = os.environ.get("CPU_NUM", "1")
    if not text.strip().isdigit() or int(text) < 1:
        raise FluidValueError(
            f"CPU_NUM says how many CPU places there are, a whole number from 1, not {text!r}"
        )
    return int(text)


def too_few(wanted: int) -> str:
    """The text of a warning: why there are fewer CPU devices than `wanted`, and what to do."""
    requested = os.environ.get("CPU_NUM", "")
    if requested.strip() == str(wanted):
        return (
            f"CPU_NUM={requested} came after JAX was first used (by an Executor, or by jax.numpy),"
            " or JAX was configured with another number of devices; set it at the beginning of the"
            " script"
        )
    return f"set CPU_NUM={wanted} before JAX is first used"


@cache
def gpus() -> tuple[Any, ...]:
    forked.devices_asked_for()
    _prepare(cpu_num())  # asking for GPUs is also a first use of JAX
    try:
        return tuple(jax.local_devices(backend="gpu"))
    except RuntimeError:
        return ()


_starts = 0


def starts() -> int:
    """How often JAX has been restarted; devices from before a restart are not valid any more."""
    return _starts


def start_anew() -> None:
    """Restart JAX, so that it looks for its devices as in a new process; a job must be described to
    JAX before that.

    Existing arrays keep their values, and move at their next use. Everything compiled is dropped.
    """
    global _starts
    _starts += 1
    gpus.cache_clear()
    from jax.extend.backend import clear_backends  # it takes a while to import

    clear_backends()


def is_compiled_with_cuda() -> bool:
    """Whether JAX sees a GPU."""
    return bool(gpus())


def default_place() -> Place:
    """The first GPU that JAX sees, or the CPU. Warns if JAX itself would use another device."""
    if is_compiled_with_cuda():
        return CUDAPlace(0)
    if (platform := jax.default_backend()) != "cpu":
        warn(
            f"JAX's default device is a {platform}, for which there is no place, so programs run on"
            " the CPU; use fluid.step_fn to jit a step for it, or give CPUPlace()"
        )
    return CPUPlace()


def as_place(place: Any) -> Place:
    """`place`, or the default for None. Raises FluidTypeError for anything else."""
    if place is None:
        return default_place()
    place = getattr(place, "chosen", place)  # core.Place
    if not isinstance(place, CPUPlace | CUDAPlace | XPUPlace):
        raise FluidTypeError(f"a place is CPUPlace() or CUDAPlace(id), not {place!r}")
    return place


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """`device_count` CPUPlaces; the default is the environment variable CPU_NUM, or one."""
    count = cpu_num() if device_count is None else device_count
    return [CPUPlace()] * count


def cuda_places(device_ids: list[int] | int | None = None) -> list[CUDAPlace]:
    """CUDAPlaces of these ids; by default of FLAGS_selected_gpus, or of all GPUs. Raises
    FluidValueError if all GPUs are meant and there is none.
    """
    if device_ids is None:
        chosen = os.environ.get("FLAGS_selected_gpus", "")
        if not chosen and not gpus():
            raise FluidValueError(
                "cuda_places(): JAX sees no GPU; use cpu_places(), or install jax[cuda] where there"
                " is one"
            )
        device_ids = (
            [int(s) for s in chosen.split(",") if s.strip()] if chosen else list(range(len(gpus())))
        )
    return [CUDAPlace(i) for i in ([device_ids] if isinstance(device_ids, int) else device_ids)]


def cuda_pinned_places(device_count: int | None = None) -> list[CUDAPinnedPlace]:
    """`device_count` CUDAPinnedPlaces; the default is the environment variable CPU_NUM, or one."""
    return [CUDAPinnedPlace()] * (device_count or cpu_num())
