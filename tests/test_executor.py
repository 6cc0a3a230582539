"""Executor: feeds, fetches, state, caching, errors; and the pure functions underneath."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import (
    EnforceNotMet,
    FeedError,
    FetchError,
    FluidTypeError,
    FluidValueError,
    LoadError,
    NanInfError,
    ShapeError,
    UnknownOpError,
)
from fluidjax.state import buffers as state_buffers

from .nets import fresh


def line(seed=0, optimizer=None):
    """fit_a_line: (main, startup, loss, prediction)."""
    with fresh(seed) as (main, startup):
        x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
        prediction = layers.fc(
            x, 1, param_attr=fluid.ParamAttr(name="w"), bias_attr=fluid.ParamAttr(name="b")
        )
        loss = layers.mean(layers.square_error_cost(prediction, y))
        (optimizer or fluid.optimizer.SGD(0.01)).minimize(loss)
    return main, startup, loss, prediction


def batch(n=8):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((n, 13), dtype=np.float32)
    return {"x": x, "y": x.sum(1, keepdims=True)}


@pytest.fixture
def scope():
    with fluid.scope_guard(fluid.Scope()):
        yield fluid.global_scope()


def test_sgd_equals_numpy(scope):
    main, startup, loss, _ = line()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    w, b, feed = scope.get("w"), scope.get("b"), batch()
    for _ in range(5):
        error = feed["x"] @ w + b - feed["y"]
        (got,) = exe.run(main, feed=feed, fetch_list=[loss])
        assert got == pytest.approx(np.mean(error**2), rel=1e-5)
        w = w - 0.01 * 2 * feed["x"].T @ error / len(error)
        b = b - 0.01 * 2 * error.mean(0)
    np.testing.assert_allclose(scope.get("w"), w, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(scope.get("b"), b, rtol=1e-4, atol=1e-6)


def test_fetch_by_name_and_variable_and_batch_sizes(scope):
    main, startup, loss, prediction = line()
    exe = fluid.Executor()
    exe.run(startup)
    a, b = exe.run(main, feed=batch(4), fetch_list=[loss.name, prediction])
    assert a.shape == (1,) and b.shape == (4, 1) and a.flags.writeable
    (c,) = exe.run(main, feed=batch(6), fetch_list=prediction, return_numpy=False)
    assert (
        isinstance(c, fluid.LoDTensor) and c.shape() == [6, 1] and isinstance(c.array(), jax.Array)
    )
    assert exe.run(main, feed=batch(6)) == []


def test_a_fetched_loss_converts_to_a_number(scope):
    main, startup, loss, _ = line()
    exe = fluid.Executor()
    exe.run(startup)
    (got,) = exe.run(main, feed=batch(), fetch_list=[loss])
    assert isinstance(got, np.ndarray) and got.shape == (1,) and float(got) == got[0]
    assert "%.2f" % got == f"{got[0]:.2f}"  # noqa: UP031
    assert repr(got).startswith("array(") and type(got + np.ones(2)) is np.ndarray


def test_a_seeded_startup_program_repeats(scope):
    _, startup, _, _ = line(seed=3)
    exe = fluid.Executor()
    exe.run(startup)
    first = scope.get("w")
    exe.run(startup)
    np.testing.assert_array_equal(scope.get("w"), first)


@pytest.mark.parametrize("fetch", [True, False])
def test_a_fed_array_may_be_filled_anew_at_once(fetch, scope):
    """Results are not waited for, but what was fed is what the step sees."""
    with fresh() as (main, startup):
        x, y = fluid.data("x", [500, 500]), fluid.data("y", [500, 500])
        total = layers.create_global_var([1], 0.0, "float32", persistable=True, name="total")
        slow = layers.matmul(layers.matmul(y, y), y)
        seen = layers.reduce_sum(layers.elementwise_add(x, layers.scale(slow, 0.0)))
        layers.assign(layers.elementwise_add(total, seen), total)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    buffer, y = np.empty((500, 500), np.float32), np.ones((500, 500), np.float32)
    for i in range(8):
        buffer[:] = i
        exe.run(
            main, feed={"x": buffer, "y": y}, fetch_list=[seen] if fetch else [], return_numpy=False
        )
        buffer[:] = 1000
    assert scope.get("total")[0] == sum(range(8)) * 500 * 500


def test_fetched_parameters_survive_later_steps(scope):
    main, startup, _, _ = line()
    exe = fluid.Executor()
    exe.run(startup)
    (w,) = exe.run(main, feed=batch(), fetch_list=["w"], return_numpy=False)
    before = np.array(w)
    for _ in range(3):
        exe.run(main, feed=batch())
    np.testing.assert_array_equal(np.array(w), before)


def test_scope_reads_and_writes_go_to_the_state(scope):
    main, startup, _, _ = line()
    exe = fluid.Executor()
    exe.run(startup)
    exe.run(main, feed=batch())
    b = scope.get("b")
    scope.find_var("w").get_tensor().set(np.zeros((13, 1), np.float32), fluid.CPUPlace())
    assert not np.array(scope.find_var("w").get_tensor()).any()
    feed = batch()
    exe.run(main, feed=feed)
    np.testing.assert_allclose(
        scope.get("w"), 0.02 * feed["x"].T @ (feed["y"] - b) / 8, rtol=1e-5, atol=1e-6
    )


def test_two_programs_share_a_scope(scope):
    main, startup, _, prediction = line()
    test = main.clone(for_test=True)
    exe = fluid.Executor()
    exe.run(startup)
    for _ in range(3):
        exe.run(main, feed=batch())
        (got,) = exe.run(test, feed=batch(), fetch_list=[prediction])
        np.testing.assert_allclose(
            got, batch()["x"] @ scope.get("w") + scope.get("b"), rtol=1e-4, atol=1e-5
        )


def many_parameters(count=40):
    with fresh() as (main, startup):
        x = fluid.data("x", [None, 4])
        h = x
        for _ in range(count):
            h = layers.fc(h, 4, act="tanh")
        loss = layers.mean(h)
        fluid.optimizer.Adam(0.01).minimize(loss)
    return main, startup, loss


@pytest.mark.slow
def test_packed_state_equals_unpacked(monkeypatch):
    """What is packed is what the program would have computed with an array for every variable."""
    main, startup, loss = many_parameters()
    feed = {"x": np.ones((2, 4), np.float32)}
    results = []
    for worthwhile in (state_buffers.WORTHWHILE, 10**9):
        monkeypatch.setattr(state_buffers, "WORTHWHILE", worthwhile)
        scope, exe = fluid.Scope(), fluid.Executor()
        startup.random_seed = 3
        exe.run(startup, scope=scope)
        losses = [exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0] for _ in range(4)]
        results.append((losses, {p.name: scope.get(p.name) for p in main.all_parameters()}))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
    for name, value in results[0][1].items():
        np.testing.assert_allclose(value, results[1][1][name], rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_packed_variables_are_seen_and_set_by_name(scope):
    main, startup, _ = many_parameters()
    exe = fluid.Executor()
    exe.run(startup)
    exe.run(main, feed={"x": np.ones((2, 4), np.float32)})
    (buffers,) = state_buffers.in_force(scope)
    assert buffers.layouts[0].packs
    scope.var("fc_3.b_0").set(np.full(4, 7, np.float32))
    np.testing.assert_array_equal(scope.get("fc_3.b_0"), [7, 7, 7, 7])
    exe.run(main, feed={"x": np.ones((2, 4), np.float32)})
    np.testing.assert_allclose(scope.get("fc_3.b_0"), 7, atol=0.05)
    # does not fit: every variable has its own array again
    scope.var("fc_3.b_0").set(np.zeros((2, 2), np.float32))
    assert not state_buffers.in_force(scope)
    with pytest.raises(
        EnforceNotMet, match=r"'fc_3.b_0' holds a value of shape \[2, 2\].*declares \[4\]"
    ):
        exe.run(main, feed={"x": np.ones((2, 4), np.float32)})


# -- random numbers --------------------------------------------------------------------------------


def dropped(seed):
    with fresh(seed) as (main, startup):
        x = fluid.data("x", [None, 50])
        out = layers.dropout(x, 0.5)
    return main, startup, out


def test_dropout_draws_per_step_and_repeats_under_a_seed():
    feed = {"x": np.ones((4, 50), np.float32)}
    runs = []
    for _ in range(2):
        main, _, out = dropped(11)
        exe = fluid.Executor()
        runs.append([exe.run(main, feed=feed, fetch_list=[out])[0] for _ in range(3)])
    assert not np.array_equal(runs[0][0], runs[0][1])
    np.testing.assert_array_equal(runs[0], runs[1])
    main, _, out = dropped(12)
    assert not np.array_equal(
        fluid.Executor().run(main, feed=feed, fetch_list=[out])[0], runs[0][0]
    )


def test_an_ops_own_seed_fixes_its_draw():
    with fresh(5) as (main, _):
        a, b = (layers.gaussian_random([100], seed=s) for s in (9, 0))
    exe = fluid.Executor()
    first, second = (exe.run(main, fetch_list=[a, b]) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])
    assert not np.array_equal(first[1], second[1])


def test_run_steps_equals_single_runs():
    main, startup, loss, _ = line(seed=4, optimizer=fluid.optimizer.Momentum(0.01, 0.9))
    feeds = [{k: v + i for k, v in batch().items()} for i in range(5)]
    feeds = [{k: v.astype("float32") for k, v in f.items()} for f in feeds]
    one, many = fluid.Scope(), fluid.Scope()
    exe = fluid.Executor()
    exe.run(startup, scope=one)
    fluid.Executor().run(startup, scope=many)
    singles = [exe.run(main, feed=f, fetch_list=[loss], scope=one)[0] for f in feeds]
    (stacked,) = fluid.Executor().run_steps(main, feeds, [loss], scope=many)
    np.testing.assert_allclose(stacked, singles, rtol=1e-5)
    np.testing.assert_allclose(many.get("w"), one.get("w"), rtol=1e-5)


def test_run_steps_draws_like_single_runs():
    main, _, out = dropped(3)
    feed = {"x": np.ones((2, 50), np.float32)}
    exe = fluid.Executor()
    singles = [exe.run(main, feed=feed, fetch_list=[out])[0] for _ in range(3)]
    (stacked,) = fluid.Executor().run_steps(main, [feed] * 3, [out])
    np.testing.assert_array_equal(stacked, singles)


# -- bad input -------------------------------------------------------------------------------------


class Frame:
    """What is not an array and has one, as a DataFrame or a torch tensor."""

    def __init__(self, values):
        self._values = values

    def __array__(self, dtype=None, copy=None):
        return self._values


class Tensor:
    dtype = "torch.bfloat16"

    def __array__(self, dtype=None, copy=None):
        raise TypeError("got BFloat16")


BAD_FEEDS = {
    "missing": (
        lambda f: {"x": f["x"]},
        r"'y' must be fed: op 'elementwise_sub' \(.*test_executor.py:\d+\) reads it",
    ),
    "extra, and one missing": (
        lambda f: {"x": f["x"], "z": f["x"]},
        r"feed 'z': var z not in this block",
    ),
    "misnamed": (lambda f: {"x": f["x"], "Y": f["y"]}, r"feed 'Y'.*'y'"),
    "dtype": (
        lambda f: {**f, "x": f["x"].astype("float64")},
        r"feed 'x' is float64.*float32.*astype",
    ),
    "rank": (lambda f: {**f, "y": f["y"][None]}, r"feed 'y' has shape \[1, 8, 1\].*\[-1, 1\]"),
    "size": (lambda f: {**f, "x": f["x"][:, :12]}, r"feed 'x' has shape \[8, 12\].*\[-1, 13\]"),
    "ragged": (lambda f: {**f, "x": [[1.0], [1.0, 2.0]]}, r"feed 'x' is not an array of numbers"),
    "text": (
        lambda f: {**f, "x": "abc"},
        r"feed 'x' holds strings, such as 'abc', but the program declares float32 \[-1, 13\]",
    ),
    "strings": (
        lambda f: {**f, "x": np.array([["a"] * 13])},
        "feed 'x' holds strings, such as 'a'",
    ),
    "objects": (
        lambda f: {**f, "x": f["x"].astype(object)},
        "holds Python objects .*all are numbers; .astype",
    ),
    "mixed": (
        lambda f: {**f, "x": np.array([[1.0, None]])},
        "feed 'x' holds Python objects|feed 'x' holds a NoneType",
    ),
    "variable": (lambda f: {**f, "x": line()[2]}, "feed 'x' holds a Variable"),
    "frame of 64 bits": (
        lambda f: {**f, "x": Frame(f["x"].astype("float64"))},
        "feed 'x' is float64.*float32.*astype",
    ),
    "list of 64 bits": (
        lambda f: {**f, "x": list(f["x"].astype("float64"))},
        "feed 'x' is float64.*float32.*astype",
    ),
    "bfloat16": (
        lambda f: {**f, "x": Tensor()},
        "is a tests.Tensor of torch.bfloat16, which NumPy cannot read .*BFloat16",
    ),
    "samples": (
        lambda f: {"x": f["x"][:3], "y": f["y"][:2]},
        "different numbers of samples.*: 'x' has 3, 'y' has 2 .*",
    ),
}


def test_a_value_that_an_op_refuses_is_not_put_down_to_the_feeds(scope):
    """Feeds may have different numbers of samples, and did not stop the step from being traced."""
    with fresh() as (main, _):
        x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 3])
        number = layers.cast(layers.reduce_sum(x), "int64")
        array = layers.array_write(x, layers.fill_constant([1], "int64", 0))
        checks = {
            "expects 0 <= index < 4, but gets 6": layers.one_hot(layers.reshape(number, [1, 1]), 4),
            "reads entry 6": layers.array_read(array, number),
        }
        mean = layers.mean(y)
    feed = {"x": np.ones((2, 3), "float32"), "y": np.ones((1, 3), "float32")}
    for words, refused in checks.items():
        with pytest.raises(EnforceNotMet, match=f"^op .* {words}") as told:
            fluid.Executor().run(main, feed=feed, fetch_list=[refused, mean])
        assert all(n.startswith("in op: ") for n in told.value.__notes__)


def test_no_room_is_an_error_of_ours(scope, monkeypatch):
    """XLA's words for it: a run under a limit of memory raises them (tests.fuzz json 5533)."""
    main, startup, loss, _ = line()
    exe = fluid.Executor()
    exe.run(startup)

    def full(*_, **__):
        raise jax.errors.JaxRuntimeError(
            "RESOURCE_EXHAUSTED: Out of memory allocating 8589934592 bytes."
        )

    monkeypatch.setattr("fluidjax.executor.call", full)
    with pytest.raises(
        EnforceNotMet,
        match=(
            r"the step needs more memory than there is \(Out of memory allocating 8589934592"
            r" bytes.\)"
        ),
    ):
        exe.run(main, feed=batch(), fetch_list=[loss])


