"""Ragged sequences through the executor and step_fn: padded and exact sizes agree, and few programs
are compiled.
"""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import EnforceNotMet, FeedError, NanInfError, ShapeError, UnsupportedError
from fluidjax.feeds import padding
from fluidjax.feeds.bucketing import bucket
from fluidjax.feeds.padding import PATIENCE
from fluidjax.ops.selected import SelectedRows
from tests.examples import examples

CPU = fluid.CPUPlace()
WIDTH = 4


@pytest.fixture(autouse=True)
def fresh():
    with (
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
        fluid.program_guard(fluid.Program(), fluid.Program()),
    ):
        yield


def ragged(lengths, width=WIDTH, seed=0, dtype="float32"):
    rng = np.random.default_rng(seed)
    return fluid.create_lod_tensor(
        rng.uniform(-1, 1, (sum(lengths), width)).astype(dtype), [list(lengths)], CPU
    )


def x_var(level=1, width=WIDTH):
    return fluid.data("x", [None, width], "float32", lod_level=level)


def run(fetch, feed, numpy=True):
    exe = fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetch, return_numpy=numpy)


# -- buckets ---------------------------------------------------------------------------------------


def test_buckets():
    sizes = sorted({bucket(n) for n in range(5000)})
    assert sizes[:8] == [8, 12, 16, 24, 32, 48, 64, 96]
    for n in range(1, 5000):
        assert n <= bucket(n) and (bucket(n) == 8 or bucket(n) < 1.5 * n)
    for n in (8, 100, 4096, 4999):
        assert len({bucket(k) for k in range(n + 1)}) <= 2 * math.log2(max(n, 8) / 8) + 2


def test_bucketed_feed():
    feed = fluid.bucketed(
        {"a": ragged([2, 3]), "b": ragged([2, 3], 1), "c": ragged([3, 2], 1), "d": np.ones(3)}
    )
    assert isinstance(feed["d"], np.ndarray)
    assert feed["a"].rows.shape == (8, WIDTH) and feed["a"].longest == (8,) and feed["a"].padded
    assert feed["a"].offsets[0].tolist() == [0, 2, 5]
    assert feed["a"].key == feed["b"].key != feed["c"].key
    exact = fluid.bucketed({"a": ragged([2, 3])}, exact=True)["a"]
    assert exact.rows.shape == (5, WIDTH) and exact.longest == (3,) and not exact.padded


# -- feeding and fetching --------------------------------------------------------------------------


def test_fetch_keeps_rows_and_lod():
    out = layers.relu(x_var())
    fed = ragged([2, 0, 3])
    (got,) = run([out], {"x": fed}, numpy=False)
    assert (
        isinstance(got, fluid.LoDTensor)
        and got.lod() == [[0, 2, 2, 5]]
        and got.shape() == [5, WIDTH]
    )
    assert (
        got.recursive_sequence_lengths() == [[2, 0, 3]]
        and got.has_valid_recursive_sequence_lengths()
    )
    np.testing.assert_array_equal(np.array(got), np.maximum(np.array(fed), 0))


def test_fetch_as_an_array_is_refused_before_anything_runs():
    seen = layers.create_global_var([1], 0.0, "float32", persistable=True, name="seen")
    out = layers.relu(x_var())
    layers.increment(seen)
    exe = fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())
    for _ in range(2):
        with pytest.raises(
            RuntimeError,
            match=r"Some of your fetched tensors hold LoD information: 'relu_0\.tmp_0'",
        ):
            exe.run(feed={"x": ragged([2, 3])}, fetch_list=[out])
    exe.run(feed={"x": ragged([2, 3])}, fetch_list=[out], return_numpy=False)
    with pytest.raises(EnforceNotMet, match="set the parameter 'return_numpy' as 'False'"):
        exe.run(feed={"x": ragged([2, 3])}, fetch_list=[out])
    assert fluid.global_scope().get("seen").tolist() == [1]


