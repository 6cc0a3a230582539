"""``fluidjax launch``: real jobs of two and four processes on the CPU, and how they end."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fluidjax import cli
from fluidjax.dist.jobs import hangs
from fluidjax.dist.jobs.children import Spec, lines
from fluidjax.dist.jobs.env import Endpoint, read_env
from fluidjax.dist.jobs.hub import Hub
from fluidjax.dist.jobs.launch import Supervisor, job_specs

ROOT = Path(__file__).parents[2]
TRAIN = """
import os, sys, time
import numpy as np
import jax
import paddle.fluid as fluid
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

what, at, victim = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
if os.environ["PADDLE_TRAINING_ROLE"] == "PSERVER":
    fluid.dist.current_job().serve()
    print("served", os.environ["PADDLE_CURRENT_ENDPOINT"].split(":")[0])
    sys.exit(0)
job = fluid.dist.init_from_env()
assert job is fluid.dist.current_job()
mesh = Mesh(np.array(jax.devices()), ("d",))
ones = jax.make_array_from_process_local_data(NamedSharding(mesh, P("d")), np.ones(jax.local_device_count(), "f4"))
total = jax.jit(lambda x: x.sum(), out_shardings=NamedSharding(mesh, P()))

def strike(step):
    if step == at and job.rank == victim:
        if what == "kill":
            print("struck", time.time(), flush=True)
            os.kill(os.getpid(), 9)
        if what == "raise": raise ValueError("boom")
        if what == "exit": sys.exit(7)

with fluid.program_guard(fluid.Program(), fluid.Program()):
    x = fluid.data("x", [None, 3])
    fluid.layers.fc(x, 5 if what == "program" and job.rank else 4)
    program = fluid.default_main_program().desc
for step in range(4 - (what == "uneven" and job.rank)):
    strike(step)
    job.step_begins(program)
    sum = float(total(ones))
strike(4)
if what == "stop":
    if job.rank == victim: os.kill(os.getpid(), 19)
    job.step_begins(program)
    float(total(ones))
if what == "dawdle" and job.rank == victim: time.sleep(4)
if what == "dawdle":
    job.step_begins(program)
    float(total(ones))
if what == "wait":
    print("ready", os.getpid())
    time.sleep(600)
print("sum", sum)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("job") / "train.py"
    path.write_text(TRAIN)
    return str(path)


def command(*words):
    return [sys.executable, "-m", "fluidjax", "launch", *words]


ENV = {k: v for k, v in os.environ.items() if "PADDLE" not in k} | {"JAX_PLATFORMS": "cpu"}


@pytest.fixture
def launch(launch_for_real, forked):
    """The same by forked processes."""
    return launch_for_real


@pytest.fixture
def launch_for_real(capfd, monkeypatch):
    """``fluidjax launch`` with these words: exit code, stdout, stderr."""
    monkeypatch.chdir(ROOT)

    def run(*words):
        return cli.main(["launch", *words]), *capfd.readouterr()

    return run


@pytest.mark.slow
def test_two_trainers_and_two_pservers(launch_for_real, script, tmp_path):
    """With the options of Paddle's launch_ps; each process's words are in a file of its own, too,
    behind those of an older job.
    """
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "workerlog.1").write_text("older\n")
    words = [
        "--worker_num=2",
        "--server_num",
        "2",
        "--start_port=6170",
        "--log_dir",
        str(logs),
        script,
        "run",
        "0",
    ]
    code, out, err = launch_for_real(*words)
    assert "fluidjax launch: --start_port: no meaning here" in err
    assert {p.name for p in logs.iterdir()} == {
        "workerlog.0",
        "workerlog.1",
        "serverlog.0",
        "serverlog.1",
    }
    assert (logs / "workerlog.1").read_text().startswith("older\n") and "\nsum 2.0\n" in (
        logs / "workerlog.1"
    ).read_text()
    assert "served 127.0.0.2\n" in (logs / "serverlog.1").read_text()
    assert (code, sorted(out.splitlines())) == (
        0,
        [
            "[pserver 0] served 127.0.0.1",
            "[pserver 1] served 127.0.0.2",
            "[trainer 0] sum 2.0",
            "[trainer 1] sum 2.0",
        ],
    ), err


