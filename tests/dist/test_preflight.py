"""What is checked before jax.distributed starts, and what the hub says of a job that runs. Bounded
in time everywhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax.dist.jobs import hub as hub_module
from fluidjax.dist.jobs import secret as secret_module
from fluidjax.dist.jobs import wire
from fluidjax.dist.jobs.compare_programs import NEW, first_difference, pack, program_lines, unpack
from fluidjax.dist.jobs.env import Endpoint
from fluidjax.dist.jobs.handshake import Hello, read_hello, trainers_text
from fluidjax.dist.jobs.hub import Hub
from fluidjax.dist.jobs.link import Link
from fluidjax.dist.jobs.secret import proof
from fluidjax.errors import JobError, ParseError
from tests import forked
from tests.examples import examples

ROOT = Path(__file__).parents[2]
SECRET = "what the tests know"
LONG = 120.0  # seconds, for what is over at once unless the machine is very busy


def hello(rank, count=2, **changes):
    said = Hello(
        "TRAINER",
        rank,
        count,
        f"host{rank}",
        "machine",
        100 + rank,
        "0.1",
        "0.10",
        "3.11",
        7000 if rank == 0 else 0,
    )
    return replace(said, **changes)


@pytest.fixture
def hub():
    made = []

    def make(count=2, timeout=LONG, **options):
        made.append(Hub(Endpoint("127.0.0.1", 0), count, timeout, **{"secret": SECRET, **options}))
        made[-1].start()
        return made[-1]

    yield make
    for one in OPEN:
        one.leaving = True
        one.close()
    OPEN.clear()
    for one in made:
        one.close(wait=0)
    for thread in THREADS:
        thread.join(10)
    still = [thread for thread in THREADS if thread.is_alive()]
    THREADS.clear()
    assert not still


OPEN, THREADS = [], []


def link(hub, said, retry=False, secret=SECRET):
    OPEN.append(Link(hub.address, said, "the hub", retry, secret))
    return OPEN[-1]


def listen(one):
    """Let a link hear the hub without ending this process when it is told to."""
    one.leaving = True
    THREADS.append(threading.Thread(target=one.listen, daemon=True))
    THREADS[-1].start()


def join_all(hub, hellos, timeout=LONG, **options):
    """What each gets: the coordinator's address, or the sentence."""

    def join(said):
        try:
            return link(hub, said, **options).join(timeout)
        except JobError as error:
            return str(error)

    with ThreadPoolExecutor(len(hellos)) as pool:
        return list(pool.map(join, hellos))


def test_trainers_hear_what_all_wish_and_of_one_that_has_ended_nothing(hub):
    meeting = hub()
    join_all(meeting, [hello(0), hello(1)])
    zero, one = sorted(OPEN, key=lambda at: at.hello.rank)
    for each in (zero, one):
        listen(each)
    with ThreadPoolExecutor(1) as pool:
        for mine, theirs in (("goes on", "reads w"), ("ends", "goes on")):
            other = pool.submit(one.turn, theirs)
            assert zero.turn(mine) == other.result(LONG) == [mine, theirs]
    zero.send({"bye": 0})
    assert one.turn("reads w") == ["", "reads w"]


def test_all_come_and_hear_where_jax_starts(hub):
    hellos = [
        hello(1, 3),
        hello(2, 3),
        Hello("PSERVER", 0, 3, "h", "machine", 9, "0.1", "0.10", "3.11"),
        hello(0, 3),
    ]
    one, two, pserver, zero = join_all(hub(3), hellos)
    assert one == two == zero == "127.0.0.1:7000"
    # one that comes when the trainers are all there needs no coordinator
    assert pserver in ("", zero)


REFUSED = {
    "two processes say that they are trainer 1: process 101 on host host1 and process 5 on host b": [
        hello(1),
        hello(1, pid=5, host="b"),
    ],
    "trainer 2 has an id out of range: there are 2 trainers": [hello(0), hello(2)],
    "trainer 1 says that the job has 3 trainers, but it has 2": [hello(0), hello(1, 3)],
    "runs jax 0.12, but trainer 0 runs jax 0.10; use the same version everywhere": [
        hello(0),
        hello(1, jax="0.12"),
    ],
    "trainer 1 runs fluidjax 0.2, but": [hello(0), hello(1, fluidjax="0.2")],
    "trainer 1 runs python 3.13, but": [hello(0), hello(1, python="3.13")],
    "but the coordinator's address is a loopback address": [hello(0), hello(1, machine="another")],
}


