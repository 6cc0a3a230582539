"""Branches: what cond, case, switch_case and Switch compute and how they are differentiated, against NumPy and jax.grad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers, passes
from fluidjax.errors import EnforceNotMet, FluidTypeError, FluidValueError, UnsupportedError
from fluidjax.ir import text, verify
from fluidjax.lower.eager import OpByOp
from fluidjax.lower.step import Step
from fluidjax.ops.registry import lookup

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]], "float32")
W = np.array([0.3, -0.7, 1.1], "float32")


def built(net: Callable[[Any, Any], Any]) -> tuple[fluid.Program, list[str]]:
    """A program of net(x, w), reduced to a loss, with the gradients by both; the names of loss and gradients."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, w = fluid.data("x", [2, 3], "float32"), fluid.data("w", [3], "float32")
        x.stop_gradient = w.stop_gradient = False
        loss = layers.reduce_sum(layers.square(net(x, w)))
        grads = fluid.gradients(loss, [x, w])
        return fluid.default_main_program(), [loss.name, *("" if g is None else g.name for g in grads)]


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
    used, _ = layers.cond(positive(x), lambda: (x, x * 2.0), lambda: (layers.elementwise_mul(x, w), x * 3.0))
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
    return layers.switch_case(index, {1: lambda: x * w, 2: lambda: layers.sin(x) * w, 5: lambda: x - w})


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


@pytest.mark.first(4)
@pytest.mark.parametrize("form", [Step, OpByOp])
@pytest.mark.parametrize("name", NETS)
def test_values_and_gradients(programs: Any, name: str, form: type[Step]) -> None:
    """On all sides, with the condition known only when the step runs, and op by op, where it is known."""
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
            np.testing.assert_allclose(found[n] if n else np.zeros_like(what), what, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NETS)
def test_programs_with_gradient_blocks_are_checked_printed_and_rewritten(programs: Any, name: str) -> None:
    program, names = programs[name]
    desc, wanted = program.desc, [n for n in names if n]
    verify.verify(desc, lookup)
    assert text.parse(text.to_text(desc)) == desc
    saved = program.serialize_to_string()
    assert fluid.Program.parse_from_string(saved).serialize_to_string() == saved
    assert program.clone().desc == desc
    kept = passes.run("dce", desc, keep=wanted).desc
    feed = {"x": X, "w": W}
    for rewritten in (kept, passes.run("memory_optimize", desc, keep=wanted).desc, program._prune(wanted).desc):
        for a, b in zip(Step(rewritten, tuple(wanted))({}, feed)[1], Step(desc, tuple(wanted))({}, feed)[1], strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_case_known_while_tracing_is_chosen_then() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [3], "float32")
        seven = layers.fill_constant([1], "int32", 7)
        out = layers.cond(layers.less_than(seven, seven), lambda: layers.exp(x), lambda: layers.tanh(x))
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
    jax.eval_shape(lambda i: step({}, {"x": X[0], "index": i}, watch=lambda op, env: ran.append(op.type)), np.zeros(1, "int32"))
    assert ran.count("scale") == 17


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
        out, d_x = fluid.Executor().run(feed={"x": np.array([value], "float32")}, fetch_list=[y, grad])
    assert (out, d_x) == (value * kept, kept)


def test_refusals() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [2, 3], "float32")
        with pytest.raises(FluidTypeError, match="cond's pred is of dtype bool, but variable 'x' is float32"):
            layers.cond(x, lambda: x, lambda: x)
        flag = positive(x)
        with pytest.raises(FluidValueError, match="cond's false_fn returns None, but true_fn does not"):
            layers.cond(flag, lambda: x, lambda: None)
        with pytest.raises(FluidValueError, match="return different structures"):
            layers.cond(flag, lambda: (x, x), lambda: [x])
        with pytest.raises(FluidTypeError, match="cond's true_fn is a function without arguments, not 3"):
            layers.cond(flag, 3, lambda: x)
        with pytest.raises(FluidValueError, match="key in 'branch_fns' must be unique, but '1' appears more than once"):
            layers.switch_case(layers.fill_constant([1], "int32", 1), [(1, lambda: x), (1, lambda: x)])
        wide = layers.fill_constant([2], "bool", True)
        out = layers.cond(wide, lambda: x, lambda: x * 2.0)
        with pytest.raises(EnforceNotMet, match=r"one boolean as its condition, but '\w+.tmp_0' is bool of shape \[2\]"):
            fluid.Executor().run(feed={"x": X}, fetch_list=[out])


def test_a_value_that_one_case_alone_makes() -> None:
    """Where the case is taken it may be read and fetched; where it is not, that is an error, and so it is in a block of its own."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [2, 3], "float32")
        main, exe = fluid.default_main_program(), fluid.Executor()
        made = main.global_block().create_var(name="made", shape=[2, 3], dtype="float32")
        with layers.Switch() as switch, switch.case(positive(x)):
            layers.assign(layers.scale(x, 2.0), made)
        np.testing.assert_array_equal(exe.run(main, feed={"x": X}, fetch_list=[made])[0], 2 * X)
        with pytest.raises(EnforceNotMet, match=r"op 'conditional_block' \(tests/.*:\d+\) is what gives 'made' a value, which is fetched"):
            exe.run(main, feed={"x": -X}, fetch_list=[made])
        out = layers.scale(made, 1.0)
        np.testing.assert_array_equal(exe.run(main, feed={"x": X}, fetch_list=[out])[0], 2 * X)
        with pytest.raises(EnforceNotMet, match=r"op 'scale' \(tests/.*:\d+\) reads 'made', to which only a block that has not run gives"):
            exe.run(main, feed={"x": -X}, fetch_list=[out])


def test_branches_of_different_shapes() -> None:
    """Python drives them; one step refuses them."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [2, 3], "float32")
        out = layers.cond(positive(x), lambda: x, lambda: layers.reduce_sum(x, 0))
        exe = fluid.Executor()
        np.testing.assert_array_equal(exe.run(feed={"x": X}, fetch_list=[out])[0], X)
        np.testing.assert_allclose(exe.run(feed={"x": -X}, fetch_list=[out])[0], -X.sum(0), rtol=1e-6)
        step = fluid.step_fn(fluid.default_main_program(), [out])
        with pytest.raises(UnsupportedError, match=r"shape \[3\] and '.*' of shape \[2, 3\].* give both branches results of one shape"):
            jax.jit(step)({}, {"x": X})
