"""Steps that hold images with their channels last: the same values, nothing turned round but at the
edges, decided by the program.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import FluidValueError
from fluidjax.lower.layout import layout_of, predicting, reads_filters_as_they_lie
from fluidjax.lower.step import Step
from fluidjax.runtime.placement import OneDevice

from .nets import fresh

SHAPE = (2, 4, 6, 5)  # of every image in a random net, so that two nets share what was compiled


def conv(x: Any, size: int = 3, groups: int = 1) -> Any:
    return layers.conv2d(x, SHAPE[1], size, padding=size // 2, groups=groups)


def shrunk(x: Any) -> Any:
    return layers.resize_nearest(layers.pool2d(x, 2, "max", 2, ceil_mode=True), out_shape=SHAPE[2:])


def gated(x: Any) -> Any:
    """Squeeze and excite: a number for each channel of each sample."""
    gate = layers.reduce_max(x, dim=[2, 3])
    return layers.elementwise_mul(x, layers.clip(gate, -1.0, 1.0), axis=0)


def parts(x: Any) -> Any:
    return layers.concat(layers.split(x, 2, dim=1)[::-1], axis=1)


def cut(x: Any) -> Any:
    return layers.slice(layers.concat([x, x], axis=2), [2, 1], [3, 0], [3 + SHAPE[2], 4])


def padded(x: Any) -> Any:
    return layers.slice(
        layers.pad2d(x, [1, 0, 2, 1], mode="reflect"), [2, 3], [0, 1], [SHAPE[2], 1 + SHAPE[3]]
    )


def turned(x: Any) -> Any:
    """Ops that need channels first."""
    return layers.reshape(
        layers.transpose(layers.transpose(x, [0, 3, 1, 2]), [0, 2, 3, 1]), [-1, *SHAPE[1:]]
    )


EXACT = {
    "conv": conv, "1x1": lambda x: conv(x, size=1), "groups": lambda x: conv(x, groups=2),
    "depthwise": lambda x: conv(x, groups=4),
    "transposed": lambda x: layers.conv2d_transpose(x, 4, filter_size=3, padding=1, bias_attr=False),
    "relu": layers.relu, "abs": layers.abs, "scale": lambda x: layers.scale(x, -2.0, 1.0), "shrunk": shrunk, "gated": gated, "parts": parts,
    "cut": cut, "padded": padded, "turned": turned, "max pool": lambda x: layers.pool2d(x, 3, "max", 1, 1),
    "dropped": lambda x: layers.dropout(x, 0.5), "shuffled": lambda x: layers.shuffle_channel(x, 2),
    "clip": lambda x: layers.clip(x, -9.0, 9.0), "joined": lambda x: conv(layers.concat([x, layers.relu(x)], axis=1), size=1),
    "bias": lambda x: layers.elementwise_add(x, layers.create_parameter([4], "float64"), axis=1),
    "prelu": lambda x: layers.prelu(x, "channel"), "sum": lambda x: layers.sum([x, layers.relu(x), x]),
}  # fmt: skip
ROUNDED = {
    "batch_norm": layers.batch_norm, "group_norm": lambda x: layers.group_norm(x, 2), "instance_norm": layers.instance_norm,
    "sigmoid": layers.sigmoid, "softmax": lambda x: layers.softmax(x, axis=1), "mean pool": lambda x: layers.pool2d(x, 3, "avg", 1, 1),
    "bilinear": lambda x: layers.resize_bilinear(layers.pool2d(x, 2, "avg", 2, ceil_mode=True), out_shape=SHAPE[2:]),
    "global": lambda x: layers.elementwise_mul(x, layers.sigmoid(layers.pool2d(x, pool_type="avg", global_pooling=True))),
    "normalised": lambda x: layers.l2_normalize(x, axis=1),
}  # fmt: skip
PAIRS = {
    "add": layers.elementwise_add,
    "max": layers.elementwise_max,
    "minus": layers.elementwise_sub,
}
NETS = st.lists(
    st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)), min_size=2, max_size=5
)


def built(recipe: list[tuple[int, int, int]], kinds: dict[str, Any]) -> tuple[Step, dict[str, Any]]:
    """A training step that fetches every value it computes, gradients too, and its state: whole
    numbers, whose sums are exact.
    """
    with fresh() as (main, _):
        values = [conv(fluid.data("x", [None, *SHAPE[1:]], "float64"))]
        for kind, first, second in recipe:
            value = values[first % len(values)]
            if kind % 4 == 0:
                values.append(list(PAIRS.values())[kind % 3](value, values[second % len(values)]))
            else:
                values.append(list(kinds.values())[second % len(kinds)](value))
        loss = layers.reduce_sum(layers.sum(values))
        fluid.optimizer.SGD(1.0).minimize(loss)
    desc = main.desc
    names = tuple(dict.fromkeys(n for op in desc.blocks[0].ops for n in op.writes))
    step, rng = Step(desc, names), np.random.default_rng(7)
    types = {n: desc.blocks[0].vars[n] for n in step.reads}
    return step, {n: rng.integers(-2, 3, v.shape).astype(v.dtype) for n, v in types.items()}


def both(step: Step, state: dict[str, Any]) -> list[tuple[dict[str, Any], list[Any]]]:
    """What the step gives, as the program has its values and with channels last."""
    feed = {"x": np.random.default_rng(1).integers(-3, 4, SHAPE).astype("float64")}
    with jax.enable_x64(True):
        return [
            jax.jit(replace(step, channels_last=last))(state, feed, jax.random.key(5))
            for last in (False, True)
        ]


@settings(max_examples=5, deadline=None)
@given(NETS)
def test_whole_numbers_are_equal_bit_for_bit(recipe: list[tuple[int, int, int]]) -> None:
    """Every value and gradient, whatever the order of sums; dropped elements are the same ones."""
    step, state = built(recipe, EXACT)
    (kept, values), (kept_last, values_last) = both(step, state)
    for name, want, got in [
        *zip(step.fetches, values, values_last, strict=True),
        *((n, kept[n], kept_last[n]) for n in kept),
    ]:
        assert want.shape == got.shape and (np.asarray(want) == np.asarray(got)).all(), name


@pytest.mark.once
@settings(max_examples=5, deadline=None)
@given(NETS)
def test_other_numbers_are_equal_but_for_rounding(recipe: list[tuple[int, int, int]]) -> None:
    step, state = built(recipe, ROUNDED)
    (_, values), (_, values_last) = both(step, state)
    for name, want, got in zip(step.fetches, values, values_last, strict=True):
        np.testing.assert_allclose(
            got, want, rtol=1e-7, atol=1e-7 * float(np.abs(want).max(initial=1)), err_msg=name
        )


def residual(x: Any, filters: int, stride: int) -> Any:
    """As in a ResNet."""
    short = normed(x, filters, 1, stride) if stride > 1 else x
    return layers.relu(
        layers.elementwise_add(
            normed(layers.relu(normed(x, filters, 3, stride)), filters, 3), short
        )
    )


def normed(x: Any, filters: int, size: int, stride: int = 1, groups: int = 1) -> Any:
    x = layers.conv2d(x, filters, size, stride, size // 2, groups=groups, bias_attr=False)
    return layers.batch_norm(x)


def resnet(x: Any) -> Any:
    x = layers.pool2d(layers.relu(normed(x, 8, 3)), 3, "max", 2, 1)
    x = residual(residual(x, 8, 1), 16, 2)
    return layers.fc(layers.pool2d(x, pool_type="avg", global_pooling=True), 5)


def mobilenet(x: Any) -> Any:
    x = layers.relu6(normed(x, 8, 3, 2))
    for filters, stride in ((16, 1), (16, 2)):
        x = layers.relu6(normed(x, x.shape[1], 3, stride, groups=x.shape[1]))
        x = layers.relu6(normed(x, filters, 1))
    gate = layers.fc(layers.reduce_mean(x, dim=[2, 3]), 16, act="sigmoid")
    return layers.fc(layers.reduce_mean(layers.elementwise_mul(x, gate, axis=0), dim=[2, 3]), 5)


def densenet(x: Any) -> Any:
    x = normed(x, 8, 3)
    for _ in range(2):
        x = layers.concat(
            [x, layers.conv2d(layers.relu(layers.batch_norm(x)), 4, 3, padding=1, bias_attr=False)],
            axis=1,
        )
    x = layers.pool2d(normed(layers.relu(x), 8, 1), 2, "avg", 2)
    return layers.fc(layers.pool2d(x, pool_type="avg", global_pooling=True), 5)


def unet(x: Any) -> Any:
    down = layers.relu(normed(x, 8, 3))
    inner = layers.pad2d(layers.pool2d(down, 2, "max", 2), [1, 1, 1, 1], mode="reflect")
    inner = layers.leaky_relu(layers.instance_norm(layers.conv2d(inner, 8, 3)), 0.1)
    up = layers.concat([down, layers.resize_bilinear(inner, scale=2.0)], axis=1)
    return layers.fc(layers.reduce_mean(layers.conv2d(up, 4, 1), dim=[2, 3]), 5)


def turns(build: Any, training: bool, channels_last: bool) -> int:
    """How many arrays XLA turns from channels first to last or back: those of an image, a filter is
    turned otherwise.
    """
    with fresh() as (main, _):
        out = build(fluid.data("x", [None, 3, 16, 16]))
        if training:
            fluid.optimizer.SGD(0.1).minimize(layers.mean(layers.square(out)))
    step = Step(main.desc, (out.name,), channels_last=channels_last)
    vars = main.desc.blocks[0].vars
    state = {n: jax.ShapeDtypeStruct(vars[n].shape, vars[n].dtype) for n in step.reads}
    with jax.enable_x64(True):
        lowered = jax.jit(lambda state, feed: step(state, feed)).lower(
            state, {"x": jax.ShapeDtypeStruct((2, 3, 16, 16), "float32")}
        )
    # a transpose by name, with XLA's layouts; the copy behind it moves the elements
    text = lowered.compile().as_text()
    return len(re.findall(r"transpose\([^)]*\), dimensions=\{(?:0,2,3,1|0,3,1,2)\}", text))


@pytest.mark.first(1)
@pytest.mark.parametrize("build", [resnet, mobilenet, densenet, unet])
def test_only_the_fed_image_is_turned(build: Any) -> None:
    """Forward and backward. What leaves is a matrix by then; without the layout XLA turns around
    every convolution.

    The graph that XLA's passes leave does not depend on how hard its code generator tries.
    """
    assert turns(build, training=True, channels_last=True) <= 1
    if build is resnet:
        assert turns(build, training=True, channels_last=False) > 10


@pytest.mark.parametrize(
    ("groups", "size", "last"), [(4, 3, False), (1, 3, False), (1, 1, False), (1, 3, True)]
)
def test_a_filter_that_is_only_read_is_held_as_it_is_read(
    monkeypatch: pytest.MonkeyPatch, groups: int, size: int, last: bool
) -> None:
    """And nobody sees it: values, fetches, the scope, writes to it, and another program that trains
    it.
    """
    with fresh(2) as (main, startup):
        x = fluid.data("x", [None, 5, 5, 4] if last else [None, 4, 5, 5])
        attr = {
            "groups": groups,
            "param_attr": fluid.ParamAttr(name="w"),
            "bias_attr": False,
            "data_format": "NHWC" if last else "NCHW",
        }
        h = layers.conv2d(x, 8, size, padding=size // 2, **attr)
        out = layers.reduce_sum(h, dim=[1, 2] if last else [2, 3])
        test = main.clone(for_test=True)
        fluid.optimizer.SGD(0.1).minimize(layers.mean(out))
    feed = {
        "x": (
            np.random.default_rng(0)
            .integers(-3, 4, (2, 5, 5, 4) if last else (2, 4, 5, 5))
            .astype(np.float32)
        )
    }
    whole = np.arange(32 // groups * size**2, dtype=np.float32).reshape(8, 4 // groups, size, size)

    def course(held: bool) -> list[Any]:
        if not held:
            monkeypatch.setattr(OneDevice, "reorders", False)
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(startup, scope=scope)
        seen: list[Any] = []
        for change in (None, "set", "train"):
            if change == "set":
                scope.var("w").set(whole)
            if change == "train":
                exe.run(main, feed=feed, scope=scope)
            seen += [*exe.run(test, feed=feed, fetch_list=[out, "w"], scope=scope), scope.get("w")]
            (compiled,) = exe.compiled_steps(test)
            assert compiled.layouts is not None and compiled.layouts[1].turned == (
                {"w": (2, 3, 1, 0)} if held else {}
            )
            (array,) = compiled.bind(scope).constant
            assert array.shape == ((*whole.shape[2:], 4 // groups, 8) if held else whole.shape)
        return seen

    for i, (held, plain) in enumerate(zip(course(True), course(False), strict=True)):
        # i == 3: sums of whole numbers
        np.testing.assert_allclose(
            held, plain, rtol=0 if i == 3 else 1e-5, atol=0 if i == 3 else 1e-4
        )


@pytest.mark.parametrize(("outs", "reads"), [(32, True), (24, False)])
def test_narrow_filters_are_read_by_kernels_that_copy_them(outs: int, reads: bool) -> None:
    with fresh() as (main, _):
        out = layers.conv2d(fluid.data("x", [None, 8, 6, 6]), outs, 3)
        trained = main.clone()
    step = predicting(Step(main.desc, (out.name,), channels_last=True))
    assert step.filters_turned and reads_filters_as_they_lie(step) == reads
    with fluid.program_guard(trained):
        fluid.optimizer.SGD(0.1).minimize(layers.mean(trained.global_block().var(out.name)))
    assert not predicting(Step(trained.desc, (out.name,), channels_last=True)).filters_turned


def step_of(data_format: str) -> Step:
    with fresh() as (main, _):
        x = fluid.data("x", [None, 3, 8, 8] if data_format == "NCHW" else [None, 8, 8, 3])
        loss = layers.mean(layers.conv2d(x, 4, 3, data_format=data_format))
        fluid.optimizer.SGD(0.1).minimize(loss)
    return Step(main.desc, (loss.name,))


@pytest.mark.parametrize(
    ("data_format", "platform", "asked", "last", "why"),
    [
        ("NCHW", "cpu", "auto", True, "1 convolution on a CPU"),
        ("NCHW", "gpu", "auto", False, "on a gpu XLA chooses"),
        ("NHWC", "cpu", "auto", False, "no convolution has its channels first"),
        ("NCHW", "gpu", "on", True, "FLAGS_channels_last is on"),
        ("NCHW", "cpu", "off", False, "FLAGS_channels_last is off"),
    ],
)
def test_the_program_decides(
    data_format: str, platform: str, asked: str, last: bool, why: str
) -> None:
    fluid.set_flags({"FLAGS_channels_last": asked})
    try:
        found = layout_of(step_of(data_format), platform)
    finally:
        fluid.set_flags({"FLAGS_channels_last": "auto"})
    assert found.channels_last == last and why in str(found)


def test_explain_tells_it() -> None:
    with fresh() as (main, _):
        layers.conv2d(fluid.data("x", [None, 3, 8, 8]), 4, 3)
        told = main.explain().layout
        assert "images are held" in told and told in str(main.explain())
    with fresh() as (main, _):
        layers.fc(fluid.data("x", [None, 3]), 4)
        assert main.explain().layout == ""


def test_a_flag_of_another_value_is_refused() -> None:
    fluid.set_flags({"FLAGS_channels_last": "nhwc"})
    try:
        with pytest.raises(FluidValueError, match="is auto, on or off, not 'nhwc'"):
            layout_of(step_of("NCHW"), "cpu")
    finally:
        fluid.set_flags({"FLAGS_channels_last": "auto"})


def test_a_filter_that_is_held_otherwise_keeps_its_dtype() -> None:
    """float64 stays float64 where a step holds it in another order of axes."""
    with fresh(), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [2, 4, 4, 3], "float64")
        out = layers.conv2d(x, 2, 3, param_attr="w", data_format="NHWC")
        exe, exact = fluid.Executor(), np.linspace(0, 1, 54).reshape(2, 3, 3, 3)
        exe.run(fluid.default_startup_program())
        held = fluid.global_scope().find_var("w").get_tensor()
        held.set(exact, fluid.CPUPlace())
        exe.run(feed={"x": np.ones((2, 4, 4, 3))}, fetch_list=[out])
        found = np.array(fluid.global_scope().find_var("w").get_tensor())
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, exact)
