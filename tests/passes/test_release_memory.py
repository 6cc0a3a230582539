"""release_memory: freed after the last use, measured op by op; harmless in a compiled step."""

from __future__ import annotations

import gc
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers, passes
from fluidjax.errors import FetchError
from fluidjax.ir.desc import ProgramDesc
from fluidjax.passes.lifetimes import size
from tests.nets import fresh

from ..op_by_op import OpByOp

BATCH = 4


def net() -> tuple[ProgramDesc, str, dict[str, Any], dict[str, np.ndarray]]:
    with fresh(1) as (main, startup):
        h, label = fluid.data("img", [None, 12, 12, 1]), fluid.data("label", [None, 1], "int64")
        h = layers.conv2d(h, 6, 5, bias_attr=False, data_format="NHWC")
        h = layers.batch_norm(h, act="relu", data_layout="NHWC")
        h = layers.fc(layers.pool2d(h, 2, pool_stride=2, data_format="NHWC"), 10)
        loss = layers.mean(layers.softmax_with_cross_entropy(h, label))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    with jax.enable_x64(True):
        state = fluid.init_fn(startup)(jax.random.key(0))
    draw = np.random.RandomState(0)
    feed = {
        "img": draw.rand(BATCH, 12, 12, 1).astype("float32"),
        "label": draw.randint(0, 10, (BATCH, 1)),
    }
    return main.desc, loss.name, state, feed


def held(desc: ProgramDesc, env: dict[str, Any]) -> int:
    """Bytes of the program's variables; a step has a word besides, for what its ops object to."""
    return sum(v.nbytes for n, v in env.items() if n in desc.blocks[0].vars)


def predicted(desc: ProgramDesc, keep: str, free: bool) -> list[int]:
    """Bytes after every op, from the program's text alone: a set of names that grows and, with
    `free`, shrinks.
    """
    block = desc.blocks[0]
    held = {
        n
        for op in block.ops
        for n in op.reads
        if block.vars[n].persistable or block.vars[n].is_data
    }
    result = []
    for at, op in enumerate(block.ops):
        held |= set(op.writes)
        result.append(sum(size(block.vars[n], BATCH) for n in held))
        if free:
            later = {n for rest in block.ops[at + 1 :] for n in rest.reads}
            held = {n for n in held if n in later or n == keep or block.vars[n].persistable}
    return result


def computing(desc: ProgramDesc, bytes: list[int]) -> list[int]:
    return [b for op, b in zip(desc.blocks[0].ops, bytes, strict=True) if op.type != "delete_var"]


@pytest.mark.slow
def test_real_bytes_are_those_that_liveness_predicts() -> None:
    desc, loss, state, feed = net()
    freeing = passes.run("release_memory", desc, keep=[loss]).desc
    peaks, values = [], []
    for program in (desc, freeing):
        named: list[int] = []
        OpByOp(program, (loss,))(
            state,
            feed,
            None,
            lambda op, env: named.append(held(program, env)),  # noqa: B023
        )
        assert computing(program, named) == predicted(desc, loss, free=program is freeing)
        after, fetched, once = OpByOp(program, (loss,)).measured(state, feed)
        # some ops hand an input on as it is
        assert all(0.99 * a < b <= a for a, b in zip(named, once, strict=True))
        peaks.append(max(once))
        values.append([np.asarray(v).tobytes() for v in (*after.values(), *fetched)])
    assert peaks[1] < peaks[0] and values[0] == values[1]


def bytes_besides(before: list[jax.Array]) -> int:
    """Bytes of the arrays of this process that are not in `before`: a test process may keep ten
    thousands from other tests.
    """
    known = set(map(id, before))
    return sum(a.nbytes for a in jax.live_arrays() if id(a) not in known)


