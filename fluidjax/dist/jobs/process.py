"""``init_from_env()``: this process's part in the job that the environment describes."""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import jax

from ...base.flags import flag
from ...base.loc import warn
from ...base.progress import waiting
from ...devices.place import start_anew
from ...errors import FluidValueError, JobError
from ...ir.desc import ProgramDesc
from ...ir.edit import BACKWARD, role
from ...runtime import job as own
from . import cluster, compare_programs, notice, wire
from .env import (
    PSERVER,
    SECRET,
    TRAINER,
    Endpoint,
    JobEnv,
    endpoint,
    given_secret,
    meeting_point,
    read_env,
)
from .handshake import Hello, own_hello
from .hub import Hub
from .link import Link

TERMINATED = "it was terminated by SIGTERM"
_SERVES = "a pserver runs exe.run(t.get_pserver_program(its endpoint)), and nothing else"
# a trainer's requests in its turn; the last with a name
_NEXT, _END, _READ, _SAYS = "goes on", "ends", "reads ", "says "
MEETING = 10.0  # seconds that the processes of a running job get to meet: they all exist


@dataclass(eq=False)
class Job:
    """A process's part in a job.

    rank, count: this trainer's number and the number of trainers (for a pserver: its number among
    the pservers, and the number of trainers). role: TRAINER or PSERVER. env: the environment's
    description, None without one.
    """

    rank: int = 0
    count: int = 1
    role: str = TRAINER
    env: JobEnv | None = None
    _link: Link | None = field(default=None, repr=False)
    _hub: Hub | None = field(default=None, repr=False)
    _failed: int = field(default=0, repr=False)
    _compared: dict[int, ProgramDesc] = field(default_factory=dict, repr=False)
    _served: bool = field(default=False, repr=False)  # a pserver ran a pserver's program
    _warned: bool = field(default=False, repr=False)  # or another program, with a warning
    # a trainer's answer to another one's request
    _answer: Callable[[str], Any] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """``trainer 1``."""
        return f"{self.role.lower()} {self.rank}"

    @property
    def watched(self) -> bool:
        """Whether the job's processes are connected, so that they can compare programs and count
        steps.
        """
        return self._link is not None

    def step_begins(self, program: ProgramDesc | None = None) -> None:
        """Count a step that needs every trainer; costs an addition. The counts reveal different
        numbers of batches.

        program: the step's program; if given, its first step compares it with the other trainers'
        (raises JobError like check_same_program).
        """
        if self._link is None:
            return
        self._link.steps += 1
        if program is not None and id(program) not in self._compared:
            self._compared[id(program)] = program
            # a trainer that never arrives has died or ended, which is detected
            self.check_same_program(program, math.inf)

    def check_same_program(self, program: ProgramDesc | str, timeout: float | None = None) -> None:
        """Compare a program (or a text) with the other trainers', which must all make the same
        call.

        timeout: seconds to wait for the others, default FLAGS_rpc_deadline. Random seeds may
        differ, and the trainer's own id in a transpiled program. Raises JobError, in every trainer,
        that names the first op in which two of them differ.
        """
        if self._link is None or self.role != TRAINER or self.count == 1:
            return
        text = (
            program
            if isinstance(program, str)
            else compare_programs.program_lines(program, self.rank)
        )
        self._link.same_program(text, _deadline() if timeout is None else timeout)

    def answers(self, answer: Callable[[str], Any]) -> None:
        """Make trainers take turns, so that a single one may `ask` for sharded values; all must
        call this.

        answer: takes a name, and takes part in gathering its value on the host. Costs a message
        before each step.
        """
        if self._link is not None and self.role == TRAINER and self.count > 1:
            self._answer = answer

    @property
    def takes_turns(self) -> bool:
        """Whether a single trainer may `ask`."""
        return self._answer is not None and self._link is not None

    def turn(self) -> None:
        """Before a joint operation, if trainers take turns: answer all requests, until there are
        none.
        """
        if self.takes_turns:
            self._take_turns(_NEXT)

    def ask(self, name: str, read: Callable[[], Any]) -> Any:
        """Run read(), a collective, together with the others' answers in their turn. Raises
        JobError if one has ended.
        """
        return self._take_turns(_READ + name, read)

    def agree(self, word: str) -> list[str]:
        """The words of every trainer, each up to 900 characters, "" for an ended one. All must call
        it; costs a message to each.
        """
        if self._link is None or self.role != TRAINER or self.count == 1:
            return [word]
        found: list[str] = self._take_turns(_SAYS + word)
        return [w.removeprefix(_SAYS) if w.startswith(_SAYS) else "" for w in found]

    def saves_at_the_end(self) -> None:
        """Tell the job that this process writes a checkpoint when it gets SIGTERM."""
        if self._link is not None:
            self._link.send({"holds": True})

    def _take_turns(self, wish: str, read: Callable[[], Any] | None = None) -> Any:
        assert self._link is not None
        while True:
            wishes = self._link.turn(wish)
            asked = list(dict.fromkeys(w for w in wishes if w.startswith(_READ)))
            if asked and "" in wishes:
                gone = f"trainer {wishes.index('')} has ended"
                raise JobError(
                    f"{asked[0].removeprefix(_READ)!r} is split over all trainers, and cannot be"
                    f" read any more, since {gone}"
                )
            for one in asked:
                assert self._answer is not None
                found = (
                    read()
                    if read is not None and one == wish
                    else self._answer(one.removeprefix(_READ))
                )
                if one == wish:
                    result = found
            if wish in asked:
                return result
            if not asked:
                return wishes

    def serve(self, loaded_from: tuple[str, str] = ("", "")) -> None:
        """Serve as a process with the role PSERVER: wait until the trainers have ended.

        loaded_from: the folder, and the file in it, of the trainers' initial values.
        """
        self._served = True
        if self._link is not None:
            self._link.send({"serves": list(loaded_from)})
            notice.hold()  # it ends with the trainers, which may have values to save
            self._link.done.wait()

    def serves(self, program: ProgramDesc, loaded_from: tuple[str, str] = ("", "")) -> bool:
        """Whether this process is a pserver and `program` one that it serves; if so, the job has
        ended on return.
        """
        if self.role != PSERVER:
            return False
        ops = program.blocks[0].ops
        if any(op.type == "listen_and_serv" for op in ops):
            self.serve(loaded_from)
            return True
        if any(role(op) & BACKWARD for op in ops):
            self.trains()
        return False

    def loaded(self) -> dict[int, tuple[str, str]]:
        """The files of the pservers' values, for a starting trainer: pserver -> folder and file.
        Waits until all pservers serve.
        """
        if self._link is None or self.role != TRAINER:
            return {}
        return self._link.loaded(_deadline())

    def fail(self, why: str, code: int = 1) -> None:
        """Tell the job that this process is about to end with this exit code, and why (one line).
        The others end too.
        """
        self._failed = code
        if self._link is not None:
            self._link.fail(why, code)

    def leave(self) -> None:
        """End this process's part: wait until every trainer has ended. Called when the process
        exits.
        """
        if notice.unheard() and not self._failed:
            self.fail(TERMINATED, notice.TERMINATED)
        if self.takes_turns and not self._failed:
            self._take_turns(_END)
        link, self._link = self._link, None
        if link is None:
            return
        if self._failed:
            # jax would wait for the others, which are terminating
            _end_now(link, self._hub, self._failed)
        self.say_if_idle()
        link.leave()
        _shut_down_jax()
        link.close()
        if self._hub is not None:
            self._hub.close(wait=0)

    def trains(self) -> None:
        """Called when the process runs a program that trains; a pserver warns, once."""
        if self.role == PSERVER and not self._served and not self._warned:
            self._warned = True
            warn(
                f"{self.name} runs a program that trains, as a trainer does, but the environment"
                f" gives it the role PSERVER (PADDLE_TRAINING_ROLE or TRAINING_ROLE): {_SERVES}",
                RuntimeWarning,
            )

    def say_if_idle(self) -> None:
        """Warn if a pserver ends without having served."""
        if self.role == PSERVER and not self._served and not self._warned:
            self._warned = True
            warn(
                f"{self.name} ends without having run a pserver's program: {_SERVES}",
                RuntimeWarning,
            )

    def _forget(self) -> None:
        """A forked child (of a data loader, say) is not a process of the job, and must not keep its
        connections open.
        """
        for held in (self._link, self._hub):
            if held is not None:
                held.forget()
        self._link = self._hub = None


