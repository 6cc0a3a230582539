"""Fed sizes wherever a program runs: compiled once a value, in many steps, on several devices, as a
pure function; or why not.
"""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.compiling import recompiles
from fluidjax.errors import FeedError, FluidError, UnsupportedError

i64 = lambda *values: np.array(values, "int64")  # noqa: E731


def cut_and_fit(rows: int = 4) -> tuple[fluid.Program, fluid.Program, Any, Any]:
    """A regression of the first n columns of x; w[:n] alone gets a gradient."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, n = fluid.data("x", [None, 6], "float32"), fluid.data("n", [None], "int32")
        w = layers.create_parameter(
            [6, 1], "float32", name="w", default_initializer=fluid.initializer.Constant(1.0)
        )
        out = layers.matmul(x[:, 0:n], w[0:n])
        loss = layers.mean(out)
        fluid.optimizer.SGD(0.5).minimize(loss)
    return main, startup, loss, out


def expected(w: np.ndarray, x: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The loss, and w after a step."""
    new = w.copy()
    new[:n, 0] -= 0.5 * x[:, :n].mean(0)
    return (x[:, :n] @ w[:n]).mean(), new


X = np.linspace(-1, 1, 24).astype("float32").reshape(4, 6)


def test_training_through_a_fed_slice() -> None:
    """Three sizes in turn, one of them twice: values and gradients are those of NumPy, and each
    size is compiled once.
    """
    main, startup, loss, _ = cut_and_fit()
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    w = np.ones((6, 1), "float32")
    for n in (2, 6, 3, 2, 6):
        (cost,) = exe.run(
            main, feed={"x": X, "n": np.array([n], "int32")}, fetch_list=[loss], scope=scope
        )
        want, w = expected(w, X, n)
        np.testing.assert_allclose(cost, want, rtol=1e-5)
        np.testing.assert_allclose(np.asarray(scope.find_var("w").get_tensor()), w, rtol=1e-5)
    (compiled,) = exe.compiled_steps(main)
    assert len(compiled.executables) == 3 and len(compiled.recompiles.seen) == 3


def test_a_copy_for_testing() -> None:
    """clone(for_test) and what is left of a program after pruning take the same feeds."""
    main, startup, _, out = cut_and_fit()
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    test = main.clone(for_test=True)
    for n in (1, 5):
        (found,) = exe.run(
            test, feed={"x": X, "n": np.array([n], "int32")}, fetch_list=[out.name], scope=scope
        )
        np.testing.assert_allclose(found, X[:, :n].sum(1, keepdims=True), rtol=1e-5, atol=1e-6)


def test_a_saved_model(tmp_path: Any) -> None:
    main, startup, _, out = cut_and_fit()
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path), ["x", "n"], [out], exe, main)
        program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path), exe)
        assert feeds == ["x", "n"]
        (found,) = exe.run(program, feed={"x": X, "n": np.array([2], "int32")}, fetch_list=fetches)
    np.testing.assert_allclose(found, X[:, :2].sum(1, keepdims=True), rtol=1e-5, atol=1e-6)


def test_many_steps_in_one_call() -> None:
    """run_steps equals as many runs while the size stays; another one within them is refused."""
    main, startup, loss, _ = cut_and_fit()
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    feeds = [{"x": X + i, "n": np.array([3], "int32")} for i in range(3)]
    (costs,) = exe.run_steps(main, feeds, [loss], scope)
    w = np.ones((6, 1), "float32")
    for i in range(3):
        want, w = expected(w, X + i, 3)
        np.testing.assert_allclose(costs[i], want, rtol=1e-5)
    with pytest.raises(
        UnsupportedError,
        match=(
            r"one value of 'n', which decides sizes, but is fed \[3\] and \[4\]; call run for"
            r" each"
        ),
    ):
        exe.run_steps(main, [*feeds, {"x": X, "n": np.array([4], "int32")}], [loss], scope)
    np.testing.assert_allclose(np.asarray(scope.find_var("w").get_tensor()), w, rtol=1e-5)


