"""What 1.8.5 cannot do by its own bugs works here: jobs of such programs train as one process on
the whole batch does.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.dist import LocalJob
from fluidjax.transpiler import HashName

from ..nets import fresh

EPS = "127.0.0.1:6174,127.0.0.1:6175"
WIDE = 120  # 120 x 150 weights are cut in two: more than 2 * 8192 elements
STEPS, BATCH = 2, 4


def network(optimizer: Any, weights: Any = None) -> tuple[fluid.Program, fluid.Program, Any]:
    """A network with a parameter that is cut; `weights`: an initialiser of it."""
    with fresh(seed=3) as (main, startup):
        x, y = fluid.data("x", [None, WIDE]), fluid.data("y", [None, 1])
        hidden = fluid.layers.fc(
            x,
            150,
            act="tanh",
            param_attr=fluid.ParamAttr(name="w", initializer=weights),
            bias_attr="b",
        )
        out = fluid.layers.fc(hidden, 1, param_attr="v", bias_attr=False)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
        optimizer().minimize(loss)
    return main, startup, loss


def batches(trainers: int) -> list[list[dict[str, np.ndarray]]]:
    """[step][trainer] -> feed."""
    draw = np.random.RandomState(0)
    shapes = {"x": (BATCH, WIDE), "y": (BATCH, 1)}
    return [
        [
            {n: draw.uniform(-1, 1, s).astype("float32") for n, s in shapes.items()}
            for _ in range(trainers)
        ]
        for _ in range(STEPS)
    ]


def locally(
    made: Any, values: dict[str, np.ndarray], feeds: list[list[dict[str, np.ndarray]]]
) -> dict[str, np.ndarray]:
    """Parameters after training one process on the trainers' batches, put together."""
    main, startup, loss = made
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        for name, value in values.items():
            scope.find_var(name).get_tensor().set(value, fluid.CPUPlace())
        for step in feeds:
            exe.run(
                main,
                feed={n: np.concatenate([f[n] for f in step]) for n in step[0]},
                fetch_list=[loss],
            )
        return {n: np.array(scope.find_var(n).get_tensor()) for n in values}


def in_a_job(
    made: Any, feeds: Any, values: dict[str, np.ndarray] | None, config: Any = None, **given: Any
) -> tuple[Any, LocalJob]:
    main, startup, _ = made
    t = fluid.DistributeTranspiler(config=config)
    t.transpile(0, program=main, startup_program=startup, pservers=EPS, **given)
    job = LocalJob.of(t)
    job.start(values)
    for step in feeds:
        job.step(step)
    return t, job


def drawn() -> dict[str, np.ndarray]:
    draw = np.random.RandomState(1)
    return {
        n: draw.uniform(-0.3, 0.3, s).astype("float32")
        for n, s in {"w": (WIDE, 150), "b": (150,), "v": (150, 1)}.items()
    }


def assert_trained_alike(
    job: LocalJob, want: dict[str, np.ndarray], first: dict[str, np.ndarray]
) -> None:
    for name, value in want.items():
        for trainer in job.trainers:
            got = np.array(trainer.scope.find_var(name).get_tensor())
            np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-6, err_msg=name)
        assert np.abs(value - first[name]).max() > 1e-4, f"{name} was not trained"


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


def configured(**values: Any) -> Any:
    config = fluid.DistributeTranspilerConfig()
    for name, value in values.items():
        setattr(config, name, value)
    return config


@pytest.mark.parametrize(
    ("optimizer", "trainers"),
    [
        (sgd, 1),
        (lambda: fluid.optimizer.Adadelta(1.0), 2),
        (lambda: fluid.optimizer.Lamb(0.01), 2),
        (lambda: fluid.optimizer.RMSProp(0.01), 2),
    ],
    ids=["sgd", "adadelta", "lamb", "rmsprop"],
)
def test_optimizers(optimizer: Any, trainers: int) -> None:
    """One trainer in sync mode; Adadelta, which never updated; Lamb, which was refused; RMSProp's
    MeanGrad.
    """
    feeds, first = batches(trainers), drawn()
    want = locally(network(optimizer), first, feeds)
    t, job = in_a_job(network(optimizer), feeds, first, trainers=trainers)
    whole = optimizer().type == "lamb"  # it takes norms of the whole parameter, so that is not cut
    assert [len(p.blocks) for p in t.plan.params if p.name == "w"] == [1 if whole else 2]
    assert_trained_alike(job, want, first)


