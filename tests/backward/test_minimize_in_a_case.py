"""minimize within a case of cond, switch_case and Switch: programs and values are those of Paddle
1.8.5.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import FluidValueError, UnsupportedError
from fluidjax.ir.parse import parse
from fluidjax.ir.proto import from_bytes, to_bytes
from fluidjax.ir.text import to_text
from fluidjax.ir.verify import verify
from fluidjax.ops.registry import REGISTRY, attr_type

from ..nets import fresh
from ..tools import minimize_nets

RECORDS = json.loads((Path(__file__).parents[1] / "data" / "minimize_1.8.5.json").read_text())


def named(op: Any) -> list[Any]:
    """As the recording has it."""
    slots = op.desc.inputs, op.desc.outputs
    return [
        op.type,
        *(
            {s: sorted(n for n in names if n != "@EMPTY@") for s, names in given.items() if names}
            for given in slots
        ),
    ]


@pytest.mark.parametrize("net", minimize_nets.NETS, ids=lambda net: net.__name__)
def test_programs_and_four_steps_equal_paddles(net: Any) -> None:
    record = RECORDS[net.__name__]
    with fresh() as (main, startup):
        out = net(fluid)
    assert [
        [b.parent_idx, b.forward_block_idx, [named(op) for op in b.ops]] for b in main.blocks
    ] == record["blocks"]
    verify(main.desc, REGISTRY.get)
    assert parse(to_text(main.desc)) == main.desc
    assert [len(b.ops) for b in from_bytes(to_bytes(main.desc, attr_type)).blocks] == [
        len(b.ops) for b in main.blocks
    ]
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    params = [p.name for p in main.all_parameters()]
    for name in params:
        scope.find_var(name).set(minimize_nets.initial(name, main.global_block().var(name).shape))
    for feed, (value, after) in zip(minimize_nets.FEEDS, record["steps"], strict=True):
        np.testing.assert_allclose(
            exe.run(main, feed=feed, fetch_list=[out], scope=scope)[0], value, rtol=2e-6
        )
        for name in params:
            np.testing.assert_allclose(scope.get(name), after[name], rtol=2e-5, atol=1e-6)
    test = main.clone(for_test=True)
    assert not any(op.type == "conditional_block_grad" for op in test.global_block().ops)
    before = scope.get(params[0])
    exe.run(test, feed=minimize_nets.FEEDS[0], fetch_list=[out.name], scope=scope)
    np.testing.assert_array_equal(scope.get(params[0]), before)


def test_a_clip_goes_where_the_gradients_are() -> None:
    """As if the case were the program: the step is that of the same net minimized outside."""

    def net(inside: bool) -> np.ndarray:
        with fresh() as (main, startup):
            x = fluid.data("x", [2, 3], "float32")
            w = layers.create_parameter(
                [3], "float32", name="w", default_initializer=fluid.initializer.Constant(0.5)
            )

            def train() -> Any:
                loss = layers.reduce_mean(layers.square(x * w))
                fluid.optimizer.SGD(
                    0.5, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.1)
                ).minimize(loss)

            layers.cond(
                layers.less_than(layers.reduce_sum(x), layers.fill_constant([1], "float32", 9.0)),
                train,
            ) if inside else train()
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(startup, scope=scope)
        exe.run(main, feed={"x": minimize_nets.X}, scope=scope)
        return scope.get("w")

    np.testing.assert_allclose(net(True), net(False), rtol=1e-6)
    assert not np.allclose(net(False), 0.5)


@pytest.mark.parametrize("form", ["cond", "case", "switch"])
def test_what_a_case_reads_is_differentiated_outside_of_it(form: str) -> None:
    """The loss is made in the case, of a layer around it, whose parameter trains; the numbers are
    1.8.5's.
    """
    with fresh() as (main, startup):
        x, t = fluid.data("x", [2, 3]), fluid.data("t", [1])
        half = fluid.initializer.Constant(0.5)
        h = layers.fc(x, 1, param_attr=fluid.ParamAttr(name="w", initializer=half), bias_attr=False)
        first = layers.less_than(t, layers.fill_constant([1], "float32", 2.0))

        def trained(rate: float, act: Any) -> fluid.Variable:
            loss = layers.mean(act(h))
            fluid.optimizer.SGD(rate).minimize(loss)
            return loss

        one, other = (lambda: trained(0.1, layers.assign)), (lambda: trained(0.2, layers.square))
        if form == "cond":
            layers.cond(first, one, other)
        elif form == "case":
            layers.case([(first, one)], default=other)
        else:
            with layers.Switch() as switch:
                with switch.case(first):
                    one()
                with switch.default():
                    other()
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    want = [[0.45, 0.4167, 0.3833], [0.1211, -0.0481, -0.2174], [0.0711, -0.1315, -0.3341]]
    for value, after in zip([1, 3, 1], want, strict=True):
        exe.run(
            main,
            feed={"x": np.arange(6, dtype="float32").reshape(2, 3) / 3, "t": np.float32([value])},
            scope=scope,
        )
        np.testing.assert_allclose(np.ravel(scope.get("w")), after, atol=1e-4)


def test_refusals() -> None:
    with fresh():
        v = fluid.data("v", [3], "float32")
        kept = []
        layers.cond(layers.fill_constant([1], "bool", True), lambda: kept.append(v * 2.0))
        with pytest.raises(
            UnsupportedError, match=r"but '.*' is in a block of its own; call gradients\(\) there"
        ):
            fluid.gradients(kept[0], v)
        with pytest.raises(UnsupportedError, match="but 'v' is in a block around it"):
            layers.cond(layers.fill_constant([1], "bool", True), lambda: fluid.gradients(v, v)[0])
    with fresh():  # 1.8.5 fails to build it: KeyError of the parameter
        x, w = fluid.data("x", [2, 3]), layers.create_parameter([3], "float32", name="w")

        def penalty() -> fluid.Variable:
            slope = fluid.gradients([layers.reduce_sum(layers.square(x) * w)], [w])[0]
            return layers.reduce_mean(layers.square(slope * w))

        loss = layers.cond(
            layers.fill_constant([1], "bool", True),
            penalty,
            lambda: layers.reduce_mean(layers.square(w)),
        )
        with pytest.raises(
            UnsupportedError,
            match="has computed the gradient of 'w', which is a variable from outside",
        ):
            fluid.optimizer.SGD(0.1).minimize(loss)
    with fresh() as (main, _):
        x = fluid.data("x", [2, 3], "float32")
        w = layers.create_parameter([3], "float32", name="w")
        i = layers.fill_constant([1], "int64", 0)
        with pytest.raises(  # noqa: SIM117
            FluidValueError, match="minimize and append_backward within a While would train nothing"
        ):
            with layers.While(layers.less_than(i, i)).block():
                fluid.optimizer.SGD(0.1).minimize(layers.reduce_mean(x * w))
        main.current_block_idx = 0
        loss = layers.reduce_mean(x * w)
        pairs = fluid.backward.append_backward(loss)
        with pytest.raises(
            FluidValueError, match="are in its gradient block, and this block has none"
        ):
            layers.cond(
                layers.less_than(i, i),
                lambda: fluid.optimizer.SGD(0.1).apply_gradients(pairs) and None,
            )
    with fresh() as (main, startup):
        out = minimize_nets.every_other(fluid)
        places = fluid.cpu_places(2)
        parallel = fluid.CompiledProgram(main).with_data_parallel(out.name, places=places)
        exe = fluid.Executor()
        exe.run(startup)
        within = "takes no program that updates parameters within a block, as op 'adam'"
        with pytest.raises(UnsupportedError, match=f"data parallelism {within}"):
            exe.run(parallel, feed=minimize_nets.FEEDS[0], fetch_list=[out])
        with pytest.raises(UnsupportedError, match=f"DistributeTranspiler {within}"):
            fluid.DistributeTranspiler().transpile(
                0, program=main, pservers="a:1", trainers=1, startup_program=startup
            )
