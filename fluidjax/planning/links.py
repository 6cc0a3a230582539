"""The speed of links between devices, and the time of a collective over them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..base import units
from ..errors import FluidTypeError, FluidValueError, near

ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL, SEND = (
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "all-to-all",
    "send/recv",
)
KINDS = (ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL, SEND)


@dataclass(frozen=True)
class Link:
    """What one device can send, and at the same time receive. speed: bytes a second, or text;
    latency: seconds of one message.
    """

    speed: Any
    latency: Any = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "speed", units.speed("the speed of a link", self.speed))
        object.__setattr__(self, "latency", units.seconds("the latency of a link", self.latency))


@dataclass(frozen=True)
class Links:
    """Links of devices in groups (a server, a pod). within: between two devices of a group;
    between: from each device to other groups.

    group: the number of devices of a group; None: all devices are in one.
    """

    name: str
    within: Link
    group: int | None = None
    between: Link | None = None

    def __post_init__(self) -> None:
        for what, link in (("within", self.within), ("between", self.between)):
            if not isinstance(link, Link) and not (what == "between" and link is None):
                raise FluidTypeError(
                    f"the links {what} groups are a Link, such as Link('50GB/s', '5us'), not"
                    f" {link!r}"
                )
        if self.group is None:
            return
        if isinstance(self.group, bool) or not isinstance(self.group, int) or self.group < 1:
            raise FluidValueError(
                f"group is how many devices a server has, a positive integer, not {self.group!r}"
            )
        if self.between is None:
            raise FluidValueError(
                f"the speed of the links between groups of {self.group} devices is missing; pass"
                " between=Link(...)"
            )

    def split(self, ranks: int) -> tuple[int, int]:
        """The number of devices of a group that take part, and the number of groups. Raises
        FluidValueError unless groups are full.
        """
        if self.group is None or ranks <= self.group:
            return ranks, 1
        if ranks % self.group:
            raise FluidValueError(
                f"{ranks} devices do not make full groups of {self.group}, as the links"
                f" {self.name!r} have"
            )
        return self.group, ranks // self.group

    def seconds(self, kind: str, payload: float, ranks: int, messages: int = 1) -> float:
        """How long `messages` collectives of a kind take that move so many bytes together.

        Groups of g devices, m of them: a collective goes over the group and then, each device with
        its g-th part, between the groups, as NCCL's hierarchical ones do; an all-to-all sends to
        other groups what is for them. Each way moves what wire_bytes says at the speed of its link,
        and waits once for a tree of messages.
        """
        g, m = self.split(ranks)
        inside = self._over(
            self.within, kind, payload if kind != ALL_TO_ALL else payload / m, g, messages
        )
        if m == 1:
            return inside
        assert self.between is not None
        if kind == ALL_TO_ALL:
            return (
                inside
                + payload * (m - 1) / m / self.between.speed
                + messages * (m - 1) * self.between.latency
            )
        return inside + self._over(self.between, kind, payload / g, m, messages)

    def _over(self, link: Link, kind: str, payload: float, ranks: int, messages: int) -> float:
        if ranks == 1:
            return 0.0
        depth = (2 if kind == ALL_REDUCE else 1) * math.ceil(math.log2(ranks))
        return wire_bytes(kind, payload, ranks) / link.speed + messages * depth * link.latency


def wire_bytes(kind: str, payload: float, ranks: int) -> float:
    """Bytes that a device sends in a collective of a ring, and receives as many.

    payload: bytes of the larger of what a device gives and gets. A ring's all-reduce is a
    reduce-scatter and an all-gather, each of which passes (n-1)/n of the payload on; an all-to-all
    keeps its own part; send/recv moves all.
    """
    if ranks == 1:
        return 0.0
    if kind == SEND:
        return payload
    return (2 if kind == ALL_REDUCE else 1) * payload * (ranks - 1) / ranks


# Published speeds, each way of one device. NVLink: NVIDIA states the sum of both ways (V100 300,
# A100 600, H100 and H200 900, B200 1,800 GB/s). InfiniBand HDR, NDR: 200 and 400 Gb/s a port, one
# port for each device; EDR: 100 Gb/s, four ports for the eight of a DGX-1. TPU: the interconnect a
# chip that Google's pages state (v4 2,400, v5e 1,600, v5p 4,800 Gb/s). Latencies are not published
# in a comparable form: these are round figures, to be replaced by measured ones.
_IB_EDR, _IB_HDR, _IB_NDR = (Link(speed, "5us") for speed in ("50Gb/s", "200Gb/s", "400Gb/s"))
LINKS: Mapping[str, Links] = {
    links.name: links
    for links in (
        Links("v100", Link("150GB/s", "3us"), 8, _IB_EDR),
        Links("a100", Link("300GB/s", "3us"), 8, _IB_HDR),
        Links("h100", Link("450GB/s", "3us"), 8, _IB_NDR),
        Links("h200", Link("450GB/s", "3us"), 8, _IB_NDR),
        Links("b200", Link("900GB/s", "3us"), 8, _IB_NDR),
        Links("ethernet-10", Link("10Gb/s", "30us")),
        Links("ethernet-25", Link("25Gb/s", "30us")),
        Links("ethernet-100", Link("100Gb/s", "15us")),
        Links("ethernet-400", Link("400Gb/s", "15us")),
        Links("tpu-v4", Link("2400Gb/s", "1us")),
        Links("tpu-v5e", Link("1600Gb/s", "1us"), 256, Link("25Gb/s", "30us")),
        Links("tpu-v5p", Link("4800Gb/s", "1us")),
    )
}


def as_links(value: Any) -> Links:
    """Links from themselves, from a Link, or from the name of a preset. Raises FluidValueError for
    anything else.
    """
    if isinstance(value, Links):
        return value
    if isinstance(value, Link):
        return Links("given", value)
    if isinstance(value, str) and value in LINKS:
        return LINKS[value]
    if isinstance(value, str) and not any(c.isdigit() for c in value[:1]):
        raise FluidValueError(
            f"there are no links {value!r}{near(value, LINKS)}; there are {', '.join(LINKS)}, or a"
            " Link"
        )
    return Links("given", Link(value))  # a speed; None has a sentence of its own there
