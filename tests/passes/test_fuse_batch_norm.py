"""fuse_batch_norm and InferenceTranspiler: what is folded computes the same, what is refused says
why.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers, passes
from fluidjax.passes.fuse_batch_norm import FuseBatchNorm
from tests.nets import build_forward, fresh

from .trained import Net, net

RECORDED = json.loads(
    (Path(__file__).parents[1] / "data/memory/inference_transpiler_0_15.json").read_text()
)


def fuse(n: Net, keep: tuple[str, ...] = ()) -> passes.PassResult:
    return passes.run(FuseBatchNorm(), n.program.desc, n.params, (n.out, *keep))


def check(n: Net, folds: int, refusals: int = 0) -> passes.PassResult:
    """Fuse; compare the counts, the output, and a second run, which finds nothing left to do."""
    result = fuse(n)
    certificate = result.certificate
    assert (len(certificate.folds), len(certificate.refusals)) == (folds, refusals), str(
        certificate
    )
    after = {**n.params, **result.params}
    scope = fluid.Scope()
    for name, value in after.items():
        scope.var(name).set(value)
    (expected,), (got,) = n.run(), n.run(result.desc, scope=scope)
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5 * np.abs(expected).max())
    again = passes.run(FuseBatchNorm(), result.desc, after, [n.out])
    assert not again.changed and not again.params
    return result


def types(desc: fluid.framework.ProgramDesc) -> list[str]:
    return [op.type for op in desc.blocks[0].ops]


FOLDABLE = {
    "conv": lambda x: layers.batch_norm(layers.conv2d(x, 4, 3, bias_attr=False)),
    "conv, bias": lambda x: layers.batch_norm(layers.conv2d(x, 4, 3)),
    "conv, epsilon": lambda x: layers.batch_norm(layers.conv2d(x, 4, 3), epsilon=0.1),
    "conv, groups": lambda x: layers.batch_norm(layers.conv2d(x, 6, 3, groups=3)),
    "depthwise": lambda x: layers.batch_norm(
        layers.conv2d(x, 3, 3, groups=3, use_cudnn=False, bias_attr=False)
    ),
    "transpose": lambda x: layers.batch_norm(layers.conv2d_transpose(x, 4, filter_size=3)),
    "transpose, groups": lambda x: layers.batch_norm(
        layers.conv2d_transpose(x, 6, filter_size=3, groups=3)
    ),
    "fc": lambda x: layers.batch_norm(layers.fc(x, 5)),
    "fc, no bias": lambda x: layers.batch_norm(layers.fc(x, 5, bias_attr=False)),
    "matmul": lambda x: layers.batch_norm(
        layers.matmul(
            layers.reshape(x, [-1, 108]),
            layers.create_parameter([7, 108], "float32"),
            transpose_y=True,
            alpha=0.5,
        )
    ),
    "norm behind norm": lambda x: layers.batch_norm(layers.batch_norm(layers.conv2d(x, 4, 3))),
    "norm behind inplace_abn": lambda x: layers.batch_norm(
        layers.inplace_abn(layers.conv2d(x, 4, 3))
    ),
    "activation behind": lambda x: layers.batch_norm(layers.conv2d(x, 4, 3), act="relu"),
    "inplace_abn": lambda x: layers.inplace_abn(
        layers.conv2d(x, 4, 3), act="leaky_relu", act_alpha=0.3
    ),
    "inplace_abn elu": lambda x: layers.inplace_abn(
        layers.conv2d(x, 4, 3, bias_attr=False), act="elu"
    ),
    "conv, squeezed": lambda x: layers.batch_norm(
        layers.squeeze(layers.conv2d(x, 4, (6, 3), bias_attr=False), [2])
    ),
    "conv, bias, reshaped": lambda x: layers.batch_norm(
        layers.reshape(layers.conv2d(x, 4, 3), [-1, 4, 16])
    ),
    "fc, unsqueezed, act": lambda x: layers.inplace_abn(
        layers.unsqueeze(layers.fc(x, 5), [2, 3]), act="leaky_relu", act_alpha=0.2
    ),
}


@pytest.mark.first(4)
@pytest.mark.parametrize("name", FOLDABLE)
def test_folds(name: str) -> None:
    folds = 1
    result = check(net(FOLDABLE[name]), folds)
    assert not {"batch_norm", "inplace_abn"} & set(types(result.desc))
    assert result.certificate.max_error < 2e-6


def test_channels_last() -> None:
    n = net(
        lambda x: layers.batch_norm(
            layers.conv2d(x, 4, 3, data_format="NHWC"), data_layout="NHWC", act="relu"
        ),
        (6, 6, 3),
    )
    check(n, 1)


def test_norm_over_another_axis_is_refused() -> None:
    n = net(lambda x: layers.batch_norm(layers.fc(x, 5, num_flatten_dims=2)))
    result = check(n, 0, 1)
    assert "axis 1" in str(result.refusals[0]) and "axis 2" in str(result.refusals[0])


def test_a_reshape_that_may_move_channels_is_refused() -> None:
    """Channels joined with rows; an open size that is fixed; and two unknown sizes, of which a
    reshape may exchange elements, but not a squeeze.
    """
    n = net(lambda x: layers.batch_norm(layers.reshape(layers.conv2d(x, 4, 3), [-1, 16, 4])))
    (refusal,) = check(n, 0, 1).certificate.refusals
    assert "may join the channels with other axes" in str(refusal)
    for flat, shape, layout, folds in (
        (lambda x: layers.reshape(x, [-1, 4, 0]), [None, 3, 6, None], "NCHW", 0),
        (lambda x: layers.squeeze(x, [2]), [None, 3, 6, None], "NCHW", 1),
        (lambda x: layers.reshape(x, [-1, 10, 4]), [None, 6, None, 3], "NHWC", 0),
        (lambda x: layers.reshape(x, [-1, 4]), [None, 6, None, 3], "NHWC", 1),
    ):
        with fresh() as (main, startup):
            h = layers.conv2d(fluid.data("x", shape), 4, (6, 3), data_format=layout)
            out = layers.batch_norm(flat(h), is_test=True, data_layout=layout)
        scope = fluid.Scope()
        fluid.Executor().run(startup, scope=scope)
        params = {name: scope.get(name) for name in scope.local_var_names()}
        found = passes.run(FuseBatchNorm(), main.desc, params, [out.name]).certificate
        assert (len(found.folds), len(found.refusals)) == (folds, 1 - folds)


def test_training_mode_is_refused() -> None:
    n = net(FOLDABLE["conv"], for_test=False)
    assert "training mode" in str(check(n, 0, 1).refusals[0])
    m = net(
        lambda x: layers.batch_norm(layers.conv2d(x, 4, 3), use_global_stats=True), for_test=False
    )
    check(m, 1)


def test_a_shared_weight_folds_apart() -> None:
    """Each use gets its own folded weight; a third use, without batch_norm, keeps the old one."""

    def build(x):
        convs = [layers.conv2d(x, 4, 3, param_attr="w", bias_attr=False) for _ in range(3)]
        return layers.concat(
            [layers.batch_norm(convs[0]), layers.batch_norm(convs[1], epsilon=0.1), convs[2]],
            axis=1,
        )

    result = check(net(build), 2)
    filters = [op.input("Filter")[0] for op in result.desc.blocks[0].ops if op.type == "conv2d"]
    assert sorted(filters) == ["w", "w_fuse_bn", "w_fuse_bn_1"]


def test_second_reader_is_refused() -> None:
    def build(x):
        c = layers.conv2d(x, 4, 3)
        return layers.elementwise_add(layers.batch_norm(c), c)

    assert "another reader: op 'elementwise_add'" in str(check(net(build), 0, 1).refusals[0])


def test_fetched_intermediate_is_refused() -> None:
    n = net(FOLDABLE["conv"])
    inner = n.program.global_block().ops[0].output("Output")[0]
    result = fuse(n, keep=(inner,))
    assert not result.changed and "fetched" in str(result.refusals[0])


def test_batch_norm_without_a_linear_op_is_refused() -> None:
    result = check(net(lambda x: layers.batch_norm(layers.relu(layers.conv2d(x, 4, 3)))), 0, 1)
    assert "comes from op 'relu'" in str(result.refusals[0])
    assert "is fed" in str(check(net(lambda x: layers.batch_norm(x)), 0, 1).refusals[0])


def test_batch_norm_behind_an_activation_is_refused() -> None:
    """The inplace_abn folds; the norm behind it would have to pass its activation, then and in a
    second run.
    """
    n = net(lambda x: layers.batch_norm(layers.inplace_abn(layers.conv2d(x, 4, 3), act="elu")))
    assert "through the elu of op 'inplace_abn'" in str(check(n, 1, 1).refusals[0])


def test_zero_and_negative_variance() -> None:
    n = net(FOLDABLE["conv"])
    name = next(
        op.input("Variance")[0] for op in n.program.global_block().ops if op.type == "batch_norm"
    )
    n.scope.var(name).set(np.zeros(4, "float32"))
    check(n, 1)  # epsilon keeps it finite: handled exactly
    n.scope.var(name).set(np.array([1, 1, -1, 1], "float32"))
    assert "not positive" in str(fuse(n).refusals[0])


def test_missing_and_unfit_parameters_are_refused() -> None:
    n = net(FOLDABLE["conv, bias"])
    result = passes.run("fuse_batch_norm", n.program.desc, {}, [n.out])
    assert "has no value" in str(result.refusals[0])
    grown = {**n.params, "conv2d_0.b_0": np.ones((4, 2), "float32")}
    assert not passes.run("fuse_batch_norm", n.program.desc, grown, [n.out]).changed


def test_weight_that_the_program_updates_is_refused() -> None:
    def build(x):
        out = layers.batch_norm(
            layers.conv2d(x, 4, 3, param_attr="w", bias_attr=False), use_global_stats=True
        )
        w = fluid.default_main_program().global_block().var("w")
        layers.assign(layers.scale(w, 0.5), w)
        return out

    result = fuse(net(build, for_test=False))
    assert not result.changed and "'w' is not constant" in str(result.refusals[0])


def test_input_that_is_overwritten_in_between() -> None:
    """The folded convolution stays where its input still holds what it should read."""

    def build(x):
        h = layers.scale(x, 2.0)
        c = layers.conv2d(h, 4, 3, bias_attr=False)
        layers.assign(layers.scale(x, 0.0), h)
        return layers.scale(c, 3.0)

    n = net(build)
    result = passes.run("fuse_conv_affine", n.program.desc, n.params, [n.out])
    assert result.changed
    scope = fluid.Scope()
    for name, value in {**n.params, **result.params}.items():
        scope.var(name).set(value)
    np.testing.assert_allclose(n.run(result.desc, scope=scope)[0], n.run()[0], rtol=1e-5, atol=1e-5)


def test_the_other_program_of_the_scope_is_bitwise_unchanged() -> None:
    n = net(lambda x: layers.fc(layers.batch_norm(layers.conv2d(x, 4, 3)), 3))
    clone = n.program.clone()
    exe = fluid.Executor()
    before = exe.run(n.program, feed=n.feed, fetch_list=[n.out], scope=n.scope)[0]
    fluid.InferenceTranspiler().transpile(clone, fluid.CPUPlace(), n.scope)
    assert "batch_norm" not in types(clone.desc) and "batch_norm" in types(n.program.desc)
    after, fused = (
        exe.run(p, feed=n.feed, fetch_list=[n.out], scope=n.scope)[0] for p in (n.program, clone)
    )
    assert (after == before).all()
    np.testing.assert_allclose(fused, before, rtol=1e-4, atol=1e-4)
    # and training goes on from the very same parameters
    trained = exe.run(n.training, feed=n.feed, fetch_list=[n.out], scope=n.scope)[0]
    assert np.isfinite(trained).all()
    assert (exe.run(clone, feed=n.feed, fetch_list=[n.out], scope=n.scope)[0] == fused).all()


def test_transpiler_says_what_it_left() -> None:
    n = net(FOLDABLE["conv"], for_test=False)
    t = fluid.InferenceTranspiler()
    assert t.certificate is None
    with pytest.warns(RuntimeWarning, match="training mode"):
        assert t.transpile(n.program, fluid.CPUPlace(), n.scope) is None
    assert not t.result.changed and len(t.certificate.refusals) == 1


@pytest.mark.parametrize("case", ["program_wrong_type", "place_wrong_type", "scope_wrong_type"])
def test_argument_errors_as_recorded(case: str) -> None:
    arguments = {
        "program_wrong_type": ("p", fluid.CPUPlace(), None),
        "place_wrong_type": (fluid.Program(), "cpu", None),
        "scope_wrong_type": (fluid.Program(), fluid.CPUPlace(), {}),
    }[case]
    with pytest.raises(TypeError, match=RECORDED["errors"][case]["text"]):
        fluid.InferenceTranspiler().transpile(*arguments)


@pytest.mark.first(4)
@pytest.mark.parametrize("case", RECORDED["cases"])
def test_recorded_cases(case: str) -> None:
    """On 0.15's own cases: the outputs before are those recorded, and stay; folds that it made, we
    make.
    """
    record = RECORDED["cases"][case]
    with fresh() as (main, _):
        build_forward({"net": {"steps": record["steps"], "loss": record["steps"][-1]["out"]}})
    program = main.clone(for_test=True)
    scope = fluid.Scope()
    for name, value in record["params"].items():
        var = program.global_block().var(name)
        scope.var(name).set(np.array(value, "float32").reshape(var.shape))
    feed = {
        n: np.array(v, "float32").reshape([-1, *program.global_block().var(n).shape[1:]])
        for n, v in record["feed"].items()
    }
    exe, out = fluid.Executor(), record["out_name"]
    (before,) = exe.run(program, feed=feed, fetch_list=[out], scope=scope)
    np.testing.assert_allclose(before.ravel(), np.ravel(record["out_before"]), rtol=1e-4, atol=1e-5)
    fused, result = fluid.transpiler.apply_passes(program, "fuse_batch_norm", [out], scope)
    (after,) = exe.run(fused, feed=feed, fetch_list=[out], scope=scope)
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5)
    left = types(fused.desc).count("batch_norm")
    if case != "conv_two_consumers":  # which 0.15 folded, and so changed what the other reader sees
        assert left <= record["ops_after"].count("batch_norm"), str(result)
        for name in record["new_params"]:
            assert name in result.params