def test_a_feed_that_nobody_knows_is_passed_over_with_a_warning(scope):
    """As 1.8.5 does, for a program that was pruned, and by run_steps; on several devices 1.8.5
    refuses it.
    """
    main, startup, loss, _ = line()
    exe = fluid.Executor()
    exe.run(startup)
    extra = {**batch(), "z": np.zeros(3)}
    pair = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(2))
    for run in (lambda: exe.run(main, extra, [loss]), lambda: exe.run_steps(main, [extra], [loss])):
        with pytest.warns(
            RuntimeWarning, match=r"feed 'z': var z not in this block: .*; it is ignored"
        ):
            assert np.isfinite(run()).all()
    with pytest.raises(FeedError, match=r"feed 'z': var z not in this block"):
        exe.run(pair, extra, [loss])
    for wrong in ("x", 3, [batch(), 3]):
        with pytest.raises(
            (FluidTypeError, FeedError), match=r"feed requires dict|a list of one such dict"
        ):
            exe.run(main, wrong, [loss])
    with pytest.raises(FeedError, match=r"keys of a feed are the names of variables, not int"):
        exe.run(main, {**batch(), 3: np.zeros(3)}, [loss])


@pytest.mark.parametrize("kind", BAD_FEEDS)
def test_bad_feed_is_one_sentence_and_changes_nothing(kind, scope):
    main, startup, loss, _ = line()
    exe = fluid.Executor()
    exe.run(startup)
    before = scope.get("w")
    change, message = BAD_FEEDS[kind]
    with pytest.raises(FeedError, match=message):
        exe.run(main, feed=change(batch()), fetch_list=[loss])
    np.testing.assert_array_equal(scope.get("w"), before)
    exe.run(main, feed=batch(), fetch_list=[loss])


