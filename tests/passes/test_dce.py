"""dce, prune, is_test, inference, fold_constants: what goes, what stays."""

from __future__ import annotations

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers, passes
from fluidjax.ir.desc import ProgramDesc
from tests.nets import fresh

from .trained import net


def types(desc: ProgramDesc) -> list[str]:
    return [op.type for op in desc.blocks[0].ops]


def test_dce_removes_what_nobody_sees() -> None:
    with fresh() as (main, _):
        x = fluid.data("x", [None, 4])
        y = layers.scale(x, 2.0)
        dead = layers.tanh(layers.exp(x))
    result = passes.run("dce", main.desc, keep=[y.name])
    assert types(result.desc) == ["scale"] and dead.name not in result.desc.blocks[0].vars
    assert len(result.notes) == 2 and not passes.run("dce", result.desc, keep=[y.name]).changed
    assert passes.run("dce", main.desc, keep=[y.name, dead.name]).changed is False


def test_dce_knows_versions() -> None:
    """A write that is overwritten before anyone reads it is dead."""
    with fresh() as (main, _):
        x = fluid.data("x", [None, 4])
        y = layers.scale(x, 2.0)
        layers.assign(layers.scale(x, 3.0), y)
    result = passes.run("dce", main.desc, keep=[y.name])
    assert [op.attrs["scale"] for op in result.desc.blocks[0].ops if op.type == "scale"] == [3.0]


def test_dce_keeps_training_and_printing() -> None:
    with fresh() as (main, _):
        x = fluid.data("x", [None, 4])
        loss = layers.mean(layers.fc(x, 3))
        fluid.optimizer.SGD(0.1).minimize(loss)
        shown = layers.scale(x, 2.0)
        main.global_block().append_op("print", {"In": shown}, {"Out": shown}, {"message": "x"})
    result = passes.run("dce", main.desc)
    assert (
        "sgd" in types(result.desc)
        and "print" in types(result.desc)
        and "mul_grad" in types(result.desc)
    )


def test_dce_and_branches() -> None:
    with fresh() as (main, _):
        x = fluid.data("x", [1], "float32")
        values = []
        for limit in (1.0, 2.0):
            y = layers.fill_constant([1], "float32", 0.0)
            with layers.Switch() as switch:
                with switch.case(layers.less_than(x, layers.fill_constant([1], "float32", limit))):
                    layers.assign(x * 10.0, y)
                with switch.default():
                    layers.assign(x * 100.0, y)
            values.append(y)
    result = passes.run("dce", main.desc, keep=[values[0].name])
    assert len(main.desc.blocks) == 5 and len(result.desc.blocks) == 3
    program = fluid.Program.from_desc(result.desc)
    for fed, expected in ((0.5, 5.0), (1.5, 150.0)):
        (value,) = fluid.Executor().run(
            program, feed={"x": np.array([fed], "float32")}, fetch_list=[values[0].name]
        )
        assert value == expected


def test_prune_and_inference() -> None:
    with fresh() as (main, startup):
        x = fluid.data("x", [None, 4])
        label = fluid.data("label", [None, 1], dtype="int64")
        out = layers.softmax(layers.batch_norm(layers.dropout(layers.fc(x, 3), 0.5)))
        loss = layers.mean(layers.cross_entropy(out, label))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    result = passes.run("inference", main.desc, keep=[out.name])
    assert types(result.desc) == ["mul", "elementwise_add", "dropout", "batch_norm", "softmax"]
    assert all(op.attrs["is_test"] for op in result.desc.blocks[0].ops if "is_test" in op.attrs)
    names = set(result.desc.blocks[0].vars)
    assert not any("velocity" in n or "GRAD" in n or n == "label" for n in names)
    scope = fluid.Scope()
    exe = fluid.Executor()
    exe.run(startup, scope=scope)
    feed = {"x": np.ones((2, 4), "float32")}
    (ours,) = exe.run(
        fluid.Program.from_desc(result.desc), feed=feed, fetch_list=[out.name], scope=scope
    )
    (cloned,) = exe.run(
        main.clone(for_test=True),
        feed={**feed, "label": np.zeros((2, 1), "int64")},
        fetch_list=[out.name],
        scope=scope,
    )
    assert (ours == cloned).all()
    nothing = passes.run("prune", main.desc)
    assert not nothing.changed and "nothing is named" in str(nothing.refusals[0])


