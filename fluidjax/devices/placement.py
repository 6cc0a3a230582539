"""Where a program runs: on one device, on a mesh of devices at once, or for several ranks in turn
on one device.

A rank is one copy of the program with its own part of the batch. State that is the same on all
ranks is one array, replicated over the mesh. State with a value of its own on each rank ("own") is
an array with a leading dimension of ranks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh as JaxMesh
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

from ..errors import FluidValueError
from ..ops.ring import AXIS

IN_FLIGHT = 16  # steps on CPU devices that may be in flight at once
OWN, REPLICATED, STACKED = PartitionSpec(AXIS), PartitionSpec(), PartitionSpec(None, AXIS)


def refuse_mesh(what: str) -> None:
    """Raises FluidValueError if a mesh of several devices is in force (jax.set_mesh), because JAX
    then traces for no other mesh.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.size > 1:
        raise FluidValueError(
            f"{what}, but a mesh over {', '.join(mesh.axis_names)} is in force: leave the block of"
            " jax.set_mesh first"
        )


def copied(array: jax.Array) -> jax.Array:
    """A copy on the same devices. `array.copy()` would compile a program for each shape."""
    with jax.enable_x64(True):
        return jax.device_put(array, may_alias=False)


def owned(values: Sequence[Any], device: Any = None) -> list[Any]:
    """Device arrays with memory of their own. The caller gives the values away, so that large ones
    are not copied.

    device: None means JAX's default device, and then the arrays are not committed.
    """
    with jax.enable_x64(True):
        hosts = iter(
            jax.device_put(
                [v for v in values if isinstance(v, np.ndarray)], device, may_alias=False
            )
        )
        large: dict[int, Any] = {}
        placed = []
        for value in values:
            if isinstance(value, np.ndarray):
                placed.append(next(hosts))
            else:
                placed.append(
                    copied(value) if id(value) in large else jax.device_put(value, device)
                )
                large[id(value)] = value
        return placed


@dataclass(frozen=True)
class OneDevice:
    """One rank, on one device."""

    device: Any
    count = 1
    together = False  # whether several ranks run at once

    def sharding(self, spec: PartitionSpec) -> SingleDeviceSharding:
        """The sharding of an array of the state."""
        return SingleDeviceSharding(self.device)

    def put(self, value: Any, own: bool = False) -> Any:
        """A device array that owns its memory, because a donated array must not be a view of the
        caller's.
        """
        with jax.enable_x64(True):
            # Committed to the device, as the step's results will be: else the second call would
            # compile again.
            if (
                isinstance(value, jax.Array)
                and value.committed
                and set(value.devices()) == {self.device}
            ):
                return value
            if not isinstance(value, jax.Array) or len(value.devices()) > 1:
                value = np.array(value)
            return jax.device_put(value, self.device, may_alias=False)

    def put_all(self, values: Sequence[Any], own: Sequence[bool]) -> list[Any]:
        """`put` of each."""
        return [self.put(v, o) for v, o in zip(values, own, strict=True)]

    def fed(self, value: Any) -> Any:
        """A fed value in the form that the step takes: an array on other devices is copied to this
        one.
        """
        if (
            not isinstance(value, jax.Array)
            or not value.committed
            or value.devices() == {self.device}
        ):
            return value
        with jax.enable_x64(True):
            return jax.device_put(value, self.device)

    def kept(self, values: Sequence[Any]) -> list[Any]:
        """Device arrays of values that the caller gives away."""
        return owned(values, self.device)

    def launched(self, state: Any) -> None:
        """Called after every launch of a step, with the state that it makes."""

    def agreed(self, values: Sequence[Any]) -> list[Any]:
        """These values, because there are no other processes."""
        return list(values)

    def has(self, arrays: Mapping[str, Any]) -> bool:
        """Whether these arrays lie on the ranks, a row on each."""
        return False

    def everywhere(self, array: Any) -> Any:
        """All ranks' rows as a host array."""
        return np.array(array)

    def read(self, name: str, array: Any) -> Any:
        """everywhere, of the array of this name."""
        return self.everywhere(array)


