"""Traced networks trained by Fluid with an open batch on several devices, beside one device on the
whole batch: data parallel, parameter servers, fleet, and the planner's table.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

import fluidjax as fluid
from fluidjax.devices.placement import Mesh
from fluidjax.dist.spmd.parallel import Parallel, sizes
from fluidjax.dist.spmd.pserver import on_mesh
from fluidjax.incubate.fleet.base import role_maker
from fluidjax.incubate.fleet.collective import Collective
from fluidjax.planning.hlo import payload
from fluidjax.runtime.runnable import Runnable

from ..dist.jobs import kept
from ..passes import raised_models
from ..planning.nets import compiled
from ..tools.role_cases import KEYS
from ..weights import weights

BATCH, STEPS = 16, 2
COUNTS = sorted({2, min(8, len(jax.devices()))})  # as many as there are, up to 8


class Plain(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.Dense(4)(nn.gelu(nn.LayerNorm()(nn.Dense(16)(x))))


class Images(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.relu(nn.GroupNorm(2)(nn.Conv(8, (3, 3))(x)))
        return nn.Dense(4)(nn.max_pool(x, (2, 2), (2, 2)).mean((1, 2)))


class Series(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.Dense(4)(nn.RNN(nn.GRUCell(6))(x)[:, -1])


MODELS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "mlp": (Plain(), (5,)),
    "images": (Images(), (8, 8, 3)),
    "series": (Series(), (4, 3)),
    "vit": (raised_models.ViT(1), (8, 8, 3)),
    "mixer": (raised_models.Mixer(1), (16, 16, 3)),
    "convnext": (raised_models.ConvNeXt(1), (8, 8, 3)),
}
# the layers of the larger ones meet the most devices alone
EACH = [(n, d) for n in MODELS for d in COUNTS if d == COUNTS[-1] or n in ("mlp", "images")]


def feed_of(shape: tuple[int, ...], step: int, batch: int = BATCH) -> dict[str, Any]:
    x = np.random.default_rng(step).standard_normal((batch, *shape), "float32")
    return {"x": x, "y": np.arange(batch, dtype="int32") % 4}


@cache
def made(name: str, batch: int = BATCH) -> tuple[Any, Any, Any, Any]:
    """(function, parameters, their values after each step on one device, losses) by jax.grad."""
    model, shape = MODELS[name]
    params = weights(model.init, jax.random.key(0), jnp.ones((2, *shape)))

    def loss(params: Any, x: Any, y: Any) -> Any:
        logits = nn.log_softmax(model.apply(params, x))
        return -(logits * jax.nn.one_hot(y, logits.shape[-1])).sum(-1).mean()

    @jax.jit
    def step(params: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    after, losses = params, []
    for i in range(STEPS):
        value, after = step(after, **feed_of(shape, i, batch))
        losses.append(float(value))
    return loss, params, after, losses


def trained(name: str) -> tuple[fluid.Traced, Any]:
    """The loss traced at any batch, with Fluid's backward pass and SGD."""
    traced, startup = with_optimizer(name)
    return replace(traced, main=traced.main.clone()), startup.clone()


@cache
def with_optimizer(
    name: str, wrapped: Any = lambda optimizer: optimizer
) -> tuple[fluid.Traced, Any]:
    fn, params, *_ = made(name)
    feed = feed_of(MODELS[name][1], 0)
    with fluid.unique_name.guard():
        dynamic = {"x": ("b",), "y": ("b",)}
        traced = fluid.trace(fn, params, feed["x"], feed["y"], state=0, dynamic=dynamic)
        with fluid.program_guard(traced.main, traced.startup):
            loss = traced.main.global_block().var(traced.fetches[0])
            wrapped(fluid.optimizer.SGD(0.1)).minimize(loss)
    return traced, traced.startup


def check(name: str, traced: fluid.Traced, run: Any, batch: int = BATCH) -> None:
    """Losses and parameters over the steps are those of jax.grad on the whole batch."""
    _, _, after, losses = made(name, batch)
    for i in range(STEPS):
        (found,) = run(feed_of(MODELS[name][1], i, batch))
        whole = np.average(found, weights=sizes(batch, len(found)))
        np.testing.assert_allclose(whole, losses[i], rtol=1e-6)
    for place, leaf in zip(traced.places, jax.tree.leaves(after), strict=False):
        scale = max(float(np.abs(leaf).max()), 0.1)
        value = kept(fluid.global_scope().get(place))
        np.testing.assert_allclose(value, leaf, rtol=0, atol=1e-6 * scale, err_msg=place)


@pytest.mark.first(1)
@pytest.mark.parametrize(("name", "devices"), EACH)
def test_data_parallel_is_one_device(name: str, devices: int) -> None:
    traced, startup = trained(name)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        traced.write()
        exe.run(startup)
        compiled = fluid.CompiledProgram(traced.main).with_data_parallel(
            loss_name=traced.fetches[0], places=fluid.cpu_places(devices)
        )
        check(name, traced, lambda feed: exe.run(compiled, feed, list(traced.fetches)))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "devices"), [("mlp", 8), ("images", 2)])
