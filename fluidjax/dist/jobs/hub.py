"""The hub of a job: it checks the processes before jax starts, watches them while they run, and
notifies them when one ends.

The hub is one thread with one selector in the launcher, or, without a launcher, in trainer 0 (or
pserver 0 if the trainers' addresses are unknown). Every process keeps one connection to it. The
kernel closes a connection when its process ends for any reason, so the other end notices it at
once, without heartbeats.

Messages, one JSON object a line (`wire.py`):

    hub      {"hub": version, "nonce": n}  {"proof": p}  {"stranger": true}
             {"ok": {"coordinator": ...}}  {"refused": why}  {"end": why}  {"done": true}  {"poll":
             true} {"program": k, "text": true}  {"program": k, "same": true}  {"program": k,
             "different": why} {"turn": k, "wishes": [w, ...]}  {"loaded": [[k, folder, file], ...]}
             {"hosts": [host, ...]}
    process  {"proof": p, "nonce": n, "hello": ..., "failed": why}  {"steps": n}  {"bye": n}
    {"failed": why}
             {"program": k, "hash": h, "steps": n, "what": why}  {"program": k, "text": t}
             {"turn": k, "wish": w}  {"serves": [folder, file]}  {"asks": "loaded"}
             {"asks": "hosts"}  {"holds": true}

A connection whose first message does not prove the job's secret (`secret.py`) is a stranger's: it
is dropped, and nothing else happens. The number of silent strangers is bounded, and so is their
time.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...errors import ParseError
from . import hangs, wire
from . import secret as secrets
from .compare_programs import Comparison
from .env import PSERVER, TRAINER, Endpoint
from .handshake import Hello, contradiction, missing, read_hello, trainers_text

VERSION = 2
SILENT = 10.0  # seconds that a connection has to prove the secret
STRANGERS = 64  # unproven connections; with one more, the oldest is dropped
# seconds between the first sign of a death and the report, so that consequences arrive too
GRACE = 0.3
WISH = 1000  # characters of a trainer's request in its turn
POLL = 0.5  # seconds between queries of the number of steps, once a trainer has ended
GATHERING, RUNNING, OVER = "gathering", "running", "over"


@dataclass(eq=False)
class Peer:
    """One connection."""

    sock: socket.socket
    lines: wire.Lines = field(default_factory=lambda: wire.Lines(wire.FIRST))
    nonce: str = field(default_factory=secrets.nonce)
    hello: Hello | None = None
    steps: int = 0
    ended: bool = False  # it said goodbye
    failed: str = ""  # or the reason of its coming end
    since: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)  # time of its last message
    moved: float = field(default_factory=time.monotonic)  # time at which it began its last step
    named: str = ""  # the current report about it

    @property
    def name(self) -> str:
        return self.hello.name if self.hello else "a stranger"

    @property
    def where(self) -> str:
        """``process 4711 on host a``."""
        return self.hello.where if self.hello else ""

    @property
    def trains(self) -> bool:
        """Whether it is a trainer."""
        return self.hello is not None and self.hello.role == TRAINER


class Hub:
    """See the module. The constructor listens; `start` lets the thread run.

    address: the address to listen at (port 0: any; see `.address`). count: trainers in the job.
    timeout: seconds until all of them must have arrived. secret: the secret that processes must
    prove to know; "": a new one, in a file that only this user's processes can read. supervised: a
    supervisor observes how processes end, and calls `end`. pservers: the number of pservers. Raises
    OSError if it cannot listen there, or write that file.
    """

    def __init__(
        self,
        address: Endpoint,
        count: int,
        timeout: float,
        secret: str = "",
        supervised: bool = False,
        pservers: int = 0,
    ) -> None:
        self._secret, self._left = secret or secrets.new_secret(), None if secret else address
        self._listener = _listen(address, self._leave)
        self._listener.setblocking(False)
        self.address = Endpoint(address.host, self._listener.getsockname()[1])
        self.count, self.supervised = count, supervised
        self.timeout = timeout
        self.state = GATHERING
        self.verdict = ""  # why the job was refused or ended early
        self.failures: dict[str, str] = {}  # "trainer 1" -> its last message before it ended
        self.goodbyes: set[str] = set()
        self.holding = False  # trainers write a checkpoint when they get SIGTERM
        self.peers: list[Peer] = []
        self._gone: list[Peer] = []
        self._checks: dict[int, Comparison] = {}
        # for each turn, the requests of the trainers that have reached it
        self._turns: dict[int, dict[int, str]] = {}
        self._pservers, self._serving, self._asking = pservers, dict[int, list[str]](), list[Peer]()
        self._deadline = time.monotonic() + timeout
        self._polled = 0.0  # time of the last query of steps
        self._hangs = hangs.Hangs(_say)
        self._verdict_at: float | None = None
        self._orders: list[str] = []
        self._closing = False
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="fluidjax hub", daemon=True)

    @property
    def reached(self) -> Endpoint:
        """The address by which the hub's own process reaches it; the others may use another
        address.
        """
        return Endpoint(*self._listener.getsockname()[:2])

    def _leave(self, port: int) -> None:
        """After binding the port: write the secret where this user's processes find it, unless they
        already have it.
        """
        if self._left is not None:
            self._left = Endpoint(self._left.host, port)
            secrets.leave(self._left, self._secret)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def end(self, why: str) -> None:
        """Tell every process to end, for this reason. Callable from any thread."""
        self._orders.append(why)
        self._nudge()

    def close(self, wait: float = 5.0) -> None:
        """Stop; `wait`: seconds for processes without an answer to fetch it."""
        if self._thread.is_alive():
            limit = time.monotonic() + wait
            while (
                self.state == OVER
                and self.verdict
                and not self._all_answered()
                and time.monotonic() < limit
            ):
                time.sleep(0.02)
            self._closing = True
            self._nudge()
            self._thread.join(2.0)
        if self._left is not None:
            secrets.take_away(self._left, self._secret)

    def forget(self) -> None:
        """In a forked child: close the connections, which stay its parent's."""
        for sock in (self._listener, *(p.sock for p in self.peers)):
            sock.close()

    def _nudge(self) -> None:
        with contextlib.suppress(OSError):
            self._wake.send(b"!")

    def _all_answered(self) -> bool:
        if time.monotonic() > self._deadline:
            return True  # late arrivals are not waited for
        return (
            len({p.name for p in self.peers if p.hello} | {p.name for p in self._gone if p.hello})
            >= self.count
        )

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        try:
            while not self._closing:
                for key, _ in self._selector.select(0.1):
                    if key.fileobj is self._listener:
                        self._accept()
                    elif key.fileobj is self._woken:
                        self._woken.recv(64)
                    else:
                        self._read(key.data)
                self._tick(time.monotonic())
        finally:
            for sock in (self._listener, self._woken, self._wake, *(p.sock for p in self.peers)):
                sock.close()
            self._selector.close()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        wire.patient(sock)
        sock.settimeout(5.0)
        strangers = [p for p in self.peers if p.hello is None]
        for oldest in strangers[: max(0, len(strangers) + 1 - STRANGERS)]:
            self._drop(oldest)
        peer = Peer(sock)
        self.peers.append(peer)
        self._selector.register(sock, selectors.EVENT_READ, peer)
        self.send(peer, {"hub": VERSION, "nonce": peer.nonce})

    def send(self, peer: Peer, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the next read shows that it is gone
            peer.sock.sendall(wire.encode(message))

    def _tell(self, message: dict[str, Any]) -> None:
        for peer in self.peers:
            if peer.hello:
                self.send(peer, message)

    def _read(self, peer: Peer) -> None:
        try:
            data = peer.sock.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._lost(peer)
            return
        peer.heard = time.monotonic()
        try:
            for message in peer.lines.feed(data):
                self._hear(peer, message)
        except ParseError as error:
            if peer.hello is None:
                self._send_away(peer)
            else:
                peer.failed = peer.failed or f"it sent something that is not a message: {error}"
                self._lost(peer)

    def _send_away(self, stranger: Peer) -> None:
        """Drop a stranger; the job continues unchanged."""
        self.send(stranger, {"stranger": True})
        self._drop(stranger)

    def _drop(self, peer: Peer) -> None:
        if peer in self.peers:
            self._selector.unregister(peer.sock)
            self.peers.remove(peer)
            peer.sock.close()

    def _lost(self, peer: Peer) -> None:
        """Handle a closed connection: the process has ended."""
        if peer not in self.peers:
            return
        self._drop(peer)
        if peer.hello is None:
            return
        self._gone.append(peer)
        if not peer.ended and not self.supervised:
            self._suspect()

    def _suspect(self) -> None:
        if self._verdict_at is None and self.state != OVER:
            self._verdict_at = time.monotonic() + GRACE

    # -- messages ----------------------------------------------------------------------------------

    def _hear(self, peer: Peer, message: dict[str, Any]) -> None:
        if peer.hello is None:
            self._meet(peer, message)
        elif "program" in message:
            self._compare(peer, message)
        elif "turn" in message:
            assert peer.hello is not None
            self._turns.setdefault(_count(message["turn"]), {})[peer.hello.rank] = str(
                message.get("wish")
            )[:WISH]
            self._answer_turns()
        elif "serves" in message:
            self._serves(peer, message["serves"])
        elif "holds" in message:
            self.holding = True
        elif message.get("asks") == "hosts":
            self.send(peer, {"hosts": self._hosts()})
        elif "asks" in message:
            self._asking.append(peer)
            self._answer_loaded()
        elif "steps" in message or "bye" in message:
            steps = max(peer.steps, _count(message.get("steps", message.get("bye"))))
            if steps > peer.steps:
                peer.steps, peer.moved = steps, time.monotonic()
            if "bye" in message:
                peer.ended = True
                self.goodbyes.add(peer.name)
                if peer.hello.role == PSERVER:
                    self._serves(peer, ["", ""])
            self._judge_steps()
            self._judge_checks()
            self._answer_turns()
            self._maybe_done()
        elif "failed" in message and not self.verdict:  # what fails later fails because of that
            peer.failed = str(message["failed"])[:2000]
            self.failures[peer.name] = peer.failed
            if not self.supervised:
                self._suspect()

    def _meet(self, peer: Peer, message: dict[str, Any]) -> None:
        """Handle the first message. Raises ParseError for a stranger's."""
        nonce, shown = message.get("nonce"), message.get("proof")
        if not (
            isinstance(nonce, str)
            and secrets.proves(shown, self._secret, "process", nonce, peer.nonce)
        ):
            raise ParseError("it did not prove that it knows the secret")
        hello = read_hello(message.get("hello"))
        peer.lines.limit = wire.LINE
        self.send(peer, {"proof": secrets.proof(self._secret, "hub", peer.nonce, nonce)})
        self._greet(peer, hello, message.get("failed"))

    def _greet(self, peer: Peer, hello: Hello, failed: object) -> None:
        if failed:
            peer.hello = hello
            self._over(f"{str(failed)[:2000]}", "refused")
        elif self.state == OVER and hello.role == PSERVER and not self.verdict:
            # it was slow to start, and there is nothing left to serve
            peer.hello, peer.ended = hello, True
            self.send(peer, {"ok": {"coordinator": ""}})
            self.send(peer, {"done": True})
        elif self.state == OVER:
            peer.hello = hello
            self.send(peer, {"refused": self.verdict or "the job is over"})
        elif self.state == RUNNING and (hello.role == TRAINER or self._find(hello)):
            late = (
                f"the job runs already, so {hello.name} ({hello.where}) cannot join it; end all"
                " processes and start them together"
            )
            self.send(peer, {"refused": late})
        else:
            known = [p.hello for p in (*self.peers, *self._gone) if p.hello]
            why = contradiction(known, hello, self.count, self.address.loopback)
            peer.hello = hello
            if why and self.state == RUNNING:  # a late pserver
                peer.ended = True
                self.send(peer, {"refused": why})
            elif why:
                self._over(why, "refused")
            else:
                self._gathered(peer)

    def _find(self, hello: Hello) -> bool:
        return any(p.hello and p.name == hello.name for p in self.peers)

    def _gathered(self, newest: Peer) -> None:
        hellos = [p.hello for p in self.peers if p.hello]
        if self.state == RUNNING:
            self.send(newest, {"ok": {"coordinator": ""}})
        elif not missing(hellos, self.count):
            self.state, self._polled = RUNNING, time.monotonic()
            self._tell({"ok": {"coordinator": self._coordinator()}})

    def _coordinator(self) -> str:
        """The address of jax's coordinator: on trainer 0's host, as reachable by the others."""
        zero = next(
            p for p in self.peers if p.hello and p.hello.role == TRAINER and p.hello.rank == 0
        )
        assert zero.hello is not None
        seen = zero.sock.getpeername()[0]
        host = self.address.host if Endpoint(seen, 1).loopback else seen
        return str(Endpoint(host, zero.hello.jax_port))

    def _hosts(self) -> list[str]:
        """The address of each trainer; the loopback if all are on this machine."""
        seen = dict.fromkeys(range(self.count), self.address.host)
        for peer in self.peers:
            if peer.hello and peer.hello.role == TRAINER:
                host = peer.sock.getpeername()[0]
                if not Endpoint(host, 1).loopback:
                    seen[peer.hello.rank] = host
        return [seen[rank] for rank in range(self.count)]

    def _maybe_done(self) -> None:
        trainers = [p for p in (*self.peers, *self._gone) if p.hello and p.hello.role == TRAINER]
        if self.state == RUNNING and len(trainers) >= self.count and all(p.ended for p in trainers):
            self.state = OVER
            for peer in self.peers:
                peer.ended = True
            self._tell({"done": True})

    # -- verdicts ----------------------------------------------------------------------------------

    def _tick(self, now: float) -> None:
        while self._orders:
            self._over(self._orders.pop(0), "end")
        for peer in [p for p in self.peers if p.hello is None and now - p.since > SILENT]:
            self._drop(peer)
        if self.state == GATHERING and now > self._deadline:
            ranks = missing((p.hello for p in self.peers if p.hello), self.count)
            self._over(
                f"{trainers_text(ranks)} of {self.count} did not come within {self.timeout:g} s",
                "refused",
            )
        if self._verdict_at is not None and now > self._verdict_at and self.state != OVER:
            self._over(self._who_died(), "end")
        if self.state != RUNNING:
            return
        running = [p for p in self.peers if p.hello and not p.ended]
        if hung := self._hangs.look(now, running):
            self._over(hung, "end")
        soon = self._checks or any(p.ended for p in self._trainers())
        if now - self._polled > (POLL if soon else hangs.PING):
            self._polled = now
            for peer in running:
                self.send(peer, {"poll": True})

    def _trainers(self) -> list[Peer]:
        return [p for p in (*self.peers, *self._gone) if p.hello and p.hello.role == TRAINER]

    def _who_died(self) -> str:
        """The first cause: a process that ended silently comes before one that reported a failure."""
        silent = [p for p in self._gone if not p.ended and not p.failed and p.hello]
        for peer in silent:
            assert peer.hello is not None
            early = " before the job started" if self.state == GATHERING else ""
            return (
                f"{peer.name} ({peer.hello.where}) ended without a word{early}: it was killed, or"
                " it crashed"
            )
        peer = next(p for p in (*self._gone, *self.peers) if p.failed)
        return f"{peer.name} failed: {peer.failed}"

    def _judge_steps(self) -> None:
        trainers = self._trainers()
        ended = [p for p in trainers if p.ended]
        if self.state != RUNNING or not ended:
            return
        short, far = min(ended, key=lambda p: p.steps), max(trainers, key=lambda p: p.steps)
        if far.steps > short.steps:
            steps = f"{short.steps} step{'s' * (short.steps != 1)}"
            self._over(
                f"{short.name} ended after {steps}, but {far.name} has begun step {far.steps},"
                " which needs every trainer; give all trainers the same number of batches",
                "end",
            )

    def _judge_checks(self) -> None:
        """Whether a trainer has passed or ended at a point where another one waits for a
        comparison.
        """
        if self.state != RUNNING:
            return
        for comparison in self._checks.values():
            for peer in self._trainers():
                assert peer.hello is not None
                if why := comparison.missed(peer.hello.rank, peer.steps, peer.ended):
                    self._over(why, "end")

    def _answer_turns(self) -> None:
        """Send all requests, once every running trainer has made its own; an ended trainer counts
        as "".
        """
        ended = {p.hello.rank for p in self._trainers() if p.hello and p.ended}
        for k in [
            k for k, wishes in self._turns.items() if len(ended | wishes.keys()) == self.count
        ]:
            wishes = self._turns.pop(k)
            self._tell({"turn": k, "wishes": [wishes.get(rank, "") for rank in range(self.count)]})

    def _serves(self, peer: Peer, loaded: object) -> None:
        """A pserver begins to serve, or never will. loaded: the folder and file of its values."""
        if not (
            isinstance(loaded, list)
            and len(loaded) == 2
            and all(isinstance(word, str) for word in loaded)
        ):
            raise ParseError("a pserver says from which folder and file it has loaded")
        assert peer.hello is not None
        self._serving.setdefault(peer.hello.rank, loaded)
        self._answer_loaded()

    def _answer_loaded(self) -> None:
        """Answer queries about the files that pservers have loaded, once all of them serve."""
        if len(self._serving) < self._pservers:
            return
        asking, self._asking = self._asking, []
        for peer in asking:
            self.send(
                peer, {"loaded": [[k, *where] for k, where in self._serving.items() if where[0]]}
            )

    def _over(self, why: str, message: str) -> None:
        if self.state != OVER:
            self.state, self.verdict = OVER, why
            self._tell({"refused" if message == "refused" else "end": why})

    # -- programs ----------------------------------------------------------------------------------

    def _compare(self, peer: Peer, message: dict[str, Any]) -> None:
        k = _count(message["program"])
        assert peer.hello is not None
        if peer.hello.role == PSERVER:
            raise ParseError("a pserver has no program to compare")
        comparison = self._checks.setdefault(k, Comparison(self.count))
        if "hash" in message:
            comparison.hashes[peer.hello.rank] = str(message["hash"])[:200]
            comparison.steps[peer.hello.rank] = _count(message.get("steps"))
            comparison.whats[peer.hello.rank] = str(message.get("what"))[:100]
        else:
            comparison.add_text(peer.hello.rank, message.get("text"))
        for rank in comparison.wanted():
            for other in self._trainers():
                if other.hello and other.hello.rank == rank:
                    other.lines.limit = wire.TEXT
                    self.send(other, {"program": k, "text": True})
        if comparison.same:
            del self._checks[k]
            self._tell({"program": k, "same": True})
        elif why := comparison.difference():
            del self._checks[k]
            self._tell({"program": k, "different": why})
        self._judge_checks()


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"fluidjax: {text}\n".encode(errors="replace"))


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 60:
        raise ParseError(f"{str(value)[:40]!r} is not a count")
    return value


def _listen(address: Endpoint, first: Callable[[int], object]) -> socket.socket:
    """Listen on this address only. Raises OSError.

    If a router translates it, or if it is a name for the loopback on this host, listen on this
    host's own address.
    """
    try:
        found = wire.listen(address.host, address.port, first)
    except OSError as error:
        if address.loopback or error.errno != errno.EADDRNOTAVAIL:
            raise
    else:
        if address.loopback or not Endpoint(*found.getsockname()[:2]).loopback:
            return found
        found.close()
    return wire.listen(wire.own_address(), address.port, first)


__all__ = ["GATHERING", "OVER", "RUNNING", "VERSION", "Hub", "Peer"]