def test_what_brings_a_dtype_keeps_it_and_what_has_none_takes_the_declared_one(scope):
    main, startup, loss, _ = line()
    exe = fluid.Executor()
    exe.run(startup)
    test = main.clone(for_test=True)
    plain = batch()
    same = [
        plain["x"].tolist(),
        Frame(plain["x"]),
        list(plain["x"]),
        [[np.float64(v) for v in row] for row in plain["x"]],
    ]
    want = exe.run(test, feed=plain, fetch_list=[loss])[0]
    for x in same:
        np.testing.assert_array_equal(
            exe.run(test, feed={**plain, "x": x}, fetch_list=[loss])[0], want
        )


def test_integers_that_do_not_fit_are_refused():
    with fresh() as (main, _):
        x = fluid.data("x", [None], "int32")
        out = layers.cast(x, "int64")
    exe = fluid.Executor()
    with pytest.raises(FeedError, match=r"do not fit int32"):
        exe.run(main, feed={"x": [2**40]}, fetch_list=[out])
    with pytest.raises(FeedError, match=r"int64.*int32"):
        exe.run(main, feed={"x": np.array([1], np.int64)}, fetch_list=[out])
    assert exe.run(main, feed={"x": [3]}, fetch_list=[out])[0].tolist() == [3]