@pytest.mark.filterwarnings("ignore:pserver .* has nothing to update")
@pytest.mark.parametrize("method", [HashName, "one"])
@pytest.mark.optimized
def test_split_methods(method: Any) -> None:
    """HashName on real variables; two blocks of one parameter on one pserver, each with
    accumulators of its own.
    """

    class One(HashName):
        def dispatch(self, varlist: Any) -> list[str]:
            return [self.eps[0] for _ in varlist]

    def adam() -> Any:
        return fluid.optimizer.Adam(0.01)

    feeds, first = batches(2), drawn()
    want = locally(network(adam), first, feeds)
    t, job = in_a_job(
        network(adam),
        feeds,
        first,
        configured(split_method=One if method == "one" else method),
        trainers=2,
    )
    assert_trained_alike(job, want, first)
    if method == "one":
        assert not [op for b in t.get_pserver_program(EPS.split(",")[1]).blocks[1:] for op in b.ops]
        names = set(t.get_pserver_program(EPS.split(",")[0]).global_block().vars)
        assert {"w_moment1_0", "w_moment1_0.block1", "w_beta1_pow_acc_0.block1"} <= names


@pytest.mark.filterwarnings("ignore:pserver .* has nothing to update")
@pytest.mark.parametrize(
    "clip",
    [
        fluid.clip.GradientClipByValue(0.01),
        fluid.clip.GradientClipByGlobalNorm(0.05),
    ],
    ids=["value", "global norm"],
)
def test_grad_clip_of_a_cut_parameter(clip: Any) -> None:
    """Trainers clip what they send, so one trainer's job is the local program."""
    feeds, first = batches(1), drawn()
    want = locally(with_clip(clip), first, feeds)
    _, job = in_a_job(with_clip(clip), feeds, first, trainers=1)
    assert_trained_alike(job, want, {n: v - 1 for n, v in first.items()})
    plain = locally(network(sgd), first, feeds)
    assert max(np.abs(plain[n] - want[n]).max() for n in want) > 1e-4, "nothing was clipped"


def with_clip(clip: Any) -> Any:
    return network(lambda: fluid.optimizer.SGD(0.1, grad_clip=clip))


def clipping(scope: str | None, attached: bool) -> tuple[fluid.Program, fluid.Program]:
    """Two programs that clip, built in this name scope, without counting names afresh."""
    main, startup = fluid.Program(), fluid.Program()
    clip = fluid.clip.GradientClipByValue(0.01)
    outer = fluid.name_scope(scope) if scope else contextlib.nullcontext()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), outer:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 3))
        if attached:
            fluid.clip.set_gradient_clip(clip)
        fluid.optimizer.SGD(0.1, grad_clip=None if attached else clip).minimize(loss)
    return main, startup


@pytest.mark.filterwarnings("ignore:set_gradient_clip may go away")
@pytest.mark.parametrize("attached", [False, True], ids=["grad_clip", "set_gradient_clip"])
@pytest.mark.parametrize("scope", [None, "net", "gradient_clip", "my_gradient_clip_net"])
def test_clips_of_later_programs(attached: bool, scope: str | None) -> None:
    """A clip is the trainer's, whatever number its name scope has by now, and whatever the scope
    around it is called.
    """
    for _ in range(12):
        main, startup = clipping(scope, attached)
        trainer, served = (fluid.DistributeTranspiler() for _ in range(2))
        clone, start = main.clone(), startup.clone()
        trainer.transpile(0, program=main, startup_program=startup, pservers=EPS, trainers=2)
        served.transpile(0, program=clone, startup_program=start, pservers=EPS, trainers=2)
        assert [
            op.type for op in trainer.get_trainer_program(wait_port=False).global_block().ops
        ].count("clip") == 2
        updates = [
            [op.type for op in b.ops]
            for ep in EPS.split(",")
            for b in served.get_pserver_program(ep).blocks[1:]
        ]
        assert updates == [["sum", "scale", "sgd"]] * 2
    assert any(
        re.search(r"_\d\d/", op.desc.attrs.get("op_namescope", ""))
        for op in main.global_block().ops
    )  # names were counted


def test_async_with_the_default_configuration() -> None:
    """The pservers are asynchronous as the trainers are; with one trainer that is the local
    program.
    """
    feeds, first = batches(1), drawn()
    want = locally(network(sgd), first, feeds)
    t, job = in_a_job(network(sgd), feeds, first, trainers=1, sync_mode=False)
    assert t.plan.mode == "async"
    assert_trained_alike(job, want, first)


