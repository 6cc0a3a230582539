"""Loops: each way of running one, and its gradients, against the loop unrolled by hand and
jax.grad.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers, passes
from fluidjax.errors import EnforceNotMet, FeedError, FluidTypeError
from fluidjax.ir import text, verify
from fluidjax.lower.step import Step
from fluidjax.ops import loop_course
from fluidjax.ops.registry import lookup

from ..op_by_op import OpByOp
from ..tools import control_nets

X = np.array([0.5, -1.0, 2.0, 0.25], "float32")
W = np.array([0.3, -0.7, 1.1, 0.9], "float32")


def number(value: int) -> Any:
    return layers.fill_constant([1], "int64", value)


def built(net: Callable[[Any, Any], Any], **fed: str) -> tuple[fluid.Program, list[str]]:
    """A program of net(x, w, ...), squared and added up, with the gradients by x and w; the names
    of these three.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, w = fluid.data("x", [4], "float32"), fluid.data("w", [4], "float32")
        x.stop_gradient = w.stop_gradient = False
        loss = layers.reduce_sum(
            layers.square(net(x, w, *(fluid.data(n, [1], t) for n, t in fed.items())))
        )
        grads = fluid.gradients(loss, [x, w])
        return fluid.default_main_program(), [loss.name, *(g.name for g in grads)]


def loop(x: Any, w: Any, going: Callable[[Any, Any], Any]) -> Any:
    """y = tanh(y w + x), five times at most."""
    return layers.while_loop(
        going, lambda i, y: [i + 1, layers.tanh(y * w + x)], [number(0), x * w]
    )[1]


def exact(x: Any, w: Any) -> Any:
    five = number(5)
    return loop(x, w, lambda i, y: layers.less_than(i, five))


def exact_jax(x: Any, w: Any) -> Any:
    y = x * w
    for _ in range(5):
        y = jnp.tanh(y * w + x)
    return y


def bounded(x: Any, w: Any) -> Any:
    """The number of iterations depends on the data."""
    five, top = number(5), layers.fill_constant([1], "float32", 1.6)
    return loop(
        x,
        w,
        lambda i, y: layers.logical_and(
            layers.less_than(i, five), layers.less_than(layers.reduce_sum(y), top)
        ),
    )


def bounded_jax(x: Any, w: Any) -> Any:
    y = x * w
    for _ in range(5):
        y = jnp.where(y.sum() < 1.6, jnp.tanh(y * w + x), y)
    return y


def twice(x: Any, w: Any) -> Any:
    """An array of which each entry is read in the loop and after it, and one entry is written anew."""
    i, n, one = number(0), number(3), number(1)
    states = layers.array_write(x * w, i)
    going = layers.less_than(i, n)
    with layers.While(going).block():
        after = layers.tanh(layers.array_read(states, i) * w)
        layers.increment(i)
        layers.array_write(after, i, states)
        layers.less_than(i, n, cond=going)
    before = layers.array_read(states, one)
    layers.array_write(before * x, one, states)
    return layers.tensor_array_to_tensor(states, axis=0)[0]


def twice_jax(x: Any, w: Any) -> Any:
    entries = [x * w]
    for _ in range(3):
        entries.append(jnp.tanh(entries[-1] * w))
    entries[1] = entries[1] * x
    return jnp.concatenate(entries)


def last_alone(x: Any, w: Any) -> Any:
    """What each iteration writes anew without reading it: the gradient belongs to the last
    iteration.
    """
    i, n = number(0), number(3)
    return layers.while_loop(
        lambda i, y, z: layers.less_than(i, n),
        lambda i, y, z: [i + 1, y * w, y * x],
        [i, x * 1.0, x * 0.0],
    )[2]


def last_alone_jax(x: Any, w: Any) -> Any:
    return x * w * w * x


def nested(x: Any, w: Any) -> Any:
    """A loop within a branch within a loop; the inner loop writes an array of the outer one's
    block.
    """
    i, n = number(0), number(2)

    def body(i: Any, y: Any) -> list[Any]:
        def inner() -> Any:
            j, m = number(0), number(3)
            states = layers.array_write(y, j)
            going = layers.less_than(j, m)
            with layers.While(going).block():
                after = layers.array_read(states, j) * w
                layers.increment(j)
                layers.array_write(after, j, states)
                layers.less_than(j, m, cond=going)
            return layers.array_read(states, m)

        flag = layers.less_than(layers.reduce_sum(y), layers.fill_constant([1], "float32", 0.8))
        return [i + 1, layers.cond(flag, inner, lambda: layers.sin(y) + w)]

    return layers.while_loop(lambda i, y: layers.less_than(i, n), body, [i, x * w])[1]


