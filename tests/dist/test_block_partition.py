"""Pservers on a mesh: rank k holds what the dispatcher dealt to pserver k, and the job equals the
one of LocalJob.
"""

from __future__ import annotations

import re
from itertools import cycle
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax import layers
from fluidjax.devices.placement import Mesh
from fluidjax.dist import LocalJob
from fluidjax.dist.spmd.parallel import Parallel
from fluidjax.dist.spmd.pserver import on_mesh
from fluidjax.dist.spmd.shard_buckets import OwnedBlock, buckets, connected
from fluidjax.errors import FetchError, UnsupportedError
from fluidjax.runtime.runnable import Runnable
from fluidjax.state.buffers import in_force
from tests.dist.jobs import transpiled
from tests.dist.test_shard_optimizer import OPTIMIZERS
from tests.examples import examples
from tests.nets import fresh
from tests.random_programs import WIDTH, build, recipes

DEALS = [(2, 2, "RoundRobin"), (4, 3, "HashName"), (2, 3, "SizeBalanced")]
SENT = [name for name in OPTIMIZERS if name != "optax"]  # DistributeTranspiler refuses that one


# -- buckets ---------------------------------------------------------------------------------------


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1, 5, 8191, 8192, 20000])), max_size=20),
)
def test_every_block_has_a_place_of_its_own(ranks, drawn):
    blocks = [
        OwnedBlock(f"v{i}", rank % ranks, 3 * i, size) for i, (rank, size) in enumerate(drawn)
    ]
    found = buckets(blocks, ranks)
    assert sorted(b.name for one in found for b, _ in one.blocks) == sorted(b.name for b in blocks)
    for one in found:
        taken = [np.zeros(one.width, int) for _ in range(ranks)]
        for block, at in one.blocks:
            taken[block.rank][at : at + block.size] += 1
        # no overlap; none wider than its longest row
        assert max(t.max() for t in taken) == 1 and any(t.all() for t in taken)


def test_equal_blocks_of_large_arrays_share_bins():
    blocks = [OwnedBlock(name, k, k * 9000, 9000) for name in "ab" for k in range(3)]
    found = buckets([*blocks, OwnedBlock("c", 1, 0, 10), OwnedBlock("d", 1, 0, 20)], 3)
    assert [one.names for one in found] == [("a",), ("b",), ("c", "d")] and [
        one.width for one in found
    ] == [9000, 9000, 30]
    assert connected(found) == [[0], [1], [2]]
    assert connected(
        buckets(
            [
                OwnedBlock("a", 0, 0, 9000),
                OwnedBlock("a", 1, 9000, 10),
                OwnedBlock("b", 1, 0, 9000),
            ],
            2,
        )
    ) == [[0, 1]]


# -- jobs ------------------------------------------------------------------------------------------


class Net:
    """Two dense layers with parameters large enough to be sliced, and its job."""

    def __init__(
        self,
        optimizer: Any,
        ranks: int,
        pservers: int,
        wide: int = 13,
        sync: bool = True,
        **config: Any,
    ) -> None:
        with fresh() as (self.main, self.startup):
            x, y = fluid.data("x", [None, 7]), fluid.data("y", [None, 1])
            h = layers.fc(layers.fc(x, wide, act="tanh"), wide, act="tanh")
            self.loss = layers.mean(layers.square_error_cost(layers.fc(h, 1), y))
            optimizer.minimize(self.loss)
        self.main.random_seed = self.startup.random_seed = 5
        self.ranks, self.first = ranks, self.startup.clone()
        self.plan = transpiled(self.main, self.startup, ranks, pservers, sync, config=config).plan
        self.program = fluid.Program.from_desc(self.plan.main)
        self.parallel = Parallel(Mesh(tuple(jax.devices()[:ranks])), on_mesh(self.plan, ranks))
        self.scope, self.exe = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
        self.exe.run(self.first, scope=self.scope)

    def batches(self, steps: int = 3, batch: int = 4) -> list[list[dict[str, np.ndarray]]]:
        """[step][rank] -> feed."""
        rng = np.random.default_rng(0)
        drawn = [
            [rng.standard_normal((batch, 7), dtype=np.float32) for _ in range(self.ranks)]
            for _ in range(steps)
        ]
        return [[{"x": x, "y": x.sum(1, keepdims=True)} for x in step] for step in drawn]

    def train(self, steps: Any) -> None:
        for step in steps:
            self.exe.run(self, step, [self.loss], scope=self.scope)

    def desc(self) -> Any:
        return self.parallel.desc(self.program)

    def runnable(self) -> Runnable:
        return Runnable(self.program, self.parallel)


