"""Functions over a mesh of devices as programs: jax.shard_map, by a step and behind an Executor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import fluidjax as fluid
from fluidjax.errors import FluidValueError
from fluidjax.ir import jsonio
from fluidjax.ir.text import parse, to_text
from fluidjax.passes import run

TABLE = np.arange(5000, dtype=np.float32)  # too large to stand in a block
D = PartitionSpec("d")


@pytest.fixture
def split() -> Any:
    """A function over two devices, of which each has a part of the argument."""
    if len(jax.devices()) < 2:
        pytest.skip("there is one device")
    mesh = jax.make_mesh((2,), ("d",), (AxisType.Auto,), devices=jax.devices()[:2])

    def body(x: Any) -> Any:
        return x * 2 + jax.lax.psum(x, "d") + jnp.take(TABLE, 3)

    return jax.shard_map(body, mesh=mesh, in_specs=D, out_specs=D)


@pytest.mark.slow
def test_a_large_constant_of_what_each_device_runs_is_an_argument(split: Any) -> None:
    def loss(w: Any, x: Any) -> Any:
        return split(w * x).sum()

    w, x = np.arange(8, dtype=np.float32), np.full(8, 2, np.float32)
    traced = fluid.trace(loss, w, x, state=0)
    assert [v.shape for v in traced.state.values()] == [(8,), (5000,)]
    assert parse(to_text(traced.main.desc)) == traced.main.desc
    assert jax.jit(traced.step())(w, x) == jax.jit(loss)(w, x)
    with fluid.program_guard(traced.main, traced.startup):
        target = traced.main.global_block().var(traced.fetches[0])
        ((_, gradient),) = fluid.backward.append_backward(target, parameter_list=["w"])
    traced.write()
    (found,) = fluid.Executor().run(traced.main, feed={"x": x}, fetch_list=[gradient])
    np.testing.assert_array_equal(found, jax.grad(loss)(w, x))


def test_an_executor_runs_it_on_the_devices_of_its_mesh(split: Any) -> None:
    def step(state: Any, x: Any) -> Any:
        y = split(state["w0"] * x)
        return {name: w + 0.1 * y for name, w in state.items()}, y.sum()

    state = {f"w{i}": np.full(8, i, np.float32) for i in range(40)}
    x = np.arange(8, dtype=np.float32)
    traced, exe = fluid.trace(step, state, x), fluid.Executor()
    traced.write()
    feeds = [x, jnp.asarray(x), jax.device_put(x, jax.devices()[0]), x]
    for feed in feeds[:3]:
        state, expected = jax.jit(step)(state, x)
        (found,) = exe.run(traced.main, feed={"x": feed}, fetch_list=list(traced.fetches))
        np.testing.assert_array_equal(found, expected)
    state, expected = jax.jit(step)(state, x)
    (found,) = exe.run_steps(traced.main, {"x": x[None]}, fetch_list=list(traced.fetches))
    np.testing.assert_array_equal(found[0], expected)
    kept = traced.read()
    for name, value in state.items():
        np.testing.assert_array_equal(kept[f"state.{name}"], value)


def two(*names: str, kind: AxisType = AxisType.Auto) -> Any:
    if len(jax.devices()) < 2:
        pytest.skip("there is one device")
    sizes = (2, *(1,) * (len(names) - 1))
    return jax.make_mesh(sizes, names, (kind,) * len(names), devices=jax.devices()[:2])


def hinted() -> tuple[Any, Any, Any]:
    """A loss with hints at how its values lie, and arguments."""
    mesh = two("d", "m")

    def loss(w: Any, x: Any) -> Any:
        spec = NamedSharding(mesh, PartitionSpec("d", PartitionSpec.UNCONSTRAINED))
        y = jax.lax.with_sharding_constraint(x @ w, spec)
        whole = jax.lax.with_sharding_constraint(jnp.tanh(y), NamedSharding(mesh, PartitionSpec()))
        return (whole**2).mean()

    return loss, np.ones((3, 5), np.float32), np.arange(24, dtype=np.float32).reshape(8, 3) / 24


def test_a_hint_at_a_mesh_is_kept_and_taken_up_where_the_mesh_is() -> None:
    loss, w, x = hinted()
    traced = fluid.trace(loss, w, x, state=0)
    desc, text = traced.main.desc, to_text(traced.main.desc)
    assert 'mesh_axes=("d", "m"), spec="d,?"' in text and traced.report.dropped == ()
    assert parse(text) == desc == jsonio.from_json(jsonio.to_json(desc))
    expected = jax.jit(loss)(w, x)
    step = jax.jit(traced.step())
    assert step(w, x) == expected and "sharding" not in step.lower(w, x).as_text()
    with jax.set_mesh(two("d", "m")):
        assert np.isclose(step(w, x), expected, rtol=1e-6)
        lowered = step.lower(w, x).as_text()
    # the product is split, what follows is whole again
    assert lowered.count("sdy.sharding_constraint") == 2 and '[{"d"}, {?}]' in lowered
    with jax.set_mesh(two("m")), pytest.raises(FluidValueError, match=r"has no d"):
        step(w, x)


def test_gradients_and_devices_go_through_a_hint() -> None:
    loss, w, x = hinted()
    traced = fluid.trace(loss, w, x, state=0, dynamic={"x": ("b", None)})
    with fluid.program_guard(traced.main, traced.startup):
        target = traced.main.global_block().var(traced.fetches[0])
        fluid.optimizer.SGD(0.1).minimize(target)
    program = fluid.CompiledProgram(traced.main).with_data_parallel(
        loss_name=target.name, places=fluid.cpu_places(2)
    )
    traced.write()
    exe = fluid.Executor()
    exe.run(traced.startup)
    exe.run(program, feed={"x": x}, fetch_list=[target])
    after = np.asarray(fluid.global_scope().find_var("w").get_tensor())
    np.testing.assert_allclose(after, w - 0.1 * jax.grad(loss)(w, x), rtol=1e-6)


def test_a_plan_says_that_it_does_not_follow_hints() -> None:
    loss, w, x = hinted()
    traced = fluid.trace(loss, w, x, state=0, dynamic={"x": ("b", None)})
    with fluid.program_guard(traced.main, traced.startup):
        target = traced.main.global_block().var(traced.fetches[0])
        fluid.optimizer.SGD(0.1).minimize(target)
    given: dict[str, Any] = {"batch_per_device": 4, "fetch_list": [target]}
    plan = fluid.plan(traced.main, (2, 64), **given)
    assert "hints: 2 of with_sharding_constraint (d,? -)" in str(plan) and plan.row(64).payload
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        traced.write()
        exe.run(traced.startup)
        with jax.set_mesh(two("d", "m")):
            with pytest.raises(FluidValueError, match=r"plan .* a mesh over d, m is in force"):
                fluid.plan(traced.main, 2, **given)
            with pytest.raises(FluidValueError, match=r"Executor .* a mesh over d, m is in force"):
                exe.run(traced.main, {"x": x}, [target])
        exe.run(traced.main, {"x": x}, [target])


def test_a_hint_is_nothing_to_fluid_and_to_onnx(tmp_path: Path) -> None:
    loss, w, x = hinted()
    traced = fluid.trace(loss, w, x, state=0)
    raised = run("raise_to_fluid", traced.main.desc, traced.state, keep=traced.fetches)
    kinds = [op.type for op in raised.desc.blocks[0].ops]
    assert kinds == ["mul", "tanh", "square", "reduce_mean"] and not raised.refusals
    pytest.importorskip("onnx", reason="pip install 'fluidjax[export]'")
    runtime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    fluid.export(traced, tmp_path / "net.onnx")
    (found,) = runtime.InferenceSession(tmp_path / "net.onnx").run(None, {"x": x})
    np.testing.assert_allclose(found, loss(w, x), rtol=1e-6)