def nested_jax(x: Any, w: Any) -> Any:
    y = x * w
    for _ in range(2):
        y = jnp.where(y.sum() < 0.8, y * w * w * w, jnp.sin(y) + w)
    return y


NETS = {
    "exact": (exact, exact_jax), "bounded": (bounded, bounded_jax), "twice": (twice, twice_jax),
    "last alone": (last_alone, last_alone_jax), "nested": (nested, nested_jax),
}  # fmt: skip


@pytest.fixture(scope="module")
def programs() -> dict[str, tuple[fluid.Program, list[str]]]:
    return {name: built(net) for name, (net, _) in NETS.items()}


@pytest.mark.first(3)
@pytest.mark.parametrize("form", [Step, OpByOp])
@pytest.mark.parametrize("name", NETS)
def test_values_and_gradients(programs: Any, name: str, form: type[Step]) -> None:
    program, names = programs[name]
    step = form(program.desc, tuple(names))
    run = step if form is OpByOp else jax.jit(step)

    def loss(x: Any, w: Any) -> Any:
        return jnp.sum(NETS[name][1](x, w) ** 2)

    for x, w in [(X, W), (-X, W), (X[::-1].copy(), W)]:
        _, got = run({}, {"x": x, "w": w})
        for found, want in zip(got, [loss(x, w), *jax.grad(loss, (0, 1))(x, w)], strict=True):
            np.testing.assert_allclose(found, want, rtol=2e-5, atol=1e-6)


