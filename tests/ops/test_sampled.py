"""Drawn classes are spread as 1.8.5 spreads them; gradients of tables are sparse where asked for;
what is refused.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FluidError
from fluidjax.layers.sampled import alias_tables
from fluidjax.ops.registry import lookup
from fluidjax.ops.samplers import (
    GivenClasses,
    LogUniformClasses,
    Sampler,
    UniformClasses,
    draw_distinct,
)

N = 40_000
PROBS = [0.3, 0.05, 0.15, 0.1, 0.25, 0.15]
ALIAS, KEPT = alias_tables(PROBS)
SAMPLERS: dict[str, tuple[Sampler, Any]] = {
    "uniform": (UniformClasses(6), [1 / 6] * 6),
    "log_uniform": (
        LogUniformClasses(5),
        [np.log((k + 2) / (k + 1)) / np.log(6) for k in range(5)] + [0],
    ),
    "custom_dist": (GivenClasses(np.array(PROBS, "float32"), ALIAS, KEPT), PROBS),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_classes_are_drawn_by_their_probability(name: str) -> None:
    """Shares of N draws lie within five deviations, and what `probability` says is what is drawn."""
    sampler, want = SAMPLERS[name]
    with jax.enable_x64(True):
        drawn = np.asarray(sampler.draw(jax.random.key(3), (N,)))
        told = np.asarray(sampler.probability(np.arange(6)))
    share = np.bincount(drawn, minlength=6) / N
    assert drawn.dtype == np.int64
    assert (np.abs(share - want) <= 5 * np.sqrt(np.multiply(want, np.subtract(1, want)) / N)).all()
    drawable = np.asarray(want) > 0
    np.testing.assert_allclose(told[drawable], np.asarray(want)[drawable], rtol=1e-6)


def test_alias_tables_hold_the_probabilities() -> None:
    """What class k keeps of 1 / n, and what it gets from those whose alias it is."""
    whole = [KEPT[k] + sum(1 - KEPT[j] for j in range(6) if ALIAS[j] == k) for k in range(6)]
    np.testing.assert_allclose(np.divide(whole, 6), PROBS, rtol=1e-6)


def test_distinct_classes_and_their_tries() -> None:
    with jax.enable_x64(True):
        drawn, tries = draw_distinct(jax.random.key(1), UniformClasses(7), 7, 7)
    assert sorted(np.asarray(drawn)) == list(range(7)) and int(tries) >= 7


def test_sample_logits_by_its_own_samples() -> None:
    """Drawn: the same negatives in every row, none twice; the outputs are those of the given-sample
    form with them.
    """
    x, label = np.random.RandomState(0).rand(3, 9).astype("float32"), np.array([[0], [3], [8]])
    op = lookup("sample_logits")
    attrs = {**op.defaults, "num_samples": 4}
    with jax.enable_x64(True):
        out = op({"Logits": x, "Labels": label}, attrs, jax.random.key(0))
        samples, probabilities = np.asarray(out["Samples"]), np.asarray(out["Probabilities"])
        given = {
            "Logits": x,
            "Labels": label,
            "CustomizedSamples": samples,
            "CustomizedProbabilities": probabilities,
        }
        again = op(given, {**attrs, "use_customized_samples": True}, jax.random.key(5))
    assert (
        (samples[:, :1] == label).all()
        and (samples[:, 1:] == samples[0, 1:]).all()
        and len(set(samples[0, 1:])) == 4
    )
    assert (probabilities > 0).all()  # how often each is expected, which may be more than once
    np.testing.assert_array_equal(out["SampledLogits"], again["SampledLogits"])


def weights_after_a_step(layer: str, is_sparse: bool) -> tuple[np.ndarray, str]:
    """The table after a step of SGD, and the kind of its gradient's variable."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 7
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x, label = fluid.data("x", [4, 3]), fluid.data("label", [4, 1], "int64")
        if layer == "nce":
            cost = fluid.layers.nce(
                x, label, 6, num_neg_samples=3, seed=2, is_sparse=is_sparse, param_attr="w"
            )
        else:
            path, code = (fluid.data(n, [4, 3], "int64") for n in ("path", "code"))
            cost = fluid.layers.hsigmoid(x, label, 6, "w", None, None, path, code, True, is_sparse)
        fluid.optimizer.SGD(0.5).minimize(fluid.layers.mean(cost))
    exe = fluid.Executor()
    exe.run(startup, scope=scope)
    feed = {
        "x": np.arange(12).reshape(4, 3).astype("float32") / 6,
        "label": np.array([[0], [5], [2], [0]]),
    }
    if layer != "nce":
        feed["path"] = np.array([[0, 1, -1], [0, 2, 4], [3, -1, -1], [0, 1, 3]])
        feed["code"] = np.array([[0, 1, -1], [1, 0, 1], [1, -1, -1], [1, 1, 0]])
    exe.run(main, feed=feed, scope=scope)
    return np.array(scope.find_var("w").get_tensor()), main.global_block().var("w@GRAD").desc.kind