def same_checkpoint(step: int, path: str, saves: bool) -> None:
    """Wait until all trainers of this process's job are about to save (or load) the checkpoint of
    this step in this folder.

    Otherwise Orbax would wait for a missing one. Raises JobError if they are about to do something
    else.
    """
    job = met_job()
    if job is None or job._link is None or job.role != TRAINER or job.count == 1:
        return
    job.turn()
    verb = "saves" if saves else "loads"
    job._link.same_program(
        f"{compare_programs.CHECKPOINT}{step} in {path}, which it {verb}",
        math.inf,
        f"{verb} a checkpoint",
    )


_asked = False  # whether a running job's processes have tried to meet


def current_job() -> Job | None:
    """What init_from_env() returned, or None if it has not been called."""
    job = own.current_job()
    assert job is None or isinstance(job, Job)
    return job


def init_from_env() -> Job:
    """Take part in the job that the environment describes: Paddle's variables, those of Slurm, Open
    MPI or a Kubernetes indexed job, or a cluster that JAX detects.

    All processes first meet at trainer 0's endpoint (or the launcher's), where ids, numbers and
    versions are compared; then each trainer joins jax.distributed, so that jax.devices() are those
    of all trainers. From then on, the death of a process ends the others, with a message that names
    it. A second call returns the same job. Without a description in the environment, this is a job
    of one. Call it before anything runs on a device. If a scheduler described the job, Paddle's
    variables are in os.environ afterwards.

    Waits at most FLAGS_rpc_deadline milliseconds for the other processes. Raises FluidValueError
    for a contradictory environment, and JobError if the job cannot start: a duplicate or missing
    id, a port that is in use or does not answer, different numbers of trainers, different versions
    of fluidjax, jax or Python.
    """
    return current_job() or _taken(_join())