def test_fetch_of_a_lod_that_no_variable_declares_is_refused_as_well():
    x = fluid.data("x", [None, 3])
    out = layers.reduce_sum(x, 1)
    tensor = fluid.create_lod_tensor(np.ones((3, 3), "float32"), [[1, 2]], CPU)
    with pytest.raises(EnforceNotMet, match="hold LoD information: 'reduce_sum_0"):
        fluid.Executor(CPU).run(feed={"x": tensor}, fetch_list=[out])


def test_what_has_no_lod_is_an_array_of_true_rows():
    """transpose2 drops the LoD in 1.8.5; its rows are padded in the step all the same."""
    x = fluid.data("x", [None, 2, 3], "float32", lod_level=1)
    best = layers.argmax(x, axis=-1)
    turned = layers.transpose(x, [0, 2, 1])
    value = np.random.default_rng(0).normal(size=(5, 2, 3)).astype("float32")
    fed = fluid.create_lod_tensor(value, [[1, 4]], CPU)
    for numpy in (True, False):
        a, b = run([best, turned], {"x": fed}, numpy)
        np.testing.assert_array_equal(np.asarray(a), value.argmax(-1))
        np.testing.assert_array_equal(np.asarray(b), value.transpose(0, 2, 1))


def test_a_lod_comes_from_what_is_fed_not_from_lod_level():
    """As in 1.8.5: any variable may be fed a LoD, and a plain array has none."""
    x = x_var(level=0)
    (got,) = run([layers.relu(x)], {"x": ragged([2, 3])}, numpy=False)
    assert got.lod() == [[0, 2, 5]]
    deep = fluid.create_lod_tensor(np.ones((5, WIDTH), "float32"), [[2, 1], [2, 0, 3]], CPU)
    (got,) = run([layers.relu(x)], {"x": deep}, numpy=False)
    assert got.lod() == [[0, 2, 3], [0, 2, 2, 5]]
    (got,) = run([layers.mean(x)], {"x": np.ones((5, WIDTH), "float32")})
    assert got.tolist() == [1]


def test_sequence_ops_say_that_a_lod_is_missing():
    with pytest.raises(
        EnforceNotMet,
        match="input X of op 'sequence_pool' holds no LoD, so it has no sequences; feed what it",
    ):
        run([layers.sequence_pool(x_var(), "sum")], {"x": np.ones((5, WIDTH), "float32")})
    with pytest.raises(
        EnforceNotMet, match="input X of op 'sequence_reverse' has 2 LoD levels, but the op takes 1"
    ):
        deep = fluid.create_lod_tensor(np.ones((5, WIDTH), "float32"), [[2, 1], [2, 0, 3]], CPU)
        two = fluid.data("two", [None, WIDTH], "float32", lod_level=2)
        run([layers.sequence_reverse(two)], {"two": deep}, numpy=False)


def test_feeds_are_checked():
    x, label = x_var(), fluid.data("label", [None, 1], "int64", lod_level=1)
    cost = layers.mean(layers.cross_entropy(layers.softmax(x), label))
    good = fluid.create_lod_tensor(np.array([[0], [3]]), [[1, 1]], CPU)
    run([cost], {"x": ragged([1, 1]), "label": good})
    with pytest.raises(
        FeedError,
        match=(
            r"'label' is the label of op 'cross_entropy2' .* expects 0 <= value < 4, but it holds 4"
        ),
    ):
        run(
            [cost],
            {
                "x": ragged([1, 1]),
                "label": fluid.create_lod_tensor(np.array([[0], [4]]), [[1, 1]], CPU),
            },
        )
    with pytest.raises(FeedError, match="'x' has shape"):
        run([cost], {"x": ragged([1, 1], 3), "label": good})
    with pytest.raises(FeedError, match="'x' is float64"):
        run([cost], {"x": ragged([1, 1], dtype="float64"), "label": good})
    stale = ragged([2, 3])
    stale.set(np.ones((4, WIDTH), "float32"))
    with pytest.raises(
        FeedError,
        match="'x' has a LoD that does not fit its rows: level 0 ends at 5, but there are 4 rows",
    ):
        run([cost], {"x": stale, "label": good})


