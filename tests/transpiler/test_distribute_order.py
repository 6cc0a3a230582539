"""Getters give the same programs in any order and any number of times; what transpile did is kept,
and nothing shared.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax.graph.program import Program
from fluidjax.ir import verify
from fluidjax.ops.registry import lookup
from tests.examples import examples

from ..random_programs import build as build_net
from ..random_programs import recipes
from .recordings import DATA, build, mode, programs, transpile

E0, E1 = EPS = ("127.0.0.1:6174", "127.0.0.1:6175")
GETTERS = {
    "trainer": lambda t: t.get_trainer_program().desc,
    "pserver 0": lambda t: t.get_pserver_program(E0).desc,
    "pservers 1": lambda t: [p.desc for p in t.get_pserver_programs(E1)],
    "startup 0": lambda t: t.get_startup_program(E0, t.get_pserver_program(E0)).desc,
    "startup 0 alone": lambda t: t.get_startup_program(E0).desc,
}


def case(name: str = "big_adam_2ps") -> dict[str, Any]:
    return dict(programs()[name]["case"])


def test_any_order_gives_the_same() -> None:
    wanted = {name: getter(transpile(case())[0]) for name, getter in GETTERS.items()}
    assert wanted["startup 0"] == wanted["startup 0 alone"]
    for order in itertools.permutations(GETTERS):
        t, _, startup = transpile(case())
        for name in (*order, order[0]):
            assert GETTERS[name](t) == wanted[name], (order, name)
        assert startup.desc == t.plan.trainer(0)[1]


def test_the_users_program_becomes_the_trainers() -> None:
    t, main, startup = transpile(case())
    after_transpile = main.desc
    assert [op.type for op in main.global_block().ops][-4:] == [
        "recv",
        "recv",
        "fetch_barrier",
        "concat",
    ]
    assert "adam" in {op.type for op in main.global_block().ops}
    assert t.get_trainer_program() is main
    assert main.desc != after_transpile
    finished = main.desc, startup.desc
    assert t.get_trainer_program(wait_port=False) is main
    assert (main.desc, startup.desc) == finished == t.plan.trainer(0)


@pytest.mark.parametrize(
    "name",
    [
        n
        for n, r in programs().items()
        if any("main_after_transpile_ops" in t for t in r["trainers"].values())
    ],
)
def test_state_between_transpile_and_get_trainer_program(name: str) -> None:
    recorded = programs()[name]
    _, main, _ = transpile(recorded["case"])
    assert [[op.type for op in b.ops] for b in main.blocks] == recorded["trainers"]["0"][
        "main_after_transpile_ops"
    ]


@pytest.mark.parametrize(
    "name", ["big_sgd_2ps", "mlp_sgd_3ps", "mlp_sgd_2ps_noslice", "emb_sparse", "geo_mlp_sgd"]
)
def test_the_plan_deals_as_paddle_did(name: str) -> None:
    recorded = programs()[name]["trainers"]["0"]["mapping"]
    plan = transpile(programs()[name]["case"])[0].plan
    for endpoint, held in recorded.items():
        owned = plan.owned(endpoint)
        assert sorted(b.name for b in owned) == sorted(held["params"])
        if "grads" in held:
            assert sorted(f"{b.grad}.trainer_0" for b in owned) == sorted(held["grads"])


def test_ops_added_after_transpile_stay() -> None:
    t, main, _ = transpile(case("fit_a_line_sgd_2ps_2tr"))
    with fluid.program_guard(main):
        fluid.layers.scale(main.global_block().var("mean_0.tmp_0"), 2.0)
    ops = [op.type for op in t.get_trainer_program().global_block().ops]
    assert ops[-1] == "scale" and "sgd" not in ops


def test_handles_of_getters_are_the_callers_own() -> None:
    t = transpile(case("fit_a_line_sgd_2ps_2tr"))[0]
    first = t.get_pserver_program(E0)
    before = first.desc
    first.global_block().create_var(name="mine", shape=[1], dtype="float32")
    assert t.get_pserver_program(E0).desc == before


def test_transpiling_for_each_trainer_is_one_plan() -> None:
    t0, t1 = (transpile(case(), trainer_id=i)[0] for i in range(2))
    assert t0.plan.params == t1.plan.params and t0.plan.main == t1.plan.main
    assert t0.plan.trainer(1) == t1.plan.trainer(1)
    assert (t0.plan.trainer_id, t1.plan.trainer_id) == (0, 1)


def test_the_plan_holds_the_original_programs_and_follows_the_handles() -> None:
    t, main, startup = transpile(case())
    assert {op.type for op in t.plan.main.blocks[0].ops}.isdisjoint({"send", "recv", "split_byref"})
    assert "adam" in {op.type for op in t.plan.main.blocks[0].ops}
    for program in (
        main,
        startup,
        *t.get_pserver_programs(E0),
        main.clone(),
        main.clone(for_test=True),
    ):
        assert program.info.pserver_plan is t.plan


@pytest.mark.parametrize("name", ["mlp_sgd_2ps", "big_exponential_decay_async_rt", "mlp_sgd_3ps"])
def test_the_test_program_of_a_trainer_talks_to_nobody(name: str) -> None:
    """clone(for_test=True) of 1.8.5 kept sends of gradients that nothing computes."""
    before = build(case(name))[0].clone(for_test=True)
    t, main, _ = transpile(case(name))
    for program in (main, t.get_trainer_program()):
        assert program.clone(for_test=True).desc.blocks[0].ops == before.desc.blocks[0].ops


def test_another_startup_program() -> None:
    t, _, startup = transpile(case("fit_a_line_sgd_2ps_2tr"))
    other = Program.from_desc(t.plan.startup)
    for op in other.global_block().ops:
        if op.output("Out") == ["fc_0.w_0"]:
            op._set_attr("max", 7.0)
    given = t.get_startup_program(E1, startup_program=other)
    assert [op.attr("max") for op in given.global_block().ops if op.type == "uniform_random"] == [
        7.0
    ]
    assert t.get_startup_program(E1, startup_program=startup).desc == t.get_startup_program(E1).desc


def test_arguments_of_0_14() -> None:
    """slice_var_up and split_method were arguments of transpile; they go before the configuration."""
    want = transpile({**case("mlp_sgd_2ps"), "config": {"slice_var_up": False}})[0]
    got = transpile(case("mlp_sgd_2ps"), slice_var_up=False)[0]
    assert got.plan.params == want.plan.params
    assert all(len(p.blocks) == 1 for p in got.plan.params)
    hashed = transpile(case("mlp_sgd_2ps"), split_method=fluid.transpiler.HashName)[0]
    assert (
        hashed.plan.params
        == transpile({**case("mlp_sgd_2ps"), "config": {"split_method": "HashName"}})[0].plan.params
    )


def test_default_programs_and_endpoint() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
        fluid.optimizer.SGD(0.1).minimize(loss)
        t = fluid.DistributeTranspiler()
        t.transpile(0)
        assert t.get_trainer_program() is fluid.default_main_program()
    assert t.plan.endpoints == ("127.0.0.1:6174",)


def test_geo_mode_of_the_configuration() -> None:
    geo = programs()["geo_mlp_sgd"]["case"]
    want = transpile(geo)[0].plan
    got = transpile({k: v for k, v in geo.items() if k != "transpiler"})[0].plan
    assert (got.mode, got.push_every, got.params) == (
        want.mode,
        want.push_every,
        want.params,
    ) and got.mode == "geo"
    assert got.trainer(0) == want.trainer(0) and got.pserver(E0) == want.pserver(E0)


def test_print_log(capsys: pytest.CaptureFixture[str]) -> None:
    transpile({**case("big_sgd_2ps"), "config": {"print_log": True}})
    assert (
        "127.0.0.1:6175 fc_w.block0 [500, 1000] of fc_w[1000, 1000] at 0" in capsys.readouterr().out
    )


OPTIMIZERS = (
    "SGD",
    "Adam",
    "Momentum",
    "Adamax",
    "Ftrl",
    "Lamb",
    "Adadelta",
    "RMSProp",
    "LarsMomentum",
)


def optimizer(name: str) -> Any:
    extra = {"momentum": 0.9} if "omentum" in name else {}
    return getattr(fluid.optimizer, name)(learning_rate=0.1, **extra)


@examples(25)
@given(recipes(), st.sampled_from(OPTIMIZERS), st.integers(1, 3), st.integers(1, 3), st.booleans())
@pytest.mark.filterwarnings("ignore")
def test_random_programs_transpile_to_well_formed_ones(
    recipe: Any, name: str, pservers: int, trainers: int, sync: bool
) -> None:
    net = build_net(recipe, optimizer(name))
    params = {p.name: p.shape for p in net.main.all_parameters()}
    endpoints = ",".join(f"127.0.0.1:{7000 + i}" for i in range(pservers))
    t = fluid.DistributeTranspiler()
    t.transpile(
        0,
        program=net.main,
        startup_program=net.startup,
        pservers=endpoints,
        trainers=trainers,
        sync_mode=sync,
    )
    t.get_trainer_program()
    plan = t.plan
    every = [d for i in range(trainers) for d in plan.trainer(i)] + [
        d for e in plan.endpoints for d in plan.pserver(e)
    ]
    for desc in every:
        verify.verify(desc, lookup)
    for p in plan.params:
        assert (
            np.prod(p.shape) == sum(b.size for b in p.blocks) and tuple(params[p.name]) == p.shape
        )
    sent = [n for op in net.main.desc.blocks[0].ops if op.type == "send" for n in op.input("X")]
    served = [
        n for e in plan.endpoints for op in plan.pserver(e)[0].blocks[0].ops for n in op.input("X")
    ]
    assert set(sent) <= set(served) and len(set(served)) == len(served) == len(set(sent)) * (
        trainers if sync else 1
    )


def test_other_modes_leave_no_plan() -> None:
    t, main, _ = transpile(case("nccl2_mlp"))
    assert mode(case("nccl2_mlp")) == "nccl2" and main.info.pserver_plan is None
    recorded = programs()["nccl2_comm2_mlp"]["trainers"]["0"]["main_attrs"]
    _, main, _ = transpile(case("nccl2_comm2_mlp"))
    assert {name: getattr(main.clone(), name) for name in recorded} == recorded
    with pytest.raises(AttributeError, match="no pservers"):
        _ = t.plan


def test_text_of_a_small_job() -> None:
    """The programs of fit_a_line as people read them (tests/data/transpiler/fit_a_line.txt)."""
    t = transpile(case("fit_a_line_sgd_2ps_2tr"))[0]
    text = f"{t.get_pserver_program(E1)}\n{t.get_startup_program(E1)}\n{t.get_trainer_program()}"
    assert text == (DATA / "fit_a_line.txt").read_text()


def test_the_benchmark_runs() -> None:
    from benchmarks.transpile import seconds

    assert set(seconds(24)) == {
        "transpile",
        "get_trainer_program",
        "get_pserver_programs",
        "... of all pservers",
    }
