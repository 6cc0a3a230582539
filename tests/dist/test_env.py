"""The job that Paddle's environment variables describe."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax.dist.jobs import process
from fluidjax.dist.jobs.described import described_job
from fluidjax.dist.jobs.env import PSERVER, TRAINER, Endpoint, JobEnv, endpoint, read_env
from fluidjax.errors import FluidValueError

TWO = {"PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:6170,10.0.0.2:6171", "PADDLE_TRAINERS_NUM": "2"}


def test_nothing_set_is_no_job():
    assert read_env({"PATH": "/bin", "PADDLE_TRAINER_ID": "  "}) is None


def test_collective_job():
    env = read_env({**TWO, "PADDLE_TRAINER_ID": "1", "PADDLE_CURRENT_ENDPOINT": "10.0.0.2:6171"})
    assert env == JobEnv(
        rank=1,
        count=2,
        trainers=(Endpoint("10.0.0.1", 6170), Endpoint("10.0.0.2", 6171)),
        current=Endpoint("10.0.0.2", 6171),
        hub=Endpoint("10.0.0.1", 6170),
    )
    assert env.name == "trainer 1" and not env.hosts_hub
    assert read_env({**TWO, "PADDLE_TRAINER_ID": "0"}).hosts_hub


def test_the_seed_documents_variables():
    common = {
        "PADDLE_PSERVER_PORT": "7000",
        "PADDLE_PSERVER_IPS": "10.0.0.1,10.0.0.2",
        "PADDLE_TRAINERS": "3",
    }
    trainer = read_env(
        {
            **common,
            "PADDLE_TRAINING_ROLE": "TRAINER",
            "PADDLE_TRAINER_ID": "2",
            "PADDLE_CURRENT_IP": "10.0.0.9",
        }
    )
    assert (trainer.rank, trainer.count, trainer.hub) == (2, 3, Endpoint("10.0.0.1", 7000))
    assert not trainer.hosts_hub
    second = read_env(
        {**common, "PADDLE_TRAINING_ROLE": "PSERVER", "PADDLE_CURRENT_IP": "10.0.0.2"}
    )
    assert (second.name, second.current, second.hosts_hub) == (
        "pserver 1",
        Endpoint("10.0.0.2", 7000),
        False,
    )
    assert read_env({**common, "PADDLE_TRAINING_ROLE": "PSERVER", "POD_IP": "10.0.0.1"}).hosts_hub


def test_other_names_for_the_same():
    env = read_env(
        {"PADDLE_TRAINERS": "10.0.0.1,10.0.0.2", "PADDLE_PORT": "6175", "PADDLE_TRAINER_ID": "0"}
    )
    assert (
        env.trainers == (Endpoint("10.0.0.1", 6175), Endpoint("10.0.0.2", 6175)) and env.count == 2
    )
    env = read_env(
        {
            "PADDLE_PSERVERS_IP_PORT_LIST": "a:1,b:2",
            "TRAINING_ROLE": "pserver",
            "PADDLE_CURRENT_ENDPOINT": "b:2",
        }
    )
    assert (env.role, env.rank, env.pservers) == (
        "PSERVER",
        1,
        (Endpoint("a", 1), Endpoint("b", 2)),
    )
    assert read_env({"PADDLE_PSERVERS": "a,b", "PADDLE_TRAINER_ID": "0"}).pservers == (
        Endpoint("a", 6174),
        Endpoint("b", 6174),
    )


def test_the_launchers_hub_comes_first():
    env = read_env(
        {
            **TWO,
            "PADDLE_TRAINER_ID": "0",
            "FLUIDJAX_HUB": "127.0.0.1:5",
            "FLUIDJAX_JOB_SECRET": "a secret of the job",
        }
    )
    assert env.hub == Endpoint("127.0.0.1", 5) and env.launched and not env.hosts_hub
    assert env.secret == "a secret of the job" and env.secret not in repr(env)


def test_a_secret_that_can_be_guessed():
    with pytest.raises(
        FluidValueError, match="FLUIDJAX_JOB_SECRET has 6 characters; a secret has 16 or more"
    ):
        read_env({**TWO, "PADDLE_TRAINER_ID": "0", "FLUIDJAX_JOB_SECRET": "secret"})


def test_where_processes_of_one_machine_meet():
    """On the address that no other machine reaches, where all that is known is on one; pservers
    alone tell nothing of the trainers.
    """
    here = {"PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:6170,10.0.0.1:6171", "PADDLE_TRAINER_ID": "1"}
    assert read_env(here).hub == Endpoint("127.0.0.1", 6170)
    assert read_env({**here, "PADDLE_PSERVER_ENDPOINTS": "10.0.0.2:1"}).hub == Endpoint(
        "10.0.0.1", 6170
    )
    named = {"PADDLE_TRAINER_ENDPOINTS": "one:6170,one:6171", "PADDLE_TRAINER_ID": "1"}
    assert (read_env(named).hub, read_env(named).hosts) == (Endpoint("127.0.0.1", 6170), ("one",))
    away = {"PADDLE_PSERVERS": "10.0.0.1", "PADDLE_TRAINERS": "2", "PADDLE_TRAINER_ID": "0"}
    assert read_env(away).hub == Endpoint("10.0.0.1", 6174)
    two = read_env(
        {"PADDLE_TRAINER_ENDPOINTS": "127.0.0.1:1,127.0.0.2:1", "PADDLE_TRAINER_ID": "0"}
    )
    assert (two.hub, two.hosts) == (Endpoint("127.0.0.1", 1), ("127.0.0.1",))


def test_a_job_on_several_machines_without_a_secret():
    env = read_env({**TWO, "PADDLE_TRAINER_ID": "1"})
    with pytest.raises(
        FluidValueError,
        match=(
            r"trainer 1: the job runs on several machines \(10.0.0.1, 10.0.0.2\), so .* need a"
            r" secret"
        ),
    ):
        process.take_part(env)
    assert process.current_job() is None


def transpiled(rank, mode="pserver", trainers=2, **more):
    """The programs of a transpiled job; nobody runs them."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 2]), 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    config.mode = mode
    for name, value in more.items():
        setattr(config, name, value)
    t = fluid.DistributeTranspiler(config)
    if mode == "pserver":
        t.transpile(
            rank,
            program=main,
            startup_program=startup,
            pservers="10.0.0.1:6174,b:6175",
            trainers=trainers,
        )
    else:
        here = trainers.split(",")[rank]
        t.transpile(
            rank, program=main, startup_program=startup, trainers=trainers, current_endpoint=here
        )
    return t, main, startup


