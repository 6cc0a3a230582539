"""What clipping does to values, and the warnings of the two ways in (the programs:
test_optimizer_programs.py).
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import fluidjax as fluid
from tests.optimizers import optimizer_cases

RNG = np.random.RandomState(5)
GRADS = {"w": RNG.randn(4, 3).astype("float32"), "b": 3 * RNG.randn(3).astype("float32")}


def clipped(make_optimizer, before=lambda: None):
    """The gradients as the update saw them, through SGD with rate 1: parameters start at 0."""
    with optimizer_cases.fresh(fluid) as (main, startup):
        terms = []
        for n, g in GRADS.items():
            p = fluid.layers.create_parameter(
                list(g.shape), "float32", attr=optimizer_cases.constant(fluid, n, 0.0)
            )
            terms.append(
                fluid.layers.reduce_sum(
                    fluid.layers.elementwise_mul(p, fluid.data("g" + n, list(g.shape)))
                )
            )
        before()
        make_optimizer().minimize(fluid.layers.sums(terms))
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        exe.run(main, feed={"g" + n: g for n, g in GRADS.items()})
        return {n: -np.array(scope.find_var(n).get_tensor()) for n in GRADS}


def norm(*arrays):
    return np.sqrt(sum((a.astype("float64") ** 2).sum() for a in arrays))


def sgd(clip):
    return lambda: fluid.optimizer.SGD(1.0, grad_clip=clip)


def hung(clip, **more):
    def before():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fluid.clip.set_gradient_clip(clip, **more)

    return lambda: fluid.optimizer.SGD(1.0), before


BY_VALUE = {n: np.clip(g, -0.5, 0.5) for n, g in GRADS.items()}
BY_NORM = {n: g * 2 / max(2, norm(g)) for n, g in GRADS.items()}
BY_GLOBAL = {n: g * 2 / max(2, norm(*GRADS.values())) for n, g in GRADS.items()}
C = fluid.clip
TABLE = [
    (C.GradientClipByValue(0.5), BY_VALUE),
    (C.GradientClipByValue(0.25, -1.0), {n: np.clip(g, -1, 0.25) for n, g in GRADS.items()}),
    (C.GradientClipByNorm(2.0), BY_NORM), (C.GradientClipByGlobalNorm(2.0), BY_GLOBAL),
    (C.GradientClipByGlobalNorm(1e3), GRADS), (C.GradientClipByNorm(1e3), GRADS),
]  # fmt: skip


@pytest.mark.parametrize("way", ["grad_clip", "set_gradient_clip"])
@pytest.mark.parametrize("row", range(len(TABLE)))
def test_values(row, way):
    clip, want = TABLE[row]
    got = clipped(sgd(clip)) if way == "grad_clip" else clipped(*hung(clip))
    for n in GRADS:
        np.testing.assert_allclose(got[n], want[n], rtol=1e-6)


def test_need_clip_leaves_the_others_out_of_the_norm():
    got = clipped(sgd(C.GradientClipByGlobalNorm(2.0, need_clip=lambda p: p.name == "w")))
    np.testing.assert_allclose(got["b"], GRADS["b"])
    np.testing.assert_allclose(got["w"], GRADS["w"] * 2 / max(2, norm(GRADS["w"])), rtol=1e-6)


def test_clipping_comes_before_weight_decay():
    def optimizer():
        return fluid.optimizer.SGD(
            1.0, grad_clip=C.GradientClipByValue(0.5), regularization=fluid.regularizer.L2Decay(0.1)
        )

    # the parameters are 0, so decay adds nothing to a gradient that is clipped already
    got = clipped(optimizer)
    np.testing.assert_allclose(got["w"], BY_VALUE["w"], rtol=1e-6)


def messages(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if w.category is UserWarning]


def test_set_gradient_clip_warns():
    with optimizer_cases.fresh(fluid):
        loss = optimizer_cases.line(fluid)
        first = messages(lambda: C.set_gradient_clip(C.GradientClipByNorm(1.0)))
        assert len(first) == 1 and "grad_clip" in first[0]
        own = messages(
            lambda: fluid.optimizer.SGD(0.1, grad_clip=C.GradientClipByNorm(1.0)).minimize(loss)
        )
        assert len(own) == 1 and "no effect" in own[0]
        late = messages(lambda: C.set_gradient_clip(C.GradientClipByNorm(1.0)))
        assert len(late) == 2 and "after minimize" in late[1]


@pytest.mark.parametrize(
    "which, text", [("w", "no gradient is clipped"), ("b", "no gradient is clipped")]
)
def test_a_clip_for_some_parameters_says_that_it_does_nothing(which, text):
    with optimizer_cases.fresh(fluid):
        loss = optimizer_cases.line(fluid)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            C.set_gradient_clip(C.GradientClipByNorm(1.0), param_list=[which])
        (said,) = messages(lambda: fluid.optimizer.SGD(0.1).minimize(loss))
    assert text in said


def test_different_clips_say_which_one_is_applied():
    with optimizer_cases.fresh(fluid):
        said = messages(lambda: optimizer_cases.set_clip_mixed_kinds(fluid))
    assert any("the one of 'w'" in s for s in said)


def test_no_warning_without_clips():
    with optimizer_cases.fresh(fluid):
        loss = optimizer_cases.line(fluid)
        assert messages(lambda: fluid.optimizer.SGD(0.1).minimize(loss)) == []


def test_clips_are_copied_onto_parameters():
    with optimizer_cases.fresh(fluid) as (main, _), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimizer_cases.line(fluid)
        clip = C.GradientClipByGlobalNorm(1.0)
        C.set_gradient_clip(clip)
        mine = [p.gradient_clip_attr for p in main.all_parameters()]
    assert all(m is not clip and m.clip_norm == 1.0 for m in mine) and mine[0] is not mine[1]


@pytest.mark.parametrize("clip, text", [
    (C.GradientClipByValue(1.0), "Gradient Clip By Value, min = -1.000000, max=1.000000"),
    (C.GradientClipByNorm(1.0), "Gradient Clip By Norm, clip_norm=1.000000"),
    (C.GradientClipByGlobalNorm(1.0), "Gradient Clip By GlobalNorm, global_norm=1.000000"),
    (C.ErrorClipByValue(1.0), "ByValue, min=-1.000000, max=1.000000"),
])  # fmt: skip
def test_printed_forms(clip, text):
    assert str(clip) == text


def test_error_clip_bounds_what_flows_further_back():
    with optimizer_cases.fresh(fluid) as (main, startup):
        optimizer_cases.error_clip(fluid)
        kinds = [op.type for op in main.global_block().ops]
        grads = fluid.default_main_program().global_block()
    assert kinds.index("clip") == kinds.index("mean_grad") + 1
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        (g,) = exe.run(
            main, feed={"x": np.ones((1, 4), "float32")}, fetch_list=[grads.var("fc_0.tmp_1@GRAD")]
        )
    np.testing.assert_allclose(g, np.full((1, 3), 1 / 3), rtol=1e-6)
    assert "clip" not in [op.type for op in main.clone(for_test=True).global_block().ops]


def test_error_clip_of_another_type_is_refused():
    with optimizer_cases.fresh(fluid) as (main, _):
        loss = optimizer_cases.line(fluid)
        main.global_block().var("fc_0.tmp_1").error_clip = 3
        with pytest.raises(fluid.errors.FluidTypeError, match=r"fc_0\.tmp_1"):
            fluid.optimizer.SGD(0.1).minimize(loss)
