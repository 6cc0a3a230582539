"""The job that a process belongs to, read from Paddle's environment variables.

The variables, with the names that Paddle gave them over time (the first that is set counts):

    role            PADDLE_TRAINING_ROLE, TRAINING_ROLE: TRAINER (the default) or PSERVER
    trainers        PADDLE_TRAINERS_NUM, PADDLE_TRAINERS: how many; the latter may list their hosts
                    instead
    trainer id      PADDLE_TRAINER_ID: 0 to trainers - 1
    endpoints       PADDLE_TRAINER_ENDPOINTS: host:port of every trainer, in the order of their ids
    pservers        PADDLE_PSERVERS_IP_PORT_LIST, PADDLE_PSERVER_ENDPOINTS, PADDLE_PSERVERS,
                    PADDLE_PSERVER_IPS: host or host:port of each
    port            PADDLE_PSERVER_PORT, PADDLE_PORT: for hosts without one; 6174 by default
    this process    PADDLE_CURRENT_ENDPOINT, CURRENT_ENDPOINT, or PADDLE_CURRENT_IP, POD_IP with the
    port

``FLUIDJAX_HUB`` (host:port) comes from ``fluidjax launch``, and is the meeting point of its
processes. ``FLUIDJAX_JOB_SECRET`` is a text known only to the processes of the job;
``FLUIDJAX_JOB_SECRET_FILE`` names a file with it. A scheduler's variables may supply what these
leave open (schedulers.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import FluidValueError, near
from .schedulers import Placed, placed

TRAINER, PSERVER = "TRAINER", "PSERVER"
LARGEST = 65536  # processes in a job: a larger number is a mistake
SECRET = "FLUIDJAX_JOB_SECRET"
SECRET_FILE = f"{SECRET}_FILE"
SHORTEST = 16  # characters of a secret chosen by a person
_PSERVERS = (
    "PADDLE_PSERVERS_IP_PORT_LIST",
    "PADDLE_PSERVER_ENDPOINTS",
    "PADDLE_PSERVERS",
    "PADDLE_PSERVER_IPS",
)
_CURRENT = ("PADDLE_CURRENT_ENDPOINT", "CURRENT_ENDPOINT")
_MARKS = (
    "PADDLE_TRAINING_ROLE", "TRAINING_ROLE", "PADDLE_TRAINERS_NUM", "PADDLE_TRAINERS", "PADDLE_TRAINER_ID",
    "PADDLE_TRAINER_ENDPOINTS", "FLUIDJAX_HUB",
)  # fmt: skip


@dataclass(frozen=True)
class Endpoint:
    """A host and a port; prints as host:port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only processes of the same host can reach it."""
        return self.host == "localhost" or self.host.startswith("127.") or self.host == "::1"


@dataclass(frozen=True)
class JobEnv:
    """The environment's description of the job and of this process.

    role: TRAINER or PSERVER. rank: the trainer's id, or the index of the pserver's endpoint in
    `pservers`. count: the number of trainers. trainers, pservers: endpoints, () if unknown.
    current: this process's own endpoint. hub: the meeting point of the job's processes before they
    start (None: a single trainer). launched: whether fluidjax's launcher started it. secret: the
    job's secret, "" if the environment has none. placed: the scheduler's description from which the
    hub's address comes, None if Paddle's variables or the launcher name one.
    """

    role: str = TRAINER
    rank: int = 0
    count: int = 1
    trainers: tuple[Endpoint, ...] = ()
    pservers: tuple[Endpoint, ...] = ()
    current: Endpoint | None = None
    hub: Endpoint | None = None
    launched: bool = False
    secret: str = field(default="", repr=False)
    placed: Placed | None = None

    @property
    def name(self) -> str:
        """``trainer 1`` or ``pserver 0``."""
        return f"{self.role.lower()} {self.rank}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts in the environment, each once; all addresses reachable only from this host
        count as one.
        """
        known = (*self.trainers, *self.pservers, *([self.current] if self.current else []))
        return tuple(dict.fromkeys("127.0.0.1" if e.loopback else e.host for e in known))

    @property
    def several_machines(self) -> bool:
        """Whether processes of the job may be on different machines."""
        far = self.placed is not None and self.hub is not None and not self.hub.loopback
        return far or len(self.hosts) > 1

    @property
    def hosts_hub(self) -> bool:
        """Whether the others meet at this process."""
        if self.launched or self.hub is None or self.rank != 0:
            return False
        return self.role == (TRAINER if self.trainers else PSERVER)