def take_part(env: JobEnv) -> Job:
    """init_from_env() in the job that `env` describes, unless this process is in one already."""
    return current_job() or _taken(_join_as(env))


def met_job() -> Job | None:
    """current_job(); if a script called jax.distributed.initialize itself, the processes meet now,
    to watch one another.

    A collective of all processes. If they cannot reach one another, all continue as before, with a
    RuntimeWarning.
    """
    global _asked
    job = current_job()
    if not _asked and jax.process_count() > 1 and (job is None or not job.watched):
        _asked = True
        job = _taken(_meet_late())
    return job


def _taken(job: Job) -> Job:
    """Make it this process's job."""
    own.take_part(job)
    if job._link is not None:
        sys.excepthook = _telling(sys.excepthook)
        atexit.register(job.leave)
        os.register_at_fork(after_in_child=job._forget)
        notice.listen()
    return job


def _join() -> Job:
    if jax.distributed.is_initialized():  # the script has done it
        return Job(jax.process_index(), jax.process_count())
    try:
        env = read_env()
    except FluidValueError as error:
        _report(str(error))
        raise
    if env is None:
        return _in_cluster()
    if env.placed is None:
        return _join_as(env)
    # without a secret for several machines, jax connects them and broadcasts one
    jax_first = env.several_machines and not env.secret and env.placed.jax_knows
    job = _in_cluster() if jax_first else _join_as(env)
    _say_as_paddle(job, env)
    return job


def _say_as_paddle(job: Job, env: JobEnv) -> None:
    """Set Paddle's variables for scripts that read them; existing ones are kept."""
    hub = env.hub
    if job._link is None or hub is None:
        return
    hosts = job._link.hosts(_deadline())
    # only the first has a port; the others are just distinct names
    listed = [str(Endpoint(h, hub.port - hosts[:k].count(h))) for k, h in enumerate(hosts)]
    said = {
        "PADDLE_TRAINING_ROLE": TRAINER,
        "PADDLE_TRAINERS_NUM": str(job.count),
        "PADDLE_TRAINER_ID": str(job.rank),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(listed),
        "PADDLE_CURRENT_ENDPOINT": listed[job.rank],
    }
    for name, value in said.items():
        os.environ.setdefault(name, value)


