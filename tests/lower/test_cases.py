"""Cases that only assign constants are one look-up, whatever their conditions are: the same values
as case by case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.lower.cases import LEAST
from fluidjax.lower.step import Step

AROUND = [-1e30, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 7.0, 1e30, np.inf, -np.inf, np.nan]
COMPARISONS = ["less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal"]


def built(
    body: Callable[[Any], Any], dtype: str = "float32"
) -> tuple[fluid.Program, fluid.Program, Any]:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        outs = body(fluid.data("x", [1], dtype))
    return main, startup, outs


def steps(main: fluid.Program, outs: Any) -> list[Step]:
    return [
        Step(main.desc, tuple(v.name for v in outs), literal=literal) for literal in (False, True)
    ]


def cases_left(step: Step) -> int:
    return sum(op.type == "conditional_block" for op in step.ops)


def variable(value: float = -9.0, shape: tuple[int, ...] = (1,), dtype: str = "float32") -> Any:
    return layers.create_global_var(list(shape), value, dtype, persistable=True)


def agree(
    main: fluid.Program, startup: fluid.Program, outs: Any, xs: list[Any], dtype: str = "float32"
) -> list[Any]:
    """The values of the two steps, which are equal bit for bit, for each x; the state that they
    leave too.
    """
    quick, literal = (
        jax.jit(lambda s, x, step=step: step(s, {"x": x})) for step in steps(main, outs)
    )
    found = []
    for x in xs:
        with fluid.scope_guard(fluid.Scope()):
            fluid.Executor().run(startup)
            state = fluid.read_state(main)
        (state_a, a), (state_b, b) = (f(state, np.array([x], dtype)) for f in (quick, literal))
        for one, other in zip((*a, *state_a.values()), (*b, *state_b.values()), strict=True):
            np.testing.assert_array_equal(one, other)
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
        found.append([np.asarray(v) for v in a])
    return found


@pytest.mark.parametrize("seed", range(4))
def test_any_conditions_about_one_number(seed: int) -> None:
    """Random logic of random comparisons, the constant on either side; one variable is assigned in
    each case, others in some.
    """
    draw = np.random.default_rng(seed)
    dtype = ["float32", "int32", "float32", "int64"][seed]

    def condition(x: Any, depth: int = 0) -> Any:
        kind = str(
            draw.choice(
                ["compare", "compare", "and", "or", "not", "xor"] if depth < 3 else ["compare"]
            )
        )
        if kind == "compare":
            # below 1 `equal` overlooks differences of float32 numbers
            bound = layers.fill_constant(
                [1],
                dtype,
                float(draw.choice([1, 2, 3, 4] if dtype != "float32" else [1, 1.5, 2, 3, 7])),
            )
            pair = (x, bound) if draw.random() < 0.7 else (bound, x)
            return getattr(layers, str(draw.choice(COMPARISONS)))(*pair)
        if kind == "not":
            return layers.logical_not(condition(x, depth + 1))
        return getattr(layers, f"logical_{kind}")(condition(x, depth + 1), condition(x, depth + 1))

    def body(x: Any) -> Any:
        every, some = variable(), variable(-7, (2,), "int64")
        with layers.Switch() as switch:
            for i in range(LEAST + 2):
                outside = layers.fill_constant([1], "float32", 10.0 + i)
                with switch.case(condition(x)):
                    layers.assign(
                        outside if i % 2 else layers.fill_constant([1], "float32", 10.0 + i), every
                    )
                    if i % 3:
                        layers.assign(np.array([i, -i], "int64"), some)
            if seed > 1:
                with switch.default():
                    layers.fill_constant([1], "float32", -1.0, out=every)
        return every, some

    main, startup, outs = built(body, dtype)
    quick, literal = steps(main, outs)
    assert cases_left(quick) == 0 < cases_left(literal)
    agree(main, startup, outs, AROUND if dtype == "float32" else [-3, 0, 1, 2, 3, 4, 9], dtype)


@pytest.mark.slow
def test_a_thousand_boundaries_are_as_many_ops_as_five() -> None:
    def body(count: int) -> Callable[[Any], Any]:
        def net(x: Any) -> Any:
            rate = layers.piecewise_decay(
                list(range(1, count + 1)), [float(i) for i in range(count + 1)]
            )
            return [rate, layers.elementwise_add(x, rate)]

        return net

    few, many = (built(body(count)) for count in (5, 1000))
    assert len(steps(few[0], few[2])[0].ops) == len(steps(many[0], many[2])[0].ops) < 40
    main, startup, outs = many
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        exe.run(startup)
        state = fluid.read_state(main)
        counter, step = next(n for n in state if "COUNTER" in n), fluid.step_fn(main, outs)
        for at in (-1, 0, 1, 2, 499, 998, 999, 1000, 5000):
            _, (rate, _) = step(
                {**state, counter: np.array([at], "int64")}, {"x": np.zeros(1, "float32")}
            )
            # the counter counts this step too
            assert float(rate[0]) == min(max(at + 1, 0), 1000), at


def chain(x: Any, assign: Callable[[int], Any], count: int = LEAST + 1) -> None:
    with layers.Switch() as switch:
        for i in range(count):
            with switch.case(layers.less_than(x, layers.fill_constant([1], "float32", float(i)))):
                assign(i)


def computed(x: Any) -> Any:
    """What is assigned is not a constant."""
    out = variable()
    chain(x, lambda i: layers.assign(layers.scale(x, float(i)), out))
    return [out]


def read_between(x: Any) -> Any:
    """Something reads the variable after some of the cases."""
    out = variable()
    chain(x, lambda i: layers.fill_constant([1], "float32", float(i), out=out))
    between = layers.scale(out, 2.0)
    chain(x, lambda i: layers.fill_constant([1], "float32", 10.0 + i, out=out))
    return [out, between]


def subject_changes(x: Any) -> Any:
    """The number that is compared is counted up between the comparisons."""
    out, at = variable(), variable(0.0)
    layers.assign(x, at)
    with layers.Switch() as switch:
        for i in range(LEAST + 1):
            less = layers.less_than(at, layers.fill_constant([1], "float32", float(i)))
            layers.increment(at, 0.5)
            with switch.case(less):
                layers.fill_constant([1], "float32", float(i), out=out)
    return [out]


def written_between(x: Any) -> Any:
    """Between the cases another op writes the variable."""
    out = variable()
    chain(x, lambda i: layers.fill_constant([1], "float32", float(i), out=out), LEAST - 1)
    layers.assign(x, out)
    chain(x, lambda i: layers.fill_constant([1], "float32", 10.0 + i, out=out), LEAST - 1)
    return [out]


def two_subjects(x: Any) -> Any:
    """Two chains about different numbers, which take turns at one variable."""
    out, y = variable(), layers.scale(x, -1.0, bias=2.0)
    chain(x, lambda i: layers.fill_constant([1], "float32", float(i), out=out))
    chain(y, lambda i: layers.fill_constant([1], "float32", 10.0 + i, out=out))
    return [out]


def close_to_zero(x: Any) -> Any:
    """`equal` takes float32 numbers near 0 for one another."""
    out = variable()
    with layers.Switch() as switch:
        for i in range(LEAST + 1):
            with switch.case(layers.equal(x, layers.fill_constant([1], "float32", i * 2e-9))):
                layers.fill_constant([1], "float32", float(i), out=out)
    return [out]


# How many conditional blocks are left of how many.
OTHERS = {
    computed: LEAST + 1, read_between: 0, subject_changes: LEAST + 1, written_between: 2 * (LEAST - 1), two_subjects: 0,
    close_to_zero: LEAST + 1,
}  # fmt: skip


@pytest.mark.parametrize("net", OTHERS, ids=lambda net: net.__name__)
def test_what_is_no_look_up_stays_and_what_is_one_keeps_its_order(
    net: Callable[[Any], Any],
) -> None:
    main, startup, outs = built(net)
    assert cases_left(steps(main, outs)[0]) == OTHERS[net]
    agree(main, startup, outs, [-1.0, 0.0, 3e-9, 0.5, 1.5, 2.5, 3.5, 100.0, np.nan])


def test_a_variable_without_an_old_value_is_no_table() -> None:
    """Where no case holds nothing gives it a value, which is for the cases to say."""

    def body(x: Any) -> Any:
        out = layers.create_tensor("float32", name="out")
        chain(x, lambda i: layers.assign(layers.fill_constant([1], "float32", float(i)), out))
        return [out]

    main, _, outs = built(body)
    assert cases_left(steps(main, outs)[0]) == LEAST + 1