@pytest.mark.parametrize("text", REFUSED)
def test_contradictions_are_told_to_everyone(text, hub):
    meeting = hub()
    first, second = REFUSED[text]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(join_all, meeting, [first])
        while not any(p.hello for p in meeting.peers):
            time.sleep(0.01)
        answers = [*join_all(meeting, [second]), *waiting.result()]
    assert len(set(answers)) == 1 and text in answers[0] and "\n" not in answers[0]


def test_a_missing_trainer_is_named_in_time(hub):
    answers = join_all(hub(4, timeout=1.0), [hello(0, 4), hello(2, 4)])
    assert answers == ["trainers 1 and 3 of 4 did not come within 1 s"] * 2
    assert (
        trainers_text([1]) == "trainer 1"
        and trainers_text(list(range(1, 12))) == "11 trainers (1, 2, ..., 11)"
    )


def test_a_process_that_ends_before_the_start_is_named(hub):
    meeting = hub(3)
    first = link(meeting, hello(0, 3))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(join_all, meeting, [hello(1, 3)])
        assert first.introduce(time.monotonic() + LONG, LONG, "")
        time.sleep(0.1)
        first.close()
        assert (
            "trainer 0 (process 100 on host host0) ended without a word before the job started"
            in waiting.result()[0]
        )


def test_a_process_that_cannot_take_part_spares_the_others_the_wait(hub):
    meeting = hub(2)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(join_all, meeting, [hello(0)])
        with pytest.raises(JobError, match="its list is wrong"):
            link(meeting, hello(-1)).join(LONG, failed="trainer 7: its list is wrong")
        assert waiting.result() == ["trainer 7: its list is wrong"]


def test_who_comes_late_or_from_elsewhere_does_not_disturb_the_job(hub):
    meeting = hub(1)
    assert (
        "trainer 0 and the hub at 127.0.0.1:"
        in join_all(meeting, [hello(0, 1)], secret="another job's secret")[0]
    )
    assert meeting.state == "gathering" and not any(p.hello for p in meeting.peers)
    inside = link(meeting, hello(0, 1))
    inside.join(LONG)
    assert "the job runs already, so trainer 0" in join_all(meeting, [hello(0, 1, pid=1)])[0]
    assert meeting.state == "running" and not meeting.verdict


STRANGERS = [
    b"GET / HTTP/1.1\r\n\r\n", b"[]\n", b'{"hello": 5}\n', b'{"bye": 1}\n', b"x" * 100_000, b"[" * 60_000 + b"\n", b"\xff\x00\n",
    b'{"hello": {"role": "TRAINER", "rank": 1e9}}\n', b'{"nonce": "n", "proof": "p"}\n', b'{"nonce": 1, "proof": null}\n',
    b'{"failed": "the end"}\n{"failed": "the end"}\n', b"9" * 15_000 + b"\n",
    b'{"nonce": "n", "proof": "\\u00e9", "hello": {}, "failed": "the end"}\n', b'{"end": "now"}\n',
]  # fmt: skip


def spoken_to(hub, said=b""):
    """A connection of somebody who knows the address, and says this."""
    sock = socket.create_connection((hub.address.host, hub.address.port), timeout=LONG)
    with contextlib.suppress(OSError):  # hung up on while it still speaks
        sock.sendall(said)
    return sock


