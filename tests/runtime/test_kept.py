"""Traces that are kept: who finds one computes the same to the bit, and whatever a trace depends on
is in its key.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax import layers
from fluidjax.ops.registry import REGISTRY
from fluidjax.runtime import kept, trace_key
from fluidjax.runtime.building import argument_types
from fluidjax.runtime.compile_cache import CACHE
from fluidjax.runtime.compiled import Compiled
from fluidjax.runtime.compiler_options import IN_LIBRARY
from fluidjax.runtime.exported import Exported
from fluidjax.runtime.kind import Kind
from fluidjax.runtime.placement import OneDevice
from fluidjax.runtime.recompiles import Recompiles
from fluidjax.runtime.traces import MAGIC, Results, Trace

from ..examples import examples
from ..nets import fresh
from ..random_programs import build, recipes

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """Also small steps are kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_key, "FEWEST", 1)
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where traces are kept."""
    for name, value in {"folder": tmp_path, "writes": True, "_asked": True, "_told": False}.items():
        monkeypatch.setattr(CACHE, name, value)
    return tmp_path


def entries(folder: Path) -> list[Path]:
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]
    return sorted(folder.glob(f"*{kept.SUFFIX}"))


@dataclass
class Ran:
    """Steps of a program that was built anew: what they fetched, the state at the end, and what was
    compiled.
    """

    fetched: list[np.ndarray]
    state: dict[str, np.ndarray]
    made: list[Any]

    @property
    def found(self) -> list[bool]:
        return [m.found for m in self.made]

    def same(self, other: Ran) -> bool:
        """To the bit."""
        pairs = [
            *zip(self.fetched, other.fetched, strict=True),
            *((v, other.state[n]) for n, v in self.state.items()),
        ]
        return self.state.keys() == other.state.keys() and all(
            a.tobytes() == b.tobytes() for a, b in pairs
        )


def run(net: Any, steps: int = 4) -> Ran:
    main, startup, loss, feed = net
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    fetched = [np.array(exe.run(main, feed, [loss], scope=scope)[0]) for _ in range(steps)]
    names = sorted(
        v.name for v in main.list_vars() if v.persistable and scope.find_var(v.name) is not None
    )
    return Ran(
        fetched,
        {n: np.array(scope.find_var(n).get_tensor()) for n in names},
        exe.compilations(main),
    )


def dropping(rate: float = 0.2, width: int = 6, before: Callable[[], Any] = lambda: None) -> Any:
    """A net whose quick step has stages, between which a random key and state pass."""
    with fresh(3) as (main, startup):
        before()
        h = layers.batch_norm(layers.fc(fluid.data("x", [None, width]), 6, act="tanh"))
        loss = layers.mean(layers.square(layers.dropout(h, rate)))
        fluid.optimizer.Adam(0.01).minimize(loss)
    return main, startup, loss, {"x": np.resize(X, (2, width))}


def test_who_finds_a_trace_computes_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, again = run(dropping()), run(dropping())
    assert first.found == [False] and again.found == [True] and first.same(again)
    assert len(entries(folder)) == 1
    monkeypatch.setattr(CACHE, "folder", None)
    without = run(dropping())
    assert without.found == [False] and without.same(first)


def reshaping() -> Any:
    """A net whose state has another shape after its first step, as a variable has into which a step
    writes what it reshaped.
    """
    with fresh(3) as (main, startup):
        held = layers.create_global_var([2, 3], 1.0, "float32", persistable=True, name="held")
        loss = layers.mean(
            layers.square(layers.fc(fluid.data("x", [None, 6]), 6))
        ) + layers.reduce_sum(layers.sqrt(held))
        fluid.optimizer.Adam(0.01).minimize(loss)
        layers.assign(layers.scale(layers.reshape(held, [-1]), 2.0), held)
    return main, startup, loss, {"x": X}


def test_state_that_changes_its_shape(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its steps have no trace in common: each type has one, which JAX makes when it comes."""
    ran = [run(reshaping(), 2), run(reshaping(), 2)]
    assert (
        not entries(folder) and ran[0].same(ran[1]) and ran[0].state["held"].tolist() == [4.0] * 6
    )
    monkeypatch.setattr(CACHE, "folder", None)
    assert run(reshaping(), 2).same(ran[0])