SEED = """
import os
import paddle.fluid as fluid

x = fluid.layers.data(name='x', shape=[13], dtype='float32')
y = fluid.layers.data(name='y', shape=[1], dtype='float32')
cost = fluid.layers.square_error_cost(input=fluid.layers.fc(input=x, size=1), label=y)
fluid.optimizer.SGD(learning_rate=0.001).minimize(fluid.layers.mean(cost))
port = os.getenv("PADDLE_PSERVER_PORT", "6174")
pservers = ",".join(':'.join([ip, port]) for ip in os.getenv("PADDLE_PSERVER_IPS", "").split(","))
current_endpoint = os.getenv("PADDLE_CURRENT_IP", "") + ":" + port
trainer_id = int(os.getenv("PADDLE_TRAINER_ID", "0"))
t = fluid.transpiler.DistributeTranspiler()
t.transpile(trainer_id, pservers=pservers, trainers=int(os.getenv("PADDLE_TRAINERS")))
if os.getenv("PADDLE_TRAINING_ROLE") == "PSERVER":
    main, startup = t.get_pserver_programs(current_endpoint)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    print("served", exe.run(main), sorted(fluid.global_scope().local_var_names())[-1])
else:
    print([op.type for op in t.get_trainer_program().global_block().ops][-2:])
"""


@pytest.mark.slow
def test_a_pserver_script_in_the_seed_documents_form(launch, tmp_path):
    path = tmp_path / "seed.py"
    path.write_text(SEED)
    code, out, err = launch("--nproc", "2", "--pservers", "2", str(path))
    lines = sorted(out.splitlines())
    assert code == 0, err
    assert [line.split("]")[0] for line in lines] == [
        "[pserver 0",
        "[pserver 1",
        "[trainer 0",
        "[trainer 1",
    ]
    assert all("served []" in line for line in lines[:2])
    assert all(line.endswith("['recv', 'fetch_barrier']") for line in lines[2:])


@pytest.mark.slow
def test_four_trainers_with_two_devices_each(launch, script):
    code, out, err = launch("--nproc", "4", "--devices-per-proc", "2", script, "run", "0")
    assert (code, out.count("sum 8.0")) == (0, 4), err


@pytest.mark.parametrize(("victim", "step"), [(1, 1), (0, 4)])
def test_a_killed_trainer_ends_the_job_with_its_name(launch, victim, step, script):
    code, out, err = launch(
        "--nproc", "2", "--pservers", "1", script, "kill", str(step), str(victim)
    )
    assert time.time() - float(out.partition("struck ")[2].split()[0]) < 30
    report = next(line for line in err.splitlines() if line.startswith("fluidjax launch"))
    assert code == 137
    assert report.startswith(
        f"fluidjax launch: trainer {victim} was killed by SIGKILL (signal 9) after "
    )
    assert report.endswith("; the other 2 processes were ended")
    other = f"trainer {1 - victim}"  # the pserver may not have come so far
    text = (
        f"[{other}] fluidjax: {other} ends because trainer {victim} was killed by SIGKILL"
        " (signal 9)" in err
    )
    # trainer 0 holds jax's coordinator, and jax may be faster than the sentence
    assert text or (victim == 0 and "the JAX distributed service detected fatal errors" in err)


def test_an_exception_ends_the_job_with_its_text(launch, script):
    code, _, err = launch("--nproc", "2", script, "raise", "1")
    assert (
        code == 1
        and "fluidjax launch: trainer 1 ended with exit code 1 (ValueError: boom) after " in err
    )
    assert "the last lines of trainer 1:\n" in err and "\n    ValueError: boom\n" in err


def test_an_exit_code_is_passed_on(launch, script):
    code, _, err = launch("--nproc", "2", script, "exit", "1")
    assert code == 7 and "trainer 1 ended with exit code 7 (its script ended by sys.exit(7))" in err


def test_different_numbers_of_batches_are_no_hang(launch, script):
    code, _, err = launch("--nproc", "2", script, "uneven", "0")
    assert code == 1
    assert (
        "fluidjax launch: trainer 1 ended after 3 steps, but trainer 0 has begun step 4, which"
        " needs every trainer;" in err
    )


def test_different_programs_are_refused_at_the_start(launch, script):
    code, out, err = launch("--nproc", "2", script, "program", "0")
    assert code == 1 and "] sum" not in out
    for rank in (0, 1):
        assert (
            f"[trainer {rank}] fluidjax.errors.JobError: trainer 0 and trainer 1 run different"
            " programs; the first" in err
        )
    assert "f32[-1, 4] = mul(" in err and "f32[-1, 5] = mul(" in err