def test_64_bit_values_stay_exact():
    with fresh() as (main, _):
        x = fluid.data("x", [None], "int64")
        out = layers.scale(layers.cast(x, "float64"), 2.0)
        same = layers.assign(x)
    big = 2**53 + 1
    a, b = fluid.Executor().run(main, feed={"x": np.array([big])}, fetch_list=[same, out])
    assert a.dtype == np.int64 and a[0] == big and b.dtype == np.float64


def labelled(op):
    with fresh() as (main, startup):
        x, label = fluid.data("x", [None, 5]), fluid.data("label", [None, 1], "int64")
        if op == "cross_entropy":
            out = layers.cross_entropy(layers.softmax(x), label, ignore_index=-7)
        elif op == "softmax_with_cross_entropy":
            out = layers.softmax_with_cross_entropy(x, label, ignore_index=-7)
        elif op == "embedding":
            out = layers.embedding(label, [5, 2])
        else:
            out = layers.one_hot(label, 5)
    return main, startup, out


@pytest.mark.parametrize(
    "op", ["cross_entropy", "softmax_with_cross_entropy", "embedding", "one_hot"]
)
@pytest.mark.parametrize("bad", [5, -1, 99])
def test_labels_and_ids_out_of_range_are_refused(op, bad, scope):
    main, startup, out = labelled(op)
    exe = fluid.Executor()
    exe.run(startup)
    feed = {"x": np.zeros((2, 5), np.float32), "label": np.array([[0], [bad]])}
    with pytest.raises(FeedError, match=rf"feed 'label'.*0 <= value < 5.*{bad}"):
        exe.run(main, feed=feed, fetch_list=[out])
    feed["label"][1] = 4
    exe.run(main, feed=feed, fetch_list=[out])