def read_env(environ: Mapping[str, str] | None = None) -> JobEnv | None:
    """The job described by `environ` (default: os.environ), or None if it has none of Paddle's
    variables and no scheduler started the process.

    Raises FluidValueError, naming the variable and the process, for an unknown role, an id or a
    number that is missing, not a number or out of range, endpoints that are malformed or listed
    twice, lists whose length contradicts the number, an endpoint of this process that is not in its
    list or not at the index of its id, a loopback address for trainer 0 if another trainer has a
    different host, and a scheduler that contradicts Paddle's variables.
    """
    env = {
        k: v.strip() for k, v in (os.environ if environ is None else environ).items() if v.strip()
    }
    place = None if "FLUIDJAX_HUB" in env else placed(env)
    if place is None and not any(mark in env for mark in _MARKS):
        return None
    role = _role(env)
    if place is not None and role == TRAINER:
        env = _filled(env, place)
    hosts = _trainer_hosts(env)
    trainers = _endpoints(env, "PADDLE_TRAINER_ENDPOINTS") or hosts
    count = _count(env, trainers)
    pservers = _pservers(env)
    current = _current(env, role)
    rank = _trainer_id(env, count) if role == TRAINER else _pserver_id(pservers, current)
    if role == TRAINER and trainers:
        current = _own(trainers, rank, current)
        _reachable(trainers)
    hub = meeting_point(env, trainers, pservers)
    if hub is None and count > 1:
        if place is None or role == PSERVER:
            raise FluidValueError(
                f"{role.lower()} {rank} does not know where the {count} trainers meet: set"
                " PADDLE_TRAINER_ENDPOINTS (the first is the coordinator) or"
                " PADDLE_PSERVERS_IP_PORT_LIST, or start the job by python -m fluidjax launch"
            )
        hub = _meets(place, env, rank)
        return JobEnv(role, rank, count, (hub,), (), None, hub, False, given_secret(env), place)
    if count == 1 and "FLUIDJAX_HUB" not in env and not pservers:
        hub = None
    launched = "FLUIDJAX_HUB" in env
    return JobEnv(role, rank, count, trainers, pservers, current, hub, launched, given_secret(env))


def _filled(env: dict[str, str], place: Placed) -> dict[str, str]:
    """The environment of a trainer, completed from its scheduler."""
    count_set_by = _first(env, "PADDLE_TRAINERS_NUM", "PADDLE_TRAINERS", "PADDLE_TRAINER_ENDPOINTS")
    if count_set_by is None:
        if place.count is None:
            raise FluidValueError(
                f"trainer {place.rank}: {place.by} does not say how many trainers the job has: set"
                " PADDLE_TRAINERS_NUM, for an indexed job to its completions"
            )
        env = {**env, "PADDLE_TRAINERS_NUM": str(place.count)}
    if "PADDLE_TRAINER_ID" in env:
        return env
    if count_set_by == "PADDLE_TRAINERS_NUM" and place.count not in (
        None,
        _number(env, count_set_by),
    ):
        raise FluidValueError(
            f"trainer {place.rank}: {count_set_by} is {env[count_set_by]}, but {place.by} started"
            f" {place.count}"
            " processes"
        )
    return {**env, "PADDLE_TRAINER_ID": str(place.rank)}


def _meets(place: Placed, env: Mapping[str, str], rank: int) -> Endpoint:
    """The meeting point of processes that a scheduler started."""
    if not place.first:
        more = ", or give the pods a subdomain" if place.by == "Kubernetes" else ""
        raise FluidValueError(
            f"trainer {rank}: {place.by} does not say on which host trainer 0 runs: set"
            f" PADDLE_TRAINER_ENDPOINTS{more}"
        )
    return Endpoint(place.first, _port(env) if "PADDLE_PORT" in env else place.port)


def meeting_point(
    env: Mapping[str, str], trainers: tuple[Endpoint, ...], pservers: tuple[Endpoint, ...]
) -> Endpoint | None:
    """The meeting point of the processes: the launcher's hub, else the result of `met_at`."""
    if env.get("FLUIDJAX_HUB"):
        return endpoint(env["FLUIDJAX_HUB"], "FLUIDJAX_HUB")
    return met_at(trainers, pservers)