def heard(sock):
    """All that such a one hears, to the end of the connection."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while data := sock.recv(4096):
            found += data
    return found


@pytest.mark.parametrize("said", STRANGERS)
def test_strangers_are_sent_away(said, hub):
    """Before the job runs, and while it does; they hear nothing of it."""
    meeting = hub()
    with spoken_to(meeting, said) as sock:
        told = heard(sock)
    assert not told or re.fullmatch(
        rb'\{"hub":2,"nonce":"[0-9a-f]{32}"\}\n(\{"stranger":true\}\n)?', told
    )
    assert join_all(meeting, [hello(0), hello(1)]) == ["127.0.0.1:7000"] * 2
    with spoken_to(meeting, said) as sock:
        heard(sock)
    assert (
        meeting.state == "running"
        and not meeting.verdict
        and sum(p.hello is not None for p in meeting.peers) == 2
    )


def test_what_another_process_said_is_no_use_again(hub):
    """Each connection has a nonce of its own; nor is what the hub says of use to say to it."""
    meeting = hub()
    nonce = "00"
    for side in ("process", "hub"):
        said = {
            "nonce": nonce,
            "proof": proof(SECRET, side, nonce, "an older one"),
            "hello": hello(0).as_dict(),
        }
        with spoken_to(meeting, wire.encode(said)) as sock:
            assert heard(sock).endswith(b'{"stranger":true}\n')
    with spoken_to(meeting) as sock:
        theirs = json.loads(sock.recv(4096))["nonce"]
        sock.sendall(
            wire.encode(
                {
                    "nonce": theirs,
                    "proof": proof(SECRET, "hub", theirs, theirs),
                    "hello": hello(0).as_dict(),
                }
            )
        )
        assert heard(sock).endswith(b'{"stranger":true}\n')
    assert not any(p.hello for p in meeting.peers)


def test_hundreds_who_come_and_say_nothing(hub, monkeypatch):
    """A bounded number is kept, for a bounded time, and the processes of the job come in all the
    same.
    """
    meeting = hub(3)
    silent = [spoken_to(meeting, b'{"hel' if i % 2 else b"") for i in range(300)]
    assert join_all(meeting, [hello(i, 3) for i in range(3)], retry=True) == ["127.0.0.1:7000"] * 3
    assert sum(p.hello is None for p in meeting.peers) <= hub_module.STRANGERS
    monkeypatch.setattr(hub_module, "SILENT", 0.0)
    for sock in silent:
        heard(sock)  # all of them are hung up on
        sock.close()
    assert meeting.state == "running" and not meeting.verdict


def test_somebody_else_who_answers_at_the_hubs_address():
    """It may have taken the port; it is not obeyed, since it proves nothing."""
    with wire.listen("127.0.0.1", 0) as other:
        address = Endpoint("127.0.0.1", other.getsockname()[1])

        def answer():
            conn, _ = other.accept()
            conn.sendall(
                wire.encode({"hub": 2, "nonce": "n"})
                + wire.encode({"ok": {"coordinator": "10.0.0.66:1"}})
            )
            conn.recv(4096)
            conn.close()

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(
            JobError, match=r"trainer 1 and trainer 0 at .* do not have the same secret"
        ):
            Link(address, hello(1), "trainer 0", secret=SECRET).join(LONG)


def test_one_users_processes_on_one_machine_find_the_secret():
    """No variable is set: the hub leaves it in a file that only this user can read, as long as it
    is there.
    """
    meeting = Hub(Endpoint("127.0.0.2", 0), 1, LONG)
    meeting.start()
    path = secret_module.path_of(meeting.address)
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    inside = Link(meeting.address, hello(0, 1), "the hub")
    assert inside.join(LONG) == "127.0.0.2:7000"
    inside.close()
    path.chmod(0o644)  # somebody else may know it
    with pytest.raises(
        JobError,
        match=(
            r"trainer 0 does not know the secret of the job at 127\.0\.0\.2:.*set"
            r" FLUIDJAX_JOB_SECRET"
        ),
    ):
        Link(meeting.address, hello(0, 1), "the hub").join(LONG)
    path.chmod(0o600)
    meeting.close(wait=0)
    assert not path.exists()


def test_a_file_that_somebody_else_left(tmp_path, monkeypatch):
    """A link is not followed; what an older job left is replaced."""
    monkeypatch.setattr(secret_module, "_folder", lambda: tmp_path)
    address, elsewhere = Endpoint("127.0.0.1", 1), tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    secret_module.path_of(address).symlink_to(elsewhere)
    assert secret_module.found(address) == ""
    secret_module.leave(address, "new")
    assert (secret_module.found(address), elsewhere.read_text()) == ("new", "kept")
    secret_module.take_away(address, "another")
    assert secret_module.found(address) == "new"


def test_a_port_where_something_else_answers():
    with wire.listen("127.0.0.1", 0) as other:
        address = Endpoint("127.0.0.1", other.getsockname()[1])

        def answer():
            conn, _ = other.accept()
            conn.sendall(b"SSH-2.0-OpenSSH\r\n")
            conn.close()

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(
            JobError,
            match=(
                r"trainer 1: 127\.0\.0\.1:.* answers, but not as trainer 0 would; another program"
            ),
        ):
            Link(address, hello(1), "trainer 0", secret=SECRET).join(LONG)


def test_a_port_where_nothing_answers():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # nobody else gets the port, and nobody listens there
        address = Endpoint("127.0.0.1", silent.getsockname()[1])
        with pytest.raises(
            JobError,
            match=(
                r"trainer 1 cannot reach trainer 0 at .* within 0.3 s \(Connection refused\), a"
                r" loopback"
            ),
        ):
            Link(address, hello(1), "trainer 0", secret=SECRET).join(0.3)


# -- while a job runs (links without `watch`, so that the sentence does not end this process) ------


def running(hub, count=2, **options):
    meeting = hub(count, **options)
    links = [link(meeting, hello(rank, count)) for rank in range(count)]
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda one: one.join(LONG), links))
    return meeting, links


def told(one, key, seconds=LONG):
    deadline = time.monotonic() + seconds
    while message := one.next_message(deadline):
        if "poll" in message:
            one.send({"steps": one.steps})
        if key in message:
            return message[key]
    raise AssertionError(f"nobody said {key!r}")


def test_a_death_is_told_at_once(hub):
    _, (zero, one) = running(hub)
    start = time.monotonic()
    one.close()
    assert told(zero, "end").startswith(
        "trainer 1 (process 101 on host host1) ended without a word"
    )
    # nothing in a job waits for a shorter time than jax's heartbeats, 100 s
    assert time.monotonic() - start < 30


def test_a_silent_death_explains_the_failures_that_follow(hub):
    _, (zero, one, two) = running(hub, 3)
    zero.fail("ValueError: Connection closed by peer")
    two.close()
    assert told(one, "end").startswith("trainer 2 (process 102 on host host2) ended without a word")


def test_a_failure_is_told_with_its_reason(hub):
    _, (zero, one) = running(hub)
    one.fail("ValueError: boom")
    one.close()
    assert told(zero, "end") == "trainer 1 failed: ValueError: boom"


def test_all_leave_together(hub):
    meeting, (zero, one) = running(hub)
    zero.steps = one.steps = 7
    zero.send({"bye": 7})
    assert zero.next_message(time.monotonic() + 0.3) is None  # trainer 1 may take its time
    one.send({"bye": 7})
    assert told(zero, "done") and told(one, "done")
    zero.close()
    one.close()
    time.sleep(0.5)
    assert meeting.verdict == ""


def test_a_pserver_that_comes_when_all_is_done(hub):
    meeting, (zero,) = running(hub, 1)
    zero.send({"bye": 1})
    assert told(zero, "done")
    late = link(meeting, hello(0, 1, role="PSERVER"))
    assert late.join(LONG) == "" and told(late, "done")
    assert join_all(meeting, [hello(0, 1)]) == ["the job is over"]


@pytest.mark.parametrize("ended", [0, 1])
def test_different_numbers_of_batches(ended, hub):
    meeting, links = running(hub)
    links[ended].steps, links[1 - ended].steps = 10, 11
    links[ended].send({"bye": 10})
    text = (
        f"trainer {ended} ended after 10 steps, but trainer {1 - ended} has begun step 11, which"
        " needs every trainer"
    )
    assert told(links[1 - ended], "end").startswith(text)
    # its collective lost the other process, which was told first
    links[1 - ended].fail("ValueError: Connection reset by peer")
    links[1 - ended].close()
    limit = time.monotonic() + LONG
    while any(peer.name == f"trainer {1 - ended}" for peer in meeting.peers):
        assert time.monotonic() < limit
        time.sleep(0.01)
    assert meeting.failures == {} and meeting.verdict.startswith(text)


@pytest.mark.parametrize("first", ["waits", "ends"])
def test_a_trainer_that_ends_while_another_has_something_to_compare(first, hub):
    """As where the last batch of one is smaller than the others, and the other has none."""
    _, (zero, one) = running(hub)
    zero.steps = one.steps = 10
    waits, ends = {"program": 0, "hash": "x", "steps": 10, "what": NEW}, {"bye": 10}
    for sender, message in [(zero, waits), (one, ends)][:: 1 if first == "waits" else -1]:
        sender.send(message)
        time.sleep(0.1)
    assert (
        told(zero, "end")
        == "trainer 0 has new sizes in its feed, a new program or new state before step 11, but"
        " trainer 1 ended after 10 steps; give all trainers the same number of batches"
    )


def build(size=3, op="relu"):
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 4], "float32")
        fluid.layers.mean(getattr(fluid.layers, op)(fluid.layers.fc(x, size)))
    return main.desc


def transpiled(rank):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        table = fluid.layers.embedding(
            fluid.data("ids", [None, 1], "int64"), [1000, 20], is_sparse=True
        )
        loss = fluid.layers.mean(fluid.layers.fc([fluid.data("x", [None, 900]), table], 20))
        fluid.optimizer.Adam(0.1).minimize(loss)
    t = fluid.DistributeTranspiler()
    t.transpile(rank, program=main, startup_program=startup, pservers="a:1,b:2", trainers=12)
    return t.get_trainer_program().desc


def test_a_trainers_own_id_is_no_difference():
    zero, eleven = transpiled(0), transpiled(11)
    assert zero != eleven and ".trainer_11" in program_lines(eleven)
    assert program_lines(zero, 0) == program_lines(eleven, 11)
    assert program_lines(zero, 0) != program_lines(eleven, 1)


def compared(hub, programs):
    _, links = running(hub, len(programs))

    def compare(one, program):
        listen(one)
        try:
            one.same_program(program_lines(program), LONG)
        except JobError as error:
            return str(error)
        return "same"

    with ThreadPoolExecutor(len(programs)) as pool:
        return list(pool.map(compare, links, programs))


def test_equal_programs(hub):
    assert compared(hub, [build(), build(), build()]) == ["same"] * 3


def test_the_first_op_that_differs_is_named(hub):
    answers = compared(hub, [build(), build(), build(op="tanh")])
    assert len(set(answers)) == 1
    assert answers[0].startswith(
        "trainer 0 and trainer 2 run different programs; the first difference: trainer 0 has"
        " `block 0: "
    )
    assert " = relu(X=fc_0.tmp_1" in answers[0] and " = tanh(X=fc_0.tmp_1" in answers[0]
    sizes = compared(hub, [build(), build(5)])[0]
    assert "f32[-1, 3] = mul(" in sizes and "f32[-1, 5] = mul(" in sizes


def test_a_trainer_that_never_compares(hub):
    _, (zero, _) = running(hub)
    listen(zero)
    with pytest.raises(JobError, match=r"not all trainers came to that point within 0\.2 s"):
        zero.same_program("x", 0.2)


def test_texts_travel_packed_and_bounded(monkeypatch):
    assert unpack(pack("a\nb")) == "a\nb"
    assert first_difference("a\nb", "a\nb\nc") == (2, "nothing", "c") and first_difference(
        "a", "a"
    ) == (-1, "", "")
    monkeypatch.setattr("fluidjax.dist.jobs.compare_programs.LARGEST", 100)
    for bad in (pack("x" * 1000), "not base 85 \x00", pack("abc")[:-5], 5):
        with pytest.raises(ParseError):
            unpack(bad)


@examples(200)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda s: st.lists(s) | st.dictionaries(st.text(max_size=5), s),
    )
)
def test_a_hello_is_one_or_refused(message):
    with pytest.raises(ParseError):
        read_hello(message)


@given(st.binary(max_size=300), st.integers(1, 50))
def test_lines_are_messages_or_refused(data, piece):
    lines = wire.Lines(100)
    try:
        for i in range(0, len(data), piece):
            assert all(isinstance(m, dict) for m in lines.feed(data[i : i + piece]))
    except ParseError:
        pass
    assert read_hello(hello(1).as_dict()) == hello(1)


# -- real processes, without a launcher ------------------------------------------------------------

SCRIPT = (
    "import fluidjax as fluid, jax; job = fluid.dist.init_from_env(); print(job.rank, job.count,"
    " len(jax.devices()), flush=True)"
)


# the child keeps everything open that it inherits, but for the pipes that this test reads
FORKS_AND_DIES = """
import os, time
child = os.fork() if job.rank else 1
if not child:
    os.closerange(0, 3)
    time.sleep(600)
    os._exit(0)