def test_the_job_that_the_programs_of_pservers_describe(monkeypatch):
    """Nothing is set: the programs say which process this is, and everybody meets at pserver 0."""
    monkeypatch.delenv("FLUIDJAX_JOB_SECRET", raising=False)
    t, main, startup = transpiled(1)
    pservers = Endpoint("10.0.0.1", 6174), Endpoint("b", 6175)
    of_trainer = JobEnv(TRAINER, 1, 2, pservers=pservers, hub=pservers[0])
    assert (
        described_job(t.get_trainer_program())
        == described_job(main)
        == described_job(startup)
        == of_trainer
    )
    assert not of_trainer.hosts_hub
    served, first = t.get_pserver_programs("b:6175")
    of_pserver = JobEnv(PSERVER, 1, 2, pservers=pservers, current=pservers[1], hub=pservers[0])
    assert described_job(served) == of_pserver and not of_pserver.hosts_hub
    assert described_job(first) is None  # it talks to nobody
    assert described_job(t.get_pserver_program("10.0.0.1:6174")).hosts_hub
    assert described_job(fluid.Program()) is None


@pytest.mark.parametrize(
    "config",
    [{"sync_mode": False}, {"sync_mode": False, "geo_sgd_mode": True}],
    ids=["async", "geo"],
)
def test_the_job_that_asynchronous_programs_describe(config):
    t, _, startup = transpiled(0, **config)
    assert described_job(t.get_trainer_program()).name == described_job(startup).name == "trainer 0"
    assert described_job(t.get_pserver_program("b:6175")).name == "pserver 1"


@pytest.mark.parametrize(
    "config",
    [{"mode": "nccl2"}, {"mode": "collective", "collective_mode": "grad_allreduce"}],
    ids=["nccl2", "collective"],
)
def test_the_job_that_the_programs_of_trainers_describe(config):
    listed = "10.0.0.1:6170,10.0.0.1:6171,b:6170"
    _, _, startup = transpiled(2, trainers=listed, **config)
    trainers = tuple(endpoint(e, "") for e in listed.split(","))
    assert described_job(startup) == JobEnv(
        TRAINER, 2, 3, trainers, current=trainers[2], hub=trainers[0]
    )
    _, _, startup = transpiled(1, trainers="10.0.0.1:6170,10.0.0.1:6171", **config)
    assert described_job(startup).hub == Endpoint("127.0.0.1", 6170)


def test_one_trainer_meets_nobody():
    assert read_env({"PADDLE_TRAINER_ENDPOINTS": "a:1", "PADDLE_TRAINER_ID": "0"}).hub is None
    assert read_env({"PADDLE_TRAINING_ROLE": "TRAINER"}).count == 1


