"""Python within a program: py_func with a backward function, what it raises, and Print."""

from __future__ import annotations

import re
import traceback
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import EnforceNotMet, FluidTypeError, FluidValueError

X = np.array([[0.5, -1.0], [2.0, 0.25], [1.0, 3.0]], "float32")


def made(name: str, shape: list[int], dtype: str = "float32") -> Any:
    return (
        fluid.default_main_program().current_block().create_var(name=name, shape=shape, dtype=dtype)
    )


def cube(x: Any) -> Any:
    return x**3


def cube_grad(x: Any, out: Any, d_out: Any) -> Any:
    np.testing.assert_allclose(out, x**3, rtol=1e-6)
    return 3 * x**2 * d_out


def test_values_and_gradients_in_a_training_step() -> None:
    """The parameter's gradient goes through the backward function; three steps are those of NumPy."""
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [-1, 2], "float32")
        w = layers.create_parameter(
            [2], "float32", name="w", default_initializer=fluid.initializer.Constant(0.5)
        )
        out = layers.py_func(
            cube, layers.elementwise_mul(x, w), made("out", [-1, 2]), backward_func=cube_grad
        )
        loss = layers.mean(out)
        fluid.optimizer.SGD(0.1).minimize(loss)
        (op,) = (
            o
            for o in fluid.default_main_program().global_block().ops
            if o.type == "py_func" and "out@GRAD" in o.input("X")
        )
        assert op.input("X")[1:] == ["out", "out@GRAD"] and op.attr("backward_callable_id") == -1
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        want = np.full(2, 0.5)
        for rows in (3, 2, 3):
            (got,) = exe.run(feed={"x": X[:rows]}, fetch_list=[loss])
            np.testing.assert_allclose(got, np.mean((X[:rows] * want) ** 3), rtol=1e-5)
            want = want - 0.1 * np.sum(3 * (X[:rows] * want) ** 2 * X[:rows], 0) / X[:rows].size
        np.testing.assert_allclose(
            np.array(fluid.global_scope().find_var("w").get_tensor()), want, rtol=1e-5
        )


def test_other_dtypes_several_results_skipped_inputs_and_no_gradient() -> None:
    """int64 stays 64 bits wide; a backward function gets None for a gradient that there is not, and
    may return None.
    """
    seen: list[Any] = []

    def backward(out: Any, d_total: Any, d_out: Any) -> Any:
        seen.append((d_total, d_out))
        return None, 2 * d_out

    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, y = fluid.data("x", [2], "int64"), fluid.data("y", [2], "float32")
        y.stop_gradient = False
        total, out = made("total", [1], "int64"), made("out", [2])
        layers.py_func(
            lambda x, y: (np.array([x.sum()]), 2 * y), [x, y], [total, out], backward_func=backward,
            skip_vars_in_backward_input=[x, y, total],
        )  # fmt: skip
        (grad,) = fluid.gradients(layers.reduce_sum(layers.square(out)), [y])
        big = np.array([2**40, 3])
        got = fluid.Executor().run(
            feed={"x": big, "y": np.array([1.5, -1], "float32")}, fetch_list=[total, grad]
        )
    assert int(got[0]) == 2**40 + 3 and got[0].dtype == np.int64
    np.testing.assert_allclose(got[1], [12, -8])
    assert seen[0][0] is None


def test_a_function_without_outputs_is_called() -> None:
    seen: list[Any] = []
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [2], "float32")
        layers.py_func(lambda x: seen.append(x.tolist()), x, None)
        fluid.Executor().run(
            feed={"x": np.array([1, 2], "float32")}, fetch_list=[layers.scale(x, 2.0)]
        )
    assert seen == [[1.0, 2.0]]


def failing(x: Any) -> Any:
    raise KeyError("not today")