@pytest.mark.parametrize("layer", ["nce", "hsigmoid"])
def test_a_sparse_gradient_trains_as_a_dense_one(layer: str) -> None:
    (dense, plain), (sparse, kind) = (
        weights_after_a_step(layer, False),
        weights_after_a_step(layer, True),
    )
    assert (plain, kind) == ("LOD_TENSOR", "SELECTED_ROWS")
    np.testing.assert_allclose(sparse, dense, rtol=1e-6)


REFUSED = [
    ("L.nce(f(4, 3), i(4, 1), 6, sampler='gauss')", "nce's sampler is 'uniform'"),
    (
        "L.nce(f(4, 3), i(4, 1), 6, sampler='custom_dist', custom_dist=[1.0])",
        "a probability for each of num_total_classes = 6",
    ),
    ("L.nce(f(4, 3), i(5, 1), 6)", r"nce takes Input \[N, D\] and Label"),
    ("L.nce(i(4, 3), i(4, 1), 6)", "nce's input is of dtype float32, float64"),
    ("L.hsigmoid(f(4, 3), i(4, 1), 1)", "num_classes is at least 2"),
    ("L.hsigmoid(f(4, 3), i(4, 1), 6, path_table=i(4, 2))", "with is_custom alone"),
    ("L.hsigmoid(f(4, 3), i(4, 1), 6, path_table=i(4, 2), is_custom=True)", "needs path_code"),
    (
        "L.hsigmoid(f(4, 3), i(4, 1), 6, None, None, None, i(4, 2), i(4, 3), True)",
        "PathTable and PathCode",
    ),
    ("L.sampled_softmax_with_cross_entropy(f(4, 3), i(4, 1), 4)", "4"),
    (
        (
            "L.sampled_softmax_with_cross_entropy(f(4, 3), i(4, 1), 2, 1, True, True, i(4, 2),"
            " f(4, 2))"
        ),
        "labels before samples",
    ),
    ("L.hash(f(4, 3), 10)", "hash's input is of dtype int32, int64"),
    ("L.hash(i(4, 3), 0)", "num_hash and mod_by of at least 1"),
    ("L.continuous_value_model(f(4, 1), f(4, 2))", "shows and clicks first"),
]


@pytest.mark.parametrize(("expression", "message"), REFUSED)
def test_refused_while_building(expression: str, message: str) -> None:
    def data(dtype: str) -> Any:
        return lambda *shape: fluid.data(fluid.unique_name.generate("x"), list(shape), dtype)

    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        pytest.raises(FluidError, match=message),
    ):
        eval(expression, {"L": fluid.layers, "f": data("float32"), "i": data("int64")})


def test_a_label_out_of_range_is_refused() -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        out = fluid.layers.hsigmoid(
            fluid.data("x", [1, 3]), fluid.data("label", [1, 1], "int64"), 6
        )
    with pytest.raises(FluidError, match="label"):
        fluid.Executor().run(
            main,
            feed={"x": np.zeros((1, 3), "float32"), "label": np.array([[6]])},
            fetch_list=[out],
        )
