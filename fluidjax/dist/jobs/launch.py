"""A job on one machine: trainers and pservers as processes, ended together when one of them dies.

`job_specs` lists the processes, `Supervisor` starts and watches them. The supervisor owns the hub
(`hub.py`), so it knows both how a process ended and its last messages.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...base.flags import flag
from ...base.progress import tell
from ...errors import FluidValueError
from .children import Child, Printer, Spec, free_ports
from .env import SECRET, Endpoint
from .hub import RUNNING, Hub
from .notice import EXIT_CODE
from .secret import new_secret

_logger = logging.getLogger(__name__)

PATIENCE = 5.0  # seconds that processes get to end by themselves before they are killed
SAVING = 3600.0  # if trainers write a checkpoint before they end: until the scheduler's limit
AFTER_DONE = 10.0  # seconds that pservers get once the trainers have ended
_OURS = (
    "PADDLE_TRAINING_ROLE", "TRAINING_ROLE", "PADDLE_TRAINERS", "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ID",
    "PADDLE_TRAINER_ENDPOINTS", "PADDLE_PSERVERS", "PADDLE_PSERVER_IPS", "PADDLE_PSERVER_PORT", "PADDLE_PORT",
    "PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_CURRENT_ENDPOINT", "PADDLE_CURRENT_IP", "POD_IP", "PADDLE_PSERVER_ID",
    "PADDLE_PSERVER_ENDPOINTS", "CURRENT_ENDPOINT", "FLUIDJAX_HUB", SECRET,
)  # fmt: skip


def job_specs(
    command: Sequence[str],
    nproc: int,
    pservers: int,
    hub: Endpoint,
    secret: str,
    *,
    devices_per_proc: int | None = None,
    gpus: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> list[Spec]:
    """The processes of a job: `nproc` trainers, then `pservers` pservers, each running `command`.

    Trainers get endpoints on free ports. Pserver k gets the endpoint 127.0.0.(k+1) with one port
    for all, because old scripts have a list of addresses and one port; nothing listens there.
    devices_per_proc: virtual CPU devices of each trainer. gpus: the trainers' GPUs, one each.
    environ: the inherited environment (default os.environ).
    """
    base = {k: v for k, v in (os.environ if environ is None else environ).items() if k not in _OURS}
    base |= {"PYTHONUNBUFFERED": "1", "FLUIDJAX_HUB": str(hub), SECRET: secret}
    base |= {"PADDLE_TRAINERS": str(nproc), "PADDLE_TRAINERS_NUM": str(nproc)}
    *ports, service = free_ports(nproc + 1, [hub.port])
    trainers = [f"127.0.0.1:{port}" for port in ports]
    base["PADDLE_TRAINER_ENDPOINTS"] = ",".join(trainers)
    hosts = [f"127.0.0.{k + 1}" for k in range(pservers)]
    if pservers:
        base |= {"PADDLE_PSERVERS": ",".join(hosts), "PADDLE_PSERVER_IPS": ",".join(hosts)}
        base |= {"PADDLE_PSERVER_PORT": str(service), "PADDLE_PORT": str(service)}
        listed = ",".join(f"{host}:{service}" for host in hosts)
        base |= {"PADDLE_PSERVERS_IP_PORT_LIST": listed, "PADDLE_PSERVER_ENDPOINTS": listed}
    specs = []
    for rank, own in enumerate(trainers):
        env = (
            base
            | _role("TRAINER")
            | {
                "PADDLE_TRAINER_ID": str(rank),
                "PADDLE_CURRENT_ENDPOINT": own,
                "CURRENT_ENDPOINT": own,
            }
        )
        env |= {"PADDLE_CURRENT_IP": "127.0.0.1", "POD_IP": "127.0.0.1"}
        if devices_per_proc is not None:
            env |= {"JAX_NUM_CPU_DEVICES": str(devices_per_proc), "CPU_NUM": str(devices_per_proc)}
        if gpus:
            env |= {"CUDA_VISIBLE_DEVICES": gpus[rank], "FLAGS_selected_gpus": "0"}
            # all are on this machine, and their sockets must not be reachable from others
            env.setdefault("NCCL_SOCKET_IFNAME", "lo")
        specs.append(Spec(f"trainer {rank}", tuple(command), env))
    for k, host in enumerate(hosts):
        env = (
            base
            | _role("PSERVER")
            | dict.fromkeys(("PADDLE_CURRENT_ENDPOINT", "CURRENT_ENDPOINT"), f"{host}:{service}")
        )
        env |= {"JAX_PLATFORMS": "cpu"}
        specs.append(
            Spec(f"pserver {k}", tuple(command), env | {"PADDLE_CURRENT_IP": host, "POD_IP": host})
        )
    return specs


def _role(role: str) -> dict[str, str]:
    """A process's role under both names: a script that reads the other one would treat a pserver as
    a trainer.
    """
    return {"PADDLE_TRAINING_ROLE": role, "TRAINING_ROLE": role}


def run_job(
    command: Sequence[str], nproc: int, pservers: int = 0, *, devices_per_proc: int | None = None, gpus: Sequence[str] = (),
    log_dir: Path | None = None, restarts: int = 0,
) -> int:  # fmt: skip
    """Run `command` as a job of `nproc` trainers and `pservers` pservers on this machine. Returns
    the exit code.

    0 when all trainers ended well; else the code of the process that died first (128 + n for signal
    n), named on stderr with its last lines. Ctrl-C and SIGTERM go to all processes, and processes
    that do not end within a few seconds are killed, unless trainers write a checkpoint on SIGTERM:
    then they get the time that they need, and the code is 75. log_dir: the output of each process
    is also appended to workerlog.0, serverlog.0, ... there. restarts: how often the whole job is
    restarted after a process was killed, or failed after all had met. Raises FluidValueError for
    invalid numbers, and a folder that cannot be written.
    """
    if nproc < 1 or pservers < 0:
        raise FluidValueError(
            f"a job has at least one trainer and no negative number of pservers, not {nproc} and"
            f" {pservers}"
        )
    if pservers > 254:
        raise FluidValueError(f"one machine can have 254 pservers, not {pservers}")
    if devices_per_proc is not None and devices_per_proc < 1:
        raise FluidValueError(f"a trainer has at least one device, not {devices_per_proc}")
    if restarts < 0:
        raise FluidValueError(f"a job is started again 0 times or more, not {restarts}")
    if gpus and len(gpus) != nproc:
        raise FluidValueError(
            f"{nproc} trainers need {nproc} GPUs, one each, but {len(gpus)} are named:"
            f" {', '.join(gpus)}"
        )
    names = [*(f"trainer {k}" for k in range(nproc)), *(f"pserver {k}" for k in range(pservers))]
    printer = Printer(log_dir, names)
    for left in range(restarts, -1, -1):
        secret = new_secret()  # and other ports: remains of the previous job are strangers
        hub = Hub(
            Endpoint("127.0.0.1", 0), nproc, flag("FLAGS_rpc_deadline") / 1000, secret, True, pservers
        )  # fmt: skip
        specs = job_specs(
            command, nproc, pservers, hub.address, secret, devices_per_proc=devices_per_proc, gpus=gpus
        )  # fmt: skip
        supervisor = Supervisor(hub, specs, printer)
        code = supervisor.run()
        if code == 0 or not supervisor.lost_one or not left:
            return code
        message = f"starts the job again, {restarts - left + 1} of {restarts} times"
        print(f"fluidjax launch: {message}", file=sys.stderr, flush=True)
    raise AssertionError("the last start returns")


class Supervisor:
    """Starts processes and watches them until all have ended.

    lost_one: a process was killed, or failed after all had met, so that a restart may succeed.
    """

    def __init__(self, hub: Hub, specs: Sequence[Spec], printer: Printer | None = None) -> None:
        self._hub, self._specs = hub, specs
        self._ended: queue.Queue[Child] = queue.Queue()
        self._children: list[Child] = []
        self._signal: int | None = None
        self._printer = printer or Printer()
        self._met = self.lost_one = False

    def run(self) -> int:
        """The exit code of the job."""
        self._hub.start()
        handled = (
            signal.SIGINT,
            signal.SIGTERM,
            *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []),
        )
        old = {number: signal.signal(number, self._on_signal) for number in handled}
        try:
            for spec in self._specs:
                self._children.append(Child(spec, self._ended, self._printer))
            self._say(f"started {', '.join(spec.name for spec in self._specs)}")
            return self._watch()
        finally:
            for child in self._children:
                if child.running:
                    child.signal(signal.SIGKILL)
            for child in self._children:
                child.drain(2.0)
            self._hub.close(wait=0)
            for number, handler in old.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: object) -> None:
        if self._signal is not None:  # a second time: at once
            for child in self._children:
                child.signal(signal.SIGKILL)
        self._signal = number

    def _running(self, kind: str = "") -> list[Child]:
        return [c for c in self._children if c.running and c.name.startswith(kind)]

    def _watch(self) -> int:
        done_at: float | None = None
        began = time.monotonic()
        while self._running() or not self._ended.empty():
            child = self.next_message()
            if not self._met and self._hub.state == RUNNING:
                self._met = True
                self._say(f"all processes have met after {time.monotonic() - began:.1f} s")
            if self._signal is not None:
                return self._interrupted(self._signal)
            if child is not None and not self._ended_well(child):
                return self._failed(child)
            if self._hub.verdict:
                return self._refused()
            if done_at is None and not self._running("trainer"):
                done_at = time.monotonic()
            if done_at is not None and time.monotonic() > done_at + AFTER_DONE:
                self._stop("the trainers have ended")
                return 0
        return 0

    def next_message(self, timeout: float = 0.1) -> Child | None:
        try:
            return self._ended.get(timeout=timeout)
        except queue.Empty:
            return None

    def _ended_well(self, child: Child) -> bool:
        """Whether the exit code is 0 and a trainer that others may wait for has said goodbye."""
        if child.code != 0:
            return False
        alone = sum(c.name.startswith("trainer") for c in self._children) == 1
        return (
            alone
            or not child.name.startswith("trainer")
            or child.name in self._hub.goodbyes
            or not self._running("trainer")
        )

    def _failed(self, first: Child) -> int:
        # another process may be the cause of its end
        if (first.code or 0) >= 0 or first.code == -signal.SIGABRT:
            time.sleep(0.1)
        gone = [first]
        while (other := self.next_message(0.0)) is not None:
            gone.append(other)
        # the exit code tells whether a process ended because another one died
        cause = next((c for c in gone if c.code != EXIT_CODE and not self._ended_well(c)), first)
        if self._hub.verdict and (cause.code == EXIT_CODE or cause.name not in self._hub.failures):
            return self._refused()
        self.lost_one = self._met or (cause.code or 0) < 0
        why = f"{cause.name} {cause.how()}"
        if said := self._hub.failures.get(cause.name):
            why += f" ({said})"
        elif cause.code == 0:
            why += " without coming to its end, while others may wait for it"
        self._stop(why)
        self._report(f"{why} after {cause.seconds:.1f} s", cause)
        return cause.exit_code or 1

    def _refused(self) -> int:
        """The hub found the reason before it ended a process."""
        why, self.lost_one = self._hub.verdict, self._met
        self._stop(why)
        self._report(why, None)
        return 1

    def _interrupted(self, number: int) -> int:
        saves = number == signal.SIGTERM and self._hub.holding
        for child in self._running("trainer") if saves else self._running():
            child.signal(number if saves else signal.SIGINT)
        self._wait(SAVING if saves else PATIENCE, "trainer" if saves else "")
        codes = {c.code for c in self._children if c.name.startswith("trainer")}
        self._stop("the launcher was interrupted")
        if saves and codes == {EXIT_CODE}:
            self._report("interrupted by SIGTERM; the trainers have saved a checkpoint", None)
            return EXIT_CODE
        self._report(f"interrupted by {signal.Signals(number).name}", None)
        return 128 + number

    def _stop(self, why: str) -> None:
        """Tell all processes to end, and kill the remaining ones."""
        self._hub.end(why)
        self._wait(PATIENCE)
        for child in self._running():
            child.signal(signal.SIGKILL)
        self._wait(PATIENCE)

    def _wait(self, seconds: float, kind: str = "") -> None:
        limit = time.monotonic() + seconds
        while self._running(kind) and time.monotonic() < limit:
            time.sleep(0.02)

    def _say(self, text: str) -> None:
        _logger.info("%s", text)
        tell(f"fluidjax launch: {text}")

    def _report(self, why: str, cause: Child | None) -> None:
        for child in self._children:
            child.drain(0.5)
            child.end_leftovers()
            child.drain(1.0)
        others = sum(c is not cause for c in self._children)
        text = [f"fluidjax launch: {why}"]
        if others and cause is not None:
            text[0] += f"; the other {others} process{'es were' if others > 1 else ' was'} ended"
        if cause is not None and cause.tail:
            text += [
                "the last lines of " + cause.name + ":",
                *(f"    {line}" for line in cause.tail),
            ]
        print("\n".join(text), file=sys.stderr, flush=True)


__all__ = ["Supervisor", "job_specs", "run_job"]