@pytest.mark.parametrize("fn, error, match", [
    (failing, KeyError, "not today"),
    (lambda x: x[:1], EnforceNotMet, r"\(tests/.*:\d+\) returns float32 of shape \[1, 2\] for 'out', .* as float32 of shape \[3, 2\]"),
    (lambda x: (x, x), EnforceNotMet, "returns 2 values, but the op has 1 outputs"),
    (lambda x: x.astype("float64"), EnforceNotMet, "returns float64 of shape"),
])  # fmt: skip
def test_what_a_function_raises_a_run_raises_and_the_scope_stays(
    fn: Any, error: type[Exception], match: str, caplog: Any
) -> None:
    """With its own traceback, which nothing logs besides; afterwards the program runs on from where
    it was.
    """
    ok = [True]
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [-1, 2], "float32")
        counter = layers.autoincreased_step_counter()
        out = layers.py_func(lambda x: x if ok[0] else fn(x), x, made("out", [-1, 2]))
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        run = lambda: exe.run(feed={"x": X}, fetch_list=[counter, out])  # noqa: E731
        assert int(run()[0]) == 1
        ok[0] = False
        with pytest.raises(error, match=match) as caught:
            run()
        if fn is failing:
            assert "in failing" in "".join(traceback.format_tb(caught.value.__traceback__))
        assert not caplog.records
        ok[0] = True
        assert int(run()[0]) == 2


def test_refusals() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [2], "float32")
        with pytest.raises(FluidTypeError, match="py_func's func is a Python function, not 3"):
            layers.py_func(3, x, x)
        with pytest.raises(
            FluidTypeError,
            match="py_func's out is a variable, or a list or tuple of variables, not 'out'",
        ):
            layers.py_func(cube, x, "out")
        with pytest.raises(
            FluidValueError, match="py_func skips 'other', which is neither in x nor in out"
        ):
            layers.py_func(cube, x, made("out", [2]), cube_grad, made("other", [2]))
        layers.py_func(cube, x, made("out", [2]))
        data = fluid.default_main_program().serialize_to_string()
    loaded = fluid.Program.parse_from_string(data)
    loaded.global_block().ops[-1]._set_attr("forward_callable_id", 10**6)
    with pytest.raises(
        EnforceNotMet,
        match=(
            "calls a Python function that this process has not made, since files of programs hold"
            " none"
        ),
    ):
        fluid.Executor().run(loaded, feed={"x": np.ones(2, "float32")}, fetch_list=["out"])


def test_print_shows_the_value_and_its_gradient_passes(capfd: Any) -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [2], "float32")
        x.stop_gradient = False
        shown = layers.Print(x, message="here:")
        (grad,) = fluid.gradients(layers.reduce_sum(layers.square(shown)), [x])
        (got,) = fluid.Executor().run(feed={"x": np.array([1.5, -2], "float32")}, fetch_list=[grad])
    np.testing.assert_allclose(got, [3, -4])
    assert re.search(r"here: x \[\s*1\.5\s+-2\.\s*\]", capfd.readouterr().out)


