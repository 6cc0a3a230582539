"""Tables of parameter-server jobs on a mesh: every rank holds, looks up and updates the rows of the
pservers that it is.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import cli, layers
from fluidjax.checkpoint import snapshot
from fluidjax.devices.placement import Mesh
from fluidjax.dist import LocalJob
from fluidjax.dist.spmd.parallel import Parallel
from fluidjax.dist.spmd.pserver import on_mesh, startup_on_mesh
from fluidjax.dist.spmd.tables import making
from fluidjax.errors import FeedError, UnsupportedError
from fluidjax.passes.base import run
from fluidjax.runtime.runnable import Runnable
from tests.dist import table_script
from tests.dist.jobs import transpiled
from tests.nets import fresh


def network(
    height: int = 50,
    width: int = 660,
    sparse: bool = True,
    distributed: bool = False,
    optimizer: Any = None,
    **lookup: Any,
) -> Any:
    """A table that is looked up twice, and an fc: main, startup, loss."""
    with fresh(5) as (main, startup):
        x, z = (fluid.data(n, [None, 1], "int64") for n in "xz")
        table = fluid.ParamAttr(name="table", initializer=fluid.initializer.Uniform(-0.1, 0.1))
        given = {"is_sparse": sparse, "is_distributed": distributed, "param_attr": table, **lookup}
        rows = [layers.embedding(i, [height, width], **given) for i in (x, z)]
        loss = layers.mean(layers.square(layers.fc(layers.concat(rows, axis=1), 3)))
        (optimizer or fluid.optimizer.SGD(0.1)).minimize(loss)
    return main, startup, loss


def batches(
    trainers: int, height: int = 50, sizes: tuple[int, ...] = (6, 6, 3, 6)
) -> list[list[dict[str, np.ndarray]]]:
    """[step][trainer] -> feed, with ids that repeat; a step may have another batch size."""
    rng = np.random.default_rng(2)
    return [
        [{n: rng.integers(0, height, (size, 1)) for n in "xz"} for _ in range(trainers)]
        for size in sizes
    ]


class MeshJob:
    """A transpiled job on devices of this process."""

    def __init__(self, t: fluid.DistributeTranspiler, ranks: int) -> None:
        where = Mesh(tuple(jax.devices()[:ranks]))
        self.exe, self.scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        self.main = Runnable(
            fluid.Program.from_desc(t.plan.main), Parallel(where, on_mesh(t.plan, ranks))
        )
        startup = fluid.Program.from_desc(t.plan.startup)
        startup.update_info(pserver_plan=t.plan)
        self.startup = Runnable(startup, startup_on_mesh(startup, where))

    def start(self, first: dict[str, Any] | None = None) -> None:
        self.exe.run(self.startup, scope=self.scope)
        for name, value in (first or {}).items():
            self.scope.find_var(name).get_tensor().set(value)

    def step(self, feeds: list[dict[str, Any]], loss: Any) -> Any:
        return self.exe.run(self.main, feeds, [loss], scope=self.scope)[0].ravel()

    def compiled(self, feed: dict[str, Any]) -> Any:
        """The step for feeds of all ranks together, after it has run."""
        (step,) = self.exe.compiled_steps(self.main)
        with jax.enable_x64(True):
            return step.function().lower(*step.bind(self.scope).arrays, feed, 0, 0).compile()


def pair(net: Any, ranks: int, pservers: int, **options: Any) -> tuple[MeshJob, LocalJob]:
    """A job on a mesh, and the same run message by message, begun alike."""
    main, startup, _ = net
    t = transpiled(main, startup, ranks, pservers, **options)
    mesh, local = MeshJob(t, ranks), LocalJob.of(t)
    local.start()
    mesh.start({p: local.get(p) for p in local.parameters})
    return mesh, local


def compare(mesh: MeshJob, local: LocalJob, loss: Any, steps: Any) -> None:
    for feeds in steps:
        want = [one[0].item() for one in local.step(feeds, [loss])]
        np.testing.assert_allclose(mesh.step(feeds, loss), want, atol=1e-5)
    for name in local.parameters:
        np.testing.assert_allclose(mesh.scope.get(name), local.get(name), atol=1e-5, err_msg=name)


OPTIMIZERS: dict[str, Any] = {
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1),
    "adam": lambda: fluid.optimizer.Adam(0.05),
    "decay": lambda: fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.1)),
}


SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize(
    "distributed, ranks, pservers",
    [
        (False, 2, 2),
        (True, 2, 2),
        pytest.param(False, 4, 3, marks=SLOW),
        pytest.param(True, 2, 4, marks=SLOW),
    ],
)
def test_a_mesh_equals_the_messages(distributed: bool, ranks: int, pservers: int) -> None:
    net = network(distributed=distributed)
    mesh, local = pair(net, ranks, pservers)
    compare(mesh, local, net[2].name, batches(ranks))


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_other_optimizers_and_a_padding_idx(name: str) -> None:
    """Those whose state is in rows too, and weight decay, in jobs of two trainers."""
    net = network(optimizer=OPTIMIZERS[name](), padding_idx=3)
    mesh, local = pair(net, 2, 2)
    compare(mesh, local, net[2].name, batches(2, 8, (6, 6)))
    assert "c_table_owned" in kinds(mesh)


def kinds(mesh: MeshJob) -> list[str]:
    return [op.type for op in mesh.main.ranks.desc(mesh.main.program).blocks[0].ops]


HEIGHT, WIDTH, RANKS = 40_003, 16, 4


@pytest.mark.slow
@pytest.mark.optimized
@pytest.mark.parametrize("distributed", [False, True])
def test_no_device_has_more_than_its_share(distributed: bool) -> None:
    """Neither after the startup program nor after steps; and nothing of the table's height is in
    the compiled programs.
    """
    main, startup, loss = network(
        HEIGHT, WIDTH, distributed=distributed, optimizer=fluid.optimizer.Adagrad(0.1)
    )
    mesh = MeshJob(transpiled(main, startup, RANKS, RANKS), RANKS)
    mesh.start()
    state = [n for n in mesh.scope.local_var_names() if n == "table" or "table_moment" in n]
    each = -(-HEIGHT // RANKS)
    for name in state:
        held = mesh.scope.find_var(name).storage.shards()
        assert held is not None
        assert {s.data.shape for s in held.arrays[name].addressable_shards} == {(1, each, WIDTH)}, (
            name
        )
    begun = mesh.scope.get("table")
    assert 0.099 < begun.max() < 0.1 and -0.1 <= begun.min() < -0.099
    # each drew its own
    assert abs(np.corrcoef(begun[:each].ravel(), begun[each : 2 * each].ravel())[0, 1]) < 0.02
    buffer = mesh.scope.find_var("table").storage.shards().arrays["table"]
    feeds = batches(RANKS, HEIGHT, (6,))[0]
    mesh.step(feeds, loss.name)
    assert buffer.is_deleted()  # the step took it as it lay
    compiled = mesh.compiled({n: np.concatenate([f[n] for f in feeds]) for n in "xz"})
    text = compiled.as_text()
    assert (
        f"[{HEIGHT}," not in text and f"[{each * RANKS}," not in text and f"{each},{WIDTH}]" in text
    )
    memory = compiled.memory_analysis()
    assert memory.temp_size_in_bytes < each * WIDTH  # far less than one array of a rank's rows
    assert not re.search(rf"f32\[\d*,?{each},{WIDTH}\]\S* (copy|all-gather|all-reduce)\(", text)
    touched = np.unique(np.concatenate([f[n] for f in feeds for n in "xz"]))
    changed = np.flatnonzero((mesh.scope.get("table") != begun).any(1))
    np.testing.assert_array_equal(changed, touched)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dealt", "runs"])
@pytest.mark.usefixtures("forked")
def test_a_job_of_processes(kind: str, tmp_path: Path) -> None:
    """Two trainers and two pservers by the launcher, against the messages of LocalJob."""
    script = Path(__file__).with_name("table_script.py")
    assert (
        cli.main(["launch", "--nproc", "2", "--pservers", "2", str(script), str(tmp_path), kind])
        == 0
    )
    found = [dict(np.load(tmp_path / f"{kind}_{t}.npz")) for t in range(2)]
    main, startup, loss = table_script.network(kind == "dealt")
    job = LocalJob.of(transpiled(main, startup))
    job.start({n: found[0][n] for n in ("table", "fc_0.w_0", "fc_0.b_0")})
    want = [
        [
            one[0].item()
            for one in job.step([table_script.batch(s, t) for t in range(2)], [loss.name])
        ]
        for s in range(4)
    ]
    np.testing.assert_allclose(np.array([f["losses"] for f in found]).T, want, atol=1e-6)
    whole = table_script.HEIGHT * table_script.WIDTH * 4
    for one in found:
        assert int(one["held"]) == (whole + table_script.WIDTH * 4) // 2
        for name in ("table", "fc_0.w_0", "fc_0.b_0"):
            np.testing.assert_allclose(
                one[f"{name} at the end"], job.get(name), atol=1e-6, err_msg=name
            )


def test_the_program_says_where_rows_are() -> None:
    """Of four pservers on two ranks, rank 1 is pservers 1 and 3; the table's state is declared as
    one rank's.
    """
    main, startup, _ = network(distributed=True, optimizer=fluid.optimizer.Adagrad(0.1))
    plan = transpiled(main, startup, 2, 4).plan
    desc = Parallel(Mesh(tuple(jax.devices()[:2])), on_mesh(plan, 2)).desc(
        fluid.Program.from_desc(plan.main)
    )
    ops = {op.type: op for op in desc.blocks[0].ops}
    assert (
        "lookup_table_v2" not in ops
        and "lookup_table_v2_grad" not in ops
        and "lookup_table" not in ops
    )
    for kind in ("c_table_lookup", "c_table_owned"):
        assert (ops[kind].attrs["nranks"], ops[kind].attrs["height"], ops[kind].attrs["dealt"]) == (
            2,
            50,
            True,
        )
        assert ops[kind].attrs["owners"] == (0, 1, 0, 1)
    assert ops["sgd"].input("Grad") == ("table@GRAD@OWNED",) and ops["sgd"].input("Param") == (
        "table",
    )
    assert ops["c_table_owned"].attrs["scale"] == 1.0  # distributed tables are updated by the sum
    assert desc.blocks[0].vars["table"].shape == (25, 660)  # pservers have 13, 13, 12 and 12 rows
    assert desc.blocks[0].vars["table@GRAD"].kind == "SELECTED_ROWS"
    averaged = {
        n
        for op in desc.blocks[0].ops
        if op.type in ("c_allreduce_sum", "c_deal_reducescatter")
        for n in op.reads
    }
    assert "fc_0.w_0@GRAD" in averaged and not any("table" in n for n in averaged)


def test_tables_that_something_else_uses() -> None:
    """One with is_sparse stays on all ranks, and a note says why; one with is_distributed is
    refused.
    """

    def used(distributed: bool) -> Any:
        with fresh(5) as (main, startup):
            x = fluid.data("x", [None, 1], "int64")
            table = fluid.ParamAttr(name="table")
            rows = layers.embedding(
                x, [50, 8], is_sparse=True, is_distributed=distributed, param_attr=table
            )
            more = layers.reduce_sum(main.global_block().var("table"))
            more.stop_gradient = True
            fluid.optimizer.SGD(0.1).minimize(layers.mean(rows) + more)
        return transpiled(main, startup).plan

    plan = used(False)
    (noted,) = run(on_mesh(plan, 2)[0], plan.main).refusals
    assert "all ranks hold 'table', since op 'reduce_sum'" in noted.what
    assert making(plan, 2) is None
    with pytest.raises(
        UnsupportedError,
        match=r"distributed table 'table' cannot be distributed over the ranks: op 'reduce_sum' \(",
    ):
        on_mesh(used(True), 2)


def assert_kept(scope: fluid.Scope, values: dict[str, np.ndarray]) -> None:
    """What a checkpoint takes out of a scope lies as the ranks have it, and is whole in another
    scope.
    """
    shot = snapshot.take(list(values), scope)
    assert set(shot.placed) == set(values) and not shot.replicated
    other = fluid.Scope()
    snapshot.put(shot, other, 2)
    for name, value in values.items():
        np.testing.assert_array_equal(other.get(name), value)


VALUES = np.random.default_rng(0).normal(size=(50, 6)).astype("float32")


@pytest.mark.parametrize("distributed", [False, True])
def test_first_values_and_values_that_are_set(distributed: bool) -> None:
    """A table of given numbers begins with these, constants are exact; a table may be set and
    looked at at any time.
    """
    with fresh(5) as (main, startup):
        x = fluid.data("x", [None, 1], "int64")
        given = fluid.initializer.NumpyArrayInitializer(VALUES)
        table = fluid.ParamAttr(name="table", initializer=given)
        same = fluid.ParamAttr(name="same", initializer=fluid.initializer.Constant(0.25))
        rows = layers.embedding(
            x, [50, 6], is_sparse=True, is_distributed=distributed, param_attr=table
        )
        rows += layers.embedding(x, [30, 6], is_sparse=True, param_attr=same)
        fluid.optimizer.SGD(0.0).minimize(layers.mean(rows))
    mesh = MeshJob(transpiled(main, startup, 2, 3), 2)
    mesh.start()
    np.testing.assert_array_equal(mesh.scope.get("table"), VALUES)
    np.testing.assert_array_equal(mesh.scope.get("same"), np.full((30, 6), 0.25, "float32"))
    assert_kept(mesh.scope, {"table": VALUES, "same": np.full((30, 6), 0.25, "float32")})
    feeds = [{"x": np.array([[7], [29]])}, {"x": np.array([[7], [0]])}]
    out = next(
        op.output("Out")[0] for op in main.desc.blocks[0].ops if op.type == "elementwise_add"
    )
    found = mesh.exe.run(mesh.main, feeds, [out], scope=mesh.scope)[0]
    np.testing.assert_array_equal(found.reshape(4, 6), VALUES[[7, 29, 7, 0]] + 0.25)
    mesh.scope.find_var("table").get_tensor().set(2 * VALUES)
    found = mesh.exe.run(mesh.main, feeds, [out], scope=mesh.scope)[0]
    np.testing.assert_array_equal(found.reshape(4, 6), 2 * VALUES[[7, 29, 7, 0]] + 0.25)
    np.testing.assert_array_equal(mesh.scope.get("table"), 2 * VALUES)
    assert_kept(mesh.scope, {"table": 2 * VALUES})
    with pytest.raises(FeedError, match="30"):
        mesh.exe.run(mesh.main, [feeds[0], {"x": np.array([[7], [30]])}], [out], scope=mesh.scope)