@pytest.mark.parametrize("sizes", [(3, 3), (2, 5)], ids=["alike", "apart"])
def test_two_devices(sizes: tuple[int, int]) -> None:
    """Each device has its own size: alike they run at once, else in turn; the gradient is the mean
    of theirs.
    """
    main, startup, loss, _ = cut_and_fit()
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    both = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(2))
    parts = [X[:2], X[2:]]
    feed = [{"x": x, "n": np.array([n], "int32")} for x, n in zip(parts, sizes, strict=True)]
    (costs,) = exe.run(both, feed=feed, fetch_list=[loss], scope=scope)
    w = np.ones((6, 1), "float32")
    each = [expected(w, x, n) for x, n in zip(parts, sizes, strict=True)]
    np.testing.assert_allclose(costs, [cost for cost, _ in each], rtol=1e-5)
    np.testing.assert_allclose(
        np.asarray(scope.find_var("w").get_tensor()), (each[0][1] + each[1][1]) / 2, rtol=1e-5
    )
    (again,) = exe.run(
        both, feed={"x": X, "n": np.array(sizes, "int32")}, fetch_list=[loss], scope=scope
    )
    assert again.shape == (2,)
    with pytest.raises(FeedError, match="less than the count"):
        exe.run(both, feed={"x": X, "n": np.array([3], "int32")}, fetch_list=[loss], scope=scope)


def test_many_steps_on_two_devices_are_refused() -> None:
    main, startup, loss, _ = cut_and_fit()
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    both = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(2))
    with pytest.raises(
        UnsupportedError,
        match="takes no feed that decides sizes, as 'n' does; call run for each step",
    ):
        exe.run_steps(both, [{"x": X, "n": np.array([3, 3], "int32")}] * 2, [loss], scope)


def pure() -> tuple[Any, dict[str, Any]]:
    main, startup, loss, _ = cut_and_fit()
    return fluid.step_fn(main, [loss]), fluid.init_fn(startup)(jax.random.key(0))


def test_a_pure_step() -> None:
    """NumPy feeds decide sizes outside a jit, and inside where they are not arguments of it."""
    step, state = pure()
    want, w = expected(np.ones((6, 1), "float32"), X, 2)
    n = np.array([2], "int32")
    for run in (step, jax.jit(lambda state, feed: step(state, {**feed, "n": n}))):
        new, (cost,) = run(state, {"x": X, "n": n})
        np.testing.assert_allclose(cost, want, rtol=1e-5)
        np.testing.assert_allclose(new["w"], w, rtol=1e-5)


def test_a_pure_step_keeps_a_program_for_each_fixed_feed() -> None:
    step, state = pure()
    traced = []
    jitted = jax.jit(lambda state, feed: (traced.append(1), step(state, feed))[1])
    for n in (2, 4, 2):
        _, (cost,) = jitted(state, {"x": X, "n": fluid.Fixed(np.array([n], "int32"))})
        np.testing.assert_allclose(cost, expected(np.ones((6, 1), "float32"), X, n)[0], rtol=1e-5)
    assert len(traced) == 2


def test_under_a_jit_a_traced_size_is_refused() -> None:
    step, state = pure()
    sentence = (
        r"op 'slice' \(.*test_ways.py:\d+\) makes a size of its input EndsTensorList, 'n',"
        r" .*fluid\.Fixed\(array\)"
    )
    with pytest.raises(UnsupportedError, match=sentence):
        jax.jit(step)(state, {"x": X, "n": np.array([2], "int32")})


