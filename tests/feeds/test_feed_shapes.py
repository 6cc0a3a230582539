"""What may be fed: recorded from 1.8.5, where only fluid.data's variables are checked
(need_check_feed).
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FeedError, FluidError
from fluidjax.ir.text import parse, to_text

from ..nets import fresh
from ..tools import feed_cases

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "feeds_1.8.5.json").read_text())
REFUSED = {"fc", "add", "embedding", "cross_entropy", "square_error", "log_loss", "conv2d", "image"}


@pytest.mark.first(6)
@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.filterwarnings("ignore:op 'elementwise_sub':RuntimeWarning")
def test_other_shapes_and_dtypes_do_what_they_do_in_paddle(name: str) -> None:
    """What 1.8.5 runs gives the same here; but integers and floats of fewer bits take the declared
    dtype, so that ids may be int32.
    """
    exe, declared = fluid.Executor(), np.dtype(feed_cases.NETS[name][1])
    with fresh() as (main, startup), fluid.scope_guard(fluid.Scope()):
        out = feed_cases.build(fluid, name)
        exe.run(startup)
        for value in feed_cases.FED[name]:
            want = RECORDED[name][feed_cases.key(value)]
            wider = isinstance(value, np.ndarray) and value.dtype == "int32" and declared == "int64"
            if want is None and (wider or name not in REFUSED):
                continue  # kernels that 1.8.5 lacks for a dtype
            if want is None:
                with pytest.raises(FluidError):
                    exe.run(main, feed={"x": value}, fetch_list=[out])
                continue
            got = np.asarray(exe.run(main, feed={"x": value}, fetch_list=[out])[0])
            assert [list(got.shape), got.dtype.name] == [
                want[0],
                "int64" if wider and want[1] == "int32" else want[1],
            ], feed_cases.key(value)
            np.testing.assert_allclose(got.ravel()[:6], want[2], rtol=1e-3, atol=1e-4)


def fed(
    declare: str, shape: list[int], value: tuple[int, ...], layer: str = "scale", **more: bool
) -> tuple[int, ...]:
    module = fluid.layers if declare == "layers.data" else fluid
    with fresh() as (main, _):
        x = module.data("x", shape, **more)
        weight = fluid.layers.fill_constant([256, 4], "float32", 1.0)
        out = fluid.layers.scale(x, 2.0) if layer == "scale" else fluid.layers.matmul(x, weight)
    return (
        fluid.Executor().run(main, feed={"x": np.ones(value, "float32")}, fetch_list=[out])[0].shape
    )


def test_a_variable_of_layers_data_takes_other_sizes() -> None:
    assert fed("layers.data", [256], (3, 5)) == (3, 5)
    assert fed("layers.data", [2, 256], (3, 256), append_batch_size=False) == (3, 256)


def test_a_variable_of_fluid_data_does_not() -> None:
    with pytest.raises(
        FeedError,
        match=r"feed 'x' has shape \[3, 5\], but the program declares \[-1, 256\] \(-1: any size\)",
    ):
        fed("fluid.data", [-1, 256], (3, 5))


@pytest.mark.parametrize(
    ("declared", "given"),
    [([-1, 3], (4,)), ([2, 3], (2,)), ([-1, 3, 4], (5, 3)), ([-1, 3, 4], (7,))],
)
def test_it_takes_the_beginning_of_the_declared_shape(
    declared: list[int], given: tuple[int, ...]
) -> None:
    assert fed("fluid.data", declared, given) == given


@pytest.mark.parametrize(
    ("declared", "given"),
    [([-1, 3, 4], (3, 4)), ([2, 3], (3,)), ([-1, 3], (1, 1, 3)), ([-1], (2, 1)), ([1], ())],
)
def test_it_takes_no_other_number_of_dimensions(
    declared: list[int], given: tuple[int, ...]
) -> None:
    with pytest.raises(FeedError, match="but the program declares"):
        fed("fluid.data", declared, given)


def test_labels_without_their_last_dimension() -> None:
    with fresh() as (main, _):
        x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1], "int64")
        loss = fluid.layers.mean(fluid.layers.cross_entropy(fluid.layers.softmax(x), y))
    logits = np.arange(6, dtype="float32").reshape(2, 3)
    labels = np.int64([0, 2])
    got = fluid.Executor().run(main, feed={"x": logits, "y": labels}, fetch_list=[loss])[0]
    want = np.log(np.exp(logits).sum(1)) - logits[[0, 1], labels]
    np.testing.assert_allclose(got, [want.mean()], rtol=1e-6)


@pytest.mark.parametrize("declare", ["fluid.data", "layers.data"])
def test_an_image_without_its_batch(declare: str) -> None:
    shape = [-1, 256] if declare == "fluid.data" else [256]
    with pytest.raises(FeedError, match=r"has shape \[9\], .* declares \[-1, 256\], and an op"):
        fed(declare, shape, (9,), "matmul")


def test_an_op_that_needs_what_is_declared_says_so() -> None:
    with pytest.raises(
        FeedError,
        match=(
            r"feed 'x' has shape \[3, 5\], but the program declares \[-1, 256\], and an op needs"
            r" .*matmul"
        ),
    ):
        fed("layers.data", [256], (3, 5), "matmul")


@pytest.mark.parametrize("shape", [[-2, 3], [3, -5]])
def test_negative_dimensions_are_kept_and_unknown(shape: list[int]) -> None:
    with fresh() as (main, _):
        x = fluid.layers.data("x", shape)
        out = fluid.layers.concat([x, fluid.layers.relu(x)], axis=0)
        assert list(x.shape) == shape
    assert parse(to_text(main.desc)) == main.desc
    # which reads every negative dimension as -1
    fluid.Program.parse_from_string(main.serialize_to_string())
    got = fluid.Executor().run(main, feed={"x": np.ones((4, 3), "float32")}, fetch_list=[out])[0]
    assert got.shape == (8, 3)


def test_a_feed_of_another_dtype_trains_nothing_else() -> None:
    """JAX would promote the weights; what the program declares alike an op must be given alike."""
    with fresh() as (main, startup), fluid.scope_guard(fluid.Scope()) as _:
        x = fluid.layers.data("x", [2])
        loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr=fluid.ParamAttr(name="w")))
        fluid.optimizer.SGD(0.1).minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        before = fluid.global_scope().get("w")
        for dtype in ("float64", "int64", "int32", "bool"):
            with pytest.raises(
                FeedError, match=rf"feed 'x' is {dtype}, but the program declares float32"
            ):
                exe.run(main, feed={"x": np.ones((3, 2), dtype)}, fetch_list=[loss])
        assert fluid.global_scope().get("w").dtype == "float32"
        assert np.array_equal(fluid.global_scope().get("w"), before)
        # which float32 holds
        exe.run(main, feed={"x": np.ones((3, 2), "float16")}, fetch_list=[loss])
        assert fluid.global_scope().get("w").dtype == "float32"


def test_labels_without_their_last_dimension_train() -> None:
    with fresh(1) as (main, startup), fluid.scope_guard(fluid.Scope()):
        image, label = (
            fluid.layers.data("image", [784]),
            fluid.layers.data("label", [1], dtype="int64"),
        )
        cost = fluid.layers.cross_entropy(fluid.layers.fc(image, 10, act="softmax"), label)
        loss = fluid.layers.mean(cost)
        fluid.optimizer.SGD(0.01).minimize(loss)
        exe, images = fluid.Executor(), np.random.RandomState(0).rand(4, 784).astype("float32")
        losses = []
        for pixels, labels in (
            (images, np.arange(4)[:, None]),
            (images.reshape(4, 1, 28, 28), np.arange(4)),
            (images, np.int32([0, 1, 2, 3])),
        ):
            exe.run(startup)
            losses.append(
                [
                    exe.run(main, feed={"image": pixels, "label": labels}, fetch_list=[loss])[
                        0
                    ].item()
                    for _ in range(2)
                ]
            )
        assert losses[0] == losses[1] == losses[2] and losses[0][1] < losses[0][0]


def test_labels_are_one_for_each_row() -> None:
    """A label for several rows was repeated."""
    with fresh() as (main, _):
        logits, label = (
            fluid.layers.data("logits", [5]),
            fluid.layers.data("label", [1], dtype="int64"),
        )
        fetches = [
            fluid.layers.softmax_with_cross_entropy(logits, label), fluid.layers.cross_entropy(logits, label),
            fluid.layers.accuracy(logits, label),
        ]  # fmt: skip
    for fetch in fetches:
        for labels in ([[1]], [[1, 2]], 1):
            with pytest.raises(FluidError):
                fluid.Executor().run(
                    main,
                    feed={"logits": np.ones((2, 5), "float32"), "label": labels},
                    fetch_list=[fetch],
                )


def test_ops_of_many_inputs_take_one_of_another_shape() -> None:
    """As in 1.8.5: of what is fed in another shape than declared, ops make what they make of any
    array.
    """
    layers = fluid.layers
    with fresh() as (main, _):
        x = layers.data("x", [4, 1], append_batch_size=False)
        outs = [
            layers.stack([x], axis=1),
            layers.concat([x], axis=0),
            layers.sums([x]),
            layers.stack([x, x]),
        ]
    shapes = [
        v.shape
        for v in fluid.Executor().run(main, feed={"x": np.ones(3, "float32")}, fetch_list=outs)
    ]
    assert shapes == [(3, 1), (3,), (3,), (2, 3)]


@pytest.mark.parametrize("module", [fluid, fluid.layers])
def test_what_nobody_may_have_meant_is_told(module: Any) -> None:
    with fresh() as (main, _):
        shape = [None, 1] if module is fluid else [1]
        guess, y = module.data("guess", shape), module.data("y", shape)
        cost = fluid.layers.square_error_cost(guess, y)
    feed: dict[str, Any] = {"guess": np.ones((3, 1), "float32"), "y": np.zeros(3, "float32")}
    with pytest.warns(
        RuntimeWarning,
        match=r"op 'elementwise_sub' \(.*test_feed_shapes.py:\d+\) broadcasts \[3, 1\] and \[3\]",
    ):
        assert fluid.Executor().run(main, feed=feed, fetch_list=[cost])[0].shape == (3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fluid.Executor().run(
            main, feed={**feed, "y": np.zeros((3, 1), "float32")}, fetch_list=[cost]
        )
        fluid.Executor().run(main, feed={**feed, "y": 0.5}, fetch_list=[cost])  # one number for all


def test_a_number_has_the_shape_of_one_element() -> None:
    """For variables of fluid.data too; a 0-dimensional array stays one, which they refuse (all as
    in 1.8.5).
    """
    with fresh() as (main, _):
        rate = fluid.data("rate", [1])
        out = rate * 2.0
    for number in (0.5, np.float32(0.5), np.float64(0.5)):
        assert fluid.Executor().run(main, feed={"rate": number}, fetch_list=[out])[0].tolist() == [
            1.0
        ]
    assert fluid.Executor().run(main, feed={"rate": 3}, fetch_list=[out])[0].tolist() == [6.0]
    with pytest.raises(FeedError, match=r"has shape \[\]"):
        fluid.Executor().run(main, feed={"rate": np.array(0.5, "float32")}, fetch_list=[out])


@pytest.mark.parametrize("declare", ["layers.data", "fluid.data"])
def test_another_order_of_bytes_is_told(declare: str) -> None:
    with fresh() as (main, _):
        x = (fluid.layers.data if declare == "layers.data" else fluid.data)(
            "x", [2, 3], **({"append_batch_size": False} if declare[0] == "l" else {})
        )
    with pytest.raises(
        FeedError,
        match=(
            r"feed 'x' is float32 in the other order of bytes \(>f4\); convert it with"
            r" .astype\('float32'\)"
        ),
    ):
        fluid.Executor().run(main, feed={"x": np.ones((2, 3), ">f4")}, fetch_list=[x])


def test_runs_of_several_dtypes_do_not_meet() -> None:
    """An executable is particular to what it was fed, in any order of runs."""
    with fresh() as (main, _):
        x = fluid.layers.data("x", [2])
        out = fluid.layers.scale(x, 2.0)
    exe = fluid.Executor()
    for dtype in (
        "float32",
        "float64",
        "float32",
        "int64",
        "float64",
        "float32",
        "float32",
        "int64",
    ):
        assert exe.run(main, feed={"x": np.ones((1, 2), dtype)}, fetch_list=[out])[0].dtype == dtype


def test_a_variable_without_a_declared_shape_takes_anything() -> None:
    """What create_tensor and create_var make: its shape is () until an op writes it, as in 1.8.5."""
    with fresh() as (main, _):
        made = main.global_block().create_var(name="made", dtype="float32")
        tensor = fluid.layers.create_tensor("int64", name="tensor")
        out = fluid.layers.scale(made, 2.0)
    assert made.shape == tensor.shape == () and made.dtype == fluid.core.VarDesc.VarType.FP32
    exe = fluid.Executor()
    for value, shape in (
        (np.ones((2, 3), "float32"), (2, 3)),
        (np.float32(3), (1,)),
        (5, (1,)),
        (np.ones(2), (2,)),
    ):
        assert exe.run(main, feed={"made": value}, fetch_list=[out])[0].shape == shape
    assert exe.run(main, feed={"tensor": np.array([1, 2])}, fetch_list=[tensor])[0].tolist() == [
        1,
        2,
    ]
    with pytest.raises(FeedError, match="'tensor' must be fed"):
        exe.run(main, fetch_list=[tensor])


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
def test_the_pure_step_takes_the_narrow_labels_of_numpy_as_of_jax(make: Any) -> None:
    with fresh() as (main, _):
        label = fluid.data("label", [None, 1], "int64")
        out = fluid.layers.cast(label, "float32")
    step = fluid.step_fn(main, [out])
    assert step({}, {"label": make(np.int32([[1], [2]]))})[1][0].tolist() == [[1], [2]]
    with pytest.raises(FeedError, match="is int16, but the program declares int64"):
        step({}, {"label": np.int16([[1], [2]])})