def test_ignore_index_is_in_range():
    main, _, out = labelled("cross_entropy")
    feed = {"x": np.zeros((2, 5), np.float32), "label": np.array([[0], [-7]])}
    assert fluid.Executor().run(main, feed=feed, fetch_list=[out])[0][1] == 0


def test_unknown_fetch_names_the_nearest(scope):
    main, startup, loss, _ = line()
    exe = fluid.Executor()
    exe.run(startup)
    with pytest.raises(FetchError, match=rf"'{loss.name}x' is not in the program.*{loss.name}"):
        exe.run(main, feed=batch(), fetch_list=[loss.name + "x"])
    with pytest.raises(FluidTypeError, match="fetch_list takes variables or their names, not int"):
        exe.run(main, feed=batch(), fetch_list=[3])


def test_startup_not_run(scope):
    main, _, loss, _ = line()
    with pytest.raises(EnforceNotMet, match=r"is not initialised; run the startup program first"):
        fluid.Executor().run(main, feed=batch(), fetch_list=[loss])


def test_wrong_program_type():
    with pytest.raises(FluidTypeError, match="takes a Program, not str"):
        fluid.Executor().run("main")


def test_shape_mismatch_while_building_names_the_line():
    with fresh():
        x, y = fluid.data("x", [None, 3]), fluid.data("y", [4, 5])
        with pytest.raises(ValueError, match=r"matmul.*3.*4.*test_executor.py:\d+"):
            layers.matmul(x, y)
        with pytest.raises(
            ShapeError, match=r"X\[-1, 3\] and Y\[4, 5\] do not broadcast.*test_executor.py:\d+"
        ):
            layers.elementwise_add(x, y)


def test_unknown_op_slot_and_attribute():
    with fresh() as (main, _):
        block = main.global_block()
        x = fluid.data("x", [2])
        with pytest.raises(UnknownOpError, match=r"no op type 'rleu'.*'relu'"):
            block.append_op(type="rleu", inputs={"X": x}, outputs={"Out": x})
        with pytest.raises(UnknownOpError, match=r"no attribute 'scal'.*'scale'"):
            block.append_op(type="scale", inputs={"X": x}, outputs={"Out": x}, attrs={"scal": 1.0})
        with pytest.raises(UnknownOpError, match=r"no input slot 'Y'"):
            block.append_op(type="relu", inputs={"Y": x}, outputs={"Out": x})
        with pytest.raises(FluidTypeError, match=r"'scale' of op 'scale' is FLOAT"):
            block.append_op(
                type="scale", inputs={"X": x}, outputs={"Out": x}, attrs={"scale": "two"}
            )


def test_parameter_twice_with_another_shape():
    with fresh():
        x = fluid.data("x", [None, 3])
        layers.fc(x, 4, param_attr="w")
        with pytest.raises(ValueError, match=r"'w' exists with shape \[3, 4\].*\[3, 5\]"):
            layers.fc(x, 5, param_attr="w")


def test_no_gradient_path():
    with fresh():
        x = fluid.data("x", [None, 3])
        h = layers.fc(x, 4)
        h.stop_gradient = True
        with pytest.warns(
            UserWarning,
            match=(
                r"no gradient reaches any parameter .*test_executor.py:\d+.*'fc_0.tmp_1' has stop_"
            ),
        ):
            assert fluid.optimizer.Adam(0.1).minimize(layers.mean(h)) == ([], [])  # as in 1.8.5


def test_nan_check_names_op_and_variable(scope):
    with fresh() as (main, _):
        x = fluid.data("x", [2])
        out = layers.sqrt(layers.log(x))
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    try:
        exe = fluid.Executor()
        with pytest.raises(
            NanInfError,
            match=r"op 'log' \(.*test_executor.py:\d+\) wrote NaN or infinity to 'log_0.tmp_0'",
        ):
            exe.run(main, feed={"x": np.array([-1, 2], np.float32)}, fetch_list=[out])
        exe.run(main, feed={"x": np.array([2, 2], np.float32)}, fetch_list=[out])
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})


def test_nan_check_looks_at_what_a_block_leaves(scope):
    with fresh() as (main, _):
        x = fluid.data("x", [2])
        out = layers.fill_constant([2], "float32", 1.0)
        with (
            layers.Switch() as switch,
            switch.case(layers.fill_constant([1], "float32", 0.0) < layers.reduce_sum(x)),
        ):
            layers.assign(layers.log(x), out)
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    try:
        exe = fluid.Executor()
        with pytest.raises(
            NanInfError,
            match=r"op 'conditional_block' .*wrote NaN or infinity to 'fill_constant_0.tmp_0'",
        ):
            exe.run(main, feed={"x": np.array([-1, 2], np.float32)}, fetch_list=[out])
        assert exe.run(main, feed={"x": np.array([-1, -2], np.float32)}, fetch_list=[out])[
            0
        ].tolist() == [1, 1]
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})