def test_what_a_parameter_decides_is_cut() -> None:
    """No feed tells it, so a segment begins where it is needed; explain says so."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        p = layers.create_parameter(
            [1], "int32", name="p", default_initializer=fluid.initializer.Constant(2)
        )
        out = layers.fill_constant([p, 3], "float32", 1.0)
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        exe.run(fluid.default_startup_program(), scope=scope)
        np.testing.assert_array_equal(exe.run(fetch_list=[out], scope=scope)[0], np.ones((2, 3)))
        (told,) = fluid.default_main_program().explain()
        assert told.way == "cut" and "'p' is part of the state" in told.reason


def test_what_is_drawn_is_cut_and_refused_as_one_step() -> None:
    with fluid.program_guard(fluid.Program()):
        n = layers.cast(layers.uniform_random([1], min=1.0, max=9.0), "int32")
        out = layers.fill_constant([n], "float32", 1.0)
        drawn, found = fluid.Executor().run(fetch_list=[n, out])
        np.testing.assert_array_equal(found, np.ones(drawn[0]))
        with pytest.raises(UnsupportedError, match=r"but op 'uniform_random' \(.*\) samples it"):
            jax.jit(fluid.step_fn(fluid.default_main_program(), [out]))({}, {}, jax.random.key(0))


@pytest.mark.parametrize("size", [2**40, 2**62])
@pytest.mark.parametrize("kind", ["fill_constant", "range", "one_hot", "expand", "bilinear"])
def test_an_enormous_size_is_refused(kind: str, size: int) -> None:
    """Before anything is allocated, in one sentence that names the feed."""
    makes = {
        "fill_constant": lambda n: layers.fill_constant([n, 4], "float32", 1.0),
        "range": lambda n: layers.range(0.0, layers.cast(n, "float32"), 1.0, "float32"),
        "one_hot": lambda n: layers.one_hot(layers.fill_constant([8, 1], "int64", 1), n),
        "expand": lambda n: layers.expand(layers.fill_constant([8, 2], "float32", 1.0), [n, 8]),
        "bilinear": lambda n: layers.resize_bilinear(
            layers.fill_constant([1, 1, 2, 2], "float32", 1.0), [n, 4]
        ),
    }
    with fluid.program_guard(fluid.Program()):
        out = makes[kind](fluid.data("n", [1], "int64"))
        with pytest.raises(
            FluidError,
            match=(
                r"an array of shape .* and this machine has .* the feed 'n'|int32 of the size \d+"
            ),
        ):
            fluid.Executor().run(feed={"n": i64(size)}, fetch_list=[out])


def test_a_refused_size_leaves_the_scope_as_it_was() -> None:
    main, startup, loss, _ = cut_and_fit()
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    exe.run(main, feed={"x": X, "n": np.array([2], "int32")}, fetch_list=[loss], scope=scope)
    before = np.array(scope.find_var("w").get_tensor())
    with pytest.raises(
        FluidError, match=r"holds nothing; .*EndsTensorList is \[0\] and follows from the feed 'n'"
    ):
        exe.run(main, feed={"x": X, "n": np.array([0], "int32")}, fetch_list=[loss], scope=scope)
    np.testing.assert_array_equal(np.array(scope.find_var("w").get_tensor()), before)
    exe.run(main, feed={"x": X, "n": np.array([2], "int32")}, fetch_list=[loss], scope=scope)


def test_many_values_are_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 16; three here, for each is a compilation."""
    assert recompiles.SPECIALISATIONS == 16
    monkeypatch.setattr(recompiles, "SPECIALISATIONS", 3)
    with fluid.program_guard(fluid.Program()):
        out = layers.fill_constant([fluid.data("n", [1], "int32"), 2], "float32", 1.0)
        exe = fluid.Executor()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for n in (1, 2, 3, 1, 2, 3):
                exe.run(feed={"n": np.array([n], "int32")}, fetch_list=[out])
            assert not found
            for n in (4, 5):
                exe.run(feed={"n": np.array([n], "int32")}, fetch_list=[out])
        (warning,) = (str(w.message) for w in found)
        assert (
            "more than 3 values of the feed 'n', which decides a size of op 'fill_constant' ("
            in warning
        )