@pytest.mark.first(1)
@pytest.mark.parametrize("name", NETS)
def test_programs_with_loops_are_checked_printed_and_rewritten(programs: Any, name: str) -> None:
    program, names = programs[name]
    desc, feed = program.desc, {"x": X, "w": W}
    verify.verify(desc, lookup)
    assert text.parse(text.to_text(desc)) == desc
    saved = program.serialize_to_string()
    assert fluid.Program.parse_from_string(saved).serialize_to_string() == saved
    assert program.clone().desc == desc
    want = Step(desc, tuple(names))({}, feed)[1]
    rewritten = [
        passes.run(kind, desc, keep=names).desc
        for kind in ("dce", "fold_constants", "memory_optimize")
    ]
    for other in (*rewritten, program._prune(names).desc):
        for a, b in zip(Step(other, tuple(names))({}, feed)[1], want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def counted(count: Any) -> tuple[Any, Any]:
    """y doubled `count` times, and the counter afterwards."""
    y = fluid.data("y", [2], "float32")
    i, y = layers.while_loop(
        lambda i, y: layers.less_than(i, count), lambda i, y: [i + 1, y * 2.0], [number(0), y]
    )
    return i, y


@pytest.mark.parametrize("known", [True, False])
def test_a_loop_whose_end_only_the_data_knows(known: bool) -> None:
    """A count that is fed makes a lax.while_loop, one that is a constant a scan; both count as the
    unrolled loop does.
    """
    for n in (0, 1, 7):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            i, y = counted(number(n) if known else fluid.data("n", [1], "int64"))
            feed = {"y": np.array([1.5, -1.0], "float32")} | ({} if known else {"n": np.array([n])})
            got = fluid.Executor().run(feed=feed, fetch_list=[i, y])
        assert int(got[0]) == n
        np.testing.assert_array_equal(got[1], np.array([1.5, -1.0], "float32") * 2**n)


# name -> the counter's step, its change each time, the bound, the number of iterations to it
PACES = {
    "far": (1, 0, 10**12, None), "near": (1, 0, 400, 400), "down": (-2, 0, -900, 450), "ever faster": (1, 1, 10**5, 447),
}  # fmt: skip


@pytest.mark.parametrize("name", PACES)
def test_a_bound_out_of_reach_is_seen_early(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit like 10**12 beside a condition on data: files from elsewhere have such loops."""
    pace, change, last, count = PACES[name]
    found, evaluated = [], []
    course, evaluate = loop_course.Follow.course, loop_course.Follow.step
    monkeypatch.setattr(
        loop_course.Follow, "course", lambda self: found.append(course(self)) or found[-1]
    )
    monkeypatch.setattr(
        loop_course.Follow, "step", lambda *args: evaluated.append(0) or evaluate(*args)
    )
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, end = fluid.data("x", [1], "float32"), number(last)
        below = layers.less_than if last > 0 else layers.greater_than
        *_, y = layers.while_loop(
            lambda i, j, y: layers.logical_and(below(i, end), layers.less_than(y, x)),
            lambda i, j, y: [i + j, j + change, y + 1.0],
            [number(0), number(pace), x * 0.0],
        )
        (value,) = fluid.Executor().run(feed={"x": np.array([5.5], "float32")}, fetch_list=[y])
    assert value.tolist() == [6.0]
    assert [(c.count, c.exact) for c in found] == [(count, False)]
    assert len(evaluated) <= 10 * (count or loop_course.TRIED)


def test_each_iteration_draws_anew() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        i, n, drawn = number(0), number(4), layers.create_array("float32")
        going = layers.less_than(i, n)
        with layers.While(going).block():
            layers.array_write(layers.uniform_random([3]), i, drawn)
            layers.increment(i)
            layers.less_than(i, n, cond=going)
        stacked, _ = layers.tensor_array_to_tensor(drawn, axis=0, use_stack=True)
        rows = fluid.Executor().run(fetch_list=[stacked, layers.array_length(drawn)])
    assert len(np.unique(rows[0])) == 12 and rows[0].shape == (4, 3) and int(rows[1]) == 4


@pytest.mark.parametrize("stack", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
def test_what_was_joined_says_the_entries_sizes(stack: bool, axis: int) -> None:
    """OutIndex, as 1.8.5 has it: the sizes along the axis, of entries that are stacked too; Out has
    no LoD.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [-1, 2], lod_level=1)
        array = layers.array_write(x, number(0))
        layers.array_write(layers.scale(x, 2.0), number(1), array)
        out, sizes = layers.tensor_array_to_tensor(array, axis=axis, use_stack=stack)
        fed = fluid.create_lod_tensor(np.ones((3, 2), "float32"), [[1, 2]], fluid.CPUPlace())
        assert out.lod_level == 0
        assert (
            fluid.Executor().run(feed={"x": fed}, fetch_list=[sizes])[0].tolist()
            == [[3, 3], [2, 2]][axis]
        )


def test_sparse_gradients_of_a_loop() -> None:
    """A table that every iteration looks up: its gradient has the rows of all iterations, and no
    others.
    """

    def trained(sparse: bool) -> Any:
        with (
            fluid.program_guard(fluid.Program(), fluid.Program()),
            fluid.scope_guard(fluid.Scope()),
        ):
            ids = fluid.data("ids", [2, 1], "int64")
            i, n = number(0), number(3)

            def body(i: Any, at: Any, total: Any) -> list[Any]:
                row = layers.embedding(
                    at,
                    [9, 4],
                    is_sparse=sparse,
                    param_attr=fluid.ParamAttr("table", fluid.initializer.Constant(0.5)),
                )
                return [
                    i + 1,
                    at + 1,
                    total + layers.reshape(row, [2, 4]) * layers.cast(i + 1, "float32"),
                ]

            start = layers.fill_constant([2, 4], "float32", 0.0)
            start.stop_gradient = False
            _, _, total = layers.while_loop(
                lambda i, at, total: layers.less_than(i, n), body, [i, ids, start]
            )
            fluid.optimizer.Adam(0.1, lazy_mode=True).minimize(
                layers.reduce_sum(layers.square(total))
            )
            exe = fluid.Executor()
            exe.run(fluid.default_startup_program())
            for first in ([1, 4], [2, 2]):
                exe.run(feed={"ids": np.array(first).reshape(2, 1)})
            return np.array(fluid.global_scope().find_var("table").get_tensor())

    sparse, dense = trained(True), trained(False)
    touched = [1, 2, 3, 4, 5, 6]
    assert (sparse[[0, 7, 8]] == 0.5).all() and (sparse[touched] != 0.5).all()
    np.testing.assert_allclose(sparse[[5, 6]] != 0.5, dense[[5, 6]] != 0.5)


def test_a_loop_trains_on_several_devices_as_on_one() -> None:
    if jax.device_count() < 2:
        pytest.skip("one device")

    def losses(places: int) -> list[float]:
        with (
            fluid.program_guard(fluid.Program(), fluid.Program()),
            fluid.scope_guard(fluid.Scope()),
            fluid.unique_name.guard(),
        ):
            loss = control_nets.cond_in_while(fluid)
            fluid.optimizer.SGD(0.1).minimize(loss)
            exe, main = fluid.Executor(), fluid.default_main_program()
            exe.run(fluid.default_startup_program())
            fluid.global_scope().find_var("w").get_tensor().set(W, fluid.CPUPlace())
            if places > 1:
                main = fluid.CompiledProgram(main).with_data_parallel(
                    loss.name, places=fluid.cpu_places(places)
                )
            batch = np.concatenate([control_nets.X[:2], control_nets.X[:2]])
            return [
                float(np.mean(exe.run(main, feed={"x": batch}, fetch_list=[loss])[0]))
                for _ in range(3)
            ]

    np.testing.assert_allclose(losses(2), losses(1), rtol=1e-5)


def test_refusals() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [2], "float32")
        i = number(0)
        with pytest.raises(
            FluidTypeError,
            match=r"While's cond is a bool variable, but '.*' is int64; compare first",
        ):
            layers.While(i)
        with pytest.raises(
            FluidTypeError, match="array_read's array is an array, but variable 'x' is a LOD_TENSOR"
        ):
            layers.array_read(x, i)
        with pytest.raises(FluidTypeError, match="array_write's i is of dtype int64"):
            layers.array_write(x, x)