def test_gradients_through_the_steps_of_a_loop() -> None:
    """In a StaticRNN, whose states a While takes on that hands entries on and joins them behind:
    those of NumPy's differences.

    1.8.5's gradients of both are others.
    """

    def plain(w: Any) -> Any:
        before, entry = X[0] * w, []
        for row in X * w:
            before = np.tanh(row**3 + before)
        for _ in range(3):
            entry.append(before)
            before = np.tanh(before * w)
        return np.mean(np.square(entry))

    with fluid.program_guard(fluid.Program(), fluid.Program()):
        w = layers.create_parameter(
            [2], "float32", name="w", default_initializer=fluid.initializer.Constant(0.5)
        )
        given, rnn = layers.elementwise_mul(fluid.data("x", [3, 2]), w), layers.StaticRNN()
        begin = layers.reshape(layers.slice(given, [0], [0], [1]), [2])
        with rnn.step():
            row, before = rnn.step_input(given), rnn.memory(init=begin)
            out = layers.py_func(cube, row, made("cubed", [2]), cube_grad)
            after = layers.tanh(out + before)
            rnn.update_memory(before, after)
            rnn.step_output(after)
        i, n = (layers.fill_constant([1], "int64", k) for k in (0, 2))
        states = layers.array_write(layers.reshape(layers.slice(rnn(), [0], [2], [3]), [2]), i)
        going = layers.less_than(i, n)
        with layers.While(going).block():
            entry = layers.tanh(layers.array_read(states, i) * w)
            layers.increment(i)
            layers.array_write(entry, i, states)
            layers.less_than(i, n, cond=going)
        loss = layers.mean(layers.square(layers.tensor_array_to_tensor(states, axis=0)[0]))
        ((_, grad),) = fluid.backward.append_backward(loss)
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(fluid.default_startup_program(), scope=scope)
        got, slope = exe.run(feed={"x": X}, fetch_list=[loss, grad], scope=scope)
    np.testing.assert_allclose(got, plain(np.full(2, 0.5)), rtol=1e-5)
    steps = [(plain(0.5 + d) - plain(0.5 - d)) / 2e-6 for d in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(slope, steps, rtol=1e-4, atol=1e-6)


def test_sizes_that_only_the_function_knows():
    """An output of [-1, -1] is what the function returns; what reads it, and gradients, follow."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 3])
        x.stop_gradient = False
        block = main.current_block()
        twice, wrong = (
            block.create_var(name=n, dtype="float32", shape=s)
            for n, s in (("twice", [-1, -1]), ("wrong", [-1, 5]))
        )
        fluid.layers.py_func(
            lambda v: np.concatenate([np.array(v)] * 2, 1),
            x,
            twice,
            lambda x, out, g: np.array(g)[:, :3] + 3 * np.array(g)[:, 3:],
        )
        total = fluid.layers.reduce_sum(fluid.layers.relu(twice), dim=[0])
        (grad,) = fluid.gradients(total, [x])
    exe = fluid.Executor()
    for rows in (2, 4):
        feed = {"x": np.ones((rows, 3), "float32")}
        found = exe.run(main, feed=feed, fetch_list=[twice, total, grad])
        assert (
            found[0].shape == (rows, 6)
            and found[1].tolist() == [rows] * 6
            and (found[2] == 4).all()
        )
    with fluid.program_guard(main):
        fluid.layers.py_func(lambda v: np.array(v), x, wrong)
    with pytest.raises(
        EnforceNotMet, match=r"returns float32 of shape \[2, 3\] for 'wrong', which is declared as"
    ):
        exe.run(main, feed={"x": np.ones((2, 3), "float32")}, fetch_list=[wrong])


def test_functions_get_tensors_as_in_paddle() -> None:
    """As 1.8.5 hands them over: LoDTensors, the input's with its LoD, others without; forward and
    backward, padded rows cut off.
    """
    seen: list[Any] = []

    def told(x: Any) -> None:
        assert isinstance(x, fluid.LoDTensor) and x._dtype() == fluid.core.VarDesc.VarType.FP32
        seen.append((x.shape(), x.lod(), x.recursive_sequence_lengths()))

    def twice(x: Any) -> Any:
        told(x)
        return np.array(x) * 2

    def back(*values: Any) -> Any:
        for value in values:
            told(value)
        return values[-1] * 2  # as an array too

    with fluid.program_guard(fluid.Program()):
        x = fluid.data("x", [-1, 2], "float32", lod_level=1)
        x.stop_gradient = False
        out = layers.py_func(twice, x, made("out", [-1, 2]), back)
        (grad,) = fluid.gradients(layers.mean(out), [x])
        fed = fluid.create_lod_tensor(X, [[2, 1]], fluid.CPUPlace())
        got = fluid.Executor().run(feed={"x": fed}, fetch_list=[out, grad])
    np.testing.assert_array_equal(got[0], 2 * X)
    np.testing.assert_allclose(got[1], np.full((3, 2), 1 / 3), rtol=1e-6)
    with_lod, without = ([3, 2], [[0, 2, 3]], [[2, 1]]), ([3, 2], [], [])
    assert seen == [with_lod, with_lod, without, without]


def test_a_result_with_a_lod_is_refused() -> None:
    with fluid.program_guard(fluid.Program()):
        x = fluid.data("x", [-1, 2], "float32", lod_level=1)
        out = layers.py_func(lambda x: x, x, made("out", [-1, 2]))
        fed = fluid.create_lod_tensor(X, [[2, 1]], fluid.CPUPlace())
        with pytest.raises(fluid.errors.UnsupportedError, match="a tensor with a LoD"):
            fluid.Executor().run(feed={"x": fed}, fetch_list=[out])
        (got,) = fluid.Executor().run(feed={"x": X}, fetch_list=[out])
        np.testing.assert_array_equal(got, X)