def test_explain() -> None:
    """One entry an op whose size depends on data; what attributes and shapes decide is not worth a
    line.
    """
    with fluid.program_guard(fluid.Program()):
        x, n = fluid.data("x", [None, 6], "float32"), fluid.data("n", [1], "int32")
        layers.relu(x)
        layers.reshape(x, layers.shape(x))
        layers.fill_constant([n + 1, 2], "float32", 1.0)
        told = fluid.default_main_program().explain({"n": np.array([3], "int32")})
        assert [(t.op, t.way) for t in told] == [
            ("reshape2", "static"),
            ("fill_constant", "specialised"),
        ]
        assert "follows from the feed 'n' = [3]" in told[1].reason and "test_ways.py" in (
            told[1].loc or ""
        )
        assert str(told).count("\n") == 1
    with fluid.program_guard(fluid.Program()):
        assert (
            str(fluid.default_main_program().explain()) == "no op has a size that depends on data"
        )


def test_a_size_within_a_block() -> None:
    """What a conditional block makes of a feed from outside."""
    with fluid.program_guard(fluid.Program()):
        n, c = fluid.data("n", [1], "int32"), fluid.data("c", [1], "bool")
        total = layers.fill_constant([1], "float32", 0.0)
        switch = layers.Switch()
        with switch, switch.case(c):
            layers.assign(
                layers.reduce_sum(layers.fill_constant([n, 2], "float32", 1.0), keep_dim=False),
                total,
            )
        exe = fluid.Executor()
        for size, go, want in ((3, True, 6.0), (5, True, 10.0), (5, False, 0.0)):
            (found,) = exe.run(
                feed={"n": np.array([size], "int32"), "c": np.array([go])}, fetch_list=[total]
            )
            assert float(found) == want
        assert [(t.block, t.way) for t in fluid.default_main_program().explain()] == [
            (1, "specialised")
        ]


def test_chosen_rows_are_compiled_once() -> None:
    """How many rows a mask chooses is data: one program for all masks, and what is fetched has its
    true size.
    """
    with fluid.program_guard(fluid.Program()):
        x = fluid.data("x", [4, 3], "float32")
        places = layers.where(x > layers.fill_constant([1], "float32", 0.0))
        found = layers.gather_nd(x, places)
        main, exe = fluid.default_main_program(), fluid.Executor()
        (told,) = main.explain()
        assert told.way == "bounded" and told.op == "where_index"
        for seed in range(5):
            value = np.random.RandomState(seed).uniform(-1, 1, (4, 3)).astype("float32")
            at, there = exe.run(feed={"x": value}, fetch_list=[places, found])
            np.testing.assert_array_equal(at, np.argwhere(value > 0))
            np.testing.assert_array_equal(there, value[value > 0])
        (compiled,) = exe.compiled_steps(main)
        assert len(compiled.executables) == 1