def test_reports_tell_it(folder: Path) -> None:
    """What was found, and why it was compiled."""
    for found in (False, True):
        main, startup, loss, feed = dropping()
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        exe.run(startup, scope=scope)
        exe.run(main, feed, [loss], scope=scope)
        (made,) = exe.compilations(main)
        assert made.found == found
        assert ("s to find its trace, " if found else "s to trace, ") in str(made)
        (report,) = exe.explain_recompiles(main)
        assert report.reason == "the first run" and "test_kept.py" in report.line
        assert made.seconds > 0


@examples(12)
@given(recipes())
def test_random_programs(tmp_path_factory: pytest.TempPathFactory, recipe: Any) -> None:
    """Not kept, kept and found: all the same."""
    folder = tmp_path_factory.mktemp("kept")

    def net() -> Any:
        found = build([*recipe, ("dropout", 0)], fluid.optimizer.Momentum(0.1, 0.9))
        return found.main, found.startup, found.loss, found.feed

    without = run(net())
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"folder": folder, "writes": True, "_asked": True}.items():
            patch.setattr(CACHE, name, value)
        first, again = run(net()), run(net())
    assert not any(first.found) and all(again.found) and again.made
    assert first.same(without) and again.same(first)


def test_many_steps_in_one_call(folder: Path) -> None:
    losses = []
    for found in (False, True):
        main, startup, loss, feed = dropping()
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        exe.run(startup, scope=scope)
        losses += exe.run_steps(main, [feed] * 3, [loss], scope=scope)
        assert [m.found for m in exe.compilations(main)] == [found]
    assert losses[0].tobytes() == losses[1].tobytes()


def test_state_is_donated(folder: Path) -> None:
    for found in (False, True):
        main, startup, loss, feed = dropping()
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        exe.run(startup, scope=scope)
        for step in range(4):
            (compiled,) = exe.compiled_steps(main) or [None]
            before = compiled.buffers.arrays[0] if step in (1, 3) else []
            exe.run(main, feed, [loss], scope=scope)
            assert all(a.is_deleted() for a in before), step
        assert [m.found for m in exe.compilations(main)] == [found]


LOOKING_UP = """
ids = fluid.data("ids", [None, 1], "int64")
doubled = layers.cast(layers.scale(layers.cast(ids, "float32"), 2.0), "int64")
rows = layers.embedding(doubled, (10, 4))
loss = layers.mean(layers.fc(rows, 3))
"""


def looking_up(script: str) -> Any:
    """Ids that a step computes, and so checks when it runs; built by a script of this name."""
    found = {"fluid": fluid, "layers": layers}
    with fresh(5) as (main, startup):
        exec(compile(LOOKING_UP, script, "exec"), found)
        fluid.optimizer.SGD(0.1).minimize(found["loss"])
    return main, startup, found["loss"]


def test_objections_are_told_with_the_line_of_this_script(folder: Path) -> None:
    """By quick steps and by optimised ones; the state stays what it was."""
    words = []
    for script in ("first.py", "second.py"):
        main, startup, loss = looking_up(script)
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        exe.run(startup, scope=scope)
        for step in range(4):
            exe.run(main, {"ids": np.array([[step]], "int64")}, [loss], scope=scope)
            with pytest.raises(fluid.errors.EnforceNotMet) as told:
                exe.run(main, {"ids": np.array([[1], [7]], "int64")}, [loss], scope=scope)
            words.append("\n".join([str(told.value), *told.value.__notes__]))
        founds = [m.found for m in exe.compilations(main)]
        assert len(founds) >= 2 and all(found == (script == "second.py") for found in founds)
    assert len(set(words)) == 2 and words[0].replace("first.py", "second.py") == words[-1]
    assert "14" in words[0] and "first.py:4" in words[0] and "lookup_table" in words[0]


def sequences(fetch_sequence: bool) -> tuple[Any, list[bool]]:
    with fresh(2) as (main, startup):
        x = fluid.data("x", [None, 4], lod_level=1)
        h = layers.fc(x, 4, act="tanh")
        loss = layers.mean(layers.sequence_pool(h, "max"))
        fluid.optimizer.SGD(0.1).minimize(loss)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    feed = {
        "x": fluid.create_lod_tensor(
            np.arange(20, dtype=np.float32).reshape(5, 4), [[2, 3]], fluid.CPUPlace()
        )
    }
    (found,) = exe.run(main, feed, [h if fetch_sequence else loss], scope=scope, return_numpy=False)
    return found, [m.found for m in exe.compilations(main)]