def ready(process):
    """The pids of two trainers, once they wait."""
    found = []
    while len(found) < 2:
        line = process.stdout.readline()
        assert line
        if "ready" in line:
            found.append(int(line.split()[-1]))
    return found


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_trainers_end_with_the_launcher(number, script):
    with subprocess.Popen(
        command("--nproc", "2", script, "wait", "0"),
        cwd=ROOT,
        env=ENV,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        pids = ready(process)
        process.send_signal(number)
        _, err = process.communicate(timeout=240)
        assert process.returncode == (130 if number == signal.SIGINT else -9)
        if number == signal.SIGINT:
            assert "fluidjax launch: interrupted by SIGINT" in err
            # each says why it ends: the signal reached it first, or the launcher's word
            assert {line[:11] for line in err.splitlines() if "interrupted" in line} == {
                "[trainer 0]",
                "[trainer 1]",
                "fluidjax la",
            }
        limit = time.monotonic() + 60
        while any(alive(pid) for pid in pids):
            assert time.monotonic() < limit
            time.sleep(0.05)


# -- the supervisor, over processes that know nothing of fluidjax ----------------------------------


def supervise(capfd, **codes):
    """The exit code, stdout, stderr of a job of ``name="python code"``."""
    hub = Hub(Endpoint("127.0.0.1", 0), 1, 5.0, supervised=True)
    specs = [
        Spec(name.replace("_", " "), (sys.executable, "-u", "-c", code), dict(os.environ))
        for name, code in codes.items()
    ]
    code = Supervisor(hub, specs).run()
    return code, *capfd.readouterr()


def test_a_process_that_fails_after_the_verdict_is_not_the_cause(capfd):
    """A collective fails once the hub has ended the other process."""

    class Slow(Supervisor):
        def next_message(self, timeout=0.1):
            return super().next_message(30.0 if timeout else 0.0)

    hub = Hub(Endpoint("127.0.0.1", 0), 1, 5.0, supervised=True)
    hub.verdict = "trainer 1 ended after 3 steps"
    spec = Spec("trainer 0", (sys.executable, "-c", "raise SystemExit(1)"), dict(os.environ))
    assert Slow(hub, [spec]).run() == 1
    assert capfd.readouterr().err.splitlines()[-1] == f"fluidjax launch: {hub.verdict}"


def test_output_stands_under_the_names_on_its_own_stream(capfd):
    code, out, err = supervise(
        capfd,
        trainer_0="import sys; print('a\\nb'); print('ü', end=''); print('c', file=sys.stderr)",
    )
    assert (code, out, err) == (
        0,
        "[trainer 0] a\n[trainer 0] b\n[trainer 0] ü\n",
        "[trainer 0] c\n",
    )


def test_a_long_line_and_bytes_that_are_no_text(capfd):
    code, out, _ = supervise(
        capfd, trainer_0="import sys; sys.stdout.buffer.write(b'x' * 100000 + b'\\xff\\n')"
    )
    assert (
        code == 0 and out.count("x") == 100000 and out.count("[trainer 0]") == 2 and "\ufffd" in out
    )


BANNER = (
    "[Gloo] Rank 1 is connected to 1 peer ranks. Expected number of connected peer ranks is : 1\n"
)


@pytest.mark.parametrize("at", range(13))
def test_a_banner_from_cpp_leaves_no_trace(at):
    """Wherever it lands in what Python writes."""
    said = "a b\nlonger\nc"
    written = io.BytesIO((said[:at] + BANNER + said[at:]).encode())
    assert b"".join(lines(written)) == said.encode()


def test_a_banner_in_the_middle_of_a_printed_line(capfd):
    """Python writes the words of a print one by one, as the launcher lets it write at once."""
    code, out, _ = supervise(
        capfd,
        trainer_0=f"import os; print('x', end=' '); os.write(1, {BANNER.encode()!r}); print('y')",
    )
    assert (code, out) == (0, "[trainer 0] x y\n")


def test_signals_have_names_and_what_a_process_left_behind_holds_nothing_up(capfd, monkeypatch):
    monkeypatch.setattr("fluidjax.dist.jobs.launch.PATIENCE", 0.5)
    start = time.monotonic()
    left = (
        "import subprocess, sys, os; subprocess.Popen([sys.executable, '-c', 'import time;"
        " time.sleep(90)']); "
    )
    code, _, err = supervise(
        capfd, trainer_0=left + "os.abort()", pserver_0="import time; time.sleep(90)"
    )
    assert (
        code == 134
        and "trainer 0 was killed by SIGABRT (signal 6)" in err
        and "the other 1 process was ended" in err
    )
    assert time.monotonic() - start < 80


def test_pservers_end_when_the_trainers_have(capfd, monkeypatch):
    monkeypatch.setattr("fluidjax.dist.jobs.launch.AFTER_DONE", 0.2)
    monkeypatch.setattr("fluidjax.dist.jobs.launch.PATIENCE", 0.2)
    start = time.monotonic()
    code, _, err = supervise(capfd, trainer_0="print(1)", pserver_0="import time; time.sleep(90)")
    assert (code, err) == (0, "") and time.monotonic() - start < 80


# -- the command -----------------------------------------------------------------------------------


def test_the_variables_describe_the_job():
    inherited = {"PADDLE_TRAINER_ID": "9", "POD_IP": "x", "KEPT": "1"}
    hub = Endpoint("127.0.0.1", 5)
    specs = job_specs(
        ["x"], 2, 2, hub, "t" * 20, devices_per_proc=3, gpus=["4", "5"], environ=inherited
    )
    assert [s.name for s in specs] == ["trainer 0", "trainer 1", "pserver 0", "pserver 1"]
    envs = [read_env(s.env) for s in specs]
    assert [(e.name, e.count, e.hub, e.launched) for e in envs] == [
        (s.name, 2, hub, True) for s in specs
    ]
    assert (
        len({e.current for e in envs}) == 4
        and len(set(envs[0].trainers)) == len(set(envs[0].pservers)) == 2
    )
    assert envs[2].current == envs[0].pservers[0]
    first = specs[1].env
    assert (
        first["JAX_NUM_CPU_DEVICES"],
        first["CPU_NUM"],
        first["CUDA_VISIBLE_DEVICES"],
        first["KEPT"],
    ) == ("3", "3", "5", "1")
    # scripts ask for either name
    roles = [(s.env["PADDLE_TRAINING_ROLE"], s.env["TRAINING_ROLE"]) for s in specs]
    assert roles == [("TRAINER", "TRAINER")] * 2 + [("PSERVER", "PSERVER")] * 2
    assert "PADDLE_TRAINER_ID" not in specs[2].env and specs[2].env["POD_IP"] == "127.0.0.1"
    # the seed document's own reading of them
    pservers = ",".join(
        f"{ip}:{specs[3].env['PADDLE_PSERVER_PORT']}"
        for ip in specs[3].env["PADDLE_PSERVER_IPS"].split(",")
    )
    assert (
        specs[3].env["PADDLE_CURRENT_IP"] + ":" + specs[3].env["PADDLE_PSERVER_PORT"]
        == pservers.split(",")[1]
    )


MISTAKES = {
    "there is no script 'nothing.py'": ["--nproc", "2", "nothing.py"],
    "a job has at least one trainer": ["--nproc", "0", __file__],
    "name several machines": ["--selected_gpus=0,1", "--cluster_node_ips=10.0.0.1,10.0.0.2", "--node_ip=10.0.0.1", __file__],
    "name several machines (10.0.0.1, 10.0.0.2)": ["--workers=10.0.0.1:1,10.0.0.2:1", __file__],
    "--nnodes is 2, and this starts processes on one": ["--nproc_per_node=2", "--nnodes", "2", __file__],
    "2 trainers need 2 GPUs, one each, but 3 are named": ["--trainer_num=2", "--devices=0,1,2", __file__],
    "no negative number of pservers, not 1 and -1": ["--nproc", "1", "--pservers", "-1", __file__],
    "one machine can have 254 pservers, not 300": ["--nproc", "1", "--pservers", "300", __file__],
    "a trainer has at least one device, not 0": ["--nproc", "1", "--devices-per-proc", "0", __file__],
    "--gpus lists GPUs by number or UUID, as in --gpus=0,1, but 'all' is neither": ["--gpus=all", __file__],
    "but '-1' is neither": ["--selected_gpus=0,-1", __file__],
    "2 trainers need 2 GPUs, one each, but 1 are named: 0": ["--nproc", "2", "--gpus", "0", __file__],
    "go with --nproc": ["--pservers", "1", __file__],
    "--servers 2 lists no endpoint, such as 127.0.0.1:6170; for 2 processes write --server_num 2": [
        "--servers", "2", "--workers=a:1,a:2", __file__,
    ],
    "--workers 2 lists no endpoint": ["--workers=2", "--servers=127.0.0.1:1,127.0.0.1:2", __file__],
    "--servers: 'a:b' is not an endpoint": ["--workers=127.0.0.1:5", "--servers", "a:b", __file__],
    "--servers: a:1 is listed twice": ["--workers=a:5", "--servers", "a:1,a:1", __file__],
    "--nproc or --worker_num is 3, but --workers lists 2": ["--worker_num=3", "--workers=a:1,a:2", __file__],
    "--pservers or --server_num is 1, but --servers lists 2": ["--worker_num=2", "--server_num=1", "--endpoints=a:1,a:2", __file__],
    "--node_ip is 10.0.0.2, which is none of --cluster_node_ips 10.0.0.1": [
        "--gpus=0", "--cluster_node_ips=10.0.0.1", "--node_ip=10.0.0.2", __file__,
    ],
    "name several machines (10.0.0.1, 10.0.0.3)": ["--worker_num=1", "--servers=10.0.0.1:1,10.0.0.3:1", __file__],
    "cannot be written": ["--worker_num=1", "--log_dir", "/proc/nowhere", __file__],
}  # fmt: skip


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_on_the_command_line(text, capsys):
    assert cli.main(["launch", *MISTAKES[text]]) == 1
    err = capsys.readouterr().err
    assert err.startswith("fluidjax launch: ") and text in err


# command lines of Paddle's launch, launch_ps and fleetrun -> trainers, pservers, GPUs
UNDERSTOOD = {
    "--selected_gpus=0,1 --log_level 20 --started_port=6170": (2, 0, ["0", "1"]),
    "--cluster_node_ips=192.168.0.5 --node_ip=192.168.0.5 --started_port=6170 --selected_gpus=1,3": (
        2,
        0,
        ["1", "3"],
    ),
    "--use_paddlecloud --cluster_node_ips=127.0.0.1 --selected_gpus=0,1": (2, 0, ["0", "1"]),
    "--worker_num=3 --server_num=2": (3, 2, []),
    "--worker_num 2 --server_num 2 --endpoints 127.0.0.1:6170,127.0.0.1:6171": (2, 2, []),
    "--servers=127.0.0.1:6170,127.0.0.1:6171 --workers=127.0.0.1:6172,127.0.0.1:6173,127.0.0.1:6174": (
        3,
        2,
        [],
    ),
    "--servers=127.0.0.1:6170,127.0.0.2:6170 --workers=127.0.0.1,127.0.0.1": (2, 2, []),
    "--servers= --workers= --nproc 2": (2, 0, []),
    "--ips=10.0.0.1 --gpus 0,1,2": (3, 0, ["0", "1", "2"]),
}


@pytest.mark.parametrize("words", UNDERSTOOD)
def test_what_paddles_launchers_took(words, monkeypatch, tmp_path):
    started = []
    monkeypatch.delenv("PADDLE_TRAINERS", raising=False)
    monkeypatch.setattr(
        "fluidjax.dist.jobs.launch.run_job",
        lambda command, *given, **more: started.append((command, given, more)),
    )
    cli.main(["launch", *words.split(), __file__, "--servers", "2"])
    ((command, given, more),) = started
    assert (*given, more["gpus"]) == UNDERSTOOD[words]
    assert command[-3:] == [__file__, "--servers", "2"]  # the script's own


def test_a_word_that_is_cut_short_is_no_option(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["launch", "--worker", "2", __file__])
    assert ended.value.code == 2 and "ambiguous" not in capsys.readouterr().err


@pytest.mark.slow
def test_a_job_of_one_is_an_ordinary_run(tmp_path):
    path = tmp_path / "one.py"
    path.write_text("import paddle.fluid as fluid; print(fluid.dist.current_job())")
    done = subprocess.run(
        command(str(path)), cwd=ROOT, env=ENV, capture_output=True, text=True, timeout=240
    )
    assert (done.returncode, done.stdout) == (0, "Job(rank=0, count=1, role='TRAINER', env=None)\n")


@pytest.fixture
def impatient(monkeypatch):
    """A hub that takes a second for what should be half a minute."""
    for name in ("PING", "UNANSWERED", "GIVEN_UP", "BEHIND"):
        monkeypatch.setattr(hangs, name, getattr(hangs, name) / 20)


def test_a_process_that_is_stopped_is_named_and_the_job_ends(launch, script, impatient):
    code, _, err = launch("--nproc", "2", script, "stop", "9", "1")
    assert code == 1
    named = r"^fluidjax: trainer 1 \(process \d+ on host \S+\) does not answer: it is stopped, or"
    assert re.search(named, err, re.M)
    assert re.search(r"^fluidjax launch: trainer 1 \(.*\) has not answered for \d s: it", err, re.M)


def test_a_process_that_does_not_come_to_a_step_is_named(launch, script, impatient):
    """It may do something else, so the job goes on."""
    code, out, err = launch("--nproc", "2", script, "dawdle", "9", "1")
    assert code == 0 and out.count("sum 2.0") == 2
    named = (
        r"trainer 1 \(.*\) has not begun step 5, in which trainer 0 has waited for \d s: it hangs"
    )
    assert len(re.findall(named, err)) == 1