def met_at(trainers: tuple[Endpoint, ...], pservers: tuple[Endpoint, ...] = ()) -> Endpoint | None:
    """The meeting point without a launcher: trainer 0's endpoint, else pserver 0's.

    If all processes are known to be on one machine, it is on the loopback address.
    """
    first = next(iter(trainers or pservers), None)
    if (
        first is None
        or first.loopback
        or not trainers
        or any(e.host != first.host for e in (*trainers, *pservers))
    ):
        return first
    return Endpoint("127.0.0.1", first.port)


def given_secret(environ: Mapping[str, str] | None = None) -> str:
    """The secret from the environment, "" if it has none. Raises FluidValueError for one that is
    too short, and for a file that cannot be read.
    """
    env = os.environ if environ is None else environ
    text, path, what = env.get(SECRET, "").strip(), env.get(SECRET_FILE, "").strip(), SECRET
    if not text and path:
        what = f"the file that {SECRET_FILE} names"
        try:
            text = Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "no text"
            raise FluidValueError(
                f"{SECRET_FILE} is {path!r}, which cannot be read: {why}"
            ) from None
    if (text or path) and len(text) < SHORTEST:
        raise FluidValueError(
            f"{what} has {len(text)} characters; a secret has {SHORTEST} or more, such as what "
            "python -c 'import secrets; print(secrets.token_hex(16))' prints"
        )
    return text


def endpoint(text: str, what: str, port: int | None = None) -> Endpoint:
    """Parse ``host:port``, ``[::1]:port``, or ``host`` alone if `port` is given. Raises
    FluidValueError naming `what`.
    """
    host, colon, digits = text.strip().rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):
        if port is None or ":" in text:
            raise FluidValueError(
                f"{what}: {text!r} is not an endpoint; write host:port, such as 192.168.0.1:6174"
            )
        return Endpoint(_host(text.strip(), text, what), port)
    if not (digits.isascii() and digits.isdigit() and 0 < int(digits) < 65536):
        raise FluidValueError(
            f"{what}: {text!r} is not an endpoint; its port {digits!r} is not a number from 1 to 65535"
        )
    return Endpoint(_host(host.removeprefix("[").removesuffix("]"), text, what), int(digits))


def _host(host: str, text: str, what: str) -> str:
    if not host or any(c.isspace() or c in "/@,;[]" for c in host):
        raise FluidValueError(
            f"{what}: {text!r} is not an endpoint; its host {host!r} is not a name or an address"
        )
    return host


def endpoints(text: str, what: str, port: int | None = None) -> tuple[Endpoint, ...]:
    """A comma-separated list of endpoints. Raises FluidValueError for a malformed or repeated one."""
    found: list[Endpoint] = []
    for part in text.split(","):
        one = endpoint(part, what, port)
        if one in found:
            raise FluidValueError(
                f"{what}: {one} is listed twice, as number {found.index(one)} and number"
                f" {len(found)}; every process needs its own"
            )
        found.append(one)
    return tuple(found)


# -- one variable each -----------------------------------------------------------------------------


def _first(env: Mapping[str, str], *names: str) -> str | None:
    return next((n for n in names if n in env), None)


def _role(env: Mapping[str, str]) -> str:
    name = _first(env, "PADDLE_TRAINING_ROLE", "TRAINING_ROLE")
    role = env[name].upper() if name else TRAINER
    if role not in (TRAINER, PSERVER):
        raise FluidValueError(
            f"{name} is {env[name or '']!r}{near(role, (TRAINER, PSERVER))}; a role is TRAINER or"
            " PSERVER"
        )
    return role


def _number(env: Mapping[str, str], name: str) -> int:
    text = env[name]
    if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) < 10):
        raise FluidValueError(f"{name} is {text!r}, which is not a number")
    return int(text)


def _endpoints(env: Mapping[str, str], name: str) -> tuple[Endpoint, ...]:
    return endpoints(env[name], name) if name in env else ()


def _port(env: Mapping[str, str]) -> int:
    name = _first(env, "PADDLE_PSERVER_PORT", "PADDLE_PORT")
    port = _number(env, name) if name else 6174
    if not 0 < port < 65536:
        raise FluidValueError(f"{name} is {port}; a port is 1 to 65535")
    return port