def test_steps_in_one_call():
    """Equal to as many runs, from 3 rows to 20 in a batch, ragged fetches among them; another
    number of sequences is refused.
    """
    w = layers.create_parameter(
        [WIDTH, 1], "float32", name="w", default_initializer=fluid.initializer.Constant(0.5)
    )
    rows = layers.tanh(layers.matmul(x_var(), w))
    loss = layers.mean(layers.sequence_pool(rows, "sum"))
    fluid.optimizer.SGD(0.1).minimize(loss)
    feeds = [{"x": ragged(lengths)} for lengths in ([2, 1], [12, 8], [1, 4])]
    found = []
    for many in (False, True):
        exe, scope = fluid.Executor(CPU), fluid.Scope()
        exe.run(fluid.default_startup_program(), scope=scope)
        if many:
            losses, each = exe.run_steps(
                feeds=feeds, fetch_list=[loss, rows], scope=scope, return_numpy=False
            )
        else:
            got = [
                exe.run(feed=f, fetch_list=[loss, rows], scope=scope, return_numpy=False)
                for f in feeds
            ]
            losses, each = [g[0] for g in got], [g[1] for g in got]
        found.append([np.array(losses).ravel(), scope.get("w"), *map(np.array, each)])
        assert [v.recursive_sequence_lengths() for v in each] == [[[2, 1]], [[12, 8]], [[1, 4]]]
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    with pytest.raises(
        UnsupportedError,
        match=r"batches with equal numbers of sequences, .* but 'x' is fed 2 and 3; call run for each step",
    ):
        exe.run_steps(feeds=[feeds[0], {"x": ragged([1, 1, 1])}], fetch_list=[loss], scope=scope)


def test_fed_rows_may_be_filled_anew():
    value = np.ones((5, WIDTH), "float32")
    fed = fluid.LoDTensor(value)
    fed.set_lod([[0, 5]])
    out = layers.scale(x_var(), 2.0)
    exe = fluid.Executor(CPU)
    (got,) = exe.run(feed={"x": fed}, fetch_list=[out], return_numpy=False)
    value[:] = 7
    assert np.array(got).max() == 2


# -- padding ---------------------------------------------------------------------------------------


