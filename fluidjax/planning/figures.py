"""The data of a plan, without its presentation: a row for each strategy and number of devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

COMPUTE, MEMORY, LINKS, ROOM = "compute", "memory", "links", "room"


@dataclass(frozen=True)
class Row:
    """One device's share of a step. All sizes are bytes, all times seconds; None: nothing was given
    to tell it from.

    batch: of all devices; each: of one. parameters, state, feeds: held between steps, exact.
    activations: what a step computes and forgets, at its worst moment, when every variable takes
    memory; temporaries: the compiler's figure; neither is less than what lies beside each other
    while gradients, ids and rows travel: what a device gives and what it gets. flops: of
    convolutions and products, and one for each element that anything else computes; of an update
    those of the device's share. payload: bytes of collectives by kind, as the compiled step has
    them; sent: what a device sends of them around a ring. compute, traffic, links: how long each
    takes by itself. seconds: of a step, where an update waits for the gradients and the links for
    the device. bound: which of them is the longest ("compute", "memory", "links"), or "room" where
    the device has too little memory.
    """

    strategy: str
    devices: int
    batch: int
    each: int
    parameters: int
    state: int
    feeds: int
    activations: int
    temporaries: int | None
    flops: float
    payload: Mapping[str, int]
    sent: float
    compute: float | None
    traffic: float | None
    links: float | None
    seconds: float | None
    bound: str | None

    @property
    def bytes(self) -> int:
        """The bytes that a device needs: held values, and the compiler's temporaries if they are
        known, else the activations.
        """
        return (
            self.parameters
            + self.state
            + self.feeds
            + (self.activations if self.temporaries is None else self.temporaries)
        )

    @property
    def samples_a_second(self) -> float | None:
        """Of all devices."""
        return self.batch / self.seconds if self.seconds else None


@dataclass(frozen=True)
class Figures:
    """rows: by strategy, then by devices. given: what the times were computed
    from, and what of the program was not followed."""

    rows: tuple[Row, ...]
    given: Mapping[str, str] = field(default_factory=dict)

    def row(self, devices: int, strategy: str | None = None) -> Row:
        """The row of so many devices, of the first strategy that has one if none is named. Raises
        KeyError if there is none.
        """
        found = next(
            (r for r in self.rows if r.devices == devices and strategy in (None, r.strategy)), None
        )
        if found is None:
            raise KeyError(
                f"the plan has no row of {devices} devices"
                + (f" and {strategy}" if strategy else "")
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """A dict of plain values, for JSON."""
        rows = [{**asdict(r), "payload": dict(r.payload), "bytes": r.bytes} for r in self.rows]
        return {"given": dict(self.given), "rows": rows}
