"""Branches: what cond, case, switch_case and Switch compute and how they are differentiated,
against NumPy and jax.grad.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers, passes
from fluidjax.errors import (
    EnforceNotMet,
    FluidError,
    FluidTypeError,
    FluidValueError,
    UnsupportedError,
)
from fluidjax.ir import edit, text, verify
from fluidjax.lower.step import Step
from fluidjax.ops.registry import lookup

from ..nets import fresh
from ..op_by_op import OpByOp

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]], "float32")
W = np.array([0.3, -0.7, 1.1], "float32")


def built(net: Callable[[Any, Any], Any]) -> tuple[fluid.Program, list[str]]:
    """A program of net(x, w), reduced to a loss, with the gradients by both; the names of loss and
    gradients.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, w = fluid.data("x", [2, 3], "float32"), fluid.data("w", [3], "float32")
        x.stop_gradient = w.stop_gradient = False
        loss = layers.reduce_sum(layers.square(net(x, w)))
        grads = fluid.gradients(loss, [x, w])
        return fluid.default_main_program(), [
            loss.name,
            *("" if g is None else g.name for g in grads),
        ]


def positive(x: Any) -> Any:
    return layers.less_than(layers.fill_constant([1], "float32", 0.0), layers.reduce_sum(x))


def plain(x: Any, w: Any) -> Any:
    return layers.cond(positive(x), lambda: x * w, lambda: layers.tanh(x) + w)


def plain_jax(x: Any, w: Any) -> Any:
    return jnp.where(x.sum() > 0, x * w, jnp.tanh(x) + w)


def nested(x: Any, w: Any) -> Any:
    """w is captured twice in one branch, and by a branch within."""

    def inner() -> Any:
        return layers.cond(positive(w), lambda: x * w * w, lambda: layers.exp(x) * w)

    return layers.cond(positive(x), inner, lambda: layers.scale(x, 3.0))


def nested_jax(x: Any, w: Any) -> Any:
    return jnp.where(x.sum() > 0, jnp.where(w.sum() > 0, x * w * w, jnp.exp(x) * w), 3 * x)


def two_results(x: Any, w: Any) -> Any:
    """One of the results is not used, and one branch hands a variable from outside out as it is."""
    used, _ = layers.cond(
        positive(x), lambda: (x, x * 2.0), lambda: (layers.elementwise_mul(x, w), x * 3.0)
    )
    return used


def two_results_jax(x: Any, w: Any) -> Any:
    return jnp.where(x.sum() > 0, x, x * w)


def stopped(x: Any, w: Any) -> Any:
    """A stop_gradient within a branch."""

    def inner() -> Any:
        half = x * w
        half.stop_gradient = True
        return half * x

    return layers.cond(positive(x), inner, lambda: x)


def stopped_jax(x: Any, w: Any) -> Any:
    return jnp.where(x.sum() > 0, jax.lax.stop_gradient(x * w) * x, x)


def cases(x: Any, w: Any) -> Any:
    first, second = positive(x), positive(w)
    return layers.case([(first, lambda: x * w), (second, lambda: layers.sin(x) * w)], lambda: x - w)


def cases_jax(x: Any, w: Any) -> Any:
    return jnp.where(x.sum() > 0, x * w, jnp.where(w.sum() > 0, jnp.sin(x) * w, x - w))


def numbered(x: Any, w: Any) -> Any:
    index = layers.cast(layers.reduce_sum(x), "int32")
    return layers.switch_case(
        index, {1: lambda: x * w, 2: lambda: layers.sin(x) * w, 5: lambda: x - w}
    )


def numbered_jax(x: Any, w: Any) -> Any:
    index = x.sum().astype(int)
    return jnp.where(index == 1, x * w, jnp.where(index == 2, jnp.sin(x) * w, x - w))


NETS = {
    "plain": (plain, plain_jax), "nested": (nested, nested_jax), "two results": (two_results, two_results_jax),
    "stopped": (stopped, stopped_jax), "case": (cases, cases_jax), "switch_case": (numbered, numbered_jax),
}  # fmt: skip


@pytest.fixture(scope="module")
def programs() -> dict[str, tuple[fluid.Program, list[str]]]:
    return {name: built(net) for name, (net, _) in NETS.items()}