def test_padded_rows_do_not_leak():
    x = x_var()
    fed = ragged([2, 0, 3])
    value = np.array(fed)
    cases = {
        layers.mean(layers.exp(x)): np.exp(value).mean().reshape(1),
        layers.reduce_sum(layers.exp(x)): np.exp(value).sum().reshape(1),
        layers.reduce_mean(layers.exp(x), dim=0): np.exp(value).mean(0),
        layers.reduce_max(layers.scale(x, 1.0, -9.0), dim=0, keep_dim=True): (
            (value - 9).max(0, keepdims=True)
        ),
        layers.reduce_min(layers.scale(x, 1.0, 9.0)): (value + 9).min().reshape(1),
        layers.reduce_prod(x): value.prod().reshape(1),
        layers.isfinite(layers.log(layers.abs(x))): np.array([True]),
    }
    for got, want in zip(run(list(cases), {"x": fed}), cases.values(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=str(want))


def test_a_mixing_op_gets_exact_rows():
    x = x_var()
    top = layers.cumsum(layers.exp(x), axis=0)
    together = layers.concat([x, x], axis=0)
    fed = ragged([2, 3])
    got, both, count = run([top, together, layers.shape(x)], {"x": fed}, numpy=False)
    np.testing.assert_allclose(np.array(got), np.exp(np.array(fed)).cumsum(0), rtol=1e-5)
    assert got.lod() == [[0, 2, 5]]
    np.testing.assert_array_equal(np.array(both), np.concatenate([np.array(fed)] * 2))
    assert np.asarray(count).tolist() == [5, WIDTH]


def test_feeds_of_different_lods():
    """Row by row only where the LoDs are equal; on exact sizes shapes tell, as in 1.8.5."""
    x, y = x_var(), fluid.data("y", [None, WIDTH], "float32", lod_level=1)
    out = layers.elementwise_add(x, y)
    exe = fluid.Executor(CPU)
    a, b = ragged([2, 3]), ragged([2, 3], seed=1)
    (got,) = exe.run(feed={"x": a, "y": b}, fetch_list=[out], return_numpy=False)
    assert got.lod() == [[0, 2, 5]]
    np.testing.assert_allclose(np.array(got), np.array(a) + np.array(b))
    (got,) = exe.run(
        feed={"x": a, "y": ragged([4, 1], seed=1)}, fetch_list=[out], return_numpy=False
    )
    assert got.lod() == [[0, 2, 5]]
    np.testing.assert_allclose(np.array(got), np.array(a) + np.array(b))
    with pytest.raises(
        ShapeError, match=r"X\[5, 4\] and Y\[6, 4\] do not broadcast along axis -1: 5 is not 6"
    ):
        exe.run(feed={"x": a, "y": ragged([2, 4])}, fetch_list=[out], return_numpy=False)


def test_persistable_variables_take_exact_rows():
    kept = (
        fluid.default_main_program()
        .global_block()
        .create_var(name="kept", shape=[-1, WIDTH], dtype="float32", persistable=True)
    )
    layers.assign(x_var(), kept)
    fed = ragged([2, 3])
    run([], {"x": fed})
    np.testing.assert_array_equal(fluid.global_scope().get("kept"), np.array(fed))


def test_nan_check_sees_no_padding():
    out = layers.mean(layers.log(x_var()))
    fed = fluid.create_lod_tensor(np.ones((5, WIDTH), "float32"), [[2, 3]], CPU)
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    try:
        assert run([out], {"x": fed})[0].tolist() == [0]
        with pytest.raises(NanInfError, match="op 'log'"):
            run(
                [out],
                {"x": fluid.create_lod_tensor(np.zeros((5, WIDTH), "float32"), [[2, 3]], CPU)},
            )
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})


def test_batch_size_like_counts_sequences():
    """As in 1.8.5."""
    state = layers.fill_constant_batch_size_like(x_var(), [-1, 3], "float32", 2.0)
    assert run([state], {"x": ragged([2, 0, 3])})[0].tolist() == [[2, 2, 2]] * 3


def test_blocks_and_prints_take_what_they_can():
    x = x_var()
    total = layers.reduce_sum(x)
    flag = layers.less_than(total, layers.fill_constant([1], "float32", 1e9))
    out = layers.create_global_var([1], 0.0, "float32", persistable=True, name="out")
    with layers.Switch() as switch, switch.case(flag):
        layers.assign(layers.mean(layers.exp(x)), out)
    fed = ragged([2, 3])
    run([], {"x": fed})
    np.testing.assert_allclose(
        fluid.global_scope().get("out"), [np.exp(np.array(fed)).mean()], rtol=1e-6
    )


# -- how often is compiled -------------------------------------------------------------------------


def tagger(words=50, tags=5, hidden=6):
    """A small tagger in the form of LAC's."""
    word = fluid.data("word", [None, 1], "int64", lod_level=1)
    h = layers.embedding(word, [words, hidden])
    both = [
        layers.dynamic_gru(layers.fc(h, 3 * hidden), hidden, is_reverse=r) for r in (False, True)
    ]
    return word, layers.fc(layers.concat(both, axis=1), tags)


def sentences(rng, count, longest):
    lengths = rng.integers(1, longest + 1, count).tolist()
    return fluid.create_lod_tensor(rng.integers(0, 50, (sum(lengths), 1)), [lengths], CPU), lengths


def compiled(exe):
    return len(exe.compiled_steps()[0].recompiles.seen)


