"""Sharded optimizer state: equal to keeping it whole, and 1 / devices of the memory."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import optax
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.dist import who_holds
from fluidjax.dist.spmd.data_parallel import DataParallel
from fluidjax.dist.spmd.shard_optimizer import ShardOptimizer
from fluidjax.ir import walk
from fluidjax.passes import run
from fluidjax.state.buffers import in_force
from tests.nets import fresh

CPU = fluid.CPUPlace()
CLIP = fluid.clip.GradientClipByGlobalNorm(0.5)
OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "sgd, l2": lambda: fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.1)),
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "nesterov, clip": lambda: fluid.optimizer.Momentum(0.1, 0.9, use_nesterov=True, grad_clip=CLIP),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1),
    "decayed_adagrad": lambda: fluid.optimizer.DecayedAdagrad(0.1),
    "adadelta": lambda: fluid.optimizer.Adadelta(0.1),
    "adam": lambda: fluid.optimizer.Adam(0.05),
    "adamax": lambda: fluid.optimizer.Adamax(0.05),
    "rmsprop": lambda: fluid.optimizer.RMSProp(0.05, centered=True, momentum=0.5),
    "ftrl": lambda: fluid.optimizer.Ftrl(0.05),
    "lars": lambda: fluid.optimizer.LarsMomentum(0.1, 0.9),
    "lamb": lambda: fluid.optimizer.Lamb(0.05),
    "optax": lambda: fluid.optimizer.Optax(
        optax.chain(optax.clip_by_global_norm(0.5), optax.adam(0.05))
    ),
}


class Net:
    """Two dense layers; 7 x 13 and 13 x 1 are not multiples of the devices."""

    def __init__(self, optimizer: Any, bias: bool | None = None) -> None:
        with fresh() as (self.main, self.startup):
            x, y = fluid.data("x", [None, 7]), fluid.data("y", [None, 1])
            h = layers.fc(x, 13, act="tanh")
            self.loss = layers.mean(layers.square_error_cost(layers.fc(h, 1, bias_attr=bias), y))
            optimizer.minimize(self.loss)
        self.scope, self.exe = fluid.Scope(), fluid.Executor(CPU)
        self.startup.random_seed = 5
        self.exe.run(self.startup, scope=self.scope)

    def train(self, program: Any, steps: int = 4, batch: int = 8) -> list[Any]:
        rng = np.random.default_rng(0)
        feeds = [{"x": rng.standard_normal((batch, 7), dtype=np.float32)} for _ in range(steps)]
        for feed in feeds:
            feed["y"] = feed["x"].sum(1, keepdims=True)
        return [
            self.exe.run(program, feed=f, fetch_list=[self.loss], scope=self.scope)[0]
            for f in feeds
        ]

    def values(self) -> dict[str, np.ndarray]:
        return {v.name: self.scope.get(v.name) for v in self.main.list_vars() if v.persistable}


@pytest.mark.first(3)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_equal_to_whole_state(name):
    """Parameters and every variable of the state, by name and in its own shape, on 4 devices and on
    one.
    """
    split, one = Net(OPTIMIZERS[name]()), Net(OPTIMIZERS[name]())
    split.train(fluid.transpiler.shard_optimizer(split.main, split.loss, [CPU] * 4))
    one.train(one.main)
    for variable, value in one.values().items():
        got = split.scope.get(variable)
        assert got.shape == value.shape
        np.testing.assert_allclose(got, value, rtol=3e-4, atol=3e-6, err_msg=variable)


@pytest.mark.parametrize("name", ["momentum", "adam", "lamb", "optax"])
def test_each_device_holds_its_share(name):
    net = Net(OPTIMIZERS[name]())
    program = fluid.transpiler.shard_optimizer(net.main, net.loss, [CPU] * 4)
    net.train(program)
    sharded = program.runnable().ranks.sharded(net.main)
    state = [v for v in sharded if v not in {p.name for p in net.main.all_parameters()}]
    assert len(state) >= 3 * (1 if name == "momentum" else 2)
    (buffers,) = in_force(net.scope)
    arrays = buffers.own_arrays
    whole = sum(sharded[v].size for v in state) * 4
    assert arrays
    held = {
        d: sum(s.data.nbytes for a in arrays for s in a.addressable_shards if s.device == d)
        for d in jax.devices()
    }
    assert len(set(held.values())) == 1 and max(held.values()) <= whole / 4 + 4 * len(state)
    text = str(who_holds(net.main, net.scope)).splitlines()
    assert [line.partition(" = ")[2].partition(":")[0] for line in text[:4]] == [
        f"rank {i}" for i in range(4)
    ]
    for v in state:
        (at,) = [i for i, line in enumerate(text) if line.startswith(f"{v}: float32[")]
        assert text[at + 1].startswith(f"  {v}: 0 to ") and text[at + 1].endswith(" on 0")


def test_scope_writes_reach_the_pieces():
    nets = [Net(OPTIMIZERS["adam"]()) for _ in range(2)]
    programs = [
        fluid.transpiler.shard_optimizer(nets[0].main, nets[0].loss, [CPU] * 4),
        nets[1].main,
    ]
    for net, program in zip(nets, programs, strict=True):
        net.train(program, 2)
        for v in net.main.list_vars():
            if "moment1" in v.name:
                net.scope.find_var(v.name).get_tensor().set(np.ones(v.shape, "float32"), CPU)
        net.train(program, 2)
    for variable, value in nets[1].values().items():
        np.testing.assert_allclose(
            nets[0].scope.get(variable), value, rtol=3e-4, atol=3e-6, err_msg=variable
        )


@pytest.mark.slow
def test_programs_in_turn_on_one_scope(tmp_path):
    """Sharded, then whole on one device, saved and loaded, then sharded on two devices."""
    nets = [Net(OPTIMIZERS["momentum"]()) for _ in range(2)]
    a, b = nets
    a.train(fluid.transpiler.shard_optimizer(a.main, a.loss, [CPU] * 4), 2)
    a.train(a.main, 2)
    # unequal parts
    a.train(fluid.transpiler.shard_optimizer(a.main, a.loss, [CPU] * 4), 2, batch=7)
    with fluid.scope_guard(a.scope):
        fluid.io.save_persistables(a.exe, str(tmp_path), a.main)
    a.scope = fluid.Scope()
    with fluid.scope_guard(a.scope):
        fluid.io.load_persistables(a.exe, str(tmp_path), a.main)
    a.train(fluid.transpiler.shard_optimizer(a.main, a.loss, [CPU] * 2), 2)
    for steps, batch in ((2, 8), (2, 8)):
        b.train(b.main, steps, batch)
    b.train(fluid.CompiledProgram(b.main).with_data_parallel(b.loss.name, places=[CPU] * 4), 2, 7)
    b.train(b.main, 2)
    for variable, value in b.values().items():
        np.testing.assert_allclose(
            a.scope.get(variable), value, rtol=1e-4, atol=1e-6, err_msg=variable
        )


@pytest.mark.optimized
def test_collective_bytes_are_those_of_the_parameters():
    """One reduce-scatter of the gradients, one all-gather of the parameters, nothing more."""
    net = Net(OPTIMIZERS["adam"](), bias=False)
    program = fluid.transpiler.shard_optimizer(net.main, net.loss, [CPU] * 4)
    net.train(program, 1)
    (compiled,) = net.exe.compiled_steps(program)
    with jax.enable_x64(True):
        feed = {"x": np.zeros((8, 7), "float32"), "y": np.zeros((8, 1), "float32")}
        text = (
            compiled.function()
            .lower(*compiled.bind(net.scope).arrays, feed, 0, 0)
            .compile()
            .as_text()
        )
    kinds = ("all-reduce(", "all-gather(", "reduce-scatter(", "all-to-all(", "collective-permute(")
    assert [text.count(" " + k) for k in kinds] == [0, 1, 1, 0, 0]
    each = sum(-(-int(np.prod(p.shape)) // 4) for p in net.main.all_parameters())
    sent = next(line for line in text.splitlines() if " reduce-scatter(" in line)
    came = next(line for line in text.splitlines() if " all-gather(" in line)
    assert f"f32[1,{each}]" in sent or f"f32[{each}]" in sent, sent
    assert f"f32[4,{each}]" in came or f"f32[{4 * each}]" in came, came


def test_what_is_left_whole():
    """State that something else reads; a parameter with fewer elements than devices; sparse
    gradients.
    """
    with fresh() as (main, _):
        words = fluid.data("w", [None, 1], "int64")
        h = layers.embedding(words, [50, 4], is_sparse=True)
        loss = layers.mean(layers.fc(h, 1))
        fluid.optimizer.Adam(0.1).minimize(loss)
        moment = next(v for v in main.list_vars() if v.name == "fc_0.w_0_moment1_0")
        layers.mean(moment)
    result = run(ShardOptimizer(2), main.desc)
    text = " ".join(map(str, result.refusals))
    assert (
        "its gradient is sparse" in text
        and "something else uses its state" in text
        and "fewer elements than" in text
    )
    assert not ShardOptimizer(2).placed(main.desc, result.desc) and not result.changed


def test_gradients_are_summed_once():
    net = Net(OPTIMIZERS["adam"]())
    desc = run(DataParallel(2), run(ShardOptimizer(2), net.main.desc).desc).desc
    kinds = [op.type for op in desc.blocks[0].ops]
    assert kinds.count("c_fused_reducescatter") == kinds.count("c_fused_allgather") == 1
    (summed,) = [
        op for op in desc.blocks[0].ops if op.type.startswith("c_") and "allreduce" in op.type
    ]
    assert list(summed.reads) == ["fc_1.b_0@GRAD"]
    assert {n for n in walk.persistables(desc)} == {n for n in walk.persistables(net.main.desc)}
    clipped = Net(OPTIMIZERS["nesterov, clip"]())
    kinds = [
        op.type
        for op in run(DataParallel(2), run(ShardOptimizer(2), clipped.main.desc).desc)
        .desc.blocks[0]
        .ops
    ]
    assert (
        "c_fused_reducescatter" not in kinds
        and "c_fused_allreduce_sum" in kinds
        and kinds.count("c_piece") == 6
    )