MISTAKES = {
    "is 'TRAINR' (did you mean 'TRAINER'?); a role is": {"PADDLE_TRAINING_ROLE": "TRAINR"},
    "trainer 2: PADDLE_TRAINER_ID is 2, but there are 2 trainers, so an id is 0 to 1": {**TWO, "PADDLE_TRAINER_ID": "2"},
    "trainer -1: PADDLE_TRAINER_ID is -1": {**TWO, "PADDLE_TRAINER_ID": "-1"},
    "PADDLE_TRAINER_ID is 'one', which is not a number": {**TWO, "PADDLE_TRAINER_ID": "one"},
    "a trainer has no id: set PADDLE_TRAINER_ID to its number among the 2 trainers": TWO,
    "trainer 1: PADDLE_TRAINERS_NUM is 3, but PADDLE_TRAINER_ENDPOINTS lists 2":
        {**TWO, "PADDLE_TRAINERS_NUM": "3", "PADDLE_TRAINER_ID": "1"},
    "PADDLE_TRAINERS_NUM is 0; a job has at least one trainer": {"PADDLE_TRAINERS_NUM": "0"},
    "PADDLE_TRAINERS_NUM is 99999999; a job has": {"PADDLE_TRAINERS_NUM": "99999999"},
    "trainer 3 does not know how many trainers there are": {"PADDLE_TRAINER_ID": "3"},
    "trainer 1 does not know where the 2 trainers meet": {"PADDLE_TRAINERS": "2", "PADDLE_TRAINER_ID": "1"},
    "'10.0.0.1' is not an endpoint; write host:port": {"PADDLE_TRAINER_ENDPOINTS": "10.0.0.1,10.0.0.2"},
    "its port '99999' is not a number from 1 to 65535": {"PADDLE_TRAINER_ENDPOINTS": "a:99999"},
    "its port '' is not a number": {"PADDLE_TRAINER_ENDPOINTS": "a:"},
    "its host '' is not a name": {"PADDLE_TRAINER_ENDPOINTS": ":5"},
    "'http://a:5' is not an endpoint": {"PADDLE_TRAINER_ENDPOINTS": "http://a:5"},
    "'' is not an endpoint": {"PADDLE_TRAINER_ENDPOINTS": "a:5,,b:5"},
    "a:5 is listed twice, as number 0 and number 2": {"PADDLE_TRAINER_ENDPOINTS": "a:5,b:5,a:5"},
    "PADDLE_CURRENT_ENDPOINT is 10.0.0.1:6170, but PADDLE_TRAINER_ENDPOINTS has 10.0.0.2:6171 at place 1":
        {**TWO, "PADDLE_TRAINER_ID": "1", "PADDLE_CURRENT_ENDPOINT": "10.0.0.1:6170"},
    "trainer 0's endpoint 127.0.0.1:1 is a loopback address, which trainer 1 at b:2 cannot reach":
        {"PADDLE_TRAINER_ENDPOINTS": "127.0.0.1:1,b:2", "PADDLE_TRAINER_ID": "0"},
    "needs the pservers' list": {"PADDLE_TRAINING_ROLE": "PSERVER"},
    "needs its own endpoint": {"PADDLE_TRAINING_ROLE": "PSERVER", "PADDLE_PSERVERS": "a,b"},
    "this pserver's endpoint c:6174 is not among the pservers a:6174, b:6174":
        {"PADDLE_TRAINING_ROLE": "PSERVER", "PADDLE_PSERVERS": "a,b", "POD_IP": "c"},
    "PADDLE_PORT is 0; a port is 1 to 65535": {"PADDLE_TRAINING_ROLE": "PSERVER", "PADDLE_PSERVERS": "a", "PADDLE_PORT": "0"},
}  # fmt: skip


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_named_in_one_sentence(text):
    with pytest.raises(FluidValueError) as error:
        read_env(MISTAKES[text])
    assert text in str(error.value) and "\n" not in str(error.value)


def test_endpoints_print_as_they_are_read():
    for text in ("a:1", "127.0.0.1:65535", "[::1]:80", "node-7.cluster.local:6174"):
        assert str(endpoint(text, "x")) == text
    assert endpoint("[::1]:80", "x") == Endpoint("::1", 80) and Endpoint("::1", 80).loopback
    assert endpoint("localhost:1", "x").loopback and not endpoint("10.0.0.1:1", "x").loopback
    with pytest.raises(FluidValueError, match="not an endpoint"):
        endpoint("::1:80", "x")


@given(
    st.dictionaries(
        st.sampled_from(sorted({k for env in MISTAKES.values() for k in env})), st.text(max_size=12)
    )
)
def test_any_text_is_a_job_or_our_error(environ):
    try:
        env = read_env(environ)
    except FluidValueError as error:
        assert str(error)
    else:
        assert env is None or (0 <= env.rank and env.count >= 1)


def trains_and_serves():
    """A program that trains, and one of a pserver."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
        train = fluid.default_main_program().clone()
        t = fluid.DistributeTranspiler()
        t.transpile(0, pservers="127.0.0.1:1", trainers=1)
        return train.desc, t.get_pserver_program("127.0.0.1:1").desc


def test_a_pserver_that_trains_or_does_nothing_is_told():
    train, serve = trains_and_serves()
    idle, trainer, server = (process.Job(1, 2, role) for role in (PSERVER, TRAINER, PSERVER))
    assert not trainer.serves(train)
    # it served, and may do as it likes then
    assert server.serves(serve) and not server.serves(train)
    server.say_if_idle()
    with pytest.warns(
        RuntimeWarning,
        match="pserver 1 ends without having run a pserver's program.*get_pserver_program",
    ):
        idle.say_if_idle()
    trains = process.Job(1, 2, PSERVER)
    with pytest.warns(
        RuntimeWarning,
        match="pserver 1 runs a program that trains.*TRAINING_ROLE.*get_pserver_program",
    ):
        assert not trains.serves(train)
    assert not trains.serves(train)  # told once