@pytest.mark.slow
def test_two_hundred_batches_of_sentences_make_few_programs():
    """At most a program for each other pair of buckets that the batches' rows and longest sentences
    fall into.
    """
    _, emission = tagger()
    layers.create_parameter([7, 5], "float32", name="crfw")
    tags = layers.crf_decoding(emission, fluid.ParamAttr(name="crfw"))
    exe = fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())
    rng = np.random.default_rng(0)
    pairs, most = set(), [0, 0]
    for _ in range(200):
        words, lengths = sentences(rng, 3, 12)
        (got,) = exe.run(feed={"word": words}, fetch_list=[tags], return_numpy=False)
        assert got.recursive_sequence_lengths() == [lengths] and got.shape() == [sum(lengths), 1]
        pairs.add((bucket(sum(lengths)), bucket(max(lengths))))
        most = [max(most[0], sum(lengths)), max(most[1], max(lengths))]
    assert compiled(exe) <= len(pairs) // 2
    assert len(pairs) <= math.prod(2 * math.log2(n / 8) + 2 for n in most)
    assert 5 < len(pairs) < 20


def test_a_batch_that_fits_waits_for_sizes_of_its_own():
    """It is padded up to sizes that are compiled, unless they are more than twice its own, until it
    has come often enough.
    """
    pooled = layers.sequence_pool(layers.scale(x_var(), 2.0), "sum")
    exe = fluid.Executor(CPU)

    def shapes(lengths, times=1):
        for _ in range(times):
            (got,) = exe.run(feed={"x": ragged(lengths)}, fetch_list=[pooled])
            assert got.shape[0] == len(lengths)
        return compiled(exe)

    assert shapes([30, 10]) == 1
    assert shapes([20, 10], PATIENCE) == 1 and shapes([20, 10]) == 2
    assert shapes([9, 2]) == 3 and shapes([40, 9]) == 4
    assert shapes([8, 8], PATIENCE) == 4  # pools do not look at how long the longest is


def test_a_bucket_that_training_uses_often_is_cut_to_what_its_batches_need(monkeypatch):
    """Once; larger batches still go to the bucket, and the results are those of a prediction, which
    does not wait for another compilation.
    """
    monkeypatch.setattr(padding, "OFTEN", 4)
    hidden, _ = layers.dynamic_lstm(layers.fc(x_var(), 8), 8, use_peepholes=False)
    last = layers.sequence_pool(hidden, "last")
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.0).minimize(layers.mean(last))
    exe = fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())

    def sizes(*batches):
        for lengths in batches:
            feed = {"x": ragged(lengths)}
            (expected,) = exe.run(test, feed=feed, fetch_list=[last])
            (got,) = exe.run(feed=feed, fetch_list=[last])
            np.testing.assert_allclose(got, expected, rtol=1e-5)
        return compiled(exe)

    assert sizes(*[[0, 0]] * 6) == 1  # cut to the smallest bucket, not to nothing
    assert sizes([33, 2], [34, 9], [34, 3]) == 2  # 48 rows, 48 steps
    assert sizes([33, 4]) == 3  # 48 rows, 40 steps
    assert sizes([34, 9], [39, 1]) == 3 and sizes([46, 2], [44, 4]) == 3
    assert sizes([21, 3]) == 3  # waits for a bucket of its own, and fits the sizes that were cut
    assert sizes([90, 3], [92, 3], [94, 2], [93, 1], [92, 1]) == 4  # 96 rows and steps are needed
    (predicting,) = exe.compiled_steps(test)
    assert len(predicting.recompiles.seen) == 3


@pytest.mark.slow
def test_threads_that_feed_new_sizes_at_once():
    """Each may add sizes while another looks for those that fit."""
    pooled = layers.sequence_pool(layers.scale(x_var(), 2.0), "sum")
    program, scope = fluid.default_main_program(), fluid.global_scope()
    exe = fluid.Executor(CPU)

    def feed(first):
        for n in range(first, 400, 8):
            values = ragged([n + 1, 1])
            (got,) = exe.run(program, feed={"x": values}, fetch_list=[pooled], scope=scope)
            np.testing.assert_allclose(got[1], 2 * np.asarray(values)[-1], rtol=1e-6)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(feed, range(8)))


