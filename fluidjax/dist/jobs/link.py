"""A process's connection to the hub: it registers before jax starts, and afterwards a thread
listens for the end.

The thread needs the interpreter only for messages from the hub, so a step only counts. When the hub
reports that another process died, or is gone itself, the thread prints the reason and ends this
process: its main thread may be inside a collective, where no Python exception can reach it.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import select
import socket
import sys
import threading
import time
from typing import Any

from ...errors import JobError, ParseError
from . import compare_programs, wire
from . import secret as secrets
from .env import SECRET, Endpoint
from .handshake import Hello
from .hub import VERSION, Hub
from .notice import EXIT_CODE  # exit code if another process failed

# seconds that a failing process gets for its last writes
LAST = 15.0
# the hub sends a query within these seconds, unless its process is stopped
QUIET = 40.0
# the same once the job is over, when no joint work can be finished
JUDGED = 2.0


class Link:
    """A connection to the hub at `address`, over which `hello` is sent. `where` describes the
    address's owner.

    retry: whether the hub may start later (the launcher starts it first). secret: the job's; "":
    the one that the hub wrote for this user's processes. hub: the hub, if this process owns it; the
    others are notified before this one ends. Raises JobError from `join`.
    """

    def __init__(
        self,
        address: Endpoint,
        hello: Hello,
        where: str,
        retry: bool = True,
        secret: str = "",
        hub: Hub | None = None,
    ) -> None:
        self.address, self.hello, self.where, self.retry, self._hub = (
            address,
            hello,
            where,
            retry,
            hub,
        )
        self._secret = secret
        self.steps = 0
        self.done = threading.Event()
        self.sock: socket.socket | None = None
        self._lines = wire.Lines()
        self._early: list[dict[str, Any]] = []
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._checks = self._turns = 0
        self._wishes: queue.Queue[list[str]] = queue.Queue()
        self._loaded: queue.Queue[dict[int, tuple[str, str]]] = queue.Queue()
        self._hosts: queue.Queue[list[str]] = queue.Queue()
        self._texts: dict[int, str] = {}
        self._sending = threading.Lock()
        self.leaving = False
        self._hung_up = False  # the time of the last wait for a message
        self._failed: int | None = None  # the exit code of a failing process
        self._watching = False
        self._verdict = ""
        self._judged = threading.Event()

    # -- before the start --------------------------------------------------------------------------

    def join(self, timeout: float, failed: str = "") -> str:
        """Register, and wait until all have arrived. Returns the address of jax's coordinator ("":
        not for this process).

        failed: tell the hub that this process cannot take part, and why. Raises JobError within
        about `timeout` seconds if the hub cannot be reached, is another program, or refuses the job
        with a reason.
        """
        try:
            return self._come_in(time.monotonic() + timeout, timeout, failed)
        except BaseException:
            self.close()
            raise

    def _come_in(self, deadline: float, timeout: float, failed: str) -> str:
        while not self.introduce(deadline, timeout, failed):
            if not self.retry or time.monotonic() > deadline:
                raise JobError(
                    f"{self.hello.name}: {self.where} at {self.address} closes the connection"
                    " without a message"
                )
            time.sleep(0.1)
        # the hub has the same limit and a better message, so let it report first
        message = self.next_message(deadline + 5)
        if message is None:
            raise JobError(
                f"{self.hello.name}: {self.where} at {self.address} did not answer within"
                f" {timeout:g} s"
            )
        if "ok" in message:
            return str(message["ok"]["coordinator"])
        why = message.get("refused") or message.get("end")
        raise JobError(
            str(why)
            if why
            else f"{self.hello.name}: {self.where} at {self.address} went away before the start"
        )

    def introduce(self, deadline: float, timeout: float, failed: str) -> bool:
        """Connect, with mutual proofs of the secret. False if the hub hung up because of many
        strangers.
        """
        self.close()
        self.leaving, self._lines, self._early = False, wire.Lines(), []
        self.sock = self.connect(deadline, timeout)
        banner = self.next_message(min(deadline, time.monotonic() + 20))
        if banner is None and self._hung_up:
            return False
        theirs = (
            banner.get("nonce") if banner is not None and banner.get("hub") == VERSION else None
        )
        if not isinstance(theirs, str) or len(theirs) > 100:
            raise JobError(
                f"{self.hello.name}: {self.address} answers, but not as {self.where} would; another"
                " program uses that port"
            )
        secret, mine = self._secret or secrets.found(self.address), secrets.nonce()
        if not secret:
            raise JobError(
                f"{self.hello.name} does not know the secret of the job at {self.address}: only"
                " processes that one user starts on one machine share one by themselves; set"
                f" {SECRET} to the same text for every process of the job"
            )
        hello = {
            "proof": secrets.proof(secret, "process", mine, theirs),
            "nonce": mine,
            "hello": self.hello.as_dict(),
        }
        self.send({**hello, **({"failed": failed[:2000]} if failed else {})})
        answer = self.next_message(min(deadline, time.monotonic() + 20))
        if answer is None and self._hung_up:
            return False
        if answer is None or not secrets.proves(answer.get("proof"), secret, "hub", theirs, mine):
            raise JobError(
                f"{self.hello.name} and {self.where} at {self.address} do not have the same secret"
                f" (another job's address?); set {SECRET} to the same text for every process of"
                " the job"
            )
        return True

    def connect(self, deadline: float, timeout: float) -> socket.socket:
        while True:
            try:
                sock = socket.create_connection(
                    (self.address.host, self.address.port), timeout=min(10.0, timeout)
                )
                wire.patient(sock)
                return sock
            except OSError as error:
                if not self.retry or time.monotonic() > deadline:
                    raise JobError(self._unreachable(error, timeout)) from None
            time.sleep(0.1)

    def _unreachable(self, error: OSError, timeout: float) -> str:
        text = f"{self.hello.name} cannot reach {self.where} at {self.address}"
        text += (
            f" within {timeout:g} s ({error.strerror or error})"
            if self.retry
            else f" ({error.strerror or error})"
        )
        return text + (
            ", a loopback address, which only processes of one host share"
            if self.address.loopback and self.retry
            else ""
        )

    def next_message(self, deadline: float) -> dict[str, Any] | None:
        """The next message, or None at the deadline or the end of the connection."""
        assert self.sock is not None
        self._hung_up = False
        while not self._early:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self.sock.settimeout(left)
            try:
                data = self.sock.recv(1 << 16)
            except TimeoutError:
                return None
            except OSError:
                data = b""
            if not data:
                self._hung_up = True
                return None
            try:
                self._early += self._lines.feed(data)
            except ParseError:
                return None
        return self._early.pop(0)

    # -- while the job runs ------------------------------------------------------------------------

    def watch(self) -> None:
        """Start the listening thread, which may end this process from then on."""
        self._watching = True
        threading.Thread(target=self.listen, name="fluidjax link", daemon=True).start()

    def listen(self) -> None:
        assert self.sock is not None
        self.sock.settimeout(None)
        for message in self._early:
            self._hear(message)
        named = False
        while True:
            try:
                if not self._comes(QUIET if not named else None):
                    named = True
                    continue
                data = self.sock.recv(1 << 16)
                messages, named = self._lines.feed(data), False
            except (OSError, ParseError):
                data, messages = b"", []
            if not data:
                gone = f"{self.where} is gone: it was killed, or it crashed"
                if not (self.leaving or self.done.is_set()):
                    self._die(gone)
                if self._failed is not None and not self._verdict:
                    self._say(gone)
                self.done.set()
                self._judged.set()
                self._hurry(JUDGED)
                return
            for message in messages:
                self._hear(message)

    def _comes(self, seconds: float | None) -> bool:
        """Wait for a message from the hub; after this many seconds, report its silence. Raises
        OSError if the connection is closed.
        """
        assert self.sock is not None
        # not epoll, which keeps waiting if another thread closes the connection
        waiting = select.poll()
        try:
            waiting.register(self.sock, select.POLLIN)
        except ValueError as error:  # it has been closed
            raise OSError(str(error)) from None
        if waiting.poll(None if seconds is None else seconds * 1000):
            return True
        if not (self.leaving or self.done.is_set()):
            self._write(f"{self.where} does not answer: it is stopped, or its machine hangs")
        return False

    def _hear(self, message: dict[str, Any]) -> None:
        if "end" in message or "refused" in message:
            self._verdict = str(message.get("end") or message.get("refused"))
            if not self.leaving:
                self._die(self._verdict)
            self._tell()  # now: jax may end this process before Python's exit
            self._judged.set()
            self._hurry(JUDGED)
        elif "poll" in message:
            self.send({"steps": self.steps})
        elif "done" in message:
            self.done.set()
        elif message.get("text"):
            k = message["program"]
            self.send({"program": k, "text": compare_programs.pack(self._texts.get(k, ""))})
        elif "program" in message:
            self._answers.put(message)
        elif "loaded" in message:
            self._loaded.put({k: (folder, file) for k, folder, file in message["loaded"]})
        elif "hosts" in message:
            self._hosts.put([str(host) for host in message["hosts"]])
        elif "turn" in message:
            self._wishes.put([str(wish) for wish in message["wishes"]])

    def _hurry(self, seconds: float) -> None:
        """Make sure that a failing process ends in time: its exit may wait for a thread, or for a
        checkpoint's files.
        """
        if self._failed is not None and self._watching:
            threading.Thread(target=self._last, args=(seconds, self._failed), daemon=True).start()

    def _last(self, seconds: float, code: int) -> None:
        time.sleep(seconds)
        self._end(code)

    def _die(self, why: str) -> None:
        self._say(why)
        self._end(EXIT_CODE)

    def _end(self, code: int) -> None:
        if self._hub is not None:
            self._hub.close(wait=0)
        # a lock on stdout may never be released
        flusher = threading.Thread(target=_flush, daemon=True)
        flusher.start()
        flusher.join(1.0)
        os._exit(code)

    def _tell(self) -> None:
        """Print why the job ends, if another process is the cause."""
        if not self._verdict.startswith(self.hello.name + " "):
            self._say(self._verdict)

    def _say(self, why: str) -> None:
        self._write(f"{self.hello.name} ends because {why}")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(2, f"fluidjax: {text}\n".encode(errors="replace"))

    def send(self, message: dict[str, Any]) -> None:
        assert self.sock is not None
        with contextlib.suppress(OSError), self._sending:  # the next read shows the loss
            self.sock.sendall(wire.encode(message))

    def same_program(self, text: str, timeout: float, what: str = compare_programs.NEW) -> None:
        """Compare `text` with the other trainers' texts. Raises JobError if they differ, or do not
        arrive in time.

        what: the reason, in words that follow ``trainer 1``, for a message about a missing trainer.
        """
        k, self._checks = self._checks, self._checks + 1
        self._texts = {k: text}
        self.send(
            {
                "program": k,
                "hash": compare_programs.fingerprint(text),
                "steps": self.steps,
                "what": what,
            }
        )
        try:
            answer = self._answers.get(timeout=None if math.isinf(timeout) else timeout)
        except queue.Empty:
            late = (
                f"{self.hello.name} has a program to compare, but not all trainers came to that"
                f" point within {timeout:g} s"
            )
            raise JobError(late) from None
        if "different" in answer:
            raise JobError(str(answer["different"]))

    def turn(self, wish: str) -> list[str]:
        """The requests of all trainers, once all have made theirs; "" for an ended trainer."""
        k, self._turns = self._turns, self._turns + 1
        self.send({"turn": k, "wish": wish})
        return self._wishes.get()  # a trainer that never arrives has died, which is detected

    def loaded(self, timeout: float) -> dict[int, tuple[str, str]]:
        """Pserver -> the folder and file of its values, once all serve. Raises JobError if they do
        not in time.
        """
        self.send({"asks": "loaded"})
        try:
            return self._loaded.get(timeout=timeout)
        except queue.Empty:
            why = (
                f"{self.hello.name} waits for the pservers, but not all have run their program"
                f" within {timeout:g} s"
            )
            raise JobError(why) from None

    def hosts(self, timeout: float) -> list[str]:
        """The address of every trainer's host, as the hub sees it. Raises JobError if it does not
        answer in time.
        """
        self.send({"asks": "hosts"})
        try:
            return self._hosts.get(timeout=timeout)
        except queue.Empty:
            raise JobError(
                f"{self.hello.name}: {self.where} at {self.address} did not say within"
                f" {timeout:g} s where the trainers are"
            ) from None

    # -- the end -----------------------------------------------------------------------------------

    def fail(self, why: str, code: int | None = None) -> None:
        """Report why this process is about to end, with its exit code. If it has not ended within
        LAST seconds, it is ended.
        """
        self.leaving, self._failed = True, code
        self.send({"failed": why})
        self._hurry(LAST)

    def hear_why(self, seconds: float) -> None:
        """After `fail`: wait a moment for the hub, which reports another process's death as the
        cause; the thread prints it.
        """
        self._judged.wait(seconds)

    def leave(self) -> None:
        """Say goodbye, and wait until every trainer has; a death in this time ends this process as
        before.
        """
        self.send({"bye": self.steps})
        self.done.wait()
        self.leaving = True

    def forget(self) -> None:
        """In a forked child: close the connection, which stays its parent's."""
        if self.sock is not None:
            self.sock.close()

    def close(self) -> None:
        """Hang up."""
        self.leaving = True
        if self.sock is not None:
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)
            self.sock.close()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


__all__ = ["Link"]
