"""Programs that are not a single traced step: Python drives them by segments, and values and gradients
are what they should be.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import NanInfError, NotOneStep, ShapeError, UnsupportedError
from fluidjax.ops import loop_course
from fluidjax.ops.control.while_loop import Loop

from ..tools import control_nets

X = np.array([0.5, 2.0], "float32")


def number(value: float, dtype: str = "int64") -> Any:
    return layers.fill_constant([1], dtype, value)


def grown(x: Any, w: Any, n: Any) -> Any:
    """A carried value that gets longer, and one that a parameter multiplies."""

    def body(i: Any, y: Any, z: Any) -> Any:
        return [i + 1, layers.concat([y * w, x]), z * w]

    _, y, z = layers.while_loop(
        lambda i, *_: layers.less_than(i, n), body, [number(0), x * 1.0, x * 2.0]
    )
    return layers.reduce_sum(y * y) + layers.reduce_sum(z)


def grown_jax(x: Any, w: Any, n: int) -> Any:
    y, z = x, 2 * x
    for _ in range(n):
        y, z = jnp.concatenate([y * w, x]), z * w
    return (y * y).sum() + z.sum()


def until(x: Any, w: Any, n: Any) -> Any:
    """Only the data say when it ends, and it is differentiated; a branch within."""
    zero = number(0, "float32")

    def body(y: Any) -> Any:
        return [
            layers.cond(
                layers.less_than(layers.reduce_sum(y), number(3, "float32")),
                lambda: y * w + x,
                lambda: y * 2.0,
            )
        ]

    most = number(20, "float32") + layers.cast(n, "float32")
    y = layers.while_loop(lambda y: layers.less_than(layers.reduce_sum(y), most), body, [x * w])
    return layers.reduce_sum(y[0]) + zero


def until_jax(x: Any, w: Any, n: int) -> Any:
    at, y = X * np.float32(1.5), x * w
    while at.sum() < 20 + n:
        small = at.sum() < 3
        at, y = (at * np.float32(1.5) + X, y * w + x) if small else (at * 2, y * 2)
    return y.sum()


def entries(x: Any, w: Any, n: Any) -> Any:
    """Entries of different shapes, written where data say, read back in another loop."""
    array, out = layers.array_write(x * w, number(0)), number(0, "float32")
    i = number(1)
    going = layers.less_than(i, n)
    with layers.While(going).block():
        layers.array_write(layers.concat([layers.array_read(array, i - 1), x]), i, array=array)
        layers.increment(i)
        layers.less_than(i, n, cond=going)
    last = layers.array_read(array, layers.array_length(array) - 1)
    return layers.reduce_sum(last * last) + out


def entries_jax(x: Any, w: Any, n: int) -> Any:
    last = jnp.concatenate([x * w, *[x] * max(n - 1, 0)])
    return (last * last).sum()


NETS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "a value that grows": (grown, grown_jax), "an end that data say": (until, until_jax), "entries of all shapes": (entries, entries_jax),
}  # fmt: skip


@pytest.mark.first(1)
@pytest.mark.parametrize("name", NETS)
def test_values_and_gradients(name: str) -> None:
    """Against jax.grad of the loop unrolled; and it trains: the parameter is what the gradient
    makes of it.
    """
    net, plain = NETS[name]
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, n = fluid.data("x", [2], "float32"), fluid.data("n", [1], "int64")
        x.stop_gradient = False
        w = layers.create_parameter(
            [1], "float32", name="w", default_initializer=fluid.initializer.Constant(1.5)
        )
        loss = net(x, w, n)
        _, ((_, grad),) = fluid.optimizer.SGD(0.125).minimize(loss)
        exe = fluid.Executor()
        for count in (2, 1)[: 1 + (net is until)]:
            scope = fluid.Scope()
            exe.run(fluid.default_startup_program(), scope=scope)
            found, d_x, d_w = exe.run(
                feed={"x": X, "n": np.array([count])},
                fetch_list=[loss, x.name + "@GRAD", grad],
                scope=scope,
            )
            want, slopes = jax.value_and_grad(
                lambda x, w, count=count: plain(x, w[0], count), (0, 1)
            )(X, np.array([1.5], "float32"))
            np.testing.assert_allclose(found.reshape(()), want, rtol=1e-5)
            np.testing.assert_allclose(d_x, slopes[0], rtol=1e-5)
            np.testing.assert_allclose(d_w, slopes[1], rtol=1e-5)
            np.testing.assert_allclose(scope.get("w"), 1.5 - 0.125 * slopes[1], rtol=1e-5)


def test_what_explain_tells() -> None:
    """Where a step is cut first, and why; a fed count is a bound; what runs as it stands is not
    told of. One step refuses the first.
    """
    for name, way in {
        "a value that grows": "cut",
        "entries of all shapes": "bounded",
        "an end that data say": None,
    }.items():
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            x, n = fluid.data("x", [2], "float32"), fluid.data("n", [1], "int64")
            out = NETS[name][0](x, layers.fill_constant([1], "float32", 1.5), n)
            main, feed = fluid.default_main_program(), {"x": X, "n": np.array([3])}
            told = [t for t in main.explain(feed) if t.op == "while"]
            assert [t.way for t in told] == ([way] if way else [])
            assert all("tests/partition/test_cuts.py:" in (t.loc or "") for t in told)
            if way == "cut":
                with pytest.raises(UnsupportedError) as raised:
                    jax.jit(fluid.step_fn(main, [out]))({}, feed)
                assert str(raised.value) == told[0].reason


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "name", ["while_array", "while_in_while", "cond_in_while", "while_in_cond"]
)
def test_driven_by_python_equals_the_traced_step(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded networks, also as if none of their loops could be traced: losses and parameters of
    two steps.
    """

    def untraceable(loop: Loop) -> None:
        raise NotOneStep("as a test wants it")

    net = next(net for net in control_nets.NETS if net.__name__ == name)
    found = []
    for driven in (False, True):
        with (
            fluid.program_guard(fluid.Program(), fluid.Program()),
            fluid.unique_name.guard(),
            fluid.scope_guard(fluid.Scope()),
        ):
            loss = net(fluid)
            fluid.optimizer.SGD(0.1).minimize(loss)
            main, exe = fluid.default_main_program(), fluid.Executor()
            exe.run(fluid.default_startup_program())
            params = main.all_parameters()
            for p in params:
                fluid.global_scope().var(p.name).set(control_nets.initial(p.name, p.shape))
            if driven:
                monkeypatch.setattr(Loop, "run", untraceable)
            feeds = [
                {k: control_nets.fed(fluid, v) for k, v in feed.items()}
                for feed in control_nets.FEEDS[name][:2]
            ]
            losses = [exe.run(main, feed=feed, fetch_list=[loss])[0] for feed in feeds]
            found.append([*losses, *(fluid.global_scope().get(p.name) for p in params)])
    for traced, by_python in zip(*found, strict=True):
        np.testing.assert_allclose(by_python, traced, rtol=1e-5, atol=1e-6)