def test_sequences_that_are_fed(folder: Path) -> None:
    first, again = sequences(False), sequences(False)
    assert (first[1], again[1]) == ([False], [True]) and np.array(first[0]).tobytes() == np.array(
        again[0]
    ).tobytes()


def test_sequences_that_are_fetched_are_not_kept(folder: Path) -> None:
    first, again = sequences(True), sequences(True)
    assert (
        again[1] == [False]
        and first[0].lod() == again[0].lod() == [[0, 2, 5]]
        and not entries(folder)
    )
    assert np.array(first[0]).tobytes() == np.array(again[0]).tobytes()


# -- what is wrong with an entry -------------------------------------------------------------------


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def other_bit(content: bytes) -> bytes:
    return content[:-5] + bytes([content[-5] ^ 1]) + content[-4:]


@pytest.mark.parametrize(
    "harm",
    [
        half,
        other_bit,
        lambda _: b"",
        lambda c: b"garbage" + c,
        lambda c: bytes(len(c)),
        lambda c: c[:60],
    ],
)
def test_a_damaged_entry_is_removed_and_made_anew(
    folder: Path, harm: Callable[[bytes], bytes]
) -> None:
    first = run(dropping())
    whole = {path: path.read_bytes() for path in entries(folder)}
    for path, content in whole.items():
        path.write_bytes(harm(content))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        again = run(dropping())
    said = [str(w.message) for w in told if "compilation cache" in str(w.message)]
    assert len(said) == 1 and "a damaged entry of the compilation cache was removed" in said[0]
    assert not any(again.found) and again.same(first)
    assert {path: path.read_bytes() for path in entries(folder)} == whole
    assert all(run(dropping()).found)


