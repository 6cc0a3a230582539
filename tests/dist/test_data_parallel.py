"""with_data_parallel and ParallelExecutor on several CPU devices: against recordings of 1.8.5, and
against one device.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax import layers
from fluidjax.dist.spmd.data_parallel import DataParallel
from fluidjax.dist.spmd.parallel import DeviceCountError, sizes
from fluidjax.dist.spmd.places import ranks_on
from fluidjax.errors import EnforceNotMet, FeedError, FluidTypeError, NanInfError, UnsupportedError
from fluidjax.passes import run
from fluidjax.state.buffers import in_force
from tests import test_readme
from tests.examples import examples
from tests.nets import fresh
from tests.random_programs import build, recipes

DATA = Path(__file__).parent.parent / "data" / "parallel"
TRAIN: dict[str, Any] = json.loads(gzip.decompress((DATA / "train_1.8.5.json.gz").read_bytes()))
BEHAVIOURS = {n: json.loads((DATA / f"behaviours_{n}_1.8.5.json").read_text()) for n in (2, 4)}
CPU = fluid.CPUPlace()


class Net:
    """The recordings' classifier: 8 features (or an embedded word) to 4 classes, a tanh layer of 16
    between.
    """

    def __init__(self, spec: dict[str, Any], init: dict[str, Any] | None = None) -> None:
        main, startup = fluid.Program(), fluid.Program()
        with fluid.unique_name.guard(), fluid.program_guard(main, startup):
            self._build(spec)
            self.test = main.clone(for_test=True)
            makers = {"sgd": lambda: fluid.optimizer.SGD(0.1), "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
                      "adam": lambda: fluid.optimizer.Adam(0.01)}  # fmt: skip
            makers[spec.get("opt", "sgd")]().minimize(self.loss)
        self.main, self.startup, self.scope = main, startup, fluid.Scope()
        self.exe = fluid.Executor(CPU)
        with fluid.scope_guard(self.scope):
            self.exe.run(startup)
        for name, value in (self._initial() if init is None else init).items():
            self.scope.find_var(name).set(np.array(value, "float32"))

    def _build(self, spec: dict[str, Any]) -> None:
        bn, emb = spec.get("bn"), spec.get("emb")
        x = layers.data("x", shape=[1 if emb else 8], dtype="int64" if emb else "float32")
        y = layers.data("y", shape=[1], dtype="int64")
        h = (
            layers.embedding(
                x,
                [50, 8],
                is_sparse=not spec.get("dense"),
                param_attr=fluid.ParamAttr(name="emb_w"),
            )
            if emb
            else x
        )
        h = layers.fc(h, 16, act=None if bn else "tanh")
        h = layers.batch_norm(h, act="tanh") if bn else h
        self.p = layers.fc(h, 4, act="softmax")
        self.loss = layers.mean(layers.cross_entropy(self.p, y))
        self.shape = layers.shape(x)

    def _initial(self) -> dict[str, np.ndarray]:
        rng = np.random.RandomState(7)
        return {
            p.name: rng.uniform(-0.5, 0.5, p.shape).astype("float32")
            for p in self.main.global_block().all_parameters()
        }

    def parallel(
        self, places: int, program: fluid.Program | None = None, **kw: Any
    ) -> fluid.CompiledProgram:
        name = None if program is self.test else self.loss.name
        return fluid.CompiledProgram(program or self.main).with_data_parallel(
            name, places=[CPU] * places, **kw
        )

    def run(self, program: Any, feed: Any, fetch: Any = None, **kw: Any) -> list[Any]:
        return self.exe.run(
            program,
            feed=feed,
            fetch_list=[self.loss] if fetch is None else fetch,
            scope=self.scope,
            **kw,
        )

    def values(self) -> dict[str, np.ndarray]:
        return {v.name: self.scope.get(v.name) for v in self.main.list_vars() if v.persistable}


def batches(steps: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """The recordings' data."""
    x = np.random.RandomState(100).uniform(-1, 1, (steps, batch, 8)).astype("float32")
    y = ((x[..., :2] > 0).astype("int64") * np.array([1, 2])).sum(-1)[..., None].astype("int64")
    return x, y


def feed_of(batch: int, step: int = 0) -> dict[str, np.ndarray]:
    x, y = batches(3, batch)
    return {"x": x[step], "y": y[step]}