def one_process(net: Net, first: dict[str, np.ndarray], steps: Any) -> dict[str, np.ndarray]:
    """The parameters after training on all ranks' batches together."""
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(net.first, scope=scope)
    for name, value in first.items():
        scope.var(name).set(value)
    for step in steps:
        exe.run(
            fluid.Program.from_desc(net.plan.main),
            {n: np.concatenate([f[n] for f in step]) for n in "xy"},
            scope=scope,
        )
    return {n: scope.get(n) for n in first}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "ranks", "pservers", "split"),
    [(name, *deal) for name, deal in zip(SENT, cycle(DEALS), strict=False)],
)
@pytest.mark.filterwarnings("ignore:pserver .* has nothing to update:RuntimeWarning")
def test_equals_the_local_job_block_by_block(name, ranks, pservers, split):
    """Parameters and state of every pserver, where the dispatcher put them."""
    net = Net(
        OPTIMIZERS[name](), ranks, pservers, wide=160, split_method=getattr(fluid.transpiler, split)
    )
    job = LocalJob.of(net.plan)
    first = {n: net.scope.get(n) for n in job.parameters}
    job.start(first)
    steps = net.batches()
    net.train(steps)
    for step in steps:
        job.step(step)
    # its pservers take the norms of blocks, the job those of wholes
    alone = one_process(net, first, steps) if name == "lars" else {}
    for param in job.parameters:
        np.testing.assert_allclose(
            net.scope.get(param),
            alone.get(param, job.get(param)),
            rtol=3e-4,
            atol=3e-6,
            err_msg=param,
        )
    state = net.parallel.sharded(net.program)
    owner = {p.name: p for p in net.plan.params}
    for variable, placed in state.items():
        shards = net.scope.find_var(variable).storage.shards()
        param = owner[
            next(n for n in owner if variable.startswith(f"{n}_") or f"_{n}_" in variable)
        ]
        for span, block in zip(placed.spans, param.blocks, strict=True):
            index = net.plan.index(block.endpoint)
            assert (span.rank, span.start, span.size) == (index % ranks, block.offset, block.size)
            held = np.asarray(shards.arrays[span.array]).reshape(ranks, -1)[span.rank, span.columns]
            there = job.pservers[block.endpoint].scope
            again = there.find_var(f"{variable}.block{block.index}")
            value = there.get(variable) if again is None else np.asarray(again.value)
            if name != "lars":
                np.testing.assert_allclose(
                    held, value.reshape(-1), rtol=3e-4, atol=3e-6, err_msg=variable
                )
    assert bool(state) == (name not in ("sgd", "sgd, l2"))


