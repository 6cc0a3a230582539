"""The checked arguments of a transpile call: the trainers and pservers, and how the work is cut."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import FluidTypeError, FluidValueError, near
from .ps_dispatcher import PSDispatcher
from .refused import ArgumentTypeError, TranspileAssertion

_ENDPOINT = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^\s:,/\[\]]+):(\d{1,5})")


@dataclass(frozen=True)
class Request:
    """The arguments and the configuration of one transpile in pserver or geo mode.

    sync, half_async, geo: how pservers and trainers wait for each other. merged: pservers keep the
    trainers' gradients apart and average them (sync mode, or completely_not_async).
    """

    trainer_id: int
    trainers: int
    endpoints: tuple[str, ...]
    split_method: type[PSDispatcher]
    sync: bool = True
    slice_var_up: bool = True
    min_block_size: int = 8192
    runtime_split: bool = False
    half_async: bool = False
    completely_not_async: bool = False
    dc_asgd: bool = False
    geo: bool = False
    push_every: int = 1

    @property
    def mode(self) -> str:
        """One of dist.pserver_plan.MODES."""
        if self.geo:
            return "geo"
        if self.sync or self.completely_not_async:
            return "sync"
        return "half_async" if self.half_async else "async"

    @property
    def distributed_mode(self) -> int:
        """Paddle's number of the mode: pservers see whether trainers have a communicator, not
        whether they wait.
        """
        if self.geo:
            return 3
        if self.sync or self.completely_not_async:
            return 0
        return 1 if self.runtime_split else 2

    @property
    def merged(self) -> bool:
        return (self.sync or self.completely_not_async) and self.trainers > 1

    def suffix(self, trainer_id: int) -> str:
        """The suffix of the names of the gradients that this trainer sends."""
        return f".trainer_{trainer_id}" if self.sync and self.trainers > 1 else ""


def endpoints_of(text: Any, what: str) -> tuple[str, ...]:
    """The endpoints of ``"ip:port,ip:port"``.

    Raises ArgumentTypeError for anything but a string; FluidValueError for a string that is empty,
    malformed or has an endpoint twice.
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(f"{what} is one string, 'ip:port,ip:port', not {text!r}")
    return checked_endpoints(text.split(","), what)


def checked_endpoints(endpoints: Sequence[Any], what: str) -> tuple[str, ...]:
    """`endpoints`, if each is ip:port with a port of 0 to 65535 and there are no duplicates. Raises
    FluidValueError.
    """
    for endpoint in endpoints:
        found = _ENDPOINT.fullmatch(endpoint) if isinstance(endpoint, str) else None
        if found is None or int(found[1]) > 65535:
            raise FluidValueError(
                f"{what} holds {endpoint!r}; an endpoint is ip:port, as in '127.0.0.1:6174'"
            )
    twice = [e for i, e in enumerate(endpoints) if e in endpoints[:i]]
    if twice:
        raise FluidValueError(
            f"{what} holds {twice[0]!r} twice; every process needs an endpoint of its own"
        )
    return tuple(endpoints)


def trainer_count(trainers: Any) -> int:
    """The number of trainers. Raises FluidTypeError for anything but an int, FluidValueError below
    1.
    """
    if isinstance(trainers, bool) or not isinstance(trainers, int):
        raise FluidTypeError(
            f"in pserver mode trainers is how many there are, an int, not {trainers!r}"
        )
    if trainers < 1:
        raise FluidValueError(f"trainers is {trainers}; a job has at least 1")
    return trainers


def rank_of(trainer_id: Any, trainers: int) -> int:
    """The trainer's number. Raises FluidTypeError for anything but an int, FluidValueError if there
    is no such trainer.
    """
    if isinstance(trainer_id, bool) or not isinstance(trainer_id, int):
        raise FluidTypeError(f"trainer_id is an int, not {trainer_id!r}")
    if not 0 <= trainer_id < trainers:
        raise FluidValueError(
            f"trainer_id is {trainer_id}, but there are {trainers} trainers, 0 to {trainers - 1}"
        )
    return trainer_id


def current_of(current: Any, endpoints: Sequence[str]) -> str:
    """The current endpoint. Raises FluidValueError, which names similar ones, if it is not in
    `endpoints`.
    """
    if current not in endpoints:
        raise FluidValueError(
            f"current endpoint {current} is not in"
            f" {list(endpoints)}{near(str(current), endpoints)}; it is one of trainers"
        )
    return str(current)


def hierarchy(trainers: int, inter_nranks: int) -> None:
    """Raises TranspileAssertion if groups of `inter_nranks` do not divide the trainers into several
    groups.
    """
    if inter_nranks < 2:
        raise TranspileAssertion(
            f"hierarchical_allreduce_inter_nranks is {inter_nranks}; with"
            " use_hierarchical_allreduce say how many ranks a group has, 2 or more"
        )
    if trainers <= inter_nranks:
        raise TranspileAssertion(
            f"trainers_num:{trainers} < hierarchical_allreduce_inter_nranks:{inter_nranks}"
        )
    if trainers % inter_nranks:
        raise TranspileAssertion(
            f"trainers_num:{trainers} mod hierarchical_allreduce_inter_nranks:{inter_nranks} != 0"
        )