def refused(error: type[Exception], match: str, net: Callable[[Any], Any], **more: Any) -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [2], "float32")
        x.stop_gradient = False
        out = net(x)
        with pytest.raises(error, match=match):
            fluid.Executor().run(feed={"x": np.ones(2, "float32"), **more}, fetch_list=[out])


def test_reading_what_is_not_there() -> None:
    def past_the_end(x: Any) -> Any:
        i, n, array = number(0), number(3), layers.array_write(x, number(0))
        going = layers.less_than(i, n)
        with layers.While(going).block():
            layers.assign(layers.array_read(array, i), x)
            layers.increment(i)
            layers.less_than(i, n, cond=going)
        return x

    refused(
        EnforceNotMet,
        r"\(tests/lower/test_while.py:\d+\) reads entry 1 of '.*' in iteration 1, which has 1 entries"
        r" then",
        past_the_end,
    )

    def of_another(x: Any) -> Any:
        return layers.array_read(layers.array_write(x, number(0)), number(2))

    def of_none(x: Any) -> Any:
        return layers.array_read(layers.create_array("float32"), number(0))

    refused(EnforceNotMet, r"reads entry 2 of '.*', which has 1 entries", of_another)
    refused(EnforceNotMet, r"reads entry 0 of '.*', which nothing has written", of_none)

    def far_behind(x: Any) -> Any:
        return layers.array_length(layers.array_write(x, layers.fill_constant([1], "int64", 2**40)))

    refused(
        EnforceNotMet,
        r"writes entry 1099511627776 of '.*', but an array has 16777216 entries at most",
        far_behind,
    )


def test_a_loop_that_never_ends_is_warned_of_and_refused() -> None:
    def endless(x: Any) -> Any:
        going = layers.less_than(number(0), number(3))
        with pytest.warns(  # noqa: SIM117
            UserWarning,
            match=r"this While \(tests/lower/test_while.py:\d+\) does not write 'less_than_\d+.tmp_0'",
        ):
            with layers.While(going).block():
                layers.assign(layers.scale(x, 2.0), x)
        return x

    refused(
        EnforceNotMet,
        "tests 'less_than_.*', which its block never writes, so it would never end",
        endless,
    )

    def uncounted(x: Any) -> Any:
        i, n = number(0), number(3)
        text = (
            r"this While \(tests/lower/test_while.py:\d+\) changes nothing that its"
            r" condition 'less_than_\d+.tmp_0' depends on"
        )
        with pytest.warns(UserWarning, match=text):
            return layers.while_loop(
                lambda i, y: layers.less_than(i, n), lambda i, y: [i, y * 2.0], [i, x]
            )[1]

    refused(
        EnforceNotMet,
        r"\(tests/lower/test_while.py:\d+\) tests '.*', but its block changes nothing that this depends on",
        uncounted,
    )