@pytest.mark.parametrize("runs", [True, False])
def test_gradients_go_through_what_a_block_writes(scope, runs):
    """The block gives y another value where it runs, so y's gradient is not always that of its
    first writer.
    """
    with fresh() as (main, startup):
        w = layers.create_parameter(
            [3], "float32", name="w", default_initializer=fluid.initializer.Constant(1.0)
        )
        y = layers.scale(w, 1.0)
        with layers.Switch() as switch, switch.case(layers.fill_constant([1], "bool", runs)):
            layers.assign(layers.scale(y, 5.0), y)
        grads = fluid.gradients(layers.mean(y), w)
    exe = fluid.Executor()
    exe.run(startup)
    np.testing.assert_allclose(
        exe.run(main, fetch_list=grads)[0], np.full(3, (5.0 if runs else 1.0) / 3), rtol=1e-6
    )


def test_nan_check_keeps_the_state(scope):
    main, startup, loss, _ = line()
    exe = fluid.Executor()
    exe.run(startup)
    exe.run(main, feed=batch())
    before = scope.get("w")
    feed = batch()
    feed["x"][0, 0] = np.nan
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    try:
        with pytest.raises(NanInfError, match="'mul'"):
            exe.run(main, feed=feed, fetch_list=[loss])
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})
    np.testing.assert_array_equal(scope.get("w"), before)


def test_too_many_recompilations_warn_once():
    with fresh() as (main, _):
        out = layers.mean(fluid.data("x", [None, 2]))
    exe = fluid.Executor()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(1, 21):
            exe.run(main, feed={"x": np.ones((n, 2), np.float32)}, fetch_list=[out])
    messages = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
    assert len(messages) == 1 and "dimension 0 of 'x' keeps changing" in messages[0]


# -- the pure functions ----------------------------------------------------------------------------


def test_pure_step_under_jit_scan_vmap_and_grad():
    main, startup, loss, prediction = line()
    state = fluid.init_fn(startup)(jax.random.key(0))
    step = fluid.step_fn(main, [loss])
    feed = batch()
    with jax.enable_x64(True):
        plain, (first,) = step(state, feed)
        jitted = jax.jit(step, donate_argnums=0)
        moved, (same,) = jitted(jax.tree.map(jnp.copy, state), feed)
        np.testing.assert_allclose(same, first, rtol=1e-6)
        np.testing.assert_allclose(moved["w"], plain["w"], rtol=1e-6)
        stacked = {k: np.stack([v] * 3) for k, v in feed.items()}
        _, (losses,) = jax.lax.scan(lambda s, f: step(s, f), state, stacked)
        np.testing.assert_allclose(losses[0], first, rtol=1e-6)
        assert losses[2] < losses[0]
        _, (many,) = jax.vmap(step, in_axes=(None, 0))(state, stacked)
        np.testing.assert_allclose(many, np.stack([first] * 3), rtol=1e-6)
        test_step = fluid.step_fn(main.clone(for_test=True), [loss])
        grads = jax.grad(lambda w: test_step({**state, "w": w}, feed)[1][0].sum())(state["w"])
        np.testing.assert_allclose((state["w"] - plain["w"]) / 0.01, grads, rtol=1e-3, atol=1e-4)
    assert prediction.name not in state


def test_pure_step_says_what_is_missing():
    main, startup, loss, _ = line()
    step = fluid.step_fn(main, [loss])
    with pytest.raises(EnforceNotMet, match="is not initialised"):
        step({}, batch())
    with pytest.raises(FeedError, match="'y' must be fed"):
        step(fluid.init_fn(startup)(jax.random.key(0)), {"x": batch()["x"]})
    with pytest.raises(FetchError, match="'nope' is not in the program"):
        fluid.step_fn(main, ["nope"])
    for target in (loss, loss.name):
        with pytest.raises(
            FluidTypeError, match=r"is a list.*write \['?mean_0.tmp_0'?\], as in step_fn\(main, \["
        ):
            fluid.step_fn(main, target)


@pytest.mark.parametrize("kind", BAD_FEEDS)
def test_pure_step_checks_its_feed(kind):
    main, startup, loss, _ = line()
    step, state = fluid.step_fn(main, [loss]), fluid.init_fn(startup)(jax.random.key(0))
    change, message = BAD_FEEDS[kind]
    with pytest.raises(FeedError, match=message):
        step(state, change(batch()))
    with pytest.raises(FeedError, match=r"feed 'z': .*no such variable"):
        step(state, {**batch(), "z": 1})