def _join_as(env: JobEnv) -> Job:
    if env.hub is None:
        return Job(env.rank, env.count, env.role, env)
    _refuse_without_secret(env)
    job, coordinator = _meet(env, _host(env) if env.hosts_hub else None)
    if env.role == TRAINER and env.count > 1:
        _join_jax(job, coordinator)
    return job


def _refuse_without_secret(env: JobEnv) -> None:
    if not env.secret and env.several_machines:
        why = (
            f"{env.name}: the job runs on several machines ({', '.join(env.hosts)}), so its"
            f" processes need a secret, by which they know each other: set {SECRET} to the same"
            " text for every one of them, such as what python -c 'import secrets;"
            " print(secrets.token_hex(16))' prints"
        )
        raise FluidValueError(why)


def _join_jax(job: Job, coordinator: str) -> None:
    """Join jax.distributed. Its coordinator, in trainer 0, listens only at the address that the
    others use.
    """
    assert job.env is not None
    patience = int(max(_deadline(), 10))
    port = coordinator.rpartition(":")[2]
    own = str(Endpoint(_own_host(job.env), int(port))) if job.rank == 0 else None
    place = job.env.placed
    start_anew()  # the script may have used a device before it joined a job
    try:
        jax.distributed.initialize(
            coordinator, job.count, job.rank, cluster_detection_method="deactivate", initialization_timeout=patience,
            coordinator_bind_address=own, local_device_ids=None if place is None else place.devices(os.environ),
        )  # fmt: skip
    except Exception as error:  # such as: a device was used before
        assert job._link is not None
        job._link.fail(in_one_line(error))
        raise


def _meet(env: JobEnv, hub: Hub | None) -> tuple[Job, str]:
    """Register at the hub, and begin to listen to it; returns the job, and the address of jax's
    coordinator.
    """
    assert env.hub is not None
    port, why = _jax_port(env)
    where = env.hub if hub is None else hub.reached
    link = Link(where, _hello(env, port), _hub_in_words(env), not env.launched, env.secret, hub)
    try:
        with waiting(f"{env.name} waits at {env.hub} for the other processes of its job"):
            coordinator = link.join(_deadline(), why)
    except JobError:
        if hub is not None:
            hub.close()  # after the others have received the reason
        raise
    link.watch()
    return Job(env.rank, env.count, env.role, env, link, hub), coordinator


def _in_cluster() -> Job:
    """The job of a cluster that JAX detects, or a job of one."""
    if not cluster.detected(_deadline()):
        return Job()
    if jax.process_count() == 1:
        return Job()
    env, hub = cluster.meet(_deadline())
    job, _ = _meet(env, hub)
    return job


def _meet_late() -> Job:
    patience = min(MEETING, _deadline())
    env, hub = cluster.meet(patience)
    assert env.hub is not None
    where = env.hub if hub is None else hub.reached
    link, why = Link(where, _hello(env), _hub_in_words(env), secret=env.secret, hub=hub), ""
    try:
        link.join(patience)
    except JobError as error:
        why = f": {error}"
    if cluster.how_many(not why) == env.count:
        link.watch()
        return Job(env.rank, env.count, env.role, env, link, hub)
    link.close()
    if hub is not None:
        hub.close(wait=0)
    warn(
        f"the job's processes cannot all reach trainer 0 at {env.hub}, so they compare less, and"
        f" where one of them stops or dies the others may wait for it{why}",
        RuntimeWarning,
    )
    return Job(env.rank, env.count)


def _deadline() -> float:
    milliseconds = flag("FLAGS_rpc_deadline")
    if milliseconds <= 0:
        raise FluidValueError(
            f"FLAGS_rpc_deadline is {milliseconds}; it is a number of milliseconds above 0"
        )
    return float(milliseconds / 1000)


def _hello(env: JobEnv, port: int = 0) -> Hello:
    version = sys.modules["fluidjax"].__version__  # the package is above this level, and loaded
    return own_hello(env, version, jax.__version__, port)