if job.rank:
    print(child, flush=True)
    os.kill(os.getpid(), 9)
time.sleep(600)
"""


def start(*envs, script=SCRIPT, popen=forked.Popen):
    """Processes with these variables each; (exit code, stdout, stderr) of each."""
    clean = {k: v for k, v in os.environ.items() if "PADDLE" not in k} | {
        "JAX_PLATFORMS": "cpu",
        "FLAGS_rpc_deadline": "120000",
    }
    running = [
        popen(
            [sys.executable, "-c", script],
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean | env,
        )
        for env in envs
    ]
    try:
        return [
            (p.returncode, out, err) for p in running for out, err in [p.communicate(timeout=240)]
        ]
    finally:
        for p in running:
            p.kill()


def trainer(rank, ports, **more):
    return {
        "PADDLE_TRAINER_ENDPOINTS": ",".join(f"127.0.0.1:{p}" for p in ports),
        "PADDLE_TRAINER_ID": str(rank),
        **more,
    }


@pytest.mark.slow
def test_two_processes_without_a_launcher():
    ports = wire.free_port(), 6170
    results = start(trainer(0, ports), trainer(1, ports), popen=subprocess.Popen)
    assert [(code, out.splitlines()[-1]) for code, out, _ in results] == [
        (0, "0 2 2"),
        (0, "1 2 2"),
    ]


def test_pservers_alone_can_tell_trainers_where_to_meet():
    common = {
        "PADDLE_PSERVERS_IP_PORT_LIST": f"127.0.0.1:{wire.free_port()}",
        "PADDLE_TRAINERS_NUM": "2",
    }
    pserver = {
        "PADDLE_TRAINING_ROLE": "PSERVER",
        "PADDLE_CURRENT_ENDPOINT": common["PADDLE_PSERVERS_IP_PORT_LIST"],
    }
    results = start(
        common | pserver, *({**common, "PADDLE_TRAINER_ID": str(rank)} for rank in (0, 1))
    )
    assert [(code, out.splitlines()[-1]) for code, out, _ in results] == [
        (0, "0 2 1"),
        (0, "0 2 2"),
        (0, "1 2 2"),
    ]


FLEET = """
import numpy as np
import fluidjax as fluid
from fluidjax.incubate.fleet.base import role_maker
from fluidjax.incubate.fleet.parameter_server.distribute_transpiler import fleet
from fluidjax.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory
x = fluid.data("x", [None, 2])
loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr=fluid.initializer.Constant(0.5), bias_attr=False))
fleet.init(role_maker.PaddleCloudRoleMaker())
fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), StrategyFactory.create_sync_strategy()).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    print("served")
else:
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    for _ in range(2):
        feed = {"x": np.full((1, 2), 1 + 2 * fleet.worker_index(), "float32")}  # by SGD: 0.5 - 2 * 0.1 * (1 + 3) / 2 = 0.1
        exe.run(fleet.main_program, feed=feed, fetch_list=[loss])
    print([f"{w:.4f}" for w in np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor()).ravel()])
    fleet.stop_worker()
