"""Index and operator expressions on variables append what Paddle 1.8.5 appends, and give what it
gives.
"""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FluidError
from fluidjax.graph.variable import Variable

from . import expressions
from .test_layers import compare_ops, flags

RECORDED = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data" / "expressions_1.8.5.json.gz").read_bytes())
)

# What 1.8.5 refuses and Python means plainly: the meaning that NumPy gives it.
WIDER = {
    "x[::2]",
    "x[:, ::3]",
    "x[3::-1]",
    "x[:1:-1]",
    "x[...]",
    "x[..., 0]",
    "x[0, ...]",
    "x[0, ..., 1]",
}
# Builds in 1.8.5, and fails there whenever it runs, or compares with another number than is
# written.
REFUSED = {
    "x[q]": "'q' is int64; cast it",
    "x[q:3]": "'q' is int64; cast it",
    "x[:, q:n]": "'q' is int64; cast it",
    "x[f]": "'f' is float32",
    "x[f:2]": "'f' is float32",
    "m == 1.5": "1.5 is not an integer",
    "x > m": "greater_than",
    "m > x": "greater_than",
}
RUNS = {"2 ** v"}  # 1.8.5 fills a float beside the integers and cannot run that
VALUELESS = {"3.0 / m"}  # 1.8.5 cannot run it: integers divide by integers there
OWN_LENGTH = {"len(x)"}  # the first dimension, where it is known


def evaluate(expression, scope):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(expression, dict(scope))


NAMES = [
    n
    for n in (*expressions.listed(expressions.INDEX), *expressions.listed(expressions.OPERATOR))
    if n not in OWN_LENGTH
]
NAMES = [n for n in NAMES if n not in OWN_LENGTH]


def refused(expression):
    return expression in REFUSED or ("error" in RECORDED[expression] and expression not in WIDER)


@pytest.mark.parametrize("expression", [n for n in NAMES if refused(n)])
def test_refuses(expression):
    with fluid.unique_name.guard(), fluid.program_guard(fluid.Program(), fluid.Program()):
        scope = expressions.variables(fluid)
        with pytest.raises(FluidError, match=REFUSED.get(expression)) as caught:
            evaluate(expression, scope)
    kind = RECORDED[expression].get("error", [""])[0]
    assert isinstance(
        caught.value, {"TypeError": TypeError, "ValueError": ValueError}.get(kind, Exception)
    )
    assert "==" not in str(caught.value)


@pytest.mark.parametrize("expression", [n for n in NAMES if not refused(n)])
def test_appends(expression):
    want, main = RECORDED[expression], fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        scope = expressions.variables(fluid)
        block = main.global_block()
        before, known = len(block.ops), set(block.vars)
        result = evaluate(expression, scope)
    if expression in WIDER | RUNS:
        return
    made = {n: v for n, v in block.vars.items() if n not in known}
    ours, theirs = block.ops[before:], want["ops"]
    if " in " in expression:  # which side Python asks first depends on its version
        assert [op.type for op in ours] == [kind for kind, *_ in theirs]
    else:
        compare_ops(type("Block", (), {"ops": ours}), theirs, expression)
    assert made.keys() == want["vars"].keys()
    for name, (dtype, shape, marks) in want["vars"].items():
        assert [made[name].desc.dtype, list(made[name].shape), flags(made[name])] == [
            dtype,
            shape,
            marks,
        ], name
    assert (
        result.name == want["result"]
        if isinstance(result, Variable)
        else repr(result) == want["python"]
    )


@pytest.fixture(scope="module")
def values():
    """Expression -> value, all of them computed by one compiled call in which positions are known."""
    main, results = fluid.Program(), {}
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        scope = expressions.variables(fluid)
        for expression in (n for n in NAMES if not refused(n)):
            result = evaluate(expression, scope)
            if isinstance(result, Variable):
                results[expression] = result
    step = fluid.step_fn(main, list(results.values()))
    positions = {n: np.array([v], "int32") for n, v in expressions.INTEGERS.items()}
    feed = {n: v for n, v in expressions.feed().items() if n not in positions}
    feed = {
        n: v
        for n, v in feed.items()
        if any(n in op.input_arg_names for op in main.global_block().ops)
    }
    state = {"w": np.arange(6, dtype="float32").reshape(3, 2)}
    found = jax.jit(lambda feed: step(state, {**feed, **positions}, None)[1])(feed)
    return dict(zip(results, map(np.asarray, found), strict=True))


@pytest.mark.parametrize(
    "expression",
    [n for n in NAMES if not refused(n) and n not in VALUELESS and "python" not in RECORDED[n]],
)
def test_gives(expression, values):
    value = values[expression]
    if "value" in RECORDED[expression]:
        shape, dtype, flat = RECORDED[expression]["value"]
        assert [list(value.shape), str(value.dtype)] == [shape, dtype]
        np.testing.assert_allclose(value.ravel(), flat, rtol=1e-6)
    else:  # 1.8.5 builds it and cannot run it, or does not build it
        fed = {
            n: v if n not in expressions.INTEGERS else int(v[0])
            for n, v in expressions.feed().items()
        }
        np.testing.assert_array_equal(value, eval(expression, fed))


def test_a_comparison_in_a_condition_warns_once_with_the_line():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, m = fluid.data("x", [4], "float32"), fluid.data("m", [4], "bool")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # variables that may be None: no warning
            assert x and m and x is not None and (x or None) is x
            for _ in range(3):
                assert x > 1  # one warning for the line
            assert x in [x + 1]
    lines = [w.message.args[0].split(" at ")[1].split(";")[0] for w in caught]
    assert (
        all(line.startswith("tests/layers/test_expressions.py:") for line in lines)
        and len(set(lines)) == len(lines) == 2
    )
    assert "the result of greater_than, is used as a Python condition" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_an_index_stands_in_the_block_of_its_variable():
    """Within a Switch, slices of a variable of block 0 go before the conditional block, as in
    1.8.5.
    """
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        x, zero = fluid.data("x", [3], "float32"), fluid.layers.fill_constant([1], "float32", 0.0)
        out = fluid.layers.fill_constant([1], "float32", 0.0)
        with fluid.layers.Switch() as switch, switch.case(x[0] > zero):
            fluid.layers.assign(x[1] * 2 + x[2], out)
    wanted = (
        "fill_constant fill_constant slice greater_than logical_not slice slice conditional_block"
    )
    assert [[op.type for op in block.ops] for block in main.blocks] == [
        wanted.split(),
        ["scale", "elementwise_add", "assign"],
    ]
    fed = {"x": np.array([1, 2, 3], "float32")}
    assert fluid.Executor().run(main, feed=fed, fetch_list=[out])[0] == 7
