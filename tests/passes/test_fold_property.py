"""Random chains of linear and affine ops: folded programs compute what they did; a broken fold is
caught.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax import layers, passes
from fluidjax.ir import edit
from fluidjax.passes import affine
from tests.examples import examples

from .trained import Net, net

PIPELINES = (
    "fuse_batch_norm(probe=False)",
    "fuse_conv_affine(probe=False)",
    "fuse_batch_norm(probe=False),fuse_conv_affine(probe=False),dce",
)
STEPS = st.one_of(
    st.tuples(st.just("conv"), st.sampled_from([1, 2]), st.booleans()),
    st.tuples(st.just("transpose"), st.sampled_from([1, 2]), st.booleans()),
    st.tuples(
        st.just("norm"), st.sampled_from([1e-5, 1e-2, 0.5]), st.sampled_from([None, "relu", "abn"])
    ),
    st.tuples(st.just("mul"), st.sampled_from(["channel", "one", "column"]), st.none()),
    st.tuples(st.just("add"), st.sampled_from(["channel", "one", "column"]), st.none()),
    st.tuples(st.just("scale"), st.floats(-2, 2, width=16), st.booleans()),
    st.tuples(st.just("branch"), st.integers(0, 3), st.none()),
)


def _step(step: tuple[Any, ...], values: list[Any]) -> Any:
    kind, a, b = step
    x = values[-1]
    if kind == "conv":
        return layers.conv2d(x, 4, 3, padding=1, groups=a, bias_attr=None if b else False)
    if kind == "transpose":
        return layers.conv2d_transpose(
            x, 4, filter_size=3, padding=1, groups=a, bias_attr=None if b else False
        )
    if kind == "norm":
        if b == "abn":
            return layers.inplace_abn(x, act="leaky_relu", epsilon=a)
        return layers.batch_norm(x, epsilon=a, act=b)
    if kind in ("mul", "add"):
        shape = {"channel": [4], "one": [1], "column": [4, 1, 1]}[a]
        y = layers.create_parameter(shape, "float32")
        return getattr(layers, f"elementwise_{kind}")(x, y, axis=1 if a == "channel" else -1)
    if kind == "scale":
        return layers.scale(x, a, bias=0.5, bias_after_scale=b)
    return layers.elementwise_add(x, values[a % len(values)])


def build(recipe: list[tuple[Any, ...]]) -> Net:
    def network(x: Any) -> Any:
        values = [x]
        for step in recipe:
            values.append(_step(step, values))
        return values[-1] if len(values) > 1 else layers.scale(x, 1.0)

    return net(network, (4, 5, 5))


def difference(n: Net, text: str) -> tuple[float, Any]:
    """The largest difference that a pipeline makes, relative to the largest value; and its result."""
    result = passes.run(text, n.program.desc, n.params, [n.out])
    scope = fluid.Scope()
    for name, value in {**n.params, **result.params}.items():
        scope.var(name).set(value)
    (before,), (after,) = n.run(), n.run(result.desc, scope=scope)
    return float(np.abs(after - before).max() / max(np.abs(before).max(), 1e-30)), result


@examples(12)
@example([("conv", 1, False), ("mul", "channel", None), ("norm", 1e-5, "abn")], PIPELINES[2])
@given(st.lists(STEPS, min_size=1, max_size=7), st.sampled_from(PIPELINES))
def test_folding_changes_nothing(recipe: list[tuple[Any, ...]], text: str) -> None:
    n = build(recipe)
    error, result = difference(n, text)
    assert error < 1e-4, str(result)
    again = passes.run(text, result.desc, {**n.params, **result.params}, [n.out])
    assert not again.changed, str(again)


def _conv(x: Any) -> Any:
    return layers.conv2d(x, 4, 3, bias_attr=False)


def _times(x: Any) -> Any:
    return layers.elementwise_mul(x, layers.create_parameter([4], "float32"), axis=1)


def _abn(x: Any, act: str | None) -> Any:
    return layers.inplace_abn(x, act=act)


RUNS_WITH_ABN = {
    "it ends a run": (lambda x: _abn(_times(_conv(x)), "elu"), "elu"),
    "nothing folds through its activation": (
        lambda x: _times(_abn(_times(_conv(x)), "elu")),
        "elu elementwise_mul",
    ),
    "no norm folds through it either": (
        lambda x: layers.batch_norm(_abn(_conv(x), "elu")),
        "elu batch_norm",
    ),
    "without an activation a run goes on": (lambda x: _times(_abn(_conv(x), None)), ""),
}


@pytest.mark.parametrize("text", PIPELINES[1:])
@pytest.mark.parametrize("name", RUNS_WITH_ABN)
def test_inplace_abn_in_a_run(name: str, text: str) -> None:
    """fuse_conv_affine takes one in. It stopped there, and so made room for a fuse_batch_norm that
    had run before.
    """
    network, behind = RUNS_WITH_ABN[name]
    n = net(network, (4, 5, 5))
    error, result = difference(n, text)
    assert error < 1e-5, str(result)
    assert [op.type for op in result.desc.blocks[0].ops] == [
        "conv2d",
        "elementwise_add",
        *behind.split(),
    ]
    assert not passes.run(text, result.desc, {**n.params, **result.params}, [n.out]).changed


def test_slots_in_the_order_of_saved_programs() -> None:
    """Paddle writes slots sorted by name: a batch_norm's first output is MeanOut."""
    n = build([("conv", 1, True), ("norm", 0.5, None)])
    n.program = fluid.Program.parse_from_string(n.program.serialize_to_string())
    ops = n.program.desc.blocks[0].ops
    sort = lambda slots: type(slots)(sorted(slots.items()))  # noqa: E731
    swapped = tuple(replace(op, inputs=sort(op.inputs), outputs=sort(op.outputs)) for op in ops)
    n.program = fluid.Program.from_desc(edit.replace_ops(n.program.desc, 0, swapped))
    error, result = difference(n, "fuse_batch_norm")
    assert error < 1e-5 and len(result.certificates[0].folds) == 1


def test_a_fold_that_forgets_epsilon_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both by comparing outputs and by the pass's own certificate."""
    n = build([("conv", 1, True), ("norm", 0.5, None)])
    assert difference(n, "fuse_batch_norm")[0] < 1e-5
    right = affine.batch_norm
    read, link = affine.AFFINE["batch_norm"]
    wrong = lambda values, params, op, place: right(  # noqa: E731
        values, params, replace(op, attrs=op.attrs.set(epsilon=0.0)), place
    )
    monkeypatch.setitem(affine.AFFINE, "batch_norm", (wrong, link))
    error, result = difference(n, "fuse_batch_norm")
    assert error > 1e-2 and result.certificates[0].max_error > 1e-2
    assert read is right


def test_a_fold_of_the_wrong_axis_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from fluidjax.passes import fold, linear

    n = build([("transpose", 2, False), ("norm", 1e-5, None)])
    assert difference(n, "fuse_batch_norm")[0] < 1e-5
    item = linear.LINEAR["conv2d_transpose"]
    monkeypatch.setitem(
        fold.LINEAR,
        "conv2d_transpose",
        replace(item, scaled=lambda op, w, s: w * s.reshape(-1, 1, 1, 1)),
    )
    error, result = difference(n, "fuse_batch_norm")
    assert error > 1e-2 and result.certificates[0].max_error > 1e-2