@pytest.mark.slow
def test_deleted_arrays_are_really_gone() -> None:
    """Counted by JAX itself: all arrays of the process after every op but those that were there
    before.
    """
    desc, loss, state, feed = net()
    feed = {n: jax.device_put(v) for n, v in feed.items()}
    freeing = passes.run("release_memory", desc, keep=[loss]).desc
    peaks = []
    for program in (desc, freeing):
        OpByOp(program, (loss,))(state, feed, None)  # makes constants that JAX keeps
        gc.collect()
        before = jax.live_arrays()
        seen: list[int] = []
        OpByOp(program, (loss,))(
            state,
            feed,
            None,
            lambda op, env: seen.append(bytes_besides(before)),  # noqa: B023
        )
        peaks.append(max(seen))
    given = sum(a.nbytes for a in (*state.values(), *feed.values()))
    expected = [max(predicted(desc, loss, free)) - given for free in (False, True)]
    assert peaks[1] < peaks[0]
    # Here the replaced parameters count too: the caller holds the old ones. They are small beside
    # the activations.
    replaced = sum(a.nbytes for a in state.values())
    key = jax.random.key_data(jax.random.key(0)).nbytes  # of the run, which jax 0.12 counts
    for peak, least in zip(peaks, expected, strict=True):
        assert least <= peak <= least + replaced + key


def test_unread_results_are_deleted_unless_asked_not_to() -> None:
    with fresh() as (main, _):
        x = fluid.data("x", [None, 4])
        unread = layers.tanh(x)
        out = layers.scale(x, 2.0)
    deleted = lambda text: [  # noqa: E731
        n
        for op in passes.run(text, main.desc, keep=[out.name]).desc.blocks[0].ops
        if op.type == "delete_var"
        for n in op.reads
    ]
    assert deleted("release_memory") == [unread.name, "x"]
    assert deleted("release_memory(unread=False)") == ["x"]
    assert deleted(f"release_memory(skip=('x', '{unread.name}'))") == []


def test_a_compiled_step_may_fetch_what_was_deleted() -> None:
    with fresh() as (main, _):
        x = fluid.data("x", [None, 4])
        h = layers.tanh(x)
        out = layers.scale(h, 2.0)
    freeing = fluid.Program.from_desc(passes.run("release_memory", main.desc, keep=[out.name]).desc)
    assert [op.type for op in freeing.global_block().ops].count("delete_var") == 2
    feed = {"x": np.ones((2, 4), "float32")}
    ours, want = (fluid.Executor().run(p, feed=feed, fetch_list=[h, out]) for p in (freeing, main))
    assert all((a == b).all() for a, b in zip(ours, want, strict=True))
    with pytest.raises(FetchError, match=h.name):
        OpByOp(freeing.desc, (h.name,))({}, feed)


def test_for_test_and_other_passes_cope_with_delete_var() -> None:
    """Deletions of what the backward part used go with it; dce and memory_optimize take them along."""
    with fresh() as (main, startup):
        x = fluid.data("x", [None, 4])
        layers.tanh(x)
        h = layers.tanh(layers.fc(x, 4))
        loss = layers.mean(layers.fc(h, 4))
        fluid.optimizer.SGD(0.1).minimize(loss)
    freeing = fluid.Program.from_desc(
        passes.run("release_memory", main.desc, keep=[loss.name]).desc, like=main
    )
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    feed = {"x": np.ones((2, 4), "float32")}
    (want,) = exe.run(main.clone(for_test=True), feed=feed, fetch_list=[loss.name], scope=scope)
    for program in (
        freeing.clone(for_test=True),
        fluid.Program.from_desc(passes.run("inference", freeing.desc, keep=[loss.name]).desc),
        fluid.Program.from_desc(
            passes.run("dce", freeing.clone(for_test=True).desc, keep=[loss.name]).desc
        ),
    ):
        passes.run("dce", program.desc, keep=[loss.name])  # verifies it
        assert exe.run(program, feed=feed, fetch_list=[loss.name], scope=scope)[0] == want
    both = passes.run(
        "release_memory,dce,memory_optimize,release_memory", main.desc, keep=[loss.name]
    )
    assert (
        exe.run(fluid.Program.from_desc(both.desc), feed=feed, fetch_list=[loss.name], scope=scope)[
            0
        ]
        == want
    )
