"""Properties of random programs: verified, cloned, printed, serialised; gradients equal to
jax.grad's.
"""

from __future__ import annotations

import jax
import numpy as np
from hypothesis import given

import fluidjax as fluid
from fluidjax.ir import edit, jsonio, proto, text
from fluidjax.ir.verify import verify
from fluidjax.lower.step import Step
from fluidjax.ops.registry import attr_type, lookup
from tests.examples import examples

from .random_programs import build, recipes

COMMON = examples(60)
FEWER = examples(25)


@COMMON
@given(recipes())
def test_verified_cloned_and_round_tripped(recipe):
    net = build(recipe)
    desc = net.main.desc
    verify(desc, lookup)
    assert net.main.clone().desc == desc
    assert text.parse(str(net.main)) == desc
    assert jsonio.from_json(jsonio.to_json(desc)) == desc
    data = proto.to_bytes(desc, attr_type)
    assert proto.to_bytes(proto.from_bytes(data), attr_type) == data
    verify(net.main.clone(for_test=True).desc, lookup)
    verify(net.main._prune([net.loss]).desc, lookup)


@COMMON
@given(recipes())
def test_the_bytes_hold_every_op(recipe):
    desc = build(recipe).main.desc
    back = proto.from_bytes(proto.to_bytes(desc, attr_type))
    want = edit.renumber(desc).blocks[0].ops
    assert [(o.type, o.inputs, o.outputs, o.attrs) for o in back.blocks[0].ops] == [
        (o.type, o.inputs, o.outputs, o.attrs) for o in want
    ]


@FEWER
@given(recipes())
def test_literal_and_shared_gradients_equal_those_of_jax(recipe):
    """d loss / d parameter from the gradient ops, run literally and by pullback, against jax.grad
    of the forward part.
    """
    # Where a name is written twice, Fluid's gradients (by name) are not those of the function.
    net = build([step for step in recipe if step[0] != "assign_over"])
    with jax.enable_x64(True):
        state = fluid.init_fn(net.startup)(jax.random.key(0))
        state = {n: v.astype("float64") if v.dtype == "float32" else v for n, v in state.items()}
        feed = {"x": net.feed["x"].astype("float64")}
        names = [
            n
            for p in net.main.all_parameters()
            if net.main.global_block().has_var(n := p.name + "@GRAD")
        ]
        main = _in_float64(net.main)
        forward = Step(_forward_part(main).desc, (net.loss.name,))
        stopped = {v.name for v in main.list_vars() if v.stop_gradient}

        def stop(op, env):
            env.update({n: jax.lax.stop_gradient(env[n]) for n in op.writes if n in stopped})

        parameters = [n.removesuffix("@GRAD") for n in names]
        want = jax.grad(lambda p: forward({**state, **p}, feed, None, stop)[1][0].sum())(
            {n: state[n] for n in parameters}
        )
        for literal in (True, False):
            _, got = fluid.step_fn(main, names, literal=literal)(state, feed)
            for name, value in zip(parameters, got, strict=True):
                np.testing.assert_allclose(
                    value, want[name], rtol=1e-6, atol=1e-9, err_msg=f"{name} literal={literal}"
                )


def _forward_part(program):
    """The ops before the loss's gradient, batch_norm still in training mode."""
    copy = program.clone()
    block = copy.global_block()
    block.ops = [op for op in block.ops if not op.attr("op_role") & 3]
    copy.touch()
    return copy


def _in_float64(program):
    """The program with every float32 variable declared float64."""
    copy = program.clone()
    for var in copy.list_vars():
        if var.desc.dtype == "float32":
            var.change(dtype="float64")
    for op in copy.global_block().ops:
        if op.type == "fill_constant":
            op._set_attr("dtype", 6)
    return copy


@FEWER
@given(recipes())
def test_executor_equals_the_pure_step(recipe):
    net = build(recipe, fluid.optimizer.Momentum(0.01, 0.9))
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(net.startup, scope=scope)
    state = {
        v.name: scope.get(v.name)
        for v in net.startup.list_vars()
        if v.persistable and scope.find_var(v.name)
    }
    step = fluid.step_fn(net.main, [net.loss], literal=True)
    for _ in range(2):
        (got,) = exe.run(net.main, feed=net.feed, fetch_list=[net.loss], scope=scope)
        with jax.enable_x64(True):
            state, (want,) = step(state, net.feed)
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
    for name in state:
        np.testing.assert_allclose(scope.get(name), state[name], rtol=2e-4, atol=2e-5, err_msg=name)
