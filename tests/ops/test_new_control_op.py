"""The documents' new control op, carried out to the letter: one file, and everybody knows what the
op is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers, passes
from fluidjax.errors import UnsupportedError
from fluidjax.graph.program import Program
from fluidjax.ir import edit, text, verify, walk
from fluidjax.lower.divergence import divergent
from fluidjax.lower.lockstep import lockstep
from fluidjax.lower.step import Step
from fluidjax.ops.control_interface import Call, ControlOp
from fluidjax.ops.registry import REGISTRY, Attr, control_op, lookup
from fluidjax.ops.traits import Runs

from ..op_by_op import OpByOp

PAGE = (Path(__file__).parents[2] / "docs" / "adding-ops.md").read_text()
(FILE,) = re.findall(r"```python\n(.*?)```", PAGE[PAGE.index("## To add a control op") :], re.S)[:1]


@pytest.fixture(scope="module", autouse=True)
def declared() -> Iterator[None]:
    """The op, for as long as this module is tested."""
    before = dict(REGISTRY)
    exec(
        compile(FILE, "docs/adding-ops.md", "exec"),
        {"__name__": "fluidjax.ops.control.when_positive"},
    )
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


def when_positive(x: Any, a: Any, other: Any) -> tuple[Program, Any]:
    """2 * dropout(a * a) where x is positive, otherwise `other`; as a layer would append it."""
    program = fluid.default_main_program()
    inside = program._create_block()
    result = layers.scale(layers.dropout(layers.square(a), 0.5), 2.0)
    program._rollback()
    block = program.global_block()
    out = block.create_var(name="out", dtype="float32", shape=a.shape)
    attrs = {"sub_block": inside, "results": [result.name]}
    block.append_op(
        "when_positive", {"X": [x], "Input": [a], "Else": [other]}, {"Out": [out]}, attrs
    )
    return program, out


@pytest.fixture(scope="module")
def built() -> tuple[Program, list[str]]:
    """A training program, and the names of the output and of both gradients; `a` gets one by way of
    the op only.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, a, other = (
            fluid.data(n, [1] if n == "x" else [4], "float32") for n in ("x", "a", "other")
        )
        a.stop_gradient = other.stop_gradient = False
        program, out = when_positive(x, a, other)
        grads = fluid.gradients(layers.reduce_sum(layers.square(out)), [a, other])
        return program, [out.name, *(g.name for g in grads)]


@pytest.mark.parametrize("form", [Step, OpByOp])
@pytest.mark.parametrize("x", [1.0, -1.0])
def test_value_and_gradients(built: tuple[Program, list[str]], x: float, form: type[Step]) -> None:
    """out = 2 m a^2 with the mask m of the same draw in both directions, so d(sum out^2)/da = 16 m
    a^3; or out = other.
    """
    a, other = np.array([1.0, 2, 3, 4], "float32"), np.full(4, 5, "float32")
    program, names = built
    feed = {"x": np.array([x], "float32"), "a": a, "other": other}
    _, (out, d_a, d_other) = form(program.desc, tuple(names))({}, feed, jax.random.key(0))
    mask = (np.asarray(out) != 0).astype("float32")
    assert x < 0 or 0 < mask.sum() < 4
    np.testing.assert_allclose(out, 2 * mask * a**2 if x > 0 else other)
    np.testing.assert_allclose(d_a, 16 * mask * a**3 if x > 0 else 0 * a)
    np.testing.assert_allclose(d_other, 0 * other if x > 0 else 2 * other)


def test_the_executor_runs_it(built: tuple[Program, list[str]]) -> None:
    program, names = built
    feed = {
        "x": np.array([-1], "float32"),
        "a": np.ones(4, "float32"),
        "other": np.full(4, 5, "float32"),
    }
    out, d_a, d_other = fluid.Executor().run(program, feed=feed, fetch_list=names)
    assert (out.tolist(), d_a.tolist(), d_other.tolist()) == ([5] * 4, [0] * 4, [10] * 4)