def strategy(spec: dict[str, Any]) -> fluid.BuildStrategy:
    made = fluid.BuildStrategy()
    made.reduce_strategy = getattr(
        fluid.BuildStrategy.ReduceStrategy, spec.get("reduce", "AllReduce")
    )
    made.gradient_scale_strategy = getattr(
        fluid.BuildStrategy.GradientScaleStrategy, spec.get("scale", "CoeffNumDevice")
    )
    for name, value in spec.get("bs", {}).items():
        setattr(made, name, value)
    return made


@pytest.mark.first(6)
@pytest.mark.parametrize("name", sorted(TRAIN))
def test_recorded_training(name, monkeypatch):
    """Losses and shapes of every step, and the parameters and moving averages at the end."""
    want = TRAIN[name]
    spec, places = want["spec"], int(want["CPU_NUM"])
    monkeypatch.setenv("CPU_NUM", str(places))
    net = Net(spec, want["init"])
    if spec.get("api") == "pe":
        executor = fluid.ParallelExecutor(
            False, net.loss.name, net.main, build_strategy=strategy(spec), scope=net.scope
        )
        assert executor.device_count == places
        step = lambda feed, fetch: executor.run(fetch, feed)  # noqa: E731
    else:
        compiled = fluid.CompiledProgram(net.main)
        if not spec.get("single"):
            compiled = compiled.with_data_parallel(net.loss.name, strategy(spec))
        step = lambda feed, fetch: net.run(compiled, feed, fetch)  # noqa: E731
    x, y = (np.array(want[k], "int64" if k == "y" or spec.get("emb") else "float32") for k in "xy")
    for i, recorded in enumerate(want["steps"]):
        feed = {"x": x[i], "y": y[i]}
        if spec.get("custom_loss_grad"):
            feed[net.loss.name + "@GRAD"] = np.full([places], spec["custom_loss_grad"], "float32")
        loss, p, shape = step(feed, [net.loss.name, net.p.name, net.shape.name])
        assert (
            list(p.shape) == recorded["p_shape"]
            and np.array(shape).tolist() == recorded["x_shape_per_device"]
        )
        assert list(loss.shape) == recorded["loss"]["shape"]
        np.testing.assert_allclose(loss, recorded["loss"]["value"], atol=1e-5)
    for part in ("final", "moving"):
        for variable, value in want.get(part, {}).items():
            np.testing.assert_allclose(net.scope.get(variable), value, atol=1e-5, err_msg=variable)


@pytest.mark.first(4)
@pytest.mark.parametrize("places", [2, 4])
@pytest.mark.parametrize("batch", [1, 2, 3, 4, 5, 7, 8, 9])
def test_recorded_batch_sizes(places, batch):
    """As 1.8.5 splits them; what it refuses although there are enough samples is split evenly."""
    want = BEHAVIOURS[places][f"batch_{batch}"]
    net = Net({})
    if batch < places:
        with pytest.raises(
            EnforceNotMet,
            match=(
                rf"the number \({batch}\) of samples of feed 'x' is less than the count"
                rf" \({places}\)"
            ),
        ):
            net.run(net.parallel(places), feed_of(batch))
        return
    loss, shape = net.run(net.parallel(places), feed_of(batch), [net.loss, net.shape])
    if want["ok"]:
        (_, losses), (_, shapes) = json.loads(want["result"])
        np.testing.assert_allclose(loss, losses, atol=1e-6)
        assert shape.tolist() == shapes
    assert shape[::2].tolist() == sizes(batch, places) and shape[::2].sum() == batch


def test_sizes():
    assert [sizes(n, 4) for n in (4, 5, 6, 7, 8, 9, 10)] == [
        [1, 1, 1, 1], [2, 1, 1, 1], [2, 2, 1, 1], [2, 2, 2, 1], [2, 2, 2, 2], [3, 2, 2, 2], [3, 3, 3, 1],
    ]  # fmt: skip
    fluid.set_flags({"FLAGS_seed_doc_split": True})
    try:
        assert [sizes(n, 2) for n in (2, 3, 4)] == [[1, 1], [1, 2], [2, 2]] and sizes(7, 4) == [
            1,
            1,
            1,
            4,
        ]
    finally:
        fluid.set_flags({"FLAGS_seed_doc_split": False})