"""


def test_a_fleet_with_servers_joins_the_job_of_the_environment():
    """As scripts of 1.8 are started by a shell: no launcher, and nothing in the script but
    fleet.init.
    """
    server = f"127.0.0.1:{wire.free_port()}"
    common = trainer(0, (wire.free_port(), 6170)) | {
        "PADDLE_PSERVERS_IP_PORT_LIST": server,
        "PADDLE_TRAINERS_NUM": "2",
    }
    pserver = {
        "TRAINING_ROLE": "PSERVER",
        "POD_IP": "127.0.0.1",
        "PADDLE_PORT": server.partition(":")[2],
    }
    workers = [
        {**common, "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": str(rank)} for rank in (0, 1)
    ]
    results = start(common | pserver, *workers, script=FLEET)
    assert [(code, out.splitlines()[-1:]) for code, out, _ in results] == [
        (0, ["served"]),
        *[(0, ["['0.1000', '0.1000']"])] * 2,
    ], results


# at its exit, Python waits for this thread for ever, as orbax does for a checkpoint whose other
# half never comes
FAILS_AND_STAYS = """
import threading
if job.rank == 0:
    threading.Thread(target=threading.Event().wait).start()
    raise ValueError("boom")
threading.Event().wait()
"""


def test_a_process_that_fails_but_does_not_come_to_its_end():
    ports = wire.free_port(), 6170
    (zero, _, err), (one, _, told) = start(
        trainer(0, ports), trainer(1, ports), script=SCRIPT + FAILS_AND_STAYS
    )
    assert (zero, one) == (1, 75) and "ValueError: boom" in err
    assert "fluidjax: trainer 1 ends because trainer 0 failed: ValueError: boom" in told


def test_a_cluster_that_jax_detects():
    """Of several machines, as far as its variables say, and no secret: JAX joins them first."""
    job = {
        "SLURM_JOB_ID": str(os.getpid()),
        "SLURM_STEP_NODELIST": "127.0.0.1,127.0.0.2",
        "SLURM_NTASKS": "2",
    }
    envs = [job | {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)} for rank in (0, 1)]
    (code, out, err), (killed, other, _) = start(*envs, script=SCRIPT + FORKS_AND_DIES)
    *_, second, child = other.split("\n")[:-1]
    os.kill(int(child), 9)
    assert (code, out.splitlines()[-1], killed, second) == (75, "0 2 2", -9, "1 2 2")
    # long before the child ends
    assert "fluidjax: trainer 0 ends because trainer 1 (process " in err


def test_a_device_that_was_used_before():
    """As where a script makes an Executor before it says that it is part of a job; arrays from
    before stay of use.
    """
    ports = wire.free_port(), 6170
    early = (
        "import jax; old = jax.numpy.arange(3.) + 1; "
        + SCRIPT
        + "; print((jax.jit(lambda x: x * 2)(old)).tolist())"
    )
    results = start(trainer(0, ports), trainer(1, ports), script=early)
    assert [(code, out.splitlines()[-2:]) for code, out, _ in results] == [
        (0, [f"{r} 2 2", "[2.0, 4.0, 6.0]"]) for r in (0, 1)
    ], results


def test_a_duplicate_id_is_told_to_both():
    ports = wire.free_port(), 6170, 6171
    results = start(*(trainer(rank, ports) for rank in (0, 1, 1)))
    for code, _, err in results:
        last = err.strip().splitlines()[-1]
        assert code == 1 and last.startswith(
            "fluidjax.errors.JobError: two processes say that they are trainer 1: process "
        ), err


def coordinator_at(port):
    """The last lines of two trainers with this JAX_COORDINATOR_PORT."""
    ports = wire.free_port(), 6170
    ended = start(*(trainer(rank, ports, JAX_COORDINATOR_PORT=str(port)) for rank in (0, 1)))
    assert [code for code, _, _ in ended] == [1, 1]
    return [err.strip().splitlines()[-1] for _, _, err in ended]


def test_a_coordinators_port_that_does_not_do():
    """In use, JAX would crash over it."""
    with wire.listen("127.0.0.1", 0) as other:
        busy = other.getsockname()[1]
        text = (
            f"trainer 0 cannot listen on port {busy} (Address already in use), which"
            " JAX_COORDINATOR_PORT names"
        )
        assert all(
            line.startswith(f"fluidjax.errors.JobError: {text}") for line in coordinator_at(busy)
        )
    text = (
        "fluidjax.errors.JobError: trainer 0: JAX_COORDINATOR_PORT is '99999'; a port is 1 to 65535"
    )
    assert coordinator_at(99999) == [text] * 2


def test_an_id_out_of_range_ends_all():
    ports = wire.free_port(), 6170
    results = start(trainer(0, ports), trainer(2, ports))
    assert [code for code, _, _ in results] == [1, 1]
    assert all(
        "trainer 2: PADDLE_TRAINER_ID is 2, but there are 2 trainers" in err.splitlines()[-1]
        for _, _, err in results
    )


def test_a_missing_process_and_a_busy_port():
    ports = wire.free_port(), 6170
    with wire.listen("127.0.0.1", 0) as other:
        busy = other.getsockname()[1], 6170
        (missing, _, text), (in_use, _, err) = start(
            trainer(0, ports, FLAGS_rpc_deadline="1000"), trainer(0, busy)
        )
    assert missing == 1 and "JobError: trainer 1 of 2 did not come within 1 s" in text
    assert (
        in_use == 1
        and f"JobError: trainer 0 cannot listen on 127.0.0.1:{busy[0]} (Address already in use)"
        in err
    )