def test_programs_with_it_are_checked_printed_and_rewritten(
    built: tuple[Program, list[str]],
) -> None:
    program, names = built
    desc = program.desc
    verify.verify(desc, lookup)
    assert text.parse(text.to_text(desc)) == desc
    assert [op.type for op in passes.run("dce", desc, keep=names).desc.blocks[0].ops] == [
        op.type for op in desc.blocks[0].ops
    ]
    assert "when_positive" not in text.to_text(passes.run("prune", desc, keep=["other"]).desc)
    (op,) = (op for op in desc.blocks[0].ops if op.type == "when_positive")
    (result,) = op.attrs["results"]
    assert result in walk.mentions(desc)
    renamed = edit.rename(desc, {result: "renamed"})
    assert all(
        o.attrs["results"] == ("renamed",) for o in renamed.blocks[0].ops if "results" in o.attrs
    )
    points = program.memory_report(fetch_list=names, compiled=False).timeline
    assert next(p for p in points if p.op == "when_positive").inside > 0


@pytest.mark.parametrize(
    "decided, inside, want",
    [("alike", "alike", False), ("alike", "own", True), ("own", "alike", True)],
)
def test_ranks_differ_where_its_rule_says_so(decided: str, inside: str, want: bool) -> None:
    """If all ranks decide in the same way, the output differs only if what the block gives does; a
    feed is a rank's own.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        block = fluid.default_main_program().global_block()
        values = {
            "alike": block.create_var(name="w", shape=[4], dtype="float32", persistable=True),
            "own": fluid.data("own", [4]),
        }
        kept = block.create_var(name="kept", shape=[4], dtype="float32", persistable=True)
        program = fluid.default_main_program()
        sub = program._create_block()
        result = layers.square(values[inside])
        program._rollback()
        ins = {"X": [values[decided]], "Input": [values[inside]], "Else": [values["alike"]]}
        block.append_op(
            "when_positive", ins, {"Out": [kept]}, {"sub_block": sub, "results": [result.name]}
        )
    assert divergent(Step(program.desc)) == (frozenset({"kept"}) if want else frozenset())


def test_side_by_side_ranks_refuse_to_talk_within_a_block() -> None:
    """Each rank runs the op by itself, so nobody would answer."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        a = fluid.data("a", [-1], "float32")
        program, block = fluid.default_main_program(), fluid.default_main_program().global_block()
        sub = program._create_block()
        total = layers.reduce_sum(a)
        sub.append_op("c_allreduce_sum", {"X": [total]}, {"Out": [total]}, {"ring_id": 0})
        program._rollback()
        out, other = (
            block.create_var(name="out", shape=[1], dtype="float32"),
            layers.fill_constant([1], "float32", 0.0),
        )
        attrs = {"sub_block": sub, "results": [total.name]}
        block.append_op(
            "when_positive", {"X": [other], "Input": [a], "Else": [other]}, {"Out": [out]}, attrs
        )
    feeds = [{"a": np.ones(n, "float32")} for n in (1, 2)]
    with pytest.raises(
        UnsupportedError, match=r"op 'when_positive' holds 'c_allreduce_sum', .* take turns"
    ):
        lockstep(Step(program.desc, (out.name,)), [{}, {}], feeds)


def test_a_loop_draws_anew_in_every_iteration() -> None:
    """What a loop needs of the interface: a block under lax.scan, carried names, a key for each
    iteration.
    """

    def lower(call: Call) -> None:
        (total,) = call.op.output("Out")

        def body(carry: Any, i: Any) -> tuple[Any, Any]:
            env = {**call.env, total: carry}
            call.run_block(call.op.blocks[0], env, iteration=i)
            return env[total], env[total]

        start = call.read(total)
        call.env[total], _ = jax.lax.scan(body, start, np.arange(3))

    attrs = {"sub_block": Attr("sub_block", "BLOCK")}
    control_op(
        "thrice",
        outs="Out",
        attrs=attrs,
        doc="The block, three times.",
        runs=Runs.STEP,
        control=ControlOp(lower=lower),
    )
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        program = fluid.default_main_program()
        total = layers.fill_constant([2], "float32", 0.0)
        sub = program._create_block()
        drawn = layers.uniform_random([2], min=0.0, max=1.0)
        layers.sums([total, drawn], out=total)
        program._rollback()
        program.global_block().append_op("thrice", {}, {"Out": [total]}, {"sub_block": sub})
    (op,) = program.desc.blocks[1].ops[:1]
    key = jax.random.key(7)
    _, (got,) = Step(program.desc, (total.name,))({}, {}, key)
    draws = [
        jax.random.uniform(jax.random.fold_in(jax.random.fold_in(key, i), op.uid), (2,))
        for i in range(3)
    ]
    assert len({float(d[0]) for d in draws}) == 3
    np.testing.assert_allclose(got, np.sum(draws, 0), rtol=1e-6)