def _jax_port(env: JobEnv) -> tuple[int, str]:
    """A free port for jax's coordinator in trainer 0, and the problem with the requested one.

    With a port that is in use, jax would crash.
    """
    asked = os.environ.get("JAX_COORDINATOR_PORT", "").strip()
    if env.role != TRAINER or env.rank != 0 or env.count == 1 or jax.distributed.is_initialized():
        return 0, ""
    if asked and not (asked.isascii() and asked.isdigit() and 0 < int(asked) < 65536):
        return 0, f"{env.name}: JAX_COORDINATOR_PORT is {asked[:40]!r}; a port is 1 to 65535"
    try:
        with wire.listen(_own_host(env), int(asked or 0)) as sock:
            return int(sock.getsockname()[1]), ""
    except OSError as error:
        why = error.strerror or error
        return (
            0,
            (
                f"{env.name} cannot listen on port {asked} ({why}), which JAX_COORDINATOR_PORT"
                " names; give it another one"
            ),
        )


def _own_host(env: JobEnv) -> str:
    """The address for jax's coordinator in trainer 0: this machine's address on the way to the hub."""
    assert env.hub is not None
    return env.hub.host if env.hub.loopback else wire.own_address(env.hub.host)


def _host(env: JobEnv) -> Hub:
    assert env.hub is not None
    try:
        hub = Hub(env.hub, env.count, _deadline(), env.secret, pservers=len(env.pservers))
    except OSError as error:
        raise JobError(
            f"{env.name} cannot listen on {env.hub} ({error.strerror or error}), where the job's"
            " processes meet; end the process that uses the port, or give the job another one"
        ) from None
    hub.start()
    return hub


def _hub_in_words(env: JobEnv) -> str:
    return "the launcher" if env.launched else "trainer 0" if env.trainers else "pserver 0"


def _report(why: str) -> None:
    """Tell a hub, if one can be found, that this process cannot take part, so that the others do
    not wait for it.
    """
    env = {k: v.strip() for k, v in os.environ.items() if v.strip()}
    try:
        listed = env.get("PADDLE_TRAINER_ENDPOINTS", "").split(",")[0]
        hub = meeting_point(env, (endpoint(listed, ""),) if listed else (), ())
        if hub is None:
            return
        hello = own_hello(JobEnv(TRAINER, -1, 1), "", "", 0)
        Link(hub, hello, "the hub", "FLUIDJAX_HUB" not in env, given_secret(env)).join(
            2.0, failed=why
        )
    except (FluidValueError, JobError):
        return  # best effort: the error being raised has the details


@contextlib.contextmanager
def telling_why(interrupted: int) -> Iterator[None]:
    """Report to the job why a script ended within the block. interrupted: the exit code after
    Ctrl-C.
    """
    try:
        yield
    except notice.Preempted:
        raise  # the others already know
    except notice.Terminated:
        _fail(TERMINATED, notice.TERMINATED)
        raise
    except SystemExit as exit:
        if exit.code not in (None, 0):
            code = exit.code if isinstance(exit.code, int) and 0 < exit.code < 256 else 1
            _fail(f"its script ended by sys.exit({exit.code!r})", code)
        raise
    except KeyboardInterrupt:
        _fail("interrupted", interrupted)
        raise
    except Exception as error:
        _fail(in_one_line(error), 1)
        raise


def _fail(why: str, code: int) -> None:
    job = current_job()
    if job is not None:
        job.fail(why, code)


def _telling(hook: Any) -> Any:
    """sys.excepthook that first tells the job why this process fails."""

    def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        _fail(in_one_line(error), 1)
        hook(kind, error, trace)

    return tell


def in_one_line(error: BaseException) -> str:
    """``ValueError: message``, the first line, truncated if it is long."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:500]}" if text else type(error).__name__


def _shut_down_jax() -> None:
    if jax.distributed.is_initialized():
        jax.distributed.shutdown()


def _end_now(link: Link, hub: Hub | None, code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    link.hear_why(1.0)
    if hub is not None:
        hub.close(wait=2.0)  # the others are notified first
    os._exit(code)


__all__ = [
    "Job",
    "current_job",
    "in_one_line",
    "init_from_env",
    "met_job",
    "same_checkpoint",
    "take_part",
    "telling_why",
]