@pytest.mark.parametrize("batch", [8, 7])
def test_unmerged_fetches(batch):
    net = Net({})
    loss, shape = net.run(
        net.parallel(2), feed_of(batch), [net.loss, net.shape], return_merged=False
    )
    want = json.loads(BEHAVIOURS[2][f"batch_{batch}_return_merged_False"]["result"])
    for got, (dims, values) in zip((loss, shape), want, strict=True):
        assert list(got.shape) == dims
        np.testing.assert_allclose(got, values, atol=1e-6)
    net = Net({})
    (p,) = net.run(net.parallel(2), feed_of(7), [net.p], return_merged=False)
    assert [v.shape for v in p] == [(4, 4), (3, 4)]


def test_fetches_of_parameters_and_nothing():
    net = Net({})
    train = net.parallel(4)
    w, b = net.run(train, feed_of(8), ["fc_0.w_0", "fc_0.b_0"])
    assert [list(w.shape), list(b.shape)] == json.loads(BEHAVIOURS[4]["fetch_param"]["result"])
    assert net.run(train, feed_of(8), []) == []
    (on_device,) = net.run(train, feed_of(8), return_numpy=False)
    on_device = on_device.array()
    assert isinstance(on_device, jax.Array) and on_device.shape == (4,)


def test_list_feeds():
    net = Net({})
    parts = [feed_of(4), feed_of(5)]
    loss, shape = net.run(net.parallel(2), parts, [net.loss, net.shape])
    (_, losses), (_, shapes) = json.loads(BEHAVIOURS[2]["feed_list_n"]["result"])
    np.testing.assert_allclose(loss, losses, atol=1e-6)
    assert shape.tolist() == shapes
    net = Net({})
    (loss,) = net.run(net.parallel(2), (feed_of(4), feed_of(4)))
    np.testing.assert_allclose(
        loss, json.loads(BEHAVIOURS[2]["feed_tuple"]["result"])[0][1], atol=1e-6
    )


def test_feeds_that_do_not_fit():
    net = Net({})
    train, before = net.parallel(2), None
    net.run(train, feed_of(8))
    before = net.values()
    for feed, error, told in (
        ([feed_of(4)] * 3, IndexError, "a list of 3 dicts, but there are 2 devices"),
        ([feed_of(4)], EnforceNotMet, "a list of 1 dicts, but there are 2 devices"),
        ([feed_of(4)], ValueError, "give one dict for each device"),
        ([3, 3], FluidTypeError, "Each element of feed list should be a dict, not int"),
        (dict(feed_of(8), zzz=np.zeros((8, 1), "float32")), ValueError, "'zzz'"),
        ({"x": feed_of(8)["x"]}, FeedError, "'y' must be fed"),
        (None, FeedError, "'x' must be fed"),
        ({"x": feed_of(8)["x"], "y": feed_of(8)["y"][:1]}, DeviceCountError, "samples of feed 'y'"),
        ({"x": feed_of(8)["x"], "y": feed_of(8)["y"] + 9}, FeedError, "expects 0 <= value < 4"),
    ):
        with pytest.raises(error, match=told):
            net.run(train, feed)
    for name, value in net.values().items():
        np.testing.assert_array_equal(value, before[name])


def test_sharing_variables():
    """A test program sees the trained parameters on all devices, whether or not it says that it
    shares them.
    """
    net = Net({})
    train = net.parallel(4)
    with pytest.raises(ValueError, match="The shared Program is not compiled and executed"):
        net.run(net.parallel(4, net.test, share_vars_from=train), feed_of(8, 1))
    losses = [net.run(train, feed_of(8))[0]]
    losses.append(net.run(net.parallel(4, net.test, share_vars_from=train), feed_of(8, 1))[0])
    losses.append(net.run(train, feed_of(8, 1))[0])
    for got, want in zip(
        losses, json.loads(BEHAVIOURS[4]["share_vars_from_train_first"]["result"]), strict=True
    ):
        np.testing.assert_allclose(got, want, atol=1e-6)
    unshared = net.run(net.parallel(4, net.test), feed_of(8, 2))[0]
    plain = [
        net.run(net.test, {n: v[r * 2 : r * 2 + 2] for n, v in feed_of(8, 2).items()})[0]
        for r in range(4)
    ]
    np.testing.assert_allclose(unshared, np.concatenate(plain), atol=1e-6)