def _trainer_hosts(env: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """PADDLE_TRAINERS as a list of hosts (Paddle's cloud), not a number."""
    text = env.get("PADDLE_TRAINERS", "")
    if not text or text.lstrip("-").isdigit() or not ("." in text or "," in text or ":" in text):
        return ()
    return endpoints(text, "PADDLE_TRAINERS", _port(env))


def _count(env: Mapping[str, str], trainers: tuple[Endpoint, ...]) -> int:
    name = "PADDLE_TRAINERS_NUM" if "PADDLE_TRAINERS_NUM" in env else "PADDLE_TRAINERS"
    if name not in env or (name == "PADDLE_TRAINERS" and _trainer_hosts(env)):
        if trainers:
            return len(trainers)
        if "PADDLE_TRAINER_ID" in env and env["PADDLE_TRAINER_ID"] != "0":
            raise FluidValueError(
                f"trainer {env['PADDLE_TRAINER_ID']} does not know how many trainers there are: set"
                " PADDLE_TRAINERS_NUM"
            )
        return 1
    count = _number(env, name)
    if not 0 < count <= LARGEST:
        raise FluidValueError(f"{name} is {count}; a job has at least one trainer")
    if trainers and len(trainers) != count:
        who = f"trainer {env['PADDLE_TRAINER_ID']}: " if "PADDLE_TRAINER_ID" in env else ""
        raise FluidValueError(
            f"{who}{name} is {count}, but PADDLE_TRAINER_ENDPOINTS lists {len(trainers)}"
        )
    return count


def _trainer_id(env: Mapping[str, str], count: int) -> int:
    if "PADDLE_TRAINER_ID" not in env:
        if count == 1:
            return 0
        raise FluidValueError(
            f"a trainer has no id: set PADDLE_TRAINER_ID to its number among the {count} trainers,"
            " from 0"
        )
    rank = _number(env, "PADDLE_TRAINER_ID")
    if not 0 <= rank < count:
        raise FluidValueError(
            f"trainer {rank}: PADDLE_TRAINER_ID is {rank}, but there are {count} trainers, so an id"
            f" is 0 to {count - 1}"
        )
    return rank


def _pservers(env: Mapping[str, str]) -> tuple[Endpoint, ...]:
    name = _first(env, *_PSERVERS)
    return endpoints(env[name], name, _port(env)) if name else ()


def _current(env: Mapping[str, str], role: str) -> Endpoint | None:
    if named := _first(env, *_CURRENT):
        return endpoint(env[named], named)
    name = _first(env, "PADDLE_CURRENT_IP", "POD_IP")
    return endpoint(env[name], name, _port(env)) if name and role == PSERVER else None


def _pserver_id(pservers: tuple[Endpoint, ...], current: Endpoint | None) -> int:
    if not pservers:
        raise FluidValueError(
            "a process with the role PSERVER needs the pservers' list: set"
            " PADDLE_PSERVERS_IP_PORT_LIST"
        )
    if current is None:
        raise FluidValueError(
            "a process with the role PSERVER needs its own endpoint: set PADDLE_CURRENT_ENDPOINT"
        )
    if current not in pservers:
        raise FluidValueError(
            f"this pserver's endpoint {current} is not among the pservers"
            f" {', '.join(map(str, pservers))}"
        )
    return pservers.index(current)


def _own(trainers: tuple[Endpoint, ...], rank: int, current: Endpoint | None) -> Endpoint:
    if current is not None and current != trainers[rank]:
        raise FluidValueError(
            f"trainer {rank}: PADDLE_CURRENT_ENDPOINT is {current}, but PADDLE_TRAINER_ENDPOINTS"
            f" has {trainers[rank]} at place {rank}"
        )
    return trainers[rank]


def _reachable(trainers: tuple[Endpoint, ...]) -> None:
    if not trainers[0].loopback:
        return
    for rank, other in enumerate(trainers):
        if not other.loopback:
            raise FluidValueError(
                f"trainer 0's endpoint {trainers[0]} is a loopback address, which trainer {rank} at"
                f" {other} cannot reach; give trainer 0 an address that all hosts can reach"
            )


__all__ = [
    "PSERVER",
    "SECRET",
    "SECRET_FILE",
    "TRAINER",
    "Endpoint",
    "JobEnv",
    "endpoint",
    "endpoints",
    "given_secret",
    "meeting_point",
    "met_at",
    "read_env",
]