def test_a_batch_that_the_devices_do_not_divide(name: str, devices: int) -> None:
    """Each part counts by its rows; eight places share the devices that there are."""
    traced, startup = trained(name)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that places share a device
        traced.write()
        exe.run(startup)
        compiled = fluid.CompiledProgram(traced.main).with_data_parallel(
            loss_name=traced.fetches[0], places=fluid.cpu_places(devices)
        )
        check(name, traced, lambda feed: exe.run(compiled, feed, list(traced.fetches)), 13)


@pytest.mark.parametrize("batch", (4, 5))
def test_a_fetch_is_joined_where_its_batch_is(batch: int) -> None:
    """The symbol says which dimension holds it."""
    w, x = jnp.ones((3, 2)), np.arange(batch * 3, dtype="float32").reshape(batch, 3)
    traced = fluid.trace(
        lambda w, x: ((x @ w).T, x @ w, x.sum()), w, x, state=0, dynamic={"x": ("b",)}
    )
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        traced.write()
        both = fluid.CompiledProgram(traced.main).with_data_parallel(places=fluid.cpu_places(2))
        turned, rows, sums = exe.run(both, {"x": x}, list(traced.fetches))
        np.testing.assert_array_equal(rows, x @ w)
        np.testing.assert_array_equal(turned, (x @ w).T)
        assert sums.shape == (2,) and sums.sum() == x.sum()
        apart = exe.run(both, {"x": x}, list(traced.fetches), return_merged=False)
        assert [len(v) for v in apart] == [2, 2, 2]


@pytest.mark.parametrize(
    ("dynamic", "x", "why"),
    [
        ({"x": (None, "b")}, np.ones((5, 4, 3), "float32"), "leaves open is 1: trace with the"),
        ({}, np.ones((4, 3), "float32"), r"dynamic=\{'x': \('b', None\)\}, or feed a list of 2"),
        ({}, np.float32(2), "one number, .* or feed a list of dicts, one for each device"),
    ],
)
def test_what_does_not_go_in_parts_is_named(dynamic: Any, x: Any, why: str) -> None:
    traced = fluid.trace(lambda p, x: x * p["w"], {"w": jnp.ones(3)}, x, state=0, dynamic=dynamic)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        traced.write()
        both = fluid.CompiledProgram(traced.main).with_data_parallel(places=fluid.cpu_places(2))
        with pytest.raises(fluid.FluidError, match=why):
            exe.run(both, {"x": x}, list(traced.fetches))


def test_a_batch_that_the_program_holds_is_not_split() -> None:
    """A mean over all rows, taken of a part of them, would halve every update."""
    traced = fluid.trace(
        lambda p, x: (x @ p["w"]).mean(), {"w": jnp.ones((3, 2))}, jnp.ones((4, 3)), state=0
    )
    with fluid.program_guard(traced.main, traced.startup):
        fluid.optimizer.SGD(0.1).minimize(traced.main.global_block().var(traced.fetches[0]))
    exe, x = fluid.Executor(), np.ones((4, 3), "float32")
    with fluid.scope_guard(fluid.Scope()):
        traced.write()
        exe.run(traced.startup)
        compiled = fluid.CompiledProgram(traced.main).with_data_parallel(
            loss_name=traced.fetches[0], places=fluid.cpu_places(2)
        )
        refusal = r"'x' goes to 2 devices in parts.*dynamic=\{'x': \('b', None\)\}"
        with pytest.raises(fluid.FluidError, match=refusal):
            exe.run(compiled, {"x": x}, list(traced.fetches))
        with pytest.raises(fluid.FluidError, match=refusal):
            exe.run_steps(compiled, [{"x": x}, {"x": x}], list(traced.fetches))
        exe.run(compiled, [{"x": x}, {"x": x}], list(traced.fetches))  # a batch for each
        np.testing.assert_allclose(
            kept(traced.read()["p.w"]), np.full((3, 2), 1 - 0.1 / 2), rtol=1e-6
        )


@pytest.mark.first(1)
@pytest.mark.parametrize(("name", "devices"), EACH)
def test_parameter_servers_are_one_device(name: str, devices: int) -> None:
    """Sync, parameters and the optimizer's state in blocks over the devices."""
    traced, startup = trained(name)
    first = startup.clone()
    t = fluid.DistributeTranspiler()
    ends = ",".join(f"127.0.0.1:{6170 + i}" for i in range(devices))
    t.transpile(
        0, program=traced.main, pservers=ends, trainers=devices, sync_mode=True,
        startup_program=startup,
    )  # fmt: skip
    parallel = Parallel(Mesh(tuple(jax.devices()[:devices])), on_mesh(t.plan, devices))
    runnable = Runnable(fluid.Program.from_desc(t.plan.main), parallel)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        traced.write()
        exe.run(first)
        check(name, traced, lambda feed: exe.run(runnable, feed, list(traced.fetches)))