def test_state_stays_alike_and_on_its_devices():
    net = Net({"opt": "adam"})
    train = net.parallel(4)
    for step in range(2):
        net.run(train, feed_of(8, step))
    (buffers,) = in_force(net.scope)
    arrays = [a for group in buffers.arrays for a in group]
    assert all(a.is_fully_replicated and len(a.sharding.device_set) == 4 for a in arrays)
    for array in arrays:
        shards = [np.asarray(s.data) for s in array.addressable_shards]
        assert all(np.array_equal(shards[0], s) for s in shards)


def test_batch_norm_keeps_its_own_averages():
    """Each device has its own; programs on one device in between see the first, and take nothing
    from the others.
    """
    net, x = Net({"bn": True}), feed_of(8)["x"]
    train = net.parallel(2)
    net.run(train, feed_of(8))
    ones = [Net({"bn": True}) for _ in range(2)]
    for r, one in enumerate(ones):
        one.run(one.main, {n: v[r * 4 : r * 4 + 4] for n, v in feed_of(8).items()})
    name = "batch_norm_0.w_1"
    np.testing.assert_allclose(net.scope.get(name), ones[0].scope.get(name), atol=1e-6)
    # on one device: it takes a copy of what the mesh holds
    net.run(net.test, {"x": x, "y": feed_of(8)["y"]})
    net.run(train, feed_of(8))
    rows = np.array(
        next(
            a
            for group in in_force(net.scope)[0].arrays
            for a in group
            if a.ndim == 2 and a.shape == (2, 16)
        )
    )
    assert not np.array_equal(rows[0], rows[1])
    parts = [one.scope.get(name) for one in ones]
    assert not np.allclose(parts[0], parts[1])


def test_synchronised_batch_norm_is_that_of_the_whole_batch():
    net, one = Net({"bn": True}), Net({"bn": True})
    train = net.parallel(4, build_strategy=strategy({"bs": {"sync_batch_norm": True}}))
    for step in range(3):
        loss = net.run(train, feed_of(8, step))[0]
        want = one.run(one.main, feed_of(8, step))[0]
        np.testing.assert_allclose(loss.mean(), want[0], rtol=1e-5)
    for name, value in one.values().items():
        np.testing.assert_allclose(net.scope.get(name), value, rtol=2e-4, atol=2e-6, err_msg=name)
    with pytest.raises(
        UnsupportedError, match="op 'sync_batch_norm' needs equal shapes on all devices"
    ):
        net.run(train, feed_of(7))


@pytest.mark.slow
def test_taking_turns_equals_running_at_once(monkeypatch):
    """More places than devices: a warning, and the same results."""
    nets = [Net({"bn": True, "opt": "momentum"}) for _ in range(2)]
    at_once = nets[0].parallel(4)
    monkeypatch.setattr(
        "fluidjax.dist.spmd.places.cpu_devices", lambda _: jax.local_devices(backend="cpu")[:1]
    )
    with pytest.warns(
        RuntimeWarning,
        match=r"4 places share 1 cpu device\(s\), so they run one after another; set CPU_NUM=4",
    ):
        in_turn = nets[1].parallel(4).runnable().ranks and nets[1].parallel(4)
        for step in range(3):
            got = [
                n.run(p, feed_of(8 - step, step))[0]
                for n, p in zip(nets, (at_once, in_turn), strict=True)
            ]
            np.testing.assert_allclose(*got, rtol=1e-5)
    for name, value in nets[0].values().items():
        np.testing.assert_allclose(
            nets[1].scope.get(name), value, rtol=1e-4, atol=1e-6, err_msg=name
        )


def test_the_warning_fits_one_who_set_cpu_num(monkeypatch):
    monkeypatch.setattr(
        "fluidjax.dist.spmd.places.cpu_devices", lambda _: jax.local_devices(backend="cpu")[:1]
    )
    monkeypatch.setenv("CPU_NUM", "3")
    with pytest.warns(
        RuntimeWarning,
        match="CPU_NUM=3 came after JAX was first used.*at the beginning of the script",
    ):
        ranks_on(fluid.cpu_places())