@pytest.mark.filterwarnings("ignore:the block of this While")
def test_a_loop_that_runs_once() -> None:
    """Its block gives the condition one value, which ends it: by a constant, or by what another
    variable says.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        found = []
        for told in (
            None,
            layers.fill_constant([1], "bool", True),
            fluid.data("done", [1], "bool"),
        ):
            going, x = (
                layers.fill_constant([1], "bool", True),
                layers.fill_constant([2], "float32", 1.0),
            )
            with layers.While(going).block():
                layers.assign(x * 2.0, x)
                layers.assign(
                    (
                        layers.fill_constant([1], "bool", False)
                        if told is None
                        else layers.logical_not(told)
                    ),
                    going,
                )
            found.append(x)
        for value in fluid.Executor().run(feed={"done": np.array([True])}, fetch_list=found):
            assert value.tolist() == [2, 2]


def test_ctrl_c_ends_a_loop_that_feeds_make_endless() -> None:
    """Python drives it, and an interrupt between iterations leaves the scope as it was."""
    main, startup, seen = fluid.Program(), fluid.Program(), []

    def interrupted(count: Any) -> Any:
        seen.append(count)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return count

    with (
        fluid.program_guard(main, startup),
        pytest.warns(UserWarning, match="changes nothing that"),
    ):
        i, n, w = (
            number(0),
            fluid.data("n", [1], "int64"),
            layers.create_parameter([2], "float32", name="w"),
        )
        k, going = number(0), layers.less_than(i, n)
        layers.assign(w * 2.0, w)
        with layers.While(going).block():
            layers.py_func(interrupted, k, k)
            layers.less_than(i, n, cond=going)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    before = scope.get("w").copy()
    with pytest.raises(KeyboardInterrupt):
        exe.run(main, feed={"n": np.array([2])}, fetch_list=[k], scope=scope)
    np.testing.assert_array_equal(scope.get("w"), before)
    exe.run(main, feed={"n": np.array([0])}, fetch_list=[k], scope=scope)
    np.testing.assert_array_equal(scope.get("w"), 2 * before)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "count",
    [
        lambda i, one: layers.increment(i),
        lambda i, one: layers.assign(i + 1, i),
        lambda i, one: layers.sums([i, one], out=i),
        lambda i, one: layers.assign(
            layers.cond(layers.less_than(one, i), lambda: i + 2, lambda: i + 1), i
        ),
        lambda i, one: layers.assign(
            layers.cast(layers.uniform_random([1], min=3.0, max=4.0), "int64"), i
        ),
    ],
)
def test_a_loop_that_counts_is_not_warned_of(count: Any) -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        i, n, one = number(0), number(3), number(1)
        going = layers.less_than(i, n)
        with layers.While(going).block():
            count(i, one)
            layers.less_than(i, n, cond=going)


def test_a_feed_that_a_loop_declares_anew_is_told_so() -> None:
    def turned(x: Any) -> Any:
        n = number(3)
        return layers.while_loop(
            lambda i, y: layers.less_than(i, n),
            lambda i, y: [i + 1, layers.cast(y, "int64")],
            [number(0), x],
        )[1]

    text = (
        r"declares int64; .*; the program writes 'x' too, last by op 'assign'"
        r" \(tests/lower/test_while.py:\d+\)"
    )
    refused(FeedError, text, turned)


def test_a_loop_over_what_is_fed_is_named():
    """Where its stop_gradient is why nothing is differentiated; without it the gradient is the
    loop's: 3 w^2 x of w^3 x.
    """
    for change in (None, "assign", "stop_gradient"):
        main, startup = fluid.Program(), fluid.Program()
        with (
            fluid.program_guard(main, startup),
            fluid.unique_name.guard(),
            fluid.scope_guard(fluid.Scope()),
        ):
            x = fluid.data("x", [1])
            w = fluid.layers.create_parameter(
                [1], "float32", name="w", default_initializer=fluid.initializer.Constant(2.0)
            )
            i, n = (fluid.layers.fill_constant([1], "int64", k) for k in (0, 3))
            carried = fluid.layers.assign(x) if change == "assign" else x
            carried.stop_gradient = change is None
            _, s = fluid.layers.while_loop(
                lambda i, s, n=n: fluid.layers.less_than(i, n),
                lambda i, s, w=w: (fluid.layers.increment(i), s * w),
                [i, carried],
            )
            loss = fluid.layers.mean(s)
            if change is None:
                with pytest.warns(UserWarning, match=r"'x' is on the path and has stop_gradient"):
                    fluid.append_backward(loss)
                continue
            ((_, grad),) = fluid.append_backward(loss)
            exe = fluid.Executor()
            exe.run(startup)
            assert exe.run(main, feed={"x": np.float32([5])}, fetch_list=[grad])[0].tolist() == [
                60.0
            ]
