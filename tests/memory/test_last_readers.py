"""Updates wait for the last reader of the old parameter: the compiler copies none then, and the
values stay.
"""

from __future__ import annotations

import jax
import numpy as np

import fluidjax as fluid
from fluidjax.ir import edit
from fluidjax.lower.step import Step
from fluidjax.memory import compiler
from fluidjax.memory.budget import Sizing
from tests.nets import fresh

WIDTH, LAYERS = 128, 4


def net(optimizer, shared=False):
    """Layers of one size: main, startup, loss."""
    with fresh(3) as (main, startup):
        h = fluid.data("x", [None, WIDTH])
        for _ in range(LAYERS):
            h = fluid.layers.fc(h, WIDTH, act="tanh", param_attr="w" if shared else None)
        loss = fluid.layers.mean(h)
        optimizer.minimize(loss)
    return main, startup, loss


def test_no_parameter_is_copied():
    """Without ties XLA's scheduler for memory has copies of the products' parameters among its
    temporaries.
    """
    main, _, loss = net(fluid.optimizer.SGD(0.1))
    fetches = (loss.name,)
    types = Sizing(8).arguments(Step(main.desc, fetches))
    name, device = "memory-optimised", jax.local_devices()[0]
    plain, tied = (
        compiler.figures(
            compiler.lower(main.desc, fetches, types, device, lowered), [name], quick=True
        )[name].temporaries
        for lowered in ("default", name)
    )
    assert plain - tied >= WIDTH * WIDTH * 4


def test_values_stay():
    main, startup, loss = net(fluid.optimizer.SGD(0.1))
    state = fluid.init_fn(startup)(jax.random.key(0))
    feed = {"x": np.random.RandomState(0).randn(8, WIDTH).astype("float32")}
    (want, (cost,)), (found, (again,)) = (
        Step(main.desc, (loss.name,), in_place=on)(state, feed) for on in (False, True)
    )
    np.testing.assert_array_equal(again, cost)
    for name, value in want.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_what_is_waited_for():
    """The gradient of the product's input, where something reads it; nothing where the gradient
    follows from all readers.
    """
    main, _, loss = net(fluid.optimizer.SGD(0.1))
    step = Step(main.desc, (loss.name,), in_place=True)
    waiting = {
        op.input("Param")[0]: step.waits[op.uid].after for op in step.ops if op.uid in step.waits
    }
    weights = [p.name for p in main.all_parameters() if "w_0" in p.name]
    # the image's gradient is not computed
    assert set(waiting) >= set(weights[1:]) and weights[0] not in waiting
    inputs = {op.input("Y")[0]: op.output("X@GRAD") for op in step.ops if op.type == "mul_grad"}
    assert all(waiting[w] == inputs[w] for w in weights[1:])
    main, _, loss = net(fluid.optimizer.SGD(0.1), shared=True)
    step = Step(main.desc, (loss.name,), in_place=True)
    update = next(
        op for op in step.ops if edit.role(op) & edit.OPTIMIZE and op.input("Param") == ("w",)
    )
    # its gradient is the sum of the layers', so all of them have read it
    assert update.uid not in step.waits
    assert not Step(main.desc, (loss.name,)).waits