def test_a_number_of_rows_that_no_feed_tells() -> None:
    """An op that must know how many rows a parameter chooses begins a segment; as one step, the
    error names both ops.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        w = layers.create_parameter([4, 2], "float32", name="w")
        rows = layers.gather(w, layers.slice(layers.where(w), [1], [0], [1]))
        out = layers.matmul(rows, rows, transpose_x=True)
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(fluid.default_startup_program(), scope=scope)
        value = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [3.0, 4.0]], "float32")
        scope.var("w").set(value)
        true = value[np.argwhere(value)[:, 0]]
        np.testing.assert_allclose(
            exe.run(fetch_list=[out], scope=scope)[0], true.T @ true, rtol=1e-6
        )
        step = fluid.step_fn(fluid.default_main_program(), [out])
        with pytest.raises(UnsupportedError, match="op 'matmul' mixes the rows") as raised:
            jax.jit(step)({"w": value}, {})
        assert any(
            "op 'where_index' (" in n and "'w' is part of the state" in n
            for n in raised.value.__notes__
        )


def test_one_element_at_a_fed_place_is_compiled_once() -> None:
    """x[i] has the same size wherever i is, so i stays data."""
    with fluid.program_guard(fluid.Program()):
        x, i = fluid.data("x", [4, 6], "float32"), fluid.data("i", [1], "int32")
        main, out, exe = fluid.default_main_program(), x[i], fluid.Executor()
        for at in (0, 3, -2):
            np.testing.assert_array_equal(
                exe.run(feed={"x": X, "i": np.array([at], "int32")}, fetch_list=[out])[0], X[at]
            )
        (compiled,) = exe.compiled_steps(main)
        assert len(compiled.executables) == 1 and not len(main.explain())


def test_what_knows_shapes_alone_refuses() -> None:
    main, startup, loss, _ = cut_and_fit()
    with pytest.raises(
        UnsupportedError,
        match=(
            r"memory report knows feeds by their shapes alone, .* 'n' decides a size of op"
            r" 'slice' \("
        ),
    ):
        main.memory_report(batch_size=4, fetch_list=[loss])
    config = fluid.DistributeTranspilerConfig()
    config.slice_var_up = False
    transpiler = fluid.DistributeTranspiler(config)
    transpiler.transpile(0, program=main, pservers="a:1", trainers=1, startup_program=startup)
    job = fluid.dist.LocalJob.of(transpiler)
    job.start()
    with pytest.raises(
        UnsupportedError,
        match=r"LocalJob knows feeds by their shapes alone, .* 'n' decides a size of op 'slice' \(",
    ):
        job.step([{"x": X, "n": np.array([2], "int32")}], [loss])


def test_sequences_of_fed_lengths_where_the_number_of_rows_counts() -> None:
    """sequence_unpad by fed lengths: padded rows as a rule, exact ones where an op must know how
    many there are.
    """
    with fluid.program_guard(fluid.Program()):
        x, n = fluid.data("x", [2, 3, 2], "float32"), fluid.data("n", [2], "int64")
        rows = layers.sequence_unpad(x, n)
        out, main, exe = (
            layers.matmul(rows, rows, transpose_x=True),
            fluid.default_main_program(),
            fluid.Executor(),
        )
        assert [t.way for t in main.explain()] == ["bounded"]
        value = X.reshape(2, 6, 2)[:, :3].copy()
        for lengths in ((3, 1), (1, 2)):
            true = np.concatenate([value[i, :k] for i, k in enumerate(lengths)])
            (found,) = exe.run(feed={"x": value, "n": i64(*lengths)}, fetch_list=[out])
            np.testing.assert_allclose(found, true.T @ true, rtol=1e-5)


def padded_and_back(form: str) -> tuple[Any, Any]:
    """The mean of x * y * w, x having been padded and unpadded by its lengths in some form; and d
    mean / d w.
    """
    x, y = (fluid.data(n, [None, 2], "float32", lod_level=1) for n in "xy")
    w = layers.create_parameter([2], "float32", default_initializer=fluid.initializer.Constant(0.5))
    cells, lengths = layers.sequence_pad(x, layers.assign(np.zeros(1, "float32")))
    back = layers.transpose(layers.transpose(cells, [1, 0, 2]) * w, [1, 0, 2])
    lengths = {
        "reshape": lambda: layers.reshape(
            layers.cast(layers.cast(layers.unsqueeze(lengths, [1]), "int32"), "int64"), [-1]
        ),
        "bool": lambda: layers.cast(layers.cast(lengths, "bool"), "int64"),
    }[form]()
    rows = layers.sequence_unpad(back, lengths)
    mean = layers.mean(layers.elementwise_mul(rows, y))
    return (rows, mean), fluid.gradients(mean, w)[0]


def test_unpadded_rows_are_those_that_were_padded() -> None:
    """Lengths keep their origin: what is unpadded by them has the LoD of what was padded, and goes
    along with its equals.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        (rows, mean), slope = padded_and_back("reshape")
        main, exe = fluid.default_main_program(), fluid.Executor()
        exe.run(fluid.default_startup_program())
        assert "static; its rows are those of 'x' again" in str(main.explain())
        a, b = np.split(np.linspace(-1, 1, 20).astype("float32").reshape(5, 4), 2, axis=1)
        for lengths in ([3, 0, 2], [1, 2, 2]):
            feed = {n: fluid.create_lod_tensor(v, [lengths]) for n, v in (("x", a), ("y", b))}
            got, value, grad = exe.run(
                main, feed=feed, fetch_list=[rows, mean, slope], return_numpy=False
            )
            assert got.recursive_sequence_lengths() == [lengths]
            np.testing.assert_allclose(np.array(got), a / 2, rtol=1e-6)
            np.testing.assert_allclose(np.array(value), [(a * b / 2).mean()], rtol=1e-5)
            np.testing.assert_allclose(np.array(grad), (a * b).sum(0) / a.size, rtol=1e-5)