@pytest.mark.slow
@pytest.mark.optimized
def test_what_travels_are_the_parameters_and_their_gradients_once():
    """A reduce-scatter and an all-gather of all parameters' elements, and no other collective."""
    net = Net(fluid.optimizer.Adam(0.05), 4, 4, wide=256)
    (step,) = net.batches(1)
    net.train([step])
    compiled = net.exe.compiled_steps(net)[0]
    fn = compiled.function()
    feed = net.parallel.split(step, compiled.plan.check_feed)
    lowered = fn.lower(*in_force(net.scope)[0].arrays, feed, 0, 0).compile().as_text()
    moved = {
        kind: 0
        for kind in (
            "all-reduce",
            "reduce-scatter",
            "all-gather",
            "all-to-all",
            "collective-permute",
        )
    }
    for shape, kind in re.findall(
        r"= f32\[([\d,]*)\]\S*"
        r" (all-reduce|reduce-scatter|all-gather|all-to-all|collective-permute)\(",
        lowered,
    ):
        moved[kind] += int(np.prod([int(n) for n in shape.split(",")]))
    elements = sum(int(np.prod(p.shape)) for p in net.plan.params)
    width = sum(
        int(np.prod(v.shape))
        for n, v in net.desc().blocks[0].vars.items()
        if n.endswith(".Grad") and n.startswith("@BIN")
    )
    assert moved["all-reduce"] == moved["all-to-all"] == moved["collective-permute"] == 0
    # the results of each rank
    assert moved["reduce-scatter"] == width and moved["all-gather"] == 4 * width
    assert elements <= 4 * width <= 1.1 * elements  # the small parameters are not dealt evenly


@pytest.mark.parametrize("slice_var_up", [True, False])
def test_each_device_holds_what_was_dealt_to_it(slice_var_up):
    net = Net(fluid.optimizer.Adam(0.05), 4, 4, wide=1024, slice_var_up=slice_var_up)
    net.train(net.batches(1))
    (buffers,) = in_force(net.scope)
    own = buffers.own_arrays
    held = {
        d: sum(s.data.nbytes for a in own for s in a.addressable_shards if s.device == d)
        for d in jax.devices()
    }
    load = [2 * 4 * sum(b.size for b in net.plan.owned(ep)) for ep in net.plan.endpoints]
    assert len(set(held.values())) == 1 and max(load) <= max(held.values()) < 1.05 * max(load)
    whole = 2 * 4 * sum(int(np.prod(p.shape)) for p in net.plan.params)
    assert not slice_var_up or max(held.values()) < 0.26 * whole


def test_the_scope_shows_whole_variables_and_takes_them():
    nets = [Net(fluid.optimizer.Adam(0.05), 2, 2, wide=130) for _ in range(2)]
    steps = nets[0].batches(4)
    one, other = nets
    one.train(steps[:2])
    state = {v.name: one.scope.get(v.name) for v in one.program.list_vars() if v.persistable}
    for name, value in state.items():
        other.scope.find_var(name).get_tensor().set(value, fluid.CPUPlace())
    for net in nets:
        net.train(steps[2:])
    (moment,) = [n for n in state if n.startswith("fc_0.w_0_moment1")]
    assert state[moment].shape == (7, 130) and state[moment].any()
    for name in state:
        np.testing.assert_array_equal(one.scope.get(name), other.scope.get(name), err_msg=name)
    # while it lies on the ranks
    one.scope.find_var(moment).get_tensor().set(np.zeros((7, 130), np.float32), fluid.CPUPlace())
    assert (
        not one.scope.get(moment).any()
        and one.scope.get(moment.replace("moment1", "moment2")).any()
    )


def test_state_on_the_ranks_cannot_be_fetched():
    net = Net(fluid.optimizer.Adam(0.05), 2, 2)
    (moment,) = [n for n in net.program.desc.blocks[0].vars if n.startswith("fc_0.w_0_moment1")]
    with pytest.raises(FetchError, match="lies in parts on the ranks; read it from the scope"):
        net.exe.run(net, net.batches(1)[0], [moment], scope=net.scope)