@pytest.mark.first(2)
@pytest.mark.parametrize("form", [Step, OpByOp])
@pytest.mark.parametrize("name", NETS)
def test_values_and_gradients(programs: Any, name: str, form: type[Step]) -> None:
    """On all sides, with the condition known only when the step runs, and op by op, where it is
    known.
    """
    program, names = programs[name]
    wanted = [n for n in names if n]
    step = form(program.desc, tuple(wanted))
    run = (lambda *a: step(*a)) if form is OpByOp else jax.jit(step)

    def loss(x: Any, w: Any) -> Any:
        return jnp.sum(NETS[name][1](x, w) ** 2)

    for x, w in [(X, W), (-X, W), (X, -W), (-X, -W)]:
        want = [loss(x, w), *jax.grad(loss, (0, 1))(x, w)]
        _, got = run({}, {"x": x, "w": w})
        found = dict(zip(wanted, got, strict=True))
        for what, n in zip(want, names, strict=True):
            np.testing.assert_allclose(
                found[n] if n else np.zeros_like(what), what, rtol=1e-5, atol=1e-6
            )


@pytest.mark.parametrize("name", NETS)
def test_programs_with_gradient_blocks_are_checked_printed_and_rewritten(
    programs: Any, name: str
) -> None:
    program, names = programs[name]
    desc, wanted = program.desc, [n for n in names if n]
    verify.verify(desc, lookup)
    assert text.parse(text.to_text(desc)) == desc
    saved = program.serialize_to_string()
    assert fluid.Program.parse_from_string(saved).serialize_to_string() == saved
    assert program.clone().desc == desc
    kept = passes.run("dce", desc, keep=wanted).desc
    feed = {"x": X, "w": W}
    for rewritten in (
        kept,
        passes.run("memory_optimize", desc, keep=wanted).desc,
        program._prune(wanted).desc,
    ):
        for a, b in zip(
            Step(rewritten, tuple(wanted))({}, feed)[1],
            Step(desc, tuple(wanted))({}, feed)[1],
            strict=True,
        ):
            np.testing.assert_array_equal(a, b)


def test_a_case_known_while_tracing_is_chosen_then() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [3], "float32")
        seven = layers.fill_constant([1], "int32", 7)
        out = layers.cond(
            layers.less_than(seven, seven), lambda: layers.exp(x), lambda: layers.tanh(x)
        )
        step = Step(fluid.default_main_program().desc, (out.name,))
    lowered = jax.jit(step).lower({}, {"x": X[0]}).as_text()
    assert "exponential" not in lowered and "stablehlo.case" not in lowered and "tanh" in lowered


def test_sixteen_cases_are_traced_once_each() -> None:
    """Each branch holds the rest, so tracing a branch twice would trace the last one 65,536 times."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, index = fluid.data("x", [3], "float32"), fluid.data("index", [1], "int32")
        out = layers.switch_case(index, [lambda k=k: layers.scale(x, float(k)) for k in range(17)])
        step = Step(fluid.default_main_program().desc, (out.name,))
    ran: list[str] = []
    jax.eval_shape(
        lambda i: step({}, {"x": X[0], "index": i}, watch=lambda op, env: ran.append(op.type)),
        np.zeros(1, "int32"),
    )
    assert ran.count("scale") == 17


@pytest.mark.slow
def test_long_chains_of_cases_need_no_higher_limit_of_calls() -> None:
    """Some forty calls for each of them: 1.8.5 runs 80 and more, and Python's usual limit ends at
    40.
    """
    usual = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(500)  # so that 27 are as much as 50 in a script
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            x = fluid.data("x", [1], "float32")
            out = layers.case(
                [(x > float(27 - i), lambda i=i: layers.scale(x, float(i))) for i in range(27)]
            )
            found = fluid.Executor().run(feed={"x": np.array([1.5], "float32")}, fetch_list=[out])[
                0
            ]
    finally:
        sys.setrecursionlimit(usual)
    assert found.tolist() == [1.5 * 26]


@pytest.mark.parametrize("value, kept", [(1.0, 5.0), (-1.0, 0.25)])
def test_a_block_that_writes_anew_what_it_reads(value: float, kept: float) -> None:
    """Its gradient passes it by where the block does not run: d(x)/d(x) = 1, d(5 x)/d(x) = 5."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [1], "float32")
        x.stop_gradient = False
        y = layers.scale(x, 1.0)
        with layers.Switch() as switch:
            with switch.case(positive(x)):
                layers.assign(layers.scale(y, 5.0), y)
            with switch.default():
                layers.assign(layers.scale(y, 0.25), y)
        (grad,) = fluid.gradients(y, [x])
        out, d_x = fluid.Executor().run(
            feed={"x": np.array([value], "float32")}, fetch_list=[y, grad]
        )
    assert (out, d_x) == (value * kept, kept)


