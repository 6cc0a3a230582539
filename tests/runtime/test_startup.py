"""Startup programs run op by op: bit for bit what the step makes that is compiled as this process
compiles, and without compiling one.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax import initializer, layers
from fluidjax.devices.placement import Mesh
from fluidjax.dist.spmd.parallel import Parallel
from fluidjax.errors import NanInfError, ShapeError
from fluidjax.lower.step import Step
from fluidjax.lower.uncompiled import uncompiled
from fluidjax.ops import sampling
from fluidjax.ops.catalog import having
from fluidjax.ops.registry import lookup, traits
from fluidjax.ops.threefry import KnownKey, bits, fold_in, known_key, split_words
from fluidjax.runtime.runnable import Runnable

from ..nets import fresh
from ..ops.running import Batch, Run
from ..ops.samples import all_samples
from ..ops.together import given as attempted
from .test_compiles_once import compiles  # noqa: F401

UINT64 = st.integers(0, 2**64 - 1)


def same(a: Any, b: Any) -> bool:
    """Equal types, and equal bits."""
    a, b = np.asarray(a), np.asarray(b)
    return (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes() == b.tobytes()


# -- the generator ---------------------------------------------------------------------------------


@given(st.integers(-(2**63), 2**63 - 1), UINT64)
def test_known_keys_are_those_of_jax(seed: int, data: int) -> None:
    with jax.enable_x64(True):
        key = jax.random.key(np.int64(seed))
        folded = jax.random.fold_in(key, np.uint64(data))
        assert KnownKey.of(seed) == known_key(key)
        assert KnownKey.of(seed).fold_in(data) == known_key(folded)


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_bits_are_those_of_jax_from_any_place_on(dtype: str) -> None:
    with jax.enable_x64(True):
        key = jax.random.key(2**40 + 7)
        whole = np.asarray(jax.random.bits(key, (3, 1001), dtype)).ravel()
        for start in (0, 1, 2000):
            at = np.arange(start, 3003, dtype=np.uint64)
            assert same(bits(known_key(key).array, at, np.dtype(dtype)), whole[start:])
            assert same(
                jax.jit(partial(bits, unsigned=np.dtype(dtype)))(known_key(key).array, at),
                whole[start:],
            )


def test_places_beyond_32_bits_are_others() -> None:
    """jax.random counts with 64 bits; an array that long is not for a test, so the two words are
    compared with fold_in's.
    """
    words = KnownKey.of(5).array
    far = bits(words, np.array([3, 3 + 2**32], np.uint64), np.dtype("uint64"))
    assert far[0] != far[1] and far[0] == (lambda a, b: a << 32 | b)(
        *KnownKey.of(5).fold_in(3).words
    )


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_split_words_are_those_of_split_keys(impl: str) -> None:
    keys = jax.random.split(jax.random.key(9, impl=impl), 3)
    for count in (0, 1, 1001):
        want = jax.vmap(lambda key: jax.random.key_data(jax.random.split(key, count)))(keys)  # noqa: B023
        assert same(jax.vmap(partial(split_words, count=count))(keys), want)


def test_a_key_of_another_generator_is_not_known() -> None:
    assert known_key(jax.random.key(3, impl="rbg")) is None
    assert known_key(None) is None
    assert known_key(jax.random.split(jax.random.key(3))) is None
    assert known_key(jax.random.PRNGKey(3)) == KnownKey.of(3)
    jax.jit(lambda key: [] if known_key(key) is None else pytest.fail("a traced key is not known"))(
        jax.random.key(3)
    )


# -- draws -----------------------------------------------------------------------------------------

LAWS = {
    "uniform": [(0.0, 1.0), (-0.0123, 0.0123), (2.0, 2.0), (-3.0, 500.0), (-0.3, 0.7)],
    "normal": [(0.0, 0.02), (-2.0, 0.3), (0.0, 0.0), (1.5, 1.0)],
    "truncated_normal": [(0.0, 0.02), (0.7, 3.0)],
}
LONGEST = 2 * sampling.CHUNK + 3
# as attributes are
CASES = [
    (law, tuple(float(np.float32(x)) for x in p)) for law, params in LAWS.items() for p in params
]


def cases(dtype: str) -> list[Any]:
    return CASES if dtype == "float32" else CASES[1::3]


def drawn(key: Any, shape: tuple[int, ...], dtype: str) -> list[Any]:
    return [
        getattr(sampling, law)(fold_in(key, i), shape, dtype, *p)
        for i, (law, p) in enumerate(cases(dtype))
    ]


def in_a_step(seed: Any, dtype: str) -> list[Any]:
    return drawn(jax.random.key(seed), (LONGEST,), dtype)


def check(expected: Any, shape: tuple[int, ...] = (LONGEST,), kind: type = np.ndarray) -> None:
    dtype, steps = expected
    size = math.prod(shape)
    for case, got, want in zip(
        cases(dtype), drawn(KnownKey.of(17), shape, dtype), steps, strict=True
    ):
        assert isinstance(got, kind) and same(got, want[:size].reshape(shape)), case


@pytest.fixture(scope="module", params=sampling.DTYPES)
def expected(request: Any) -> Any:
    """A dtype, and the draws of a compiled step."""
    with jax.enable_x64(True):
        return request.param, jax.jit(partial(in_a_step, dtype=request.param))(17)


@pytest.mark.parametrize(
    "shape",
    [(0,), (1,), (7,), (sampling.CHUNK - 1,), (sampling.CHUNK,), (LONGEST,), (7, 11, 13), ()],
    ids=str,
)
def test_draws_are_those_of_the_compiled_step(expected: Any, shape: tuple[int, ...]) -> None:
    check(expected, shape)


def test_the_generator_is_compiled_where_much_is_drawn(expected: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(sampling, "WORTH", 0)
    check(expected)


def test_large_arrays_are_filled_block_by_block(expected: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(sampling, "HOST", 999)
    monkeypatch.setattr(sampling, "BLOCK", 1000)
    sampling.whole.cache_clear()
    check(expected, kind=jax.Array)
    sampling.whole.cache_clear()


@pytest.mark.slow
@pytest.mark.optimized
def test_also_as_xla_fuses_them_by_default() -> None:
    with jax.enable_x64(True):
        steps = jax.jit(partial(in_a_step, dtype="float64"))(17)
    check(("float64", steps))


# -- ops -------------------------------------------------------------------------------------------


def test_ops_with_the_trait_compute_the_same_by_themselves() -> None:
    samples = [
        s
        for _, _, s in all_samples()
        if not s.lod and (e := traits(s.op).eager) and e.when(Run(s).attrs)
    ]
    assert {s.op for s in samples} == set(having(lambda t: t.eager is not None))
    # by themselves: XLA shares what equal keys have in common
    draw = [s for s in samples if lookup(s.op).random]
    batches = [Batch([s]) for s in draw] + [Batch([s for s in samples if s not in draw])]
    for run, result in (
        (run, result) for batch in batches for run, result in batch.results.items()
    ):
        want, _ = attempted(result)
        definition = replace(run.definition, fn=run.definition.traits.eager.fn or run.definition.fn)
        with jax.enable_x64(True):
            got = definition(run.inputs, run.attrs, KnownKey.of(7) if definition.random else None)
        assert all(type(v) is np.ndarray and same(v, want[s]) for s, v in got.items()), run.sample


# -- programs --------------------------------------------------------------------------------------

GIVEN = [
    *(initializer.Constant(2.5), initializer.Uniform(-0.3, 0.7), initializer.Uniform(seed=9), initializer.Normal(0.5, 0.1)),
    *(initializer.TruncatedNormal(0.0, 0.02), initializer.Xavier(), initializer.Xavier(uniform=False), initializer.MSRA()),
    *(initializer.MSRA(uniform=False, seed=3), initializer.Bilinear(), initializer.Uniform(diag_num=3, diag_step=4)),
    initializer.NumpyArrayInitializer(np.arange(36, dtype=np.float32).reshape(4, 1, 3, 3)),
]  # fmt: skip


def every_initializer(seed: int) -> fluid.Program:
    with fresh(seed) as (_, startup):
        for i, one in enumerate(GIVEN):
            layers.create_parameter([4, 1, 3, 3], "float32", f"p{i}", default_initializer=one)
            if i in (0, 1, 3, 4, 6):
                layers.create_parameter(
                    [4, 1, 3, 3], "float16", f"half_{i}", default_initializer=one
                )
                layers.create_parameter(
                    [4, 1, 3, 3], "float64", f"double_{i}", default_initializer=one
                )
        layers.create_global_var([1], 7, "int64", persistable=True, name="counter")
        layers.create_global_var([300, 5], 1.0, "float32", persistable=True, name="ones")
    return startup


def compiled(startup: fluid.Program, seed: int, count: int = 0) -> dict[str, Any]:
    """The state that the startup program makes as one compiled step."""
    step = Step(startup.desc)
    with jax.enable_x64(True):
        run = jax.jit(lambda s, n: step({}, {}, jax.random.fold_in(jax.random.key(s), n))[0])
        return run(seed, count)


def held(scope: fluid.Scope) -> dict[str, Any]:
    return {n: scope.find_var(n).storage.read() for n in scope.local_var_names()}


def test_every_initializer_gives_what_the_compiled_program_gives() -> None:
    startup = every_initializer(11)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    want, got = compiled(startup, 11), held(scope)
    assert got.keys() == want.keys() and len(got) > 20
    assert [n for n in want if not same(got[n], want[n])] == []
    assert all(isinstance(v, jax.Array) and v.committed for v in got.values())
    pure = fluid.init_fn(startup)(jax.random.fold_in(jax.random.key(11), 0))
    assert [n for n in want if not same(pure[n], want[n])] == []


def test_a_program_that_is_not_seeded_draws_anew() -> None:
    with fresh() as (_, startup):
        layers.create_parameter([3, 3], "float32", "w")
    exe = fluid.Executor()
    exe.set_random_state(startup, 5, 0)
    for count in range(2):
        scope = fluid.Scope()
        exe.run(startup, scope=scope)
        assert exe.random_state(startup) == (5, count + 1)
        assert same(scope.find_var("w").value, compiled(startup, 5, count)["w"])


def network(parameters: int) -> Any:
    with fresh(3) as (main, startup):
        h = fluid.data("x", [None, 4])
        for _ in range(parameters // 2):
            h = layers.fc(h, 4)
        loss = layers.mean(h)
        fluid.optimizer.Adam(0.1).minimize(loss)
    return main, startup, loss


def test_it_compiles_no_step(compiles: list[str]) -> None:  # noqa: F811
    _, startup, _ = network(4)
    fluid.Executor().run(startup, scope=fluid.Scope())  # which may compile the draw that all share
    compiles.clear()
    _, startup, _ = network(40)
    fluid.Executor().run(startup, scope=fluid.Scope())
    assert not compiles


def test_training_goes_on_from_there_and_may_start_again() -> None:
    main, startup, loss = network(4)
    exe, scope = fluid.Executor(), fluid.Scope()
    runs = []
    for _ in range(2):
        exe.run(startup, scope=scope)
        runs.append(
            [
                exe.run(main, {"x": np.ones((2, 4), np.float32)}, [loss], scope=scope)[0]
                for _ in range(3)
            ]
        )
    assert runs[0] == runs[1] and runs[0][0] != runs[0][2]


@pytest.mark.parametrize("numpy", [True, False])
def test_what_a_startup_program_makes_may_be_fetched(numpy: bool) -> None:
    main, startup, _ = network(2)
    exe, scope = fluid.Executor(), fluid.Scope()
    (weight,) = exe.run(startup, fetch_list=["fc_0.w_0"], scope=scope, return_numpy=numpy)
    before = np.array(weight)
    assert same(before, scope.find_var("fc_0.w_0").value)
    exe.run(main, {"x": np.ones((2, 4), np.float32)}, scope=scope)
    assert same(weight, before) and not same(before, scope.find_var("fc_0.w_0").value)


def test_copies_have_memory_of_their_own(monkeypatch: Any) -> None:
    monkeypatch.setattr(sampling, "HOST", 8)
    monkeypatch.setattr(sampling, "BLOCK", 4)
    with fresh(1) as (_, startup):
        w = layers.create_parameter([5, 7], "float32", "w")
        block = startup.global_block()
        copy = block.create_var(name="copy", shape=[5, 7], dtype="float32", persistable=True)
        block.append_op("assign", {"X": w.name}, {"Out": copy})
    scope = fluid.Scope()
    fluid.Executor().run(startup, scope=scope)
    w, copy = (scope.find_var(n).storage.read() for n in ("w", "copy"))
    assert same(w, copy) and w.unsafe_buffer_pointer() != copy.unsafe_buffer_pointer()
    sampling.whole.cache_clear()


def test_what_a_startup_program_computes_is_compiled_without_its_draws(
    compiles: list[str],  # noqa: F811
) -> None:
    """Weight norm's g is a function of what was drawn; the draws are those of the program compiled
    whole.
    """
    with fresh(1) as (_, startup):
        for i, dim in enumerate((1, 0)):
            layers.fc(
                fluid.data("x", [None, 3]),
                4,
                param_attr=fluid.WeightNormParamAttr(dim=dim, name=f"w{i}"),
                bias_attr=False,
            )
    alone = uncompiled(Step(startup.desc))
    assert alone is not None and {op.type for op in alone.alone} == {"uniform_random"}
    fluid.Executor().run(startup, scope=fluid.Scope())  # compiles the draw, of any program
    scope = fluid.Scope()
    compiles.clear()
    fluid.Executor().run(startup, scope=scope)
    assert len(compiles) == 1
    whole = Step(startup.desc)({}, {}, fold_in(jax.random.key(1), 0))[0]
    for i, axis in enumerate((0, 1)):
        v, g = (np.asarray(scope.find_var(f"w{i}_{n}").value) for n in "vg")
        assert same(v, whole[f"w{i}_v"])
        np.testing.assert_allclose(g.ravel(), np.sqrt((v**2).sum(axis)), rtol=1e-6)


def test_a_startup_program_is_compiled_whole_where_it_draws_over_what_it_computed() -> None:
    with fresh(1) as (_, startup):
        block = startup.global_block()
        block.create_var(name="w", shape=[2], dtype="float32", persistable=True)
        block.append_op("fill_constant", outputs={"Out": "w"}, attrs={"shape": [2], "value": 3.0})
        block.append_op("relu", inputs={"X": "w"}, outputs={"Out": "w"})
        block.append_op("uniform_random", outputs={"Out": "w"}, attrs={"shape": [2]})
    assert uncompiled(Step(startup.desc)) is None


def trainers_startup(root: int = 0) -> fluid.Program:
    """The startup program of the second of two trainers (collective mode), in which rank `root`
    tells the others its parameters.
    """
    main, startup, _ = network(2)
    config = fluid.DistributeTranspilerConfig()
    config.mode, config.collective_mode, config.wait_port = "collective", "grad_allreduce", False
    ends = ["127.0.0.1:1", "127.0.0.1:2"]
    fluid.DistributeTranspiler(config).transpile(
        1, main, trainers=",".join(ends), startup_program=startup, current_endpoint=ends[1]
    )
    for op in startup.global_block().ops:
        if op.type == "c_broadcast":
            op._set_attr("root", root)
    return startup


def begun(startup: fluid.Program) -> dict[str, Any]:
    """What it leaves, on two devices, of its first run."""
    scope = fluid.Scope()
    fluid.Executor().run(Runnable(startup, Parallel(Mesh(tuple(jax.devices()[:2])))), scope=scope)
    return held(scope)


# without XLA's fusion emitters a compiled step rounds draws otherwise than it does by default
@pytest.mark.optimized
def test_ranks_that_take_the_values_of_rank_0_compile_no_step(
    monkeypatch: Any,
    compiles: list[str],  # noqa: F811
) -> None:
    startup = trainers_startup()
    assert sum(op.type == "c_broadcast" for op in startup.global_block().ops) >= 2
    begun(startup)
    compiles.clear()
    found = begun(startup)
    assert not compiles
    monkeypatch.setattr("fluidjax.runtime.plan.uncompiled", lambda *_: None)
    expected = begun(startup)
    assert (
        compiles
        and found.keys() == expected.keys()
        and [n for n, v in expected.items() if not same(found[n], v)] == []
    )


@pytest.mark.parametrize("change", ["another root", "a parameter of each rank's own", "a fetch"])
def test_ranks_whose_values_are_not_those_of_rank_0_compile_them(change: str) -> None:
    startup = trainers_startup(root=int(change == "another root"))
    block, fetches = startup.global_block(), ()
    if change == "a fetch":
        fetches = (next(op for op in block.ops if op.type == "c_broadcast").output("Out")[0],)
    elif change.startswith("a parameter"):
        block._remove_op(next(i for i, op in enumerate(block.ops) if op.type == "c_broadcast"))
    assert uncompiled(Step(startup.desc, fetches), together=True) is None


def test_under_another_generator_it_is_compiled() -> None:
    _, startup, _ = network(2)
    jax.config.update("jax_default_prng_impl", "rbg")
    try:
        assert uncompiled(Step(startup.desc)) is None
    finally:
        jax.config.update("jax_default_prng_impl", "threefry2x32")


def test_traced_inits_stay_traced() -> None:
    """Nothing is computed while a function around is traced, so that no table becomes a literal of
    the program.
    """
    _, startup, _ = network(2)
    init, key = fluid.init_fn(startup), jax.random.key(4)
    traced = str(jax.make_jaxpr(lambda: init(key))())
    assert traced.count("random_fold_in") == traced.count("random_bits") == 1


def test_errors_name_the_op_and_leave_the_scope() -> None:
    with fresh(1) as (_, startup):
        layers.create_parameter([3, 3], "float32", "a")
        layers.create_parameter(
            [3, 3], "float32", "b", default_initializer=initializer.Uniform(diag_num=9, diag_step=9)
        )
    scope = fluid.Scope()
    with pytest.raises(ShapeError, match="9 diagonal elements 10 apart do not fit") as error:
        fluid.Executor().run(startup, scope=scope)
    assert any(
        "in op: b = uniform_random" in note and "test_startup.py:" in note
        for note in error.value.__notes__
    )
    assert held(scope) == {}


def test_nan_is_looked_for_in_a_compiled_one() -> None:
    with fresh(1) as (_, startup):
        layers.create_parameter(
            [3, 3], "float32", "a", default_initializer=initializer.Constant(float("inf"))
        )
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    try:
        with pytest.raises(NanInfError, match="fill_constant"):
            fluid.Executor().run(startup, scope=fluid.Scope())
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})