def test_recompile_warning_names_the_mixing_op():
    out = layers.cumsum(x_var(), axis=0)
    exe = fluid.Executor(CPU)
    with pytest.warns(RuntimeWarning) as caught:
        for n in range(1, 19):
            exe.run(feed={"x": ragged([n])}, fetch_list=[out], return_numpy=False)
    (text,) = [str(w.message) for w in caught]
    assert "more than 16 different feeds: dimension 0 of 'x' keeps changing" in text
    assert (
        "ragged feeds run on exact sizes, because op 'cumsum' mixes the rows of its ragged input X"
        in text
    )
    assert "test_ragged.py:" in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(exe) == 18


# -- gradients -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_tagger_learns():
    """Training runs on buckets: no gradient op needs exact sizes, and one program serves batches of
    other lengths.
    """
    word, emission = tagger()
    label = fluid.data("label", [None, 1], "int64", lod_level=1)
    crf = layers.linear_chain_crf(emission, label, fluid.ParamAttr(name="crfw"))
    cost = layers.mean(crf)
    tags = layers.crf_decoding(emission, fluid.ParamAttr(name="crfw"), label)
    right = layers.reduce_mean(layers.cast(tags, "float32"))
    fluid.optimizer.Adam(0.05).minimize(cost)
    exe = fluid.Executor(CPU)
    fluid.default_startup_program().random_seed = 1
    exe.run(fluid.default_startup_program())
    rng, losses = np.random.default_rng(0), []
    for _ in range(60):
        lengths = rng.integers(3, 5, 3).tolist()
        ids = rng.integers(0, 50, (sum(lengths), 1))
        want = ids % 5
        feed = {
            "word": fluid.create_lod_tensor(ids, [lengths], CPU),
            "label": fluid.create_lod_tensor(want, [lengths], CPU),
        }
        losses.append(exe.run(feed=feed, fetch_list=[cost])[0].item())
    (trained,) = [c for c in exe.compiled_steps() if cost.name in c.fetches]
    assert not trained.recompiles.mixes and len(trained.recompiles.seen) == 1
    (share,) = exe.run(feed=feed, fetch_list=[right])
    assert float(share) > 0.9 and losses[-1] < losses[0] / 4
    assert word.lod_level == emission.lod_level == tags.lod_level == 1


@pytest.mark.slow
def test_gradients_are_derivatives_of_padded_steps():
    x = x_var()
    x.stop_gradient = False
    h = layers.dynamic_gru(layers.fc(x, 3 * WIDTH, num_flatten_dims=1), WIDTH)
    pooled = layers.sequence_pool(layers.elementwise_mul(h, layers.sequence_reverse(x)), "sqrt")
    loss = layers.reduce_sum(layers.square(pooled))
    (grad,) = fluid.gradients(loss, [x])
    state = fluid.init_fn()(jax.random.key(0))
    forward, backward = fluid.step_fn(fetch_list=[loss]), fluid.step_fn(fetch_list=[grad])
    literal = jax.jit(fluid.step_fn(fetch_list=[grad], literal=True))
    feed = {"x": ragged([2, 0, 3, 1])}
    padded, exact = fluid.bucketed(feed), fluid.bucketed(feed, exact=True)
    want = jax.jit(
        jax.grad(lambda rows: forward(state, {"x": padded["x"].with_rows(rows)})[1][0].sum())
    )(padded["x"].rows)
    for step in (jax.jit(backward), literal):
        for fed in (exact, padded):
            got = step(state, fed)[1][0]
            np.testing.assert_allclose(got.rows, want[: len(got.rows)], rtol=1e-5, atol=1e-7)
            assert not np.asarray(got.rows[6:]).any()
    assert not np.asarray(want[6:]).any()


# -- random programs -------------------------------------------------------------------------------