def test_refusals() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [2, 3], "float32")
        with pytest.raises(
            FluidTypeError, match="cond's pred is of dtype bool, but variable 'x' is float32"
        ):
            layers.cond(x, lambda: x, lambda: x)
        flag = positive(x)
        with pytest.raises(
            FluidValueError, match="cond's false_fn returns None, but true_fn does not"
        ):
            layers.cond(flag, lambda: x, lambda: None)
        with pytest.raises(FluidValueError, match="return different structures"):
            layers.cond(flag, lambda: (x, x), lambda: [x])
        with pytest.raises(
            FluidTypeError, match="cond's true_fn is a function without arguments, not 3"
        ):
            layers.cond(flag, 3, lambda: x)
        with pytest.raises(
            FluidValueError,
            match="key in 'branch_fns' must be unique, but '1' appears more than once",
        ):
            layers.switch_case(
                layers.fill_constant([1], "int32", 1), [(1, lambda: x), (1, lambda: x)]
            )
        wide = layers.fill_constant([2], "bool", True)
        out = layers.cond(wide, lambda: x, lambda: x * 2.0)
        with pytest.raises(
            EnforceNotMet,
            match=r"one boolean as its condition, but '\w+.tmp_0' is bool of shape \[2\]",
        ):
            fluid.Executor().run(feed={"x": X}, fetch_list=[out])


def test_the_gradient_of_rows_keeps_its_rows_where_the_case_is_not_taken() -> None:
    """Zeros, also if the case takes the rows as a plain array, beside one without a LoD."""
    with fresh() as (main, _):
        x, n = fluid.data("x", [None, 2], lod_level=1), fluid.data("n", [1])
        plain, x.stop_gradient = fluid.data("plain", [None, 2]), False
        rows = layers.sequence_expand(plain, x, ref_level=0)
        rows.stop_gradient = False
        out = layers.cond(positive(n), lambda: plain * rows, lambda: layers.relu(plain))
        grads = fluid.gradients(out, [rows])
    values = np.arange(4, dtype=np.float32).reshape(2, 2)
    for taken, want in ((1.0, values), (-1.0, 0 * values)):
        feed = {
            "x": fluid.create_lod_tensor(values, [[1, 1]], fluid.CPUPlace()),
            "plain": values,
            "n": np.float32([taken]),
        }
        (got,) = fluid.Executor().run(main, feed, grads, return_numpy=False)
        np.testing.assert_array_equal(np.array(got), want)
        assert got.recursive_sequence_lengths() == [[1, 1]]


def test_a_value_that_one_case_alone_makes() -> None:
    """Where the case is taken it may be read and fetched; where it is not, that is an error, and so
    it is in a block of its own.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [2, 3], "float32")
        main, exe = fluid.default_main_program(), fluid.Executor()
        made = main.global_block().create_var(name="made", shape=[2, 3], dtype="float32")
        with layers.Switch() as switch, switch.case(positive(x)):
            layers.assign(layers.scale(x, 2.0), made)
        np.testing.assert_array_equal(exe.run(main, feed={"x": X}, fetch_list=[made])[0], 2 * X)
        with pytest.raises(
            EnforceNotMet,
            match=(
                r"op 'conditional_block' \(tests/.*:\d+\) is what gives 'made' a value, which is"
                r" fetched"
            ),
        ):
            exe.run(main, feed={"x": -X}, fetch_list=[made])
        out = layers.scale(made, 1.0)
        np.testing.assert_array_equal(exe.run(main, feed={"x": X}, fetch_list=[out])[0], 2 * X)
        with pytest.raises(
            EnforceNotMet,
            match=(
                r"op 'scale' \(tests/.*:\d+\) reads 'made', to which only a block that has not run"
                r" gives"
            ),
        ):
            exe.run(main, feed={"x": -X}, fetch_list=[out])


def test_branches_of_different_shapes() -> None:
    """Python drives them; one step refuses them."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [2, 3], "float32")
        out = layers.cond(positive(x), lambda: x, lambda: layers.reduce_sum(x, 0))
        exe = fluid.Executor()
        np.testing.assert_array_equal(exe.run(feed={"x": X}, fetch_list=[out])[0], X)
        np.testing.assert_allclose(
            exe.run(feed={"x": -X}, fetch_list=[out])[0], -X.sum(0), rtol=1e-6
        )
        step = fluid.step_fn(fluid.default_main_program(), [out])
        with pytest.raises(
            UnsupportedError,
            match=(
                r"shape \[3\] and '.*' of shape \[2, 3\].* give both branches results of one shape"
            ),
        ):
            jax.jit(step)({}, {"x": X})