def test_a_fed_count_is_a_bound() -> None:
    """A gradient through a loop whose count is fed: one program for a bucket of counts; a derived
    one is a constant.
    """
    for derived in (False, True):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            x, n = fluid.data("x", [2], "float32"), fluid.data("n", [1], "int64")
            x.stop_gradient = False
            most = n * 2 if derived else n
            _, y = layers.while_loop(
                lambda i, y, most=most: layers.less_than(i, most),
                lambda i, y, x=x: [i + 1, y * x],
                [number(0), x * 1.0],
            )
            (slope,) = fluid.gradients(y, x)
            exe = fluid.Executor()
            for count in (0, 1, 3):
                (found,) = exe.run(feed={"x": X, "n": np.array([count])}, fetch_list=[slope])
                power = count * (1 + derived)
                np.testing.assert_allclose(found, (power + 1) * X**power, rtol=1e-5)
            assert len(exe.compilations()) == (3 if derived else 1)


def test_a_fed_count_beyond_what_is_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python drives the loop, however often it runs."""
    monkeypatch.setattr(loop_course, "MOST", 4)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, n = fluid.data("x", [2], "float32"), fluid.data("n", [1], "int64")
        x.stop_gradient = False
        _, y = layers.while_loop(
            lambda i, y: layers.less_than(i, n), lambda i, y: [i + 1, y * x], [number(0), x * 1.0]
        )
        (slope,) = fluid.gradients(y, x)
        (found,) = fluid.Executor().run(feed={"x": X, "n": np.array([5])}, fetch_list=[slope])
    np.testing.assert_allclose(found, 6 * X**5, rtol=1e-5)


def test_ctrl_c_and_errors_leave_the_scope() -> None:
    """A loop that a Python function interrupts, or that fails in its third iteration."""
    wishes = ["go on"]

    def stop(value: Any) -> Any:
        if value.size == 6 and wishes[-1] == "interrupt":
            # as one that falls into the function; tests/runtime/test_interrupt.py has them fall anywhere
            raise KeyboardInterrupt
        if value.size == 6 and wishes[-1] == "fail":
            raise ValueError("of the user")
        return value

    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, main = fluid.data("x", [2], "float32"), fluid.default_main_program()
        counter = layers.autoincreased_step_counter()

        def body(i: Any, y: Any) -> Any:
            seen = main.current_block().create_var(name="seen", shape=[-1], dtype="float32")
            return [i + 1, layers.concat([layers.py_func(stop, y, seen), x])]

        _, y = layers.while_loop(
            lambda i, y: layers.less_than(i, number(4)), body, [number(0), x * 1.0]
        )
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(fluid.default_startup_program(), scope=scope)
        for wish, error in (
            ("go on", None),
            ("interrupt", KeyboardInterrupt),
            ("fail", ValueError),
            ("go on", None),
        ):
            wishes.append(wish)
            if error is None:
                np.testing.assert_array_equal(
                    exe.run(feed={"x": X}, fetch_list=[y], scope=scope)[0], np.tile(X, 5)
                )
            else:
                with pytest.raises(error):
                    exe.run(feed={"x": X}, fetch_list=[y], scope=scope)
                assert scope.get(counter.name) == 1
        assert scope.get(counter.name) == 2


def test_each_iteration_draws_anew_as_in_one_step() -> None:
    """The same numbers whether the loop is traced or driven."""
    found = []
    for grows in (False, True):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            fluid.default_main_program().random_seed = 3
            x = layers.fill_constant([4], "float32", 1.0)

            def body(i: Any, y: Any, z: Any, x: Any = x, grows: bool = grows) -> Any:
                return [
                    i + 1,
                    y + layers.dropout(x, 0.5) * layers.cast(i + 1, "float32"),
                    layers.concat([z, x]) if grows else z + x,
                ]

            _, y, _ = layers.while_loop(
                lambda i, *_: layers.less_than(i, number(3)), body, [number(0), x * 0.0, x * 1.0]
            )
            exe = fluid.Executor()
            found.append([exe.run(fetch_list=[y])[0] for _ in range(2)])
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0][0], found[0][1])


def test_what_is_not_finite_is_found() -> None:
    """By the first op whose result leaves its segment."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [2], "float32")
        _, y = layers.while_loop(
            lambda i, y: layers.less_than(i, number(2)),
            lambda i, y: [i + 1, layers.concat([layers.log(y), x])],
            [number(0), x * 1.0],
        )
        exe = fluid.Executor()
        assert np.isnan(exe.run(feed={"x": X}, fetch_list=[y])[0]).any()
        fluid.set_flags({"FLAGS_check_nan_inf": True})
        try:
            with pytest.raises(
                NanInfError,
                match=r"op 'assign' \(tests/partition/test_cuts.py:\d+\) wrote NaN or infinity",
            ):
                exe.run(feed={"x": X}, fetch_list=[y])
        finally:
            fluid.set_flags({"FLAGS_check_nan_inf": False})


def test_an_op_that_does_not_take_what_a_loop_made_says_what_has_changed() -> None:
    """The variable, both shapes, the iteration and the loop's line."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        i, n, x = (
            layers.fill_constant([1], "int64", 0),
            layers.fill_constant([1], "int64", 3),
            fluid.data("x", [None, 2]),
        )
        y, going = x * 1.0, layers.less_than(i, n)
        with layers.While(going).block():
            layers.assign(layers.concat([y + x, y], 0), y)
            layers.increment(i)
            layers.less_than(i, n, cond=going)
        with pytest.raises(ShapeError) as caught:
            fluid.Executor().run(feed={"x": np.ones((2, 2), "f4")}, fetch_list=[y])
    text = "\n".join(caught.value.__notes__)
    where = r"in iteration 1 of the loop at tests/partition/test_cuts.py:\d+, "
    assert re.search(where + r"which has changed 'tmp_\d+' from shape \[2, 2\] to \[4, 2\]", text)