def test_pure_step_takes_the_32_bits_that_jax_makes_of_64():
    with fresh() as (main, _):
        ids = fluid.data("ids", [None, 1], "int64")
        out = layers.cast(ids, "float32")
    step = fluid.step_fn(main, [out])
    assert jax.jit(step)({}, {"ids": np.array([[7]])})[1][0].tolist() == [[7.0]]
    with pytest.raises(FeedError, match=r"shape \[1, 1, 1\].*\[-1, 1\]"):
        jax.jit(step)({}, {"ids": np.array([[[7]]])})


def test_a_state_goes_to_a_scope_and_back(scope):
    main, startup, loss, _ = line(optimizer=fluid.optimizer.Adam(0.01))
    step, state = fluid.step_fn(main, [loss]), fluid.init_fn(startup)(jax.random.key(0))
    with pytest.raises(EnforceNotMet, match="not initialised"):
        fluid.read_state(main)
    state, _ = jax.jit(step)(state, batch())
    fluid.write_state(state, main)
    copied = jax.tree.map(np.array, state)
    exe = fluid.Executor()
    (by_executor,) = exe.run(main, feed=batch(), fetch_list=[loss])
    after, (by_step,) = step(state, batch())
    np.testing.assert_allclose(by_executor, by_step, rtol=1e-6)
    again = fluid.read_state(main)
    assert again.keys() == after.keys()
    for name in again:
        assert again[name].dtype == main.global_block().var(name).desc.dtype
        np.testing.assert_allclose(again[name], after[name], rtol=1e-5, atol=1e-7, err_msg=name)
        # nobody donated the caller's arrays
        np.testing.assert_array_equal(state[name], copied[name])
    fluid.io.set_program_state(main, state)
    np.testing.assert_array_equal(scope.get("w"), state["w"])
    with pytest.raises(LoadError, match=r"missing in the file.*\n +w\n +unexpected.*\n +nope"):
        fluid.write_state(
            {**{n: v for n, v in state.items() if n != "w"}, "nope": state["w"]}, main
        )


def test_the_state_of_a_loaded_program(tmp_path, scope):
    main, startup, _, prediction = line()
    exe = fluid.Executor()
    exe.run(startup)
    fluid.io.save_inference_model(str(tmp_path), ["x"], [prediction], exe, main)
    with fluid.scope_guard(fluid.Scope()):
        program, _, (out,) = fluid.io.load_inference_model(str(tmp_path), exe)
        step = fluid.step_fn(program, [out])
        x = {"x": batch()["x"]}
        with pytest.raises(
            EnforceNotMet, match=r"'w' is not initialised.*init_fn.*read_state\(program\)"
        ):
            step({}, x)
        np.testing.assert_allclose(
            step(fluid.read_state(program), x)[1][0],
            exe.run(program, feed=x, fetch_list=[out])[0],
            rtol=1e-6,
        )


@pytest.mark.parametrize(
    "compute", [jnp.sin, jnp.asarray, jax.jit(lambda v: v), lambda v: jnp.ones(3) + v]
)
def test_jax_numpy_says_what_a_variable_is(compute):
    with fresh():
        x = fluid.data("x", [None, 3])
        with pytest.raises(
            FluidValueError, match=r"'x' has no value while the program is built.*fluid\.layers"
        ):
            compute(x)


def test_an_ops_error_carries_its_text_and_line():
    with fresh() as (main, _):
        x = fluid.data("x", [None, 3])
        out = layers.reshape(x, [4, 3])
    with pytest.raises(Exception) as caught:
        fluid.Executor().run(main, feed={"x": np.ones((2, 3), np.float32)}, fetch_list=[out])
    notes = "\n".join(caught.value.__notes__)
    assert "reshape2(" in notes and "test_executor.py:" in notes


def test_state_that_is_reshaped_in_place_begins_in_another_shape(scope):
    """Programs of Paddle declare such a variable in the shape that it ends with; a value of another
    size is refused.
    """
    main = fluid.Program()
    block = main.global_block()
    mask = block.create_var(name="mask", shape=[2, 6], dtype="float32", persistable=True)
    shape, out = (
        block.create_var(name="mask.shape", dtype="float32"),
        block.create_var(name="out", dtype="float32"),
    )
    block.append_op("reshape2", {"X": mask}, {"Out": mask, "XShape": shape}, {"shape": [2, 6]})
    block.append_op("scale", {"X": mask}, {"Out": out}, {"scale": 2.0})
    value = np.arange(12, dtype=np.float32)
    scope.var("mask").set(value.reshape(2, 3, 2))
    exe = fluid.Executor()
    for _ in range(2):
        np.testing.assert_array_equal(exe.run(main, fetch_list=[out])[0], 2 * value.reshape(2, 6))
    assert scope.get("mask").shape == (2, 6)
    scope.var("mask").set(np.zeros((2, 5), np.float32))
    with pytest.raises(
        EnforceNotMet, match=r"'mask' holds a value of shape \[2, 5\].*declares \[2, 6\]"
    ):
        exe.run(main, fetch_list=[out])