def test_two_optimizers():
    """The second backward part stands between the updates: it reads what the trainer received, as
    in LocalJob.
    """
    with fresh(4) as (main, startup):
        x = fluid.data("x", [None, 4])
        made = layers.fc(x, 4, param_attr="make", bias_attr=False)
        judged = layers.fc(made, 1, param_attr="judge", bias_attr=False)
        right = layers.mean(
            layers.square_error_cost(judged, layers.reduce_sum(x, 1, keep_dim=True))
        )
        fluid.optimizer.Adam(0.1).minimize(right, parameter_list=["judge"])
        fluid.optimizer.SGD(0.1).minimize(layers.scale(right, -1.0), parameter_list=["make"])
    first = startup.clone()
    plan = transpiled(main, startup, 2, 2).plan
    program = Runnable(
        fluid.Program.from_desc(plan.main),
        Parallel(Mesh(tuple(jax.devices()[:2])), on_mesh(plan, 2)),
    )
    exe, scope, job = fluid.Executor(fluid.CPUPlace()), fluid.Scope(), LocalJob.of(plan)
    exe.run(first, scope=scope)
    job.start({n: scope.get(n) for n in job.parameters})
    rng = np.random.default_rng(0)
    for _ in range(3):
        feeds = [{"x": rng.standard_normal((4, 4), dtype=np.float32)} for _ in range(2)]
        exe.run(program, feeds, [right], scope=scope)
        job.step(feeds)
        for name in ("make", "judge"):
            np.testing.assert_allclose(scope.get(name), job.get(name), atol=1e-6, err_msg=name)


def test_ops_between_updates_that_write_parameters_are_refused():
    with fresh() as (main, startup):
        loss = layers.mean(layers.fc(layers.fc(fluid.data("x", [None, 4]), 4), 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
    block = main.global_block()
    param = main.all_parameters()[0]
    at = next(i for i, op in enumerate(block.ops) if op.type == "sgd")
    block._insert_op(
        at + 1, type="scale", inputs={"X": param}, outputs={"Out": param}, attrs={"scale": 0.5}
    )
    plan = transpiled(main, startup, 2, 2).plan
    parallel = Parallel(Mesh(tuple(jax.devices()[:2])), on_mesh(plan, 2))
    with pytest.raises(
        UnsupportedError,
        match=r"op 'scale' .* between the updates .* put it before minimize or after it",
    ):
        parallel.desc(fluid.Program.from_desc(plan.main))


@pytest.mark.slow
@examples(4)
@given(
    recipes().filter(lambda r: all(step[0] != "batch_norm" for step in r)),
    st.sampled_from([2, 4]),
    st.integers(1, 4),
)
@pytest.mark.filterwarnings("ignore:pserver .* has nothing to update:RuntimeWarning")
def test_random_programs_are_the_same_however_they_are_spread(recipe, ranks, pservers):
    """Parameters after three steps: one process, data parallel, pservers on a mesh, sharded
    optimizer state.
    """
    net = build(
        recipe, fluid.optimizer.Momentum(0.01, 0.9, regularization=fluid.regularizer.L2Decay(0.1))
    )
    places = [fluid.CPUPlace()] * ranks
    plan = transpiled(net.main.clone(), net.startup.clone(), ranks, pservers).plan
    programs = {
        "one": net.main,
        "data parallel": (
            fluid.CompiledProgram(net.main).with_data_parallel(net.loss.name, places=places)
        ),
        "pservers": Runnable(
            fluid.Program.from_desc(plan.main),
            Parallel(Mesh(tuple(jax.devices()[:ranks])), on_mesh(plan, ranks)),
        ),
        "sharded": fluid.transpiler.shard_optimizer(net.main, net.loss, places),
    }
    rng = np.random.default_rng(3)
    steps = [{"x": rng.uniform(-1, 1, (2 * ranks, WIDTH)).astype("float32")} for _ in range(3)]
    found = {}
    for kind, program in programs.items():
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        exe.run(net.startup, scope=scope)
        for feed in steps:
            exe.run(program, feed, [net.loss], scope=scope)
        found[kind] = {v.name: scope.get(v.name) for v in net.main.list_vars() if v.persistable}
    for kind, values in found.items():
        for name, value in values.items():
            np.testing.assert_allclose(
                value, found["one"][name], rtol=2e-4, atol=1e-5, err_msg=f"{name}, {kind}"
            )