def test_other_numbers_have_no_origin() -> None:
    """A 1 for each sequence that has a row, made of its length, is not a length of that sequence."""
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        (rows, _), _ = padded_and_back("bool")
        main, exe = fluid.default_main_program(), fluid.Executor()
        exe.run(fluid.default_startup_program())
        assert [t.way for t in main.explain() if t.op == "sequence_unpad"] == ["bounded"]
        value = X[:, :2].copy()
        feed = {"x": fluid.create_lod_tensor(value, [[2, 0, 2]])}
        (got,) = exe.run(main, feed=feed, fetch_list=[rows], return_numpy=False)
        assert got.recursive_sequence_lengths() == [[1, 0, 1]]
        np.testing.assert_allclose(np.array(got), value[[0, 2]] / 2, rtol=1e-6)


def test_a_pure_step_of_chosen_rows() -> None:
    """Under a jit a mask that is a constant gives exact rows; with another the error says what to
    do.
    """
    with fluid.program_guard(fluid.Program()):
        x, k = fluid.data("x", [4, 6], "float32"), fluid.data("k", [4], "bool")
        rows = layers.gather(x, layers.where(k))
        step = fluid.step_fn(
            fluid.default_main_program(), [layers.matmul(rows, rows, transpose_x=True)]
        )
    mask = np.array([True, False, True, True])
    want = X[mask].T @ X[mask]
    for run, given in ((step, mask), (jax.jit(step), fluid.Fixed(mask))):
        np.testing.assert_allclose(run({}, {"x": X, "k": given})[1][0], want, rtol=1e-5, atol=1e-6)
    with pytest.raises(UnsupportedError, match="op 'matmul' mixes the rows") as raised:
        jax.jit(step)({}, {"x": X, "k": mask})
    assert any(
        "a number of rows that the feed 'k' determines; feed it as a constant" in n
        for n in raised.value.__notes__
    )


@pytest.mark.parametrize("counted", [False, True], ids=["from outside", "by the loop"])
def test_a_size_within_a_loop(counted: bool) -> None:
    """A feed from outside of a While decides a size in it; one that grows with the loop has Python
    drive it.
    """
    with fluid.program_guard(fluid.Program()):
        n, i = fluid.data("n", [1], "int32"), layers.fill_constant([1], "int32", 1)
        total, limit = (
            layers.fill_constant([1], "float32", 0.0),
            layers.fill_constant([1], "int32", 4),
        )
        cond = layers.less_than(i, limit)
        loop = layers.While(cond)
        with loop.block():
            part = layers.reduce_sum(layers.fill_constant([i if counted else n, 2], "float32", 1.0))
            layers.assign(layers.elementwise_add(total, layers.reshape(part, [1])), total)
            layers.increment(i, 1.0, in_place=True)
            layers.less_than(i, limit, cond=cond)
        main, exe = fluid.default_main_program(), fluid.Executor()
        way = next(t.way for t in main.explain() if t.op == "fill_constant")
        assert way == ("cut" if counted else "specialised")
        feed = {} if counted else {"n": np.array([5], "int32")}
        assert float(exe.run(feed=feed, fetch_list=[total])[0]) == (12.0 if counted else 30.0)