@pytest.mark.parametrize("devices", COUNTS)
def test_fleet_is_one_device(devices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("CPU_NUM", str(devices))
    fleet = Collective()
    fleet.init(role_maker.UserDefinedCollectiveRoleMaker(0, ["127.0.0.1:6170"]))
    traced, _ = with_optimizer("mlp", fleet.distributed_optimizer)
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        traced.write()
        exe.run(fleet.startup_program)
        check("mlp", traced, lambda feed: exe.run(fleet.main_program, feed, list(traced.fetches)))


class Wide(nn.Module):
    """Of matrices that parameter servers split."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.Dense(4)(nn.gelu(nn.Dense(512)(nn.gelu(nn.Dense(512)(x)))))


@pytest.mark.first(4)
@pytest.mark.parametrize("name", MODELS)
def test_what_data_parallel_sends_is_the_bound(name: str) -> None:
    """2 (n - 1) / n of the gradients, the least of a sum that all devices get."""
    traced, _ = trained(name)
    held = sum(v.nbytes for v in jax.tree.leaves(made(name)[1]))
    plan = fluid.plan(
        traced.main, (2, 8), batch_per_device=4, strategies="data parallel",
        fetch_list=list(traced.fetches),
    )  # fmt: skip
    for devices in (2, 8):
        assert plan.row(devices, "data parallel").sent == 2 * (devices - 1) / devices * held


@pytest.mark.slow
@pytest.mark.optimized
def test_what_travels_is_what_the_compiled_step_sends() -> None:
    """Of parameter servers a reduce-scatter of the gradients and an all-gather of the parameters,
    each of which passes (n - 1) / n of them on, but for rows that even their blocks out.
    """
    MODELS["wide"] = Wide(), (64,)
    try:
        traced, _ = trained("wide")
        held = sum(v.nbytes for v in jax.tree.leaves(made("wide")[1]))
    finally:
        del MODELS["wide"]
    loss = traced.main.global_block().var(traced.fetches[0])
    for strategy, slack in (("data parallel", 1.0), ("pservers", 1.01)):
        plan = fluid.plan(
            traced.main, 2, batch=BATCH, strategies=strategy, fetch_list=list(traced.fetches)
        )
        row = plan.row(2, strategy)
        assert held <= row.sent <= slack * held  # 2 (n - 1) / n is 1
        step = compiled(traced.main, loss, strategy, 2, BATCH)
        assert dict(row.payload) == payload(step.as_text(), 2)


@pytest.mark.slow
def test_the_planners_table_of_a_flax_transformer() -> None:
    traced, _ = trained("vit")
    _, params, *_ = made("vit")
    held = sum(v.nbytes for v in jax.tree.leaves(params))
    devices = (8, 64, 512, 4096)
    plan = fluid.plan(
        traced.main, devices, batch_per_device=32, strategies=("data parallel", "pservers"),
        links="h100", device="h100", fetch_list=list(traced.fetches),
    )  # fmt: skip
    for count in devices:
        row = plan.row(count, "data parallel")
        assert row.parameters == held
        # every gradient once; a ring sends and receives 2 (n - 1) / n of it
        assert held <= row.payload["all-reduce"] <= held + 64
        assert row.sent == pytest.approx(
            2 * (count - 1) / count * row.payload["all-reduce"], rel=0.01
        )
    each = jax.jit(jax.grad(made("vit")[0])).lower(params, **_rows(32)).cost_analysis()
    assert plan.row(8, "data parallel").flops == pytest.approx(each["flops"], rel=0.15)


def _rows(batch: int) -> dict[str, Any]:
    shape = MODELS["vit"][1]
    return {"x": jnp.ones((batch, *shape)), "y": jnp.zeros(batch, jnp.int32)}


def test_a_step_that_differentiates_by_itself_is_refused_and_split_by_a_mesh_instead() -> None:
    """Nothing would sum its gradients: every device would train by its own part of the batch."""

    def step(params: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(lambda p: ((x @ p["w"] - y) ** 2).mean())(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    x, y = jax.random.normal(jax.random.key(0), (BATCH, 3)), jnp.ones((BATCH, 2))
    params, count = {"w": jnp.ones((3, 2))}, COUNTS[0]
    traced = fluid.trace(step, params, x, y, dynamic={"x": ("b",), "y": ("b",)})
    exe, scope, fetches = fluid.Executor(), fluid.Scope(), list(traced.fetches)
    traced.write(scope)
    for places, refused in ((count, True), (1, False)):
        parallel = fluid.CompiledProgram(traced.main).with_data_parallel(
            fetches[0], places=fluid.cpu_places(places)
        )
        run = lambda: exe.run(parallel, {"x": x, "y": y}, fetches, scope=scope)  # noqa: B023, E731
        if not refused:
            np.testing.assert_allclose(run()[0], [step(params, x, y)[1]], rtol=1e-6)
            continue
        with pytest.raises(fluid.FluidError, match=r"'params\.w' \(.*test_many_devices\.py:\d+\)"):
            run()
    mesh = jax.make_mesh((count,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    rows = jax.NamedSharding(mesh, jax.P("d"))
    halves = jax.device_put((x, y), rows)
    found = jax.jit(traced.step())(params, *halves)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(step(params, x, y)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