def test_devices_that_jax_has_without_cpu_num(monkeypatch):
    net = Net({"opt": "sgd"})
    monkeypatch.setenv("CPU_NUM", "1")
    monkeypatch.delenv("CPU_NUM")
    with pytest.warns(
        RuntimeWarning, match="runs on one CPU device, though JAX has 4: .*cpu_places\\(4\\)"
    ):
        assert (
            fluid.CompiledProgram(net.main).with_data_parallel(net.loss.name).runnable().ranks
            is None
        )
    # told once
    assert (
        fluid.CompiledProgram(net.main).with_data_parallel(net.loss.name).runnable().ranks is None
    )


@pytest.mark.slow
def test_cpu_num_counts_for_an_executor_without_a_place():
    """The form of the documents, in a process of its own: nothing has used JAX before."""
    script = """
        import fluidjax as fluid, numpy as np
        x = fluid.data("x", [None, 2])
        loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        both = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss.name)
        print(exe.run(both, feed={"x": np.ones([4, 2], "float32")}, fetch_list=[loss])[0].shape)
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_NUM", "XLA_FLAGS"))} | {
        "CPU_NUM": "2"
    }
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240)
    assert (done.stdout, done.returncode) == ("(2,)\n", 0), done.stderr


@pytest.mark.slow
def test_sparse_gradients_of_unequal_batches():
    nets = [Net({"emb": True, "opt": "momentum", "dense": dense}) for dense in (False, True)]
    words = np.random.RandomState(0).randint(0, 50, (3, 7, 1))
    for step in range(3):
        feed = {"x": words[step], "y": words[step] % 4}
        got = [net.run(net.parallel(4), feed)[0] for net in nets]
        np.testing.assert_allclose(*got, rtol=1e-6)
    for name, value in nets[1].values().items():
        np.testing.assert_allclose(
            nets[0].scope.get(name), value, rtol=1e-5, atol=1e-6, err_msg=name
        )


def test_every_device_draws_its_own_masks():
    with fresh() as (main, startup):
        x = fluid.data("x", [None, 50])
        dropped = layers.dropout(x, 0.5)
        exe = fluid.Executor(CPU)
        exe.run(startup, scope=fluid.Scope())
    compiled = fluid.CompiledProgram(main).with_data_parallel(places=[CPU] * 2)
    ones = np.ones((4, 50), "float32")
    (a,), (b,) = (exe.run(compiled, feed={"x": ones}, fetch_list=[dropped]) for _ in range(2))
    assert (
        not np.array_equal(a[:2], a[2:])
        and not np.array_equal(a, b)
        and 0.2 < (a == 0).mean() < 0.8
    )


def test_ragged_feeds_are_split_by_sequences():
    with fresh() as (main, startup):
        x = fluid.data("x", [None, 2], lod_level=1)
        pooled = layers.sequence_pool(x, "sum")
        doubled = layers.scale(x, 2.0)
        exe = fluid.Executor(CPU)
        exe.run(startup, scope=fluid.Scope())
    rows = np.arange(14, dtype="float32").reshape(7, 2)
    feed = fluid.create_lod_tensor(rows, [[2, 1, 4]], CPU)
    compiled = fluid.CompiledProgram(main).with_data_parallel(places=[CPU] * 2)
    (got,) = exe.run(compiled, feed={"x": feed}, fetch_list=[pooled])
    np.testing.assert_array_equal(got, [rows[:2].sum(0), rows[2], rows[3:].sum(0)])
    (whole,) = exe.run(compiled, feed={"x": feed}, fetch_list=[doubled], return_numpy=False)
    assert whole.recursive_sequence_lengths() == [[2, 1, 4]]
    np.testing.assert_array_equal(np.asarray(whole), 2 * rows)
    nested = fluid.create_lod_tensor(rows, [[3, 0], [2, 1, 4]], CPU)
    with pytest.raises(
        FeedError,
        match=(
            "feed 'x', split over 2 devices, gives device 1 sequences that hold none of the level"
            " below"
        ),
    ):
        exe.run(compiled, feed={"x": nested}, fetch_list=[doubled])
    with pytest.raises(
        UnsupportedError, match="run_steps on several devices takes no sequences, as 'x' holds"
    ):
        exe.run_steps(compiled, feeds=[{"x": nested}] * 2, fetch_list=[doubled])


def test_many_steps_in_one_call():
    nets = [Net({"opt": "adam"}) for _ in range(2)]
    x, y = batches(3, 8)
    got = nets[0].exe.run_steps(
        nets[0].parallel(4), {"x": x, "y": y}, [nets[0].loss], nets[0].scope
    )[0]
    one = nets[1].parallel(4)
    np.testing.assert_allclose(
        got, [nets[1].run(one, {"x": x[i], "y": y[i]})[0] for i in range(3)], rtol=1e-6
    )
    with pytest.raises(UnsupportedError, match="run_steps on 4 devices needs"):
        nets[0].exe.run_steps(
            nets[0].parallel(4), {"x": x[:, :7], "y": y[:, :7]}, [nets[0].loss], nets[0].scope
        )


def test_iterations_of_one_run():
    nets = [Net({}) for _ in range(2)]
    three = fluid.ExecutionStrategy()
    three.num_iteration_per_run = 3
    (got,) = nets[0].run(nets[0].parallel(2, exec_strategy=three), feed_of(8))
    one = nets[1].parallel(2)
    want = [nets[1].run(one, feed_of(8))[0] for _ in range(3)][-1]
    np.testing.assert_array_equal(got, want)


def test_not_a_number_is_named():
    net = Net({})
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    try:
        train, before = net.parallel(2), net.values()
        for batch in (8, 7):
            feed = feed_of(batch)
            feed["x"][-1] = np.nan
            with pytest.raises(NanInfError, match="op 'mul'"):
                net.run(train, feed)
        assert np.isfinite(net.run(train, feed_of(8))[0]).all()
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})
    assert all(before[n].shape == v.shape for n, v in net.values().items())


def test_the_graph_is_written(tmp_path):
    net = Net({})
    chosen = fluid.BuildStrategy()
    chosen.debug_graphviz_path = str(tmp_path / "graph.dot")
    net.run(net.parallel(2, build_strategy=chosen), feed_of(8))
    assert "c_fused_allreduce_sum" in (tmp_path / "graph.dot").read_text()


def test_what_the_pass_inserts():
    desc = Net({"bn": True}).main.desc
    kinds = [op.type for op in run(DataParallel(2), desc).desc.blocks[0].ops]
    assert (
        kinds.count("c_fused_allreduce_sum") == 1
        and kinds[kinds.index("fill_constant") + 1] == "scale"
    )
    assert kinds.index("c_fused_allreduce_sum") < kinds.index("sgd")
    result = run(DataParallel(2, "One", fuse=False, sync_batch_norm=True), desc)
    kinds = [op.type for op in result.desc.blocks[0].ops]
    assert (
        kinds.count("c_allreduce_sum") == 6
        and "scale" not in kinds
        and "sync_batch_norm_grad" in kinds
    )
    assert len(result.notes) == 6 and "fc_0.w_0@GRAD of fc_0.w_0 summed over the ranks" in str(
        result.notes[-1]
    )


def test_the_examples_of_the_documentation(monkeypatch):
    monkeypatch.setenv("CPU_NUM", "4")
    text = (Path(__file__).parents[2] / "docs" / "data-parallel.md").read_text()
    names: dict[str, Any] = {"__name__": "__main__"}
    with fresh(), fluid.scope_guard(fluid.Scope()):
        results = [
            (test_readme.run(code, names), promised)
            for code, promised in test_readme.EXAMPLE.findall(text)
        ]
    assert len(results) == text.count("```python") == 2
    assert all(printed == promised for printed, promised in results)


@pytest.mark.slow
@examples(15)
@given(
    recipes().filter(lambda r: all(step[0] != "batch_norm" for step in r)), st.sampled_from([2, 4])
)
def test_random_programs_train_as_on_one_device(recipe, places):
    """Parameters after three steps, where no op mixes samples."""
    net = build(recipe, fluid.optimizer.Momentum(0.01, 0.9))
    exe, finals = fluid.Executor(CPU), []
    feed = {"x": np.random.default_rng(0).standard_normal((8, 4), dtype=np.float32)}
    for program in (
        net.main,
        fluid.CompiledProgram(net.main).with_data_parallel(net.loss.name, places=[CPU] * places),
    ):
        scope = fluid.Scope()
        exe.run(net.startup, scope=scope)
        for _ in range(3):
            exe.run(program, feed=feed, scope=scope)
        finals.append({p.name: scope.get(p.name) for p in net.main.all_parameters()})
    for name, value in finals[0].items():
        np.testing.assert_allclose(finals[1][name], value, rtol=2e-4, atol=1e-5, err_msg=name)
