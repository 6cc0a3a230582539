"""JAX's transforms of a step: what `fluid.step_fn` gives is exported for any batch, mapped over
devices, and asks for no needless key.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import export
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import fluidjax as fluid
from fluidjax import layers

from ..nets import fresh


def classes(x: Any) -> Any:
    """Convolutions of all kinds (grouped, depthwise, 1x1, strided), poolings, batch_norm, dropout."""
    h = layers.pool2d(layers.conv2d(x, 6, 5, padding=2, act="relu"), 2, pool_stride=2)
    h = layers.batch_norm(layers.conv2d(h, 16, 3, groups=2, stride=2), act="relu")
    h = layers.pool2d(
        layers.conv2d(h, 16, 3, groups=16, padding=1), 2, pool_type="avg", pool_stride=2
    )
    h = layers.elementwise_add(h, layers.conv2d(h, 16, 1))
    return layers.fc(layers.dropout(h, 0.3), 10)


def masks(x: Any) -> Any:
    """A small U-net: any height and width that divide by 4."""
    h = layers.conv2d(x, 8, 3, padding=1, act="relu")
    up = layers.conv2d_transpose(layers.pool2d(h, 2, pool_stride=2), 8, filter_size=2, stride=2)
    return layers.conv2d(layers.concat([h, up], 1), 3, 1)


def built(net: Any, size: int | None, train: bool) -> tuple[fluid.Program, Any, dict[str, Any]]:
    """The program, what is fetched, and its state."""
    with fresh(3) as (main, startup):
        out = net(fluid.data("x", [None, 4, size, size]))
        if net is classes:
            loss = layers.mean(
                layers.softmax_with_cross_entropy(out, fluid.data("y", [None, 1], "int64"))
            )
        else:
            loss = layers.mean(layers.square(out))
        program = main if train else main.clone(for_test=True)
        if train:
            fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    scope = fluid.Scope()
    fluid.Executor().run(startup, scope=scope)
    return program, loss if train else out, fluid.read_state(program, scope)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("net", "size", "train"),
    [(classes, 16, True), (masks, None, False)],
    ids=["training classes", "masks of any size"],
)
def test_a_step_is_exported_for_any_batch(net: Any, size: int | None, train: bool) -> None:
    """One module serves every batch, and gives what the step gives."""
    program, fetch, state = built(net, size, train)
    step = fluid.step_fn(program, [fetch])
    keys = [jax.random.key(5)] if train and net is classes else []
    with jax.enable_x64(True):
        b, h, w = export.symbolic_shape("b, 4*h, 4*w")
        types = {"x": jax.ShapeDtypeStruct((b, 4, size or h, size or w), "float32")}
        if train and net is classes:
            types["y"] = jax.ShapeDtypeStruct((b, 1), "int64")
        exported = export.export(jax.jit(lambda state, feed: step(state, feed, *keys)))(
            state, types
        )
        for batch in (3,):
            feed = {
                "x": (
                    np.linspace(-1, 1, batch * 4 * 16 * 16, dtype=np.float32).reshape(
                        batch, 4, 16, 16
                    )
                )
            }
            feed["x"] = feed["x"] if size is None else feed["x"][..., :size, :size]
            feed.update({"y": np.full((batch, 1), 3)} if "y" in types else {})
            for got, want in zip(
                jax.tree.leaves(exported.call(state, feed)),
                jax.tree.leaves(jax.jit(step)(state, feed, *keys)),
                strict=True,
            ):
                np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-5)


def test_a_training_step_is_mapped_over_devices() -> None:
    """In jax.shard_map as it checks by default: JAX adds up the gradients of parameters that all
    devices share.
    """
    with fresh(3) as (main, startup):
        x, y = fluid.data("x", [None, 1, 6, 6]), fluid.data("y", [None, 1], "int64")
        h = layers.fc(layers.pool2d(layers.conv2d(x, 4, 3, act="relu"), 2, pool_stride=2), 3)
        loss = layers.mean(layers.softmax_with_cross_entropy(h, y))
        fluid.optimizer.Adam(0.1).minimize(loss)
    scope = fluid.Scope()
    fluid.Executor().run(startup, scope=scope)
    state, step = fluid.read_state(main, scope), fluid.step_fn(main, [loss])
    feed = {
        "x": np.linspace(-1, 1, 144, dtype=np.float32).reshape(4, 1, 6, 6),
        "y": np.array([[0], [1], [2], [0]]),
    }
    mesh = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Auto,))
    with jax.enable_x64(True):
        mapped = jax.jit(
            jax.shard_map(
                lambda s, f: step(s, f)[1][0], mesh=mesh, in_specs=(P(), P("d")), out_specs=P("d")
            )
        )
        found = mapped(state, feed)
        one = jax.jit(lambda s, f: step(s, f)[1][0])
        alone = [one(state, {n: v[i : i + 2] for n, v in feed.items()}) for i in (0, 2)]
    np.testing.assert_allclose(found, np.concatenate(alone), rtol=1e-5)


def test_a_mesh_of_explicit_axes_takes_what_is_split_already() -> None:
    """As jax.make_mesh makes it by default, from a step as from any function."""
    with fresh(3) as (main, startup):
        loss = layers.mean(layers.square(layers.fc(fluid.data("x", [None, 3]), 1)))
        fluid.optimizer.SGD(0.1).minimize(loss)
    scope = fluid.Scope()
    fluid.Executor().run(startup, scope=scope)
    state, step = fluid.read_state(main, scope), fluid.step_fn(main, [loss])
    mesh, x = jax.make_mesh((2,), ("d",)), np.arange(12, dtype=np.float32).reshape(4, 3)
    split = jax.device_put(x, NamedSharding(mesh, P("d")))

    def mapped(one: Any) -> Any:
        return jax.jit(jax.shard_map(one, mesh=mesh, in_specs=(P(), P("d")), out_specs=P("d")))

    def plain(s: Any, x: Any) -> Any:
        return (x @ s["fc_0.w_0"]).mean().reshape(1)

    found = mapped(lambda s, x: step(s, {"x": x})[1][0])
    for one in (mapped(plain), found):
        with pytest.raises(ValueError, match="does not match the specs of the input"):
            one(state, x)
    alone = [step(state, {"x": x[i : i + 2]})[1][0] for i in (0, 2)]
    np.testing.assert_allclose(found(state, split), np.concatenate(alone), rtol=1e-5)


def test_a_test_program_asks_for_no_key() -> None:
    """Of ops that draw only in training: dropout, an LSTM with dropout between its layers."""
    with fresh(3) as (main, startup):
        x = fluid.data("x", [None, 3, 4])
        zeros = layers.fill_constant([2, 3, 4], "float32", 0.0)
        h = layers.lstm(
            layers.dropout(layers.transpose(x, [1, 0, 2]), 0.5),
            zeros,
            zeros,
            3,
            4,
            2,
            dropout_prob=0.4,
        )[0]
        out = layers.mean(layers.dropout(h, 0.3, dropout_implementation="upscale_in_train"))
    feed = {"x": np.ones((3, 3, 4), np.float32)}
    scope, test = fluid.Scope(), main.clone(for_test=True)
    fluid.Executor().run(startup, scope=scope)
    state = fluid.read_state(test, scope)
    first, second = (
        jax.jit(fluid.step_fn(test, [out]))(state, feed, *key)[1][0]
        for key in ([], [jax.random.key(7)])
    )
    np.testing.assert_array_equal(first, second)
    with pytest.raises(fluid.FluidError, match="key"):
        fluid.step_fn(main, [out])(state, feed)


@pytest.mark.slow
def test_the_gradient_of_a_cross_entropy_outside_of_x64() -> None:
    """jax.grad of the step, whose labels are int64: softmax(x) - one_hot(y)."""
    with fresh(3) as (main, _):
        x, y = fluid.data("x", [3, 4]), fluid.data("y", [3, 1], "int64")
        out = layers.softmax_with_cross_entropy(x, y)
    step, labels = fluid.step_fn(main, [out]), np.array([[0], [1], [3]])
    logits = np.linspace(0.1, 0.9, 12, dtype=np.float32).reshape(3, 4)
    found = jax.grad(lambda v: step({}, {"x": v, "y": labels})[1][0].sum())(logits)
    np.testing.assert_allclose(
        found, jax.nn.softmax(logits) - np.eye(4, dtype=np.float32)[labels[:, 0]], atol=1e-6
    )


def pooled(x: Any) -> Any:
    """Pools of all kinds, whose windows overlap, reach out or are cut; strided and padded
    convolutions.
    """
    h = layers.conv2d(x, 4, 3, stride=2, padding=1, act="relu")
    parts = [
        layers.pool2d(h, 3, pool_stride=2, pool_padding=1),
        layers.pool2d(h, 3, "avg", pool_stride=2, pool_padding=1),
        layers.pool2d(h, 3, "avg", pool_stride=2, pool_padding="SAME"),
        layers.conv2d(h, 4, 3, stride=2, padding="SAME"),
        layers.adaptive_pool2d(h, 2, "avg"),
        layers.resize_bilinear(h, scale=2.0),
    ]
    whole = [
        layers.pool2d(layers.transpose(p, [0, 1, 3, 2]), 1, "avg", global_pooling=True)
        for p in parts
    ]
    return layers.flatten(layers.concat(whole, 1))


@pytest.mark.slow
def test_windows_over_any_height_and_width() -> None:
    """A training step of pools and convolutions is exported once for images of all sizes."""
    program, fetch, state = built(pooled, None, True)
    step = fluid.step_fn(program, [fetch])
    b, h, w = export.symbolic_shape("b, h, w", constraints=("h >= 16", "w >= 16"))
    exported = export.export(jax.jit(lambda s, x: step(s, {"x": x})))(
        state, jax.ShapeDtypeStruct((b, 4, h, w), "float32")
    )
    x = np.random.RandomState(0).randn(2, 4, 19, 18).astype(np.float32)
    for got, want in zip(
        jax.tree.leaves(exported.call(state, x)),
        jax.tree.leaves(jax.jit(step)(state, {"x": x})),
        strict=True,
    ):
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-5)


def recurrent(x: Any) -> Any:
    """A StaticRNN, whose memory begins with zeros that all devices share."""
    rows = layers.transpose(layers.reshape(layers.fc(x, 4, act="tanh"), [-1, 2, 2]), [1, 0, 2])
    rnn = layers.StaticRNN()
    with rnn.step():
        row, memory = (
            rnn.step_input(rows),
            rnn.memory(shape=[-1, 4], batch_ref=rows, ref_batch_dim_idx=1),
        )
        new = layers.fc([row, memory], 4, act="tanh")
        rnn.update_memory(memory, new)
        rnn.output(new)
    return rnn()


def convolved(x: Any) -> Any:
    """Ops whose gradients are functions of their own, given a gradient that is the same everywhere."""
    h = layers.conv2d(layers.reshape(layers.fc(x, 32), [-1, 2, 4, 4]), 3, 3, act="relu")
    return layers.conv2d_transpose(layers.pool2d(layers.batch_norm(h), 2, "avg"), 2, filter_size=2)


@pytest.mark.first(1)
@pytest.mark.parametrize("net", [recurrent, convolved])
def test_devices_share_the_parameters_of_a_mapped_step(net: Any) -> None:
    """The parameters that a mapped step gives are the same on all devices: moved by the sum of the
    devices' gradients.
    """
    with fresh(3) as (main, startup):
        loss = layers.mean(net(fluid.data("x", [None, 3])))
        _, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
    scope = fluid.Scope()
    fluid.Executor().run(startup, scope=scope)
    state, step = fluid.read_state(main, scope), fluid.step_fn(main, [loss])
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    names = [p.name for p, _ in pairs]

    def trained(state: Any, x: Any) -> Any:
        new = step(state, {"x": x})[0]
        return {n: new[n] for n in names}

    mesh = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Auto,))
    found = jax.jit(jax.shard_map(trained, mesh=mesh, in_specs=(P(), P("d")), out_specs=P()))(
        state, x
    )
    alone = [jax.jit(trained)(state, x[i : i + 2]) for i in (0, 2)]
    for n in names:
        want = state[n] + sum(a[n] - state[n] for a in alone)
        np.testing.assert_allclose(found[n], want, rtol=1e-4, atol=1e-5, err_msg=n)


def test_every_loop_of_an_op_goes_through_loops() -> None:
    """lax.scan and its like know nothing of values that vary among devices; fluidjax/ops/loops.py
    does.
    """
    bare = re.compile(r"\blax\.(scan|while_loop|fori_loop|cond|switch)\(")
    root = Path(fluid.__file__).parent
    files = [
        f for room in ("ops", "lower") for f in (root / room).rglob("*.py") if f.name != "loops.py"
    ]
    assert len(files) > 200
    assert [f.name for f in files if bare.search(f.read_text())] == []