def test_fold_constants() -> None:
    def build(x):
        a = layers.fill_constant([4], "float32", 3.0)
        w = layers.create_parameter([4, 4], "float32", name="w")
        folded = layers.transpose(layers.scale(layers.elementwise_add(w, a), 0.5), [1, 0])
        return layers.matmul(x, folded)

    n = net(build, (4,))
    result = passes.run("fold_constants", n.program.desc, n.params, [n.out])
    assert types(result.desc) == ["matmul"]
    (name,) = result.params
    np.testing.assert_allclose(result.params[name], ((n.scope.get("w") + 3) * 0.5).T, rtol=1e-6)
    assert not passes.run(
        "fold_constants", result.desc, {**n.params, **result.params}, [n.out]
    ).changed


@pytest.mark.parametrize("case", ["random", "updated", "unknown", "kept", "large"])
def test_fold_constants_leaves_alone(case: str) -> None:
    def build(x):
        if case == "random":
            y = layers.elementwise_add(
                layers.gaussian_random([4, 4]), layers.gaussian_random([4, 4])
            )
        else:
            w = layers.create_parameter([4, 4], "float32", name="w")
            y = layers.scale(w, 2.0)
        if case == "updated":
            layers.assign(layers.scale(x, 1.0), w)
        return layers.matmul(x, y)

    n = net(build, (4,), for_test=False)
    params = {} if case == "unknown" else n.params
    keep = [n.out, n.program.global_block().ops[-1].input("Y")[0]] if case == "kept" else [n.out]
    pas = passes.parse(f"fold_constants(limit={8 if case == 'large' else 1 << 20})")
    result = passes.run(pas, n.program.desc, params, keep)
    assert not result.changed
    assert ("over the limit" in str(result)) == (case == "large")


def test_conv_affine_folds_runs() -> None:
    def build(x):
        c = layers.conv2d(x, 4, 3)
        w = [layers.create_parameter([4], "float32") for _ in range(2)]
        one = layers.create_parameter([1], "float32")
        h = layers.elementwise_mul(c, w[0], axis=1)
        h = layers.elementwise_add(h, w[1], axis=1)
        h = layers.elementwise_mul(layers.scale(h, 0.5, bias=1.0), one)
        return layers.relu(h)

    n = net(build)
    result = passes.run("fuse_conv_affine", n.program.desc, n.params, [n.out])
    assert types(result.desc) == ["conv2d", "elementwise_add", "relu"]
    scope = fluid.Scope()
    for name, value in {**n.params, **result.params}.items():
        scope.var(name).set(value)
    np.testing.assert_allclose(n.run(result.desc, scope=scope)[0], n.run()[0], rtol=1e-5, atol=1e-5)
    assert not passes.run(
        "fuse_conv_affine", result.desc, {**n.params, **result.params}, [n.out]
    ).changed


def test_conv_affine_without_shift_adds_nothing() -> None:
    n = net(lambda x: layers.scale(layers.conv2d(x, 4, 3, bias_attr=False), 3.0))
    result = passes.run("fuse_conv_affine", n.program.desc, n.params, [n.out])
    assert types(result.desc) == ["conv2d"] and result.desc.blocks[0].ops[0].output("Output") == (
        n.out,
    )


def test_conv_affine_refuses_other_shapes() -> None:
    n = net(
        lambda x: layers.elementwise_mul(
            layers.conv2d(x, 4, 3), layers.create_parameter([4, 4], "float32")
        )
    )
    result = passes.run("fuse_conv_affine", n.program.desc, n.params, [n.out])
    assert not result.changed and "does not vary along the channels alone" in str(
        result.refusals[0]
    )