ROWS = {
    "fc": lambda h, x: layers.fc(h, WIDTH, act="tanh"),
    "relu": lambda h, x: layers.relu(h),
    "log": lambda h, x: layers.log(layers.scale(layers.square(h), 1.0, 0.1)),
    "softmax": lambda h, x: layers.softmax(h),
    "add": lambda h, x: layers.elementwise_add(h, x),
    "scaled": lambda h, x: layers.elementwise_mul(
        h, layers.assign(np.arange(1, WIDTH + 1, dtype="float32"))
    ),
    "concat": lambda h, x: layers.fc(layers.concat([h, x], axis=1), WIDTH),
    "weighted": lambda h, x: layers.elementwise_mul(
        h, layers.sequence_softmax(layers.fc(h, 1)), axis=0
    ),
    "reverse": lambda h, x: layers.sequence_reverse(h),
    "gru": lambda h, x: layers.dynamic_gru(layers.fc(h, 3 * WIDTH), WIDTH, is_reverse=True),
    "lstm": lambda h, x: layers.dynamic_lstm(layers.fc(h, 4 * WIDTH), 4 * WIDTH)[0],
    "pooled": lambda h, x: layers.elementwise_sub(
        h, layers.sequence_expand_as(layers.sequence_pool(h, "average"), h)
    ),
    "norm": lambda h, x: layers.layer_norm(h),
    "centred": lambda h, x: layers.elementwise_sub(h, layers.reduce_mean(h, dim=0, keep_dim=True)),
    "reshape": lambda h, x: layers.reshape(
        layers.softmax(layers.reshape(h, [-1, 2, 2]), axis=1), [0, WIDTH]
    ),
    "slice": lambda h, x: layers.concat(
        [layers.slice(h, [1], [0], [2]), layers.slice(x, [1], [1], [3])], axis=1
    ),
    "dropout": lambda h, x: layers.dropout(h, 0.3),
}
ENDS = {
    "rows": lambda h: h,
    "mean": lambda h: layers.mean(h),
    "max": lambda h: layers.reduce_max(h, dim=0),
    "sum": lambda h: layers.reduce_sum(h, dim=[0, 1], keep_dim=True),
    "last": lambda h: layers.sequence_last_step(h),
    "most": lambda h: layers.sequence_pool(h, "max"),
    "padded": lambda h: layers.sequence_pad(
        h, layers.fill_constant([1], "float32", 5.0), maxlen=30
    )[0],
    "twice": lambda h: layers.sequence_concat([h, h]),
    "tags": lambda h: layers.argmax(h, axis=-1),
}


@pytest.mark.slow
@examples(9)
@given(
    st.lists(st.sampled_from(sorted(ROWS)), min_size=1, max_size=5),
    st.lists(st.sampled_from(sorted(ENDS)), min_size=1, max_size=3, unique=True),
    st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(sum),
)
def test_padded_and_exact_agree(body, ends, lengths):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x = h = x_var()
        for name in body:
            h = ROWS[name](h, x)
        outs = [ENDS[name](h) for name in ends]
    state = fluid.init_fn(startup)(jax.random.key(0))
    step = jax.jit(fluid.step_fn(main, outs))
    feed = {"x": ragged(lengths)}
    with jax.enable_x64(True):
        _, padded = step(state, fluid.bucketed(feed), jax.random.key(1))
        _, exact = step(state, fluid.bucketed(feed, exact=True), jax.random.key(1))
    for a, b in zip(padded, exact, strict=True):
        compare(a, b)


LOSSES = {
    "mean": lambda h: layers.mean(h),
    "rows": lambda h: layers.reduce_sum(layers.square(layers.reduce_sum(h, dim=1))),
    "columns": lambda h: layers.mean(layers.reduce_mean(layers.exp(h), dim=0)),
    "last": lambda h: layers.mean(layers.sequence_last_step(h)),
    "most": lambda h: layers.mean(layers.square(layers.sequence_pool(h, "max"))),
    "crf": lambda h: layers.mean(
        layers.linear_chain_crf(
            h, layers.cast(layers.reduce_sum(h, dim=1, keep_dim=True) > 0.0, "int64")
        )
    ),
    "entropy": lambda h: layers.reduce_sum(
        layers.cross_entropy(
            layers.softmax(h),
            layers.cast(layers.reduce_sum(h, dim=1, keep_dim=True) > 0.0, "int64"),
        )
    ),
}