@pytest.mark.parametrize(
    "weights",
    [
        fluid.initializer.NumpyArrayInitializer(
            np.arange(WIDE * 150, dtype="float32").reshape(WIDE, 150) / 1e4
        ),
        fluid.initializer.Uniform(-0.5, 0.5),
        fluid.initializer.Normal(0.0, 0.5, seed=9),
    ],
    ids=["numpy", "uniform", "normal"],
)
def test_initial_values_of_a_cut_parameter(weights: Any) -> None:
    """Each pserver draws other numbers, and given values are given to the block that they belong
    to.
    """
    made = network(sgd, weights)
    startup = made[1].clone()
    _, job = in_a_job(made, [], None, trainers=2)
    first, second = np.split(np.array(job.trainers[0].scope.find_var("w").get_tensor()), 2)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        local = np.array(scope.find_var("w").get_tensor())
    if isinstance(weights, fluid.initializer.NumpyArrayInitializer):
        np.testing.assert_array_equal(np.concatenate([first, second]), local)
    else:
        assert np.mean(first == second) < 0.01
        np.testing.assert_allclose([first.std(), second.std()], local.std(), rtol=0.05)


def test_an_initialiser_of_several_ops_is_cut_out_of_the_whole() -> None:
    made = network(sgd)
    with fluid.program_guard(made[1]):
        w = made[1].global_block().var("w")
        fluid.layers.assign(fluid.layers.scale(w, 2.0, bias=1.0), w)
    t, job = in_a_job(made, [], None, trainers=2)
    ops = t.get_startup_program(EPS.split(",")[1]).global_block().ops
    assert [op.type for op in ops if "w.block1" in op.output_arg_names] == ["slice"]
    value = np.array(job.trainers[0].scope.find_var("w").get_tensor())
    assert value.mean() == pytest.approx(1.0, abs=0.02) and value.std() > 0.05


@pytest.mark.parametrize("sparse", [False, True])
def test_distributed_lookups_transpile(sparse: bool) -> None:
    """is_distributed raised IndexError; without is_sparse the table's gradient is sparse all the
    same.
    """
    with fresh() as (main, startup):
        ids, y = fluid.data("ids", [None, 1], "int64"), fluid.data("y", [None, 1])
        rows = fluid.layers.embedding(
            ids, [1000, 16], is_sparse=sparse, is_distributed=True, param_attr="table"
        )
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(rows, 1), y))
        fluid.optimizer.SGD(0.1).minimize(loss)
    t = fluid.DistributeTranspiler()
    t.transpile(0, program=main, startup_program=startup, pservers=EPS, trainers=2)
    (table,) = t.plan.tables
    assert (table.name, table.shape, table.rows) == ("table", (1000, 16), 500)
    assert "table" not in {p.name for p in t.plan.params}
    kinds = [op.type for op in t.get_trainer_program().global_block().ops]
    assert kinds[:3] == ["split_ids", "prefetch", "merge_ids"] and "lookup_table" not in kinds
    for endpoint in EPS.split(","):
        program, startup = t.get_pserver_programs(endpoint)
        assert program.global_block().var("table").shape == (500, 16)
        assert [
            op.attr("shape") for op in startup.global_block().ops if op.output("Out") == ["table"]
        ] == [[500, 16]]


def test_lookups_that_depend_on_each_other_stay_apart() -> None:
    """One op for all lookups of a table cannot stand where the ids of one come from the rows of
    another.
    """
    with fresh() as (main, startup):
        ids, y = fluid.data("ids", [None, 1], "int64"), fluid.data("y", [None, 1])
        first = fluid.layers.embedding(ids, [2000, 16], is_sparse=True, param_attr="table")
        further = fluid.layers.cast(
            fluid.layers.abs(fluid.layers.reduce_mean(first, dim=1, keep_dim=True)), "int64"
        )
        second = fluid.layers.embedding(further, [2000, 16], is_sparse=True, param_attr="table")
        out = fluid.layers.fc(fluid.layers.elementwise_add(first, second), 1)
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.square_error_cost(out, y)))
    t = fluid.DistributeTranspiler()
    t.transpile(0, program=main, startup_program=startup, pservers=EPS, trainers=2)
    kinds = [op.type for op in t.get_trainer_program().global_block().ops]
    assert kinds.count("distributed_lookup_table") == 2
    assert kinds[0] == "distributed_lookup_table" and kinds.index("cast") < kinds.index(
        "distributed_lookup_table", 1
    )