@dataclass(frozen=True)
class Spanning(OneDevice):
    """One rank on several devices. Some of its ops divide their work among them (jax.shard_map);
    its state is replicated.
    """

    devices: tuple[Any, ...] = ()

    @cached_property
    def home(self) -> NamedSharding:
        return NamedSharding(JaxMesh(np.array(self.devices), (AXIS,)), REPLICATED)

    def sharding(self, spec: PartitionSpec) -> Any:
        return self.home

    def put(self, value: Any, own: bool = False) -> Any:
        with jax.enable_x64(True):
            if isinstance(value, jax.Array) and value.sharding == self.home:
                return value
            if not isinstance(value, jax.Array):
                value = np.array(value)
            return jax.device_put(value, self.home, may_alias=False)

    def fed(self, value: Any) -> Any:
        elsewhere = isinstance(value, jax.Array) and value.committed
        return self.put(value) if elsewhere else value

    def kept(self, values: Sequence[Any]) -> list[Any]:
        return [self.put(value) for value in values]


@dataclass(frozen=True)
class Turns(OneDevice):
    """`count` ranks on one device, each op in turn (lower/lockstep.py)."""

    count: int = 1

    def put(self, value: Any, own: bool = False) -> Any:
        return super().put(spread_out(value, self.count) if own else value)