def handed_out(x: Any, out: Any, default: bool) -> Any:
    """Cases that give `out` a value: -1 below 0, 2x below 1, 9 from there on if there is a default."""

    def number(value: float) -> Any:
        return layers.fill_constant([1], "float32", value)

    with layers.Switch() as cases:
        with cases.case(layers.less_than(x, number(0.0))):
            layers.assign(number(-1.0), out)
        with cases.case(layers.less_than(x, number(1.0))):
            layers.assign(layers.scale(x, 2.0), out)
        if default:
            with cases.default():
                layers.assign(number(9.0), out)
    return out


NEW = {
    "a tensor": lambda: layers.create_tensor("float32", name="out"),
    "not persistable": lambda: layers.create_global_var([1], 5.0, "float32", name="out"),
}


@pytest.mark.parametrize("kind", NEW)
@pytest.mark.parametrize("default", [True, False])
def test_only_cases_give_a_value(kind: str, default: bool) -> None:
    """As in 1.8.5: one case is enough; where none runs there is no value; what is fed is the value
    before.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [1], "float32")
        out = handed_out(x, NEW[kind](), default)
        exe, more = fluid.Executor(), layers.scale(out, 1.0)

    def run(at: float, fetched: Any = out, **fed: Any) -> float:
        feed = {"x": np.array([at], "float32"), **fed}
        return exe.run(out.block.program, feed=feed, fetch_list=[fetched])[0].item()

    assert [run(-1.0), run(0.5), run(0.5, more)] == [-1.0, 1.0, 1.0]
    if default:
        assert [run(3.0), run(3.0, more)] == [9.0, 9.0]
        return
    for fetched in (out, more):
        with pytest.raises(EnforceNotMet, match=r"'out'.*give it one before"):
            run(3.0, fetched)
    assert [
        run(3.0, out=np.array([7.0], "float32")),
        run(-3.0, out=np.array([7.0], "float32")),
    ] == [7.0, -1.0]


def test_both_branches_give_a_tensor_its_value() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, out = fluid.data("x", [1], "float32"), layers.create_tensor("float32")
        below = layers.less_than(x, layers.fill_constant([1], "float32", 0.0))
        layers.cond(
            below,
            lambda: layers.assign(x, out) and None,
            lambda: layers.assign(layers.scale(x, 3.0), out) and None,
        )
        exe = fluid.Executor()
        got = [
            exe.run(feed={"x": np.array([v], "float32")}, fetch_list=[out])[0].item()
            for v in (-1.0, 0.5)
        ]
    assert got == [-1.0, 1.5]


def test_conditional_block_by_its_own_name():
    """layers.control_flow.ConditionalBlock: the ops of 1.8.5, values and gradients; a scalar
    condition; what it refuses.
    """
    layers = fluid.layers
    main, startup = fluid.Program(), fluid.Program()
    with (
        fluid.program_guard(main, startup),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        x, yes = layers.data("x", [1]), fluid.data("yes", [1], "bool")
        out, chosen = layers.create_tensor("float32"), layers.fill_constant([1], "float32", 0.0)
        with layers.control_flow.ConditionalBlock(inputs=[x]).block():
            layers.assign(layers.fc(x, 3, param_attr=fluid.initializer.Constant(0.5)), out)
        with layers.control_flow.ConditionalBlock([yes], is_scalar_condition=True).block():
            layers.assign(layers.fill_constant([1], "float32", 7.0), chosen)
        loss = layers.mean(out)
        (_, grad), _ = fluid.append_backward(loss)
        op = next(op for op in main.global_block().ops if op.type == "conditional_block")
        assert (op.input("Cond"), op.input("Input"), op.output("Out")) == (
            ["x"],
            ["x", "fc_0.w_0", "fc_0.b_0"],
            [out.name],
        )
        exe = fluid.Executor()
        exe.run(startup)
        for condition, want in ((True, 7.0), (False, 0.0)):
            feed = {"x": np.ones((4, 1), "float32"), "yes": np.array([condition])}
            found = exe.run(main, feed=feed, fetch_list=[loss, grad, chosen])
            assert found[0] == 0.5 and np.allclose(found[1], 1 / 3) and found[2] == want
        with pytest.raises(TypeError, match="ConditionalBlock"):
            layers.control_flow.ConditionalBlock([3])


def test_select_by_a_number():
    """select_output and select_input: the value that the mask chooses, and its gradient."""
    select_input, select_output = (
        fluid.layers.control_flow.select_input,
        fluid.layers.control_flow.select_output,
    )
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        a, mask = fluid.data("a", [2]), fluid.data("mask", [1], "int32")
        a.stop_gradient = False
        one, two = (main.global_block().create_var(name=n, dtype="float32") for n in ("one", "two"))
        assert select_output(a, [one, two], mask) == [one, two]
        chosen = select_input([one, two], mask)
        (grad,) = fluid.gradients(fluid.layers.reduce_sum(chosen * chosen), [a])
        other = select_input([a, fluid.layers.scale(a, 10.0)], mask)
        for wrong in (
            lambda: select_input([a], a),
            lambda: select_input(a, mask),
            lambda: select_output(a, one, mask),
        ):
            with pytest.raises(TypeError):
                wrong()
    for number, factor in ((0, 1), (1, 10)):
        feed = {"a": np.float32([1, 2]), "mask": np.int32([number])}
        found = fluid.Executor().run(main, feed=feed, fetch_list=[chosen, grad, other])
        assert [f.tolist() for f in found] == [[1, 2], [2, 4], [factor, 2 * factor]]


@pytest.mark.parametrize("make", ["tensor", "global"])
def test_a_persistable_variable_that_only_cases_write_needs_no_value_before(make: str) -> None:
    """Schedules of old scripts: a rate that a Switch assigns in every step (1.8.5: 0.5, 0.25,
    0.25).
    """
    with fresh(1) as (main, startup), fluid.scope_guard(fluid.Scope()):
        loss = layers.mean(
            layers.fc(fluid.data("x", [None, 3]), 1, param_attr="w", bias_attr=False)
        )
        step = layers.cast(layers.autoincreased_step_counter("steps"), "float32")
        if make == "tensor":
            rate = layers.create_tensor("float32", name="rate", persistable=True)
        else:
            rate = main.global_block().create_var(
                name="rate", shape=[1], dtype="float32", persistable=True
            )
        with layers.Switch() as switch:
            with switch.case(layers.less_than(step, layers.fill_constant([1], "float32", 2.0))):
                layers.assign(layers.fill_constant([1], "float32", 0.5), rate)
            with switch.default():
                layers.assign(layers.fill_constant([1], "float32", 0.25), rate)
        fluid.optimizer.SGD(rate).minimize(loss)
        exe, feed = fluid.Executor(), {"x": np.ones((2, 3), "float32")}
        exe.run(startup)
        weights = [fluid.global_scope().get("w")]
        for want in (0.5, 0.25, 0.25):
            assert exe.run(main, feed=feed, fetch_list=[rate])[0].tolist() == [want]
            weights.append(fluid.global_scope().get("w"))
        np.testing.assert_allclose(
            [float((a - b)[0, 0]) for a, b in pairwise(weights)], [0.5, 0.25, 0.25], rtol=1e-5
        )
        assert fluid.global_scope().get("rate").tolist() == [0.25]


def test_one_that_no_case_has_written_is_told() -> None:
    with fresh() as (main, _), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [1])
        kept = layers.create_tensor("float32", name="kept", persistable=True)
        with (
            layers.Switch() as switch,
            switch.case(layers.less_than(x, layers.fill_constant([1], "float32", 2.0))),
        ):
            layers.assign(x * 2.0, kept)
        exe = fluid.Executor()
        with pytest.raises(EnforceNotMet, match="gives 'kept' a value"):
            exe.run(main, feed={"x": np.float32([3])})
        assert fluid.global_scope().find_var("kept") is None
        exe.run(main, feed={"x": np.float32([1])})
        exe.run(main, feed={"x": np.float32([3])})  # it has a value now
        assert fluid.global_scope().get("kept").tolist() == [2]


def test_a_tensor_is_not_read_from_what_a_block_left() -> None:
    """A spoiled file may name the scope of a branch where a tensor is meant."""
    with fresh() as (main, _):
        x = fluid.layers.data("x", [4])
        positive = fluid.layers.less_than(fluid.layers.mean(x), fluid.layers.mean(x * 2.0))
        out = fluid.layers.cond(positive, lambda: x * 2.0, lambda: x + 1.0) + x
    desc = main.desc
    left = [op for op in desc.blocks[0].ops if op.type == "conditional_block"]
    last = next(op for op in desc.blocks[0].ops if out.name in op.writes)
    for op in left:
        ops = [
            edit.rename_op(o, {last.input("X")[0]: op.output("Scope")[0]}) if o is last else o
            for o in desc.blocks[0].ops
        ]
        spoiled = fluid.Program.from_desc(edit.replace_ops(desc, 0, ops))
        with pytest.raises(FluidError):
            fluid.Executor().run(
                spoiled, feed={"x": np.ones((2, 4), "float32")}, fetch_list=[out.name]
            )