@pytest.mark.slow
@examples(6)
@given(
    st.lists(st.sampled_from(sorted(ROWS)), min_size=1, max_size=4),
    st.sampled_from(sorted(LOSSES)),
    st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(sum),
)
def test_padded_and_exact_gradients_agree(body, end, lengths):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x = h = x_var()
        word = fluid.data("word", [None, 1], "int64", lod_level=1)
        x.stop_gradient = False
        h = layers.elementwise_add(layers.embedding(word, [9, WIDTH], is_sparse=True), h)
        for name in body:
            h = ROWS[name](h, x)
        pairs = fluid.backward.append_backward(LOSSES[end](h))
        grads = [main.global_block().var("x@GRAD"), *(g for _, g in pairs)]
    state = fluid.init_fn(startup)(jax.random.key(0))
    step = jax.jit(fluid.step_fn(main, grads))
    ids = np.random.default_rng(1).integers(1, 9, (sum(lengths), 1))
    feed = {"x": ragged(lengths), "word": fluid.create_lod_tensor(ids, [lengths], CPU)}
    with jax.enable_x64(True):
        _, (dx, *padded) = step(state, fluid.bucketed(feed), jax.random.key(1))
        _, (want, *exact) = step(state, fluid.bucketed(feed, exact=True), jax.random.key(1))
    compare(dx, want)
    assert isinstance(dx, fluid.Ragged) and not np.asarray(dx.rows[sum(lengths) :]).any()
    for a, b in zip(padded, exact, strict=True):
        if isinstance(a, SelectedRows):
            # no id that the batch does not have
            assert set(np.asarray(a.rows).tolist()) == set(np.asarray(b.rows).tolist())
            a, b = dense(a), dense(b)
        compare(a, b)


def dense(sparse):
    rows, found = np.asarray(sparse.rows), np.zeros(sparse.shape, sparse.dtype)
    there = rows < len(found)  # the others are padding
    np.add.at(found, rows[there], np.asarray(sparse.values)[there])
    return found


def compare(padded, exact):
    """The true rows are equal, and so are the offsets; what is no longer ragged is equal as it is."""
    if isinstance(padded, fluid.Ragged):
        if isinstance(exact, fluid.Ragged):
            assert [a.tolist() for a in padded.offsets] == [b.tolist() for b in exact.offsets]
        count = int(padded.count)
        padded, exact = (
            padded.rows[:count],
            exact.rows if isinstance(exact, fluid.Ragged) else exact,
        )
    assert padded.shape == exact.shape and padded.dtype == exact.dtype
    np.testing.assert_allclose(padded, exact, rtol=2e-5, atol=2e-6)


def test_two_levels():
    x = x_var(2)
    words = layers.sequence_pool(x, "sum")
    pages = layers.sequence_pool(words, "max")
    again = layers.sequence_expand(pages, x, ref_level=0)
    fed = fluid.create_lod_tensor(
        np.arange(20, dtype="float32").reshape(5, 4), [[2, 0, 1], [2, 0, 3]], CPU
    )
    a, b, c = run([words, pages, again], {"x": fed}, numpy=False)
    value = np.array(fed)
    sums = np.stack([part.sum(0) for part in np.split(value, [2, 2])])
    assert a.lod() == [[0, 2, 2, 3]]
    np.testing.assert_allclose(np.array(a), sums)
    np.testing.assert_allclose(b, [sums[:2].max(0), np.zeros(4), sums[2]])
    np.testing.assert_allclose(c, np.asarray(b)[[0, 0, 2]])
    (d,) = run([layers.sequence_expand(words, x, ref_level=0)], {"x": fed}, numpy=False)
    assert d.lod() == [[0, 2, 4, 5]]
    np.testing.assert_allclose(np.array(d), sums[[0, 1, 0, 1, 2]])