@dataclass(frozen=True)
class Mesh:
    """One rank for each device, all run at once under jax.shard_map. Some devices may belong to
    other processes of the job.
    """

    devices: tuple[Any, ...]
    # called before anything that needs every process
    begins: Callable[[], None] = field(default=lambda: None, compare=False)
    # raises if the processes' values differ
    compares: Callable[[Mesh, str], None] = field(default=lambda _mesh, _text: None, compare=False)
    asks: Callable[[Mesh, str, Any], Any] = field(
        default=lambda mesh, _name, array: mesh.everywhere(array), compare=False
    )
    together = True
    _steps: Iterator[int] = field(default_factory=itertools.count, compare=False)

    @property
    def count(self) -> int:
        return len(self.devices)

    @property
    def device(self) -> Any:
        """A device of this process."""
        return self.local[0]

    @cached_property
    def local(self) -> tuple[Any, ...]:
        """The devices of this process, in the order of the ranks."""
        here = jax.process_index()
        return tuple(d for d in self.devices if d.process_index == here)

    @cached_property
    def shared(self) -> bool:
        """Whether other processes hold some of the devices."""
        return len(self.local) != self.count

    @cached_property
    def mesh(self) -> JaxMesh:
        return JaxMesh(np.array(self.devices), (AXIS,))

    def sharding(self, spec: PartitionSpec) -> NamedSharding:
        """The sharding of an array of the state."""
        return NamedSharding(self.mesh, spec)

    def put_all(self, values: Sequence[Any], own: Sequence[bool]) -> list[Any]:
        """`put` of each. If other processes hold devices, each process calls this, and all get
        process 0's values.

        Per-rank values, and values that are on the mesh already, are not replaced.
        """
        values = list(values)
        if self.shared:
            new = [
                i for i, v in enumerate(values) if not isinstance(v, PerRank) and not self._here(v)
            ]
            for i, first in zip(
                new, self._first([np.asarray(values[i]) for i in new]), strict=True
            ):
                values[i] = np.asarray(first) if own[i] else first
        return [self.put(v, o) for v, o in zip(values, own, strict=True)]

    def fed(self, value: Any) -> Any:
        """A fed value that can be split among the ranks: an array on other devices is copied to the
        host.
        """
        elsewhere = (
            isinstance(value, jax.Array)
            and value.committed
            and value.devices() != set(self.devices)
        )
        return np.asarray(value) if elsewhere and not self.shared else value

    def kept(self, values: Sequence[Any]) -> list[Any]:
        """These values on all devices; process 0's values if other processes hold some devices."""
        return self.put_all(values, [False] * len(values))

    def _here(self, value: Any) -> bool:
        return isinstance(value, jax.Array) and value.sharding in (
            self.sharding(REPLICATED),
            self.sharding(OWN),
        )

    def agreed(self, values: Sequence[Any]) -> list[Any]:
        """These values; process 0's values if other processes hold devices, and then each process
        calls this.
        """
        return (
            [np.asarray(v) for v in self._first([np.asarray(v) for v in values])]
            if self.shared
            else list(values)
        )

    def _first(self, hosts: Sequence[np.ndarray]) -> list[Any]:
        """Process 0's values of these arrays, in one message."""
        with jax.enable_x64(True):
            every = [self._rows_of(h) for h in hosts]
            return (
                list(
                    jax.jit(
                        lambda many: [a[0] for a in many], out_shardings=self.sharding(REPLICATED)
                    )(every)
                )
                if every
                else []
            )

    def _rows_of(self, host: np.ndarray) -> Any:
        """An array [ranks, ...] with this array in the rows of this process."""
        return jax.make_array_from_callback(
            (self.count, *host.shape), self.sharding(OWN), lambda _: host[None]
        )

    def put(self, value: Any, own: bool = False) -> Any:
        """The array on all devices: replicated, or one row on each rank's device."""
        sharding = self.sharding(OWN if own else REPLICATED)
        with jax.enable_x64(True):
            if isinstance(value, jax.Array) and value.sharding == sharding:
                return value
            host = spread_out(value, self.count) if own else np.asarray(value)
            return jax.make_array_from_callback(
                host.shape, sharding, lambda index: np.array(host[index])
            )

    def launched(self, state: Any) -> None:
        """Called after every launch of a step, with the state that it makes.

        JAX on the CPU deadlocks in a collective if more than 32 steps of several devices are in
        flight, because the devices then start them in different orders. So this waits in time.
        """
        if self.device.platform == "cpu" and next(self._steps) % IN_FLIGHT == IN_FLIGHT - 1:
            jax.block_until_ready(state)

    def has(self, arrays: Mapping[str, Any]) -> bool:
        """Whether these arrays lie on the ranks, a row on each."""
        return all(a.sharding == self.sharding(OWN) for a in arrays.values())

    def everywhere(self, array: Any) -> Any:
        """All ranks' rows as a host array. If other processes hold some, each process must call
        this.
        """
        if not array.is_fully_addressable:
            self.begins()
            array = self._gathered(array)
        return np.array(array)

    def read(self, name: str, array: Any) -> Any:
        """`everywhere` for the state's array of this name. If the processes take turns, one of them
        may call this alone.
        """
        return self.asks(self, name, array)

    @cached_property
    def _gathered(self) -> Callable[[Any], Any]:
        return jax.jit(lambda a: a, out_shardings=self.sharding(REPLICATED))

    def spmd(self, body: Callable[..., Any], ins: Any, outs: Any, **options: Any) -> Any:
        """The jitted function that runs `body` for each rank on its device."""
        spread = jax.shard_map(body, mesh=self.mesh, in_specs=ins, out_specs=outs, check_vma=False)
        return jax.jit(spread, **options)


Placement = OneDevice | Spanning | Turns | Mesh


class PerRank(np.ndarray):
    """A host array with a row for each rank, as opposed to one value for all.

    partial: the rows of other processes' ranks are copies of this process's first row; a step does
    not fetch the true ones.
    """

    partial = False


def per_rank(array: Any) -> Any:
    """Mark `array` [ranks, ...] as having a row for each rank."""
    return np.asarray(array).view(PerRank)


def spread_out(value: Any, count: int) -> Any:
    """The rows of all ranks: the rows of `value` if it is a PerRank, else `value` for each rank."""
    if isinstance(value, PerRank):
        return np.asarray(value)
    host = np.asarray(value)
    return np.broadcast_to(host, (count, *host.shape))