# -- state that nothing sets -----------------------------------------------------------------------


def test_an_accumulator_that_nothing_sets_begins_at_zero(scope):
    """As in 1.8.5, whose kernel of `sum` passes over empty tensors: evaluators count so before
    their first reset.
    """
    with fresh() as (main, _):
        x = fluid.data("x", [2])
        total = main.global_block().create_var(
            name="total", shape=[2], dtype="float32", persistable=True
        )
        layers.sums([total, x], out=total)
        fetched = layers.scale(total, 2.0)
    exe, step, state = fluid.Executor(), fluid.step_fn(main, [fetched]), {}
    for expected in ([2.0, 4.0], [4.0, 8.0]):
        feed = {"x": np.array([1, 2], np.float32)}
        np.testing.assert_array_equal(exe.run(main, feed=feed, fetch_list=[fetched])[0], expected)
        state, (value,) = step(state, feed)
        np.testing.assert_array_equal(value, expected)
    np.testing.assert_array_equal(scope.get("total"), [2, 4])
    np.testing.assert_array_equal(state["total"], [2, 4])


def test_other_state_must_be_set(scope):
    """Read by another op first, or of no known size: nothing says where it begins."""
    for shape, early in (([2], True), ([-1], False)):
        with fresh() as (main, _):
            x = fluid.data("x", [2])
            total = main.global_block().create_var(
                name="total", shape=shape, dtype="float32", persistable=True
            )
            fetched = layers.scale(total, 2.0) if early else total
            layers.sums([total, x], out=total)
        feed = {"x": np.ones(2, np.float32)}
        with pytest.raises(EnforceNotMet, match="'total' is not initialised"):
            fluid.Executor().run(main, feed=feed, fetch_list=[fetched])
        with pytest.raises(EnforceNotMet, match="'total' is not initialised"):
            fluid.step_fn(main, [fetched])({}, feed)


def test_a_persistable_variable_that_is_fed_keeps_the_value():
    """The numbers are 1.8.5's."""
    with fresh(), fluid.scope_guard(fluid.Scope()):
        x = layers.data("x", [2])
        x.persistable = True
        rate = layers.create_global_var([1], 0.1, "float32", persistable=True, name="rate")
        loss = layers.mean(
            layers.fc(
                x,
                1,
                param_attr=fluid.ParamAttr(name="w", initializer=fluid.initializer.Constant(0.5)),
            )
        )
        fluid.optimizer.SGD(rate).minimize(loss)
        exe, ones = fluid.Executor(fluid.CPUPlace()), np.ones((3, 2), "float32")
        exe.run(fluid.default_startup_program())
        feeds = [{"x": ones * i, "rate": np.array([0.5 * i], "float32")} for i in range(3)]
        assert [
            [v.item() for v in exe.run(feed=feed, fetch_list=[loss, rate])] for feed in feeds
        ] == [[0, 0], [1, 0.5], [-0.5, 1]]
        with pytest.raises(FeedError):
            exe.run(feed={"x": ones, "w": np.ones((3, 1), "float32")})
        found = exe.run(
            feed={"x": ones, "w": np.array([[1.0], [2.0]], "float32")}, fetch_list=[loss, rate, "w"]
        )
        assert [v.ravel().tolist() for v in found] == [[1.5], [1.0], [0.0, 1.0]]
        assert exe.run(fetch_list=[loss, x])[0].item() == -1.5  # of the x that was fed before
        steps = exe.run_steps(
            feeds=[{"x": ones, "rate": np.array([r], "float32")} for r in (0.0, 1.0)],
            fetch_list=[loss, rate],
        )
        assert [v.ravel().tolist() for v in steps] == [[-4.5, -4.5], [0.0, 1.0]]
        assert np.array(fluid.global_scope().find_var("rate").get_tensor()).item() == 1.0


def test_what_a_program_keeps_is_made_in_the_outermost_scope():
    """As in 1.8.5: a startup program run in a kid scope gives the root its parameters; a value that
    a kid has itself stays there.
    """
    main, startup, loss, _ = line()
    exe, root = fluid.Executor(), fluid.Scope()
    kid = root.new_scope()
    exe.run(startup, scope=kid.new_scope())
    assert "w" in root.local_var_names() and not kid.local_var_names()
    before = root.get("w")
    exe.run(main, feed=batch(), fetch_list=[loss], scope=kid)
    assert (root.get("w") != before).all() and not kid.local_var_names()
    other = root.new_scope()
    other.var("w").set(np.full(before.shape, 9, "float32"))
    after = root.get("w")
    exe.run(main, feed=batch(), fetch_list=[loss], scope=other)
    assert (other.get("w") != 9).all() and np.array_equal(root.get("w"), after)