def test_where_nothing_can_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is read; nothing is added, and nothing said of it here (the folder's state is
    told when it is opened).
    """
    first = run(dropping())
    monkeypatch.setattr(CACHE, "writes", False)
    again, other = run(dropping()), run(dropping(0.5))
    assert (
        all(again.found)
        and again.same(first)
        and not any(other.found)
        and len(entries(folder)) == 1
    )


def test_a_disk_that_is_full_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert not any(run(dropping()).found) and entries(folder) == []


def test_the_bound_counts_traces(folder: Path) -> None:
    from fluidjax.runtime.compile_cache import bound

    run(dropping())
    for path in entries(folder):
        os.utime(path, (1, 1))
    (folder / "jit_step_0-cache").write_bytes(bytes(10))
    bound(folder.parent, sum(p.stat().st_size for p in entries(folder)) + 9)
    assert len(entries(folder)) == 0 and (folder / "jit_step_0-cache").exists()


# -- entries as bytes ------------------------------------------------------------------------------


def example() -> Trace:
    code = Exported.of(lambda a, b: [a * 2, a + b], [jax.ShapeDtypeStruct((2, 3), np.float32)] * 2)
    return Trace(code, Results(1, ("new",), 0, False), ((1, 7, "objects to {}"),))


def test_bytes_and_back() -> None:
    made = example()
    again = Trace.read(made.written())
    assert again == made
    x, y = np.ones((2, 3), np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    double, total = jax.jit(lambda *given: again.code.function()(*given))(x, y)
    assert (double == 2 * x).all() and (total == x + y).all()


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(0, 255), st.integers(0, 10_000))
def test_any_other_bytes_are_refused(at: int, byte: int, end: int) -> None:
    whole = example_bytes()
    spoilt = bytearray(whole[: len(whole) - end % len(whole)])
    if spoilt:
        spoilt[at % len(spoilt)] = byte
    if bytes(spoilt) != whole:
        with pytest.raises(ValueError, match="no trace"):
            Trace.read(bytes(spoilt))


_BYTES: list[bytes] = []


def example_bytes() -> bytes:
    if not _BYTES:
        _BYTES.append(example().written())
    return _BYTES[0]


@pytest.mark.parametrize("head", ["{}", "[]", "null", '{"parts": [{}]}', '{"parts": 3}', "no json"])
def test_sound_bytes_of_something_else_are_refused(head: str) -> None:
    import hashlib
    import zlib

    rest = zlib.compress(len(head).to_bytes(8, "little") + head.encode())
    with pytest.raises(ValueError):
        Trace.read(MAGIC + hashlib.sha256(rest).digest() + rest)


# -- keys ------------------------------------------------------------------------------------------


def compiled_of(
    net: Any, wanted: Any = None, fetch: Any = None, memory: bool = False
) -> tuple[Compiled, Any]:
    main, startup, loss, feed = net
    scope = fluid.Scope()
    fluid.Executor(fluid.CPUPlace()).run(startup, scope=scope)
    fetches = tuple(fetch or (loss.name,))
    made = Compiled(
        main.desc, fetches, OneDevice(jax.devices("cpu")[0]), Recompiles(), memory_optimized=memory
    )
    made.wanted = wanted
    made.bind(scope)
    return made, feed


def key(net: Any, kind: Kind = Kind.ONE, **other: Any) -> str | None:
    made, feed = compiled_of(net, **other)
    with jax.enable_x64(True):
        return (
            trace_key.trace_key(made, kind, argument_types(made, feed))
            if trace_key.may_be_kept(made, kind)
            else None
        )


def with_attr(net: Any, kind: str, **attrs: Any) -> Any:
    main, *rest = net
    op = next(op for op in main.global_block().ops if op.type == kind)
    for name, value in attrs.items():
        op._set_attr(name, value)
    return main, *rest


def widened(net: Any) -> Any:
    return *net[:3], {"x": np.resize(X, (3, 6))}


OTHERS: dict[str, Callable[[], Any]] = {
    "an attribute": lambda: key(with_attr(dropping(), "dropout", dropout_prob=0.25)),
    "a hint": lambda: key(with_attr(dropping(), "batch_norm", data_layout="NHWC")),
    "an op more": lambda: key(dropping(before=lambda: fluid.data("y", [1]))),
    "the width": lambda: key(dropping(width=5)),
    "the batch": lambda: key(widened(dropping())),
    "other names": lambda: key(dropping(before=lambda: fluid.unique_name.generate("fc"))),
    "the options": lambda: key(dropping(), wanted=IN_LIBRARY),
    "another fetch": lambda: key(dropping(), fetch=("fc_0.tmp_2", "mean_0.tmp_0")),
    "no fetch": lambda: key(dropping(), fetch=("fc_0.tmp_2",)),
    "many steps": lambda: key(dropping(), kind=Kind.MANY),
}


@pytest.mark.parametrize("what", OTHERS)
def test_another_step_has_another_key(what: str) -> None:
    assert key(dropping()) == key(dropping()) is not None
    assert OTHERS[what]() not in (None, key(dropping()))


@pytest.mark.parametrize("setting", [
    ("jax_default_matmul_precision", "highest"), ("jax_numpy_dtype_promotion", "strict"), ("jax_threefry_partitionable", False),
    ("jax_default_prng_impl", "rbg"),
])  # fmt: skip
def test_another_setting_of_jax_has_another_key(setting: tuple[str, Any]) -> None:
    made, feed = compiled_of(dropping())
    args = argument_types(made, feed)
    here, before = trace_key.trace_key(made, Kind.ONE, args), jax.config.values[setting[0]]
    jax.config.update(*setting)
    try:
        there = trace_key.trace_key(made, Kind.ONE, args)
    finally:
        jax.config.update(setting[0], before)
    assert (
        None not in (here, there)
        and here != there == there
        and here == trace_key.trace_key(made, Kind.ONE, args)
    )


def test_surroundings_have_their_keys() -> None:
    """x64, a precision that is set for a while, flags, the environment, versions, this package's
    files.
    """
    from fluidjax.ops.enclosed import enclosed

    made, feed = compiled_of(dropping())
    args = argument_types(made, feed)
    ask = lambda: trace_key.trace_key(made, Kind.ONE, args)  # noqa: E731
    keys = [ask()]
    with jax.enable_x64(True):
        keys.append(ask())
    with jax.default_matmul_precision("highest"):
        keys.append(ask())
    with enclosed():
        keys.append(ask())
    for name, value in {"FLAGS_channels_last": "on", "FLAGS_use_mkldnn": True}.items():
        before = fluid.get_flags(name)
        fluid.set_flags({name: value})
        keys.append(ask())
        fluid.set_flags(before)
    with pytest.MonkeyPatch.context() as patch:
        for words in (("fluidjax", "files", "x", "y"), ("fluidjax", "others", "x", "y")):
            patch.setattr(trace_key, "process_words", lambda words=words: words)
            keys.append(ask())
    assert None not in keys and len(set(keys)) == len(keys) and ask() == keys[0]


def test_what_a_process_is(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh_words = trace_key.process_words.__wrapped__
    here = fresh_words()
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    flags = fresh_words()
    monkeypatch.setattr(trace_key, "version", lambda name: "99")
    versions = fresh_words()
    monkeypatch.setattr(trace_key, "files_digest", lambda package, since: "other")
    assert len({here, flags, versions, fresh_words()}) == 4
    monkeypatch.setattr(trace_key, "files_digest", lambda package, since: None)
    with pytest.raises(trace_key.NoKey):
        fresh_words()


def test_an_edited_file_changes_the_digest(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    one, two = tmp_path / "one.py", tmp_path / "a" / "two.py"
    one.write_text("x = 1")
    two.write_text("y = 1")
    ask = lambda: trace_key.files_digest(tmp_path, time.time() + 60)  # noqa: E731
    found = [ask()]
    times = one.stat()
    one.write_text("x = 2")
    os.utime(one, ns=(times.st_atime_ns, times.st_mtime_ns))  # as many bytes, and as old
    found.append(ask())
    two.rename(tmp_path / "a" / "three.py")
    found.append(ask())
    (tmp_path / "new.py").write_text("")
    found.append(ask())
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "one.pyc").write_bytes(b"what Python made of it")
    assert None not in found and len(set(found)) == 4 and ask() == found[-1]
    # changed since it was imported
    assert trace_key.files_digest(tmp_path, one.stat().st_ctime - 1) is None
    assert trace_key.files_digest(tmp_path / "nowhere", time.time()) is None


def test_who_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python that is called, optimizers of the script's, ops from outside, little memory, few ops."""
    with fresh(3) as (main, startup):
        x = fluid.data("x", [None, 6])
        out = main.current_block().create_var(name="called", shape=[-1, 6], dtype="float32")
        loss = layers.mean(layers.py_func(lambda v: np.asarray(v), x, out))
    assert key((main, startup, loss, {"x": X})) is None

    with fresh(3) as (main, startup):
        loss = layers.mean(layers.fc(fluid.data("x", [None, 6]), 2))
        fluid.optimizer.Optax(optax.sgd(0.1)).minimize(loss)
    assert key((main, startup, loss, {"x": X})) is None

    assert key(dropping(), memory=True) is None
    plain = REGISTRY["square"]
    monkeypatch.setitem(REGISTRY, "square", replace(plain, fn=lambda X: X * X))
    assert key(dropping()) is None
    monkeypatch.setitem(REGISTRY, "square", plain)
    assert key(dropping()) is not None
    monkeypatch.setattr(trace_key, "FEWEST", 1000)
    assert key(dropping()) is None


def test_an_op_whose_gradient_alone_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gradient by jax.vjp runs the forward op's function, which may be from outside."""
    plain = REGISTRY["tanh"]
    made, _ = compiled_of(dropping())
    kinds = {op.type for op in made.step.ops}
    assert {"tanh", "tanh_grad"} <= kinds
    monkeypatch.setitem(REGISTRY, "tanh", replace(plain, fn=lambda X: jax.numpy.tanh(X)))
    only = [op for op in made.step.ops if op.type == "tanh_grad"]
    monkeypatch.setattr(trace_key, "ops_within", lambda step: only)
    assert not trace_key.may_be_kept(made, Kind.ONE)


@pytest.mark.parametrize("value", [object(), {1: object()}, [np.zeros(2)], lambda: 0])
def test_what_has_no_words(value: Any) -> None:
    with pytest.raises(trace_key.NoKey):
        trace_key.plain(value)
