"""memory_optimize: what is shared, what is left alone and why, and how near the plan comes to the
least possible.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from benchmarks import fluid_models
from benchmarks.passes import declared_bytes, names_bound, training
from fluidjax import layers, passes
from fluidjax.errors import FluidTypeError, FluidValueError
from fluidjax.ir import edit
from fluidjax.ir.desc import FrozenMap, OpDesc, ProgramDesc, VarDesc
from fluidjax.lower.env import write_slots
from fluidjax.ops.registry import lookup
from fluidjax.passes import MemoryPlan
from fluidjax.passes.intervals import pack
from fluidjax.passes.lifetimes import Life, elements
from fluidjax.passes.memory_optimize import MemoryOptimize
from tests.nets import fresh


def chain(*sizes: int) -> tuple[ProgramDesc, list[str]]:
    """A chain of fully connected layers without bias of these sizes; and the names of the results
    in order.
    """
    with fresh() as (main, _):
        h = fluid.data("x", [None, sizes[0]])
        names = []
        for n in sizes[1:]:
            h = layers.fc(h, n, bias_attr=False)
            names.append(h.name)
    return main.desc, names


def slots(desc: ProgramDesc) -> list[str]:
    return [op.output("Out")[0] for op in desc.blocks[0].ops]


def run(desc: ProgramDesc, keep: list[str], **options: object) -> passes.PassResult:
    return passes.run(MemoryOptimize(**options), desc, keep=keep)  # type: ignore[arg-type]


def test_equal_shapes_share_names_in_turn() -> None:
    desc, (a, b, c, d) = chain(4, 8, 8, 8, 8)
    result = run(desc, [d])
    assert slots(result.desc) == [a, b, a, d]
    assert [str(n) for n in result.notes] == [
        f"done: op 'mul' -> {c} ({desc.blocks[0].ops[2].loc}): {c} reuses the memory of {a}, 32"
        " bytes a row"
    ]
    assert c not in result.desc.blocks[0].vars
    plan = result.certificate
    assert plan.reused == {a: a, c: a} and (plan.pool, plan.unshared, plan.lower_bound) == (
        64,
        96,
        64,
    )


def test_an_op_never_writes_over_its_input() -> None:
    desc, names = chain(8, 8, 8, 8, 8, 8)
    for strategy, level in itertools.product(("interval", "first_fit"), (0, 1)):
        result = run(desc, names[-1:], strategy=strategy, level=level)
        assert all(not set(op.reads) & set(op.writes) for op in result.desc.blocks[0].ops)


def test_level_1_declares_a_name_as_its_largest_user() -> None:
    desc, (a, b, _, d) = chain(4, 2, 16, 8, 4)
    assert not run(desc, [d]).changed
    result = run(desc, [d], level=1)
    assert slots(result.desc) == [a, b, a, d]
    assert result.desc.blocks[0].vars[a] == replace(desc.blocks[0].vars[a], shape=(-1, 8))
    program = fluid.Program.from_desc(result.desc)
    assert program.global_block().var(a).shape == (-1, 8)


def test_batch_dependent_and_fixed_sizes_do_not_share() -> None:
    with fresh() as (main, _):
        fixed = layers.scale(layers.fill_constant([4, 8], "float32", 1.0), 2.0)
        x = fluid.data("x", [None, 8])
        out = layers.scale(layers.tanh(x), layers.reduce_sum(fixed))
    for level in (0, 1):
        names = run(main.desc, [out.name], level=level).certificate.reused
        shapes = {n: main.desc.blocks[0].vars[n].shape for n in names}
        assert all((shapes[n][0] == -1) == (shapes[names[n]][0] == -1) for n in names)


def test_what_stays_alone() -> None:
    """Fetches, persistable and fed variables, names to skip, gradients of parameters where asked."""
    with fresh() as (main, _):
        x = fluid.data("x", [None, 8])
        h = layers.tanh(layers.fc(layers.tanh(x), 8))
        loss = layers.mean(layers.fc(layers.tanh(h), 8))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    block = main.desc.blocks[0]
    grads = {n for op in block.ops if op.type == "momentum" for n in op.input("Grad")}
    plain = run(main.desc, [loss.name], level=1).certificate.reused
    assert grads & set(plain) and not {loss.name, "x"} & set(plain)
    fetched, skipped = [n for n in plain if n not in grads][:2]
    kept = run(
        main.desc, [loss.name, fetched], level=1, skip=(skipped,), skip_grads=True
    ).certificate
    assert not {loss.name, fetched, skipped, "x", *grads} & set(kept.reused) and kept.reused
    assert not {n for n, v in block.vars.items() if v.persistable} & {p.var for p in kept.placed}


def test_gradients_in_op_role_var_are_renamed_with_the_rest() -> None:
    with fresh() as (main, _):
        h = layers.fc(fluid.data("x", [None, 8]), 8, bias_attr=False)
        h = layers.fc(h, 8, bias_attr=False)
        loss = layers.mean(
            layers.elementwise_add(
                h, layers.scale(layers.fill_constant([8, 8], "float32", 1.0), 2.0)
            )
        )
        fluid.optimizer.SGD(0.1).minimize(loss)
    result = run(main.desc, [loss.name], level=1)
    for op in result.desc.blocks[0].ops:
        if op.type == "sgd":
            assert op.attrs["op_role_var"] == (op.input("Param")[0], op.input("Grad")[0])
    merged = {n for n, now in result.certificate.reused.items() if n != now}
    assert any(n.endswith("w_0@GRAD") for n in merged)


def test_sub_blocks_are_refused_by_name() -> None:
    with fresh() as (main, _):
        x = fluid.data("x", [1])
        y = layers.fill_constant([1], "float32", 0.0)
        limit = layers.fill_constant([1], "float32", 1.0)
        before = layers.scale(layers.scale(layers.scale(x, 2.0), 2.0), 2.0)
        with layers.Switch() as switch:
            with switch.case(layers.less_than(x, limit)):
                layers.assign(layers.scale(before, 10.0), y)
            with switch.default():
                layers.assign(layers.scale(before, 100.0), y)
        out = layers.scale(layers.scale(layers.scale(y, 1.0), 2.0), 3.0)
    for level, strategy in itertools.product((0, 1), ("interval", "first_fit")):
        result = run(main.desc, [out.name], level=level, strategy=strategy)
        assert result.desc.blocks[1:] == main.desc.blocks[1:]
        assert result.changed and not {y.name, before.name} & set(result.certificate.reused)
        assert len(result.refusals) == 2 and all(
            f"{y.name}" in n.what and "block" in n.what for n in result.refusals
        )
        for fed, expected in ((0.5, 240.0), (2.0, 9600.0)):
            program = fluid.Program.from_desc(result.desc)
            assert (
                fluid.Executor().run(
                    program, feed={"x": np.array([fed], "float32")}, fetch_list=[out.name]
                )[0]
                == expected
            )


def test_names_in_attributes_stay() -> None:
    desc, (*_, c, d) = chain(4, 8, 8, 8, 8)
    first, *ops = desc.blocks[0].ops
    named = edit.replace_ops(desc, 0, [replace(first, attrs=first.attrs.set(op_namescope=c)), *ops])
    assert not run(named, [d]).changed and run(desc, [d]).changed


def test_a_name_that_gets_no_value_does_not_keep_an_old_one() -> None:
    """A rule may leave out a gradient that is zero; what another variable left under its name must
    not stand in for it.
    """
    op = OpDesc(0, "concat_grad", FrozenMap(), FrozenMap({"X@GRAD": ("a", "b")}))
    env = {"a": np.ones(1), "b": np.ones(1)}
    write_slots(op, lookup("concat_grad"), {"X@GRAD": [None, np.zeros(1)]}, env)
    assert env == {"b": 0.0}


def test_a_gradient_that_no_op_computes_counts_as_zero_still() -> None:
    """A gradient op may read a gradient that nothing writes; no other variable may get that name."""
    with fresh() as (main, _):
        h = layers.fc(fluid.data("x", [None, 1]), 1, bias_attr=False)
        loss = layers.mean(layers.tanh(layers.tanh(h)))
        fluid.optimizer.SGD(0.5).minimize(loss)
    # it gave the loss its gradient, 1
    desc = edit.keep_ops(main.desc, lambda _, op: op.type != "fill_constant")
    state = {
        "fc_0.w_0": np.full((1, 1), 0.3, "float32"),
        "learning_rate_0": np.array([0.5], "float32"),
    }
    for level, strategy in itertools.product((0, 1), ("interval", "first_fit")):
        result = run(desc, [loss.name], level=level, strategy=strategy)
        assert result.changed and f"{loss.name}@GRAD" not in result.certificate.reused
        step = fluid.step_fn(fluid.Program.from_desc(result.desc), [loss.name], literal=True)
        assert step(state, {"x": np.ones((2, 1), "float32")})[0]["fc_0.w_0"] == np.float32(0.3)


@pytest.mark.parametrize("options, text", [
    ({"level": 2}, "only support opt_level 0 or 1."),
    ({"level": True}, "only support opt_level 0 or 1."),
    ({"strategy": "best"}, "has no strategy 'best'; it has interval, first_fit"),
    ({"batch_size": 0}, "batch_size is a positive int, not 0"),
    ({"skip": "loss"}, "skip is a tuple of variable names, not 'loss'"),
    ({"skip": (3,)}, "skip is a tuple of variable names"),
])  # fmt: skip
def test_bad_options(options: dict[str, object], text: str) -> None:
    with pytest.raises((FluidValueError, FluidTypeError), match=text):
        MemoryOptimize(**options)  # type: ignore[arg-type]


def test_a_name_to_skip_that_is_not_there() -> None:
    desc, names = chain(4, 8, 8)
    with pytest.raises(
        FluidValueError,
        match=r"no variable 'fc_0.tmp_O' to skip in the program \(did you mean 'fc_0.tmp_0'",
    ):
        run(desc, names, skip=("fc_0.tmp_O",))


def test_undeclared_shapes_are_refused_with_the_reason() -> None:
    desc, (_, b, *_, last) = chain(4, 8, 8, 8, 8)
    block = desc.blocks[0]
    vars = FrozenMap({**block.vars, b: replace(block.vars[b], shape=None)})
    result = run(edit.replace_block(desc, 0, replace(block, vars=vars)), [last])
    assert [str(n) for n in result.refusals] == [
        f"refused: variable '{b}': its shape or dtype is not declared"
    ]


# -- figures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", ["lenet", "resnet18", "transformer"])
@pytest.mark.parametrize("batch", [8, 64])
def test_near_the_least_possible(network: str, batch: int) -> None:
    """Names at their own bound, which no plan of whole names can go below, and never above Fluid's."""
    main, _, loss = fluid_models.build(
        getattr(fluid_models, network), fluid.optimizer.Momentum(0.1, 0.9)
    )
    for level in (0, 1):
        result = run(main.desc, [loss.name], level=level, batch_size=batch)
        plan: MemoryPlan = result.certificate
        found = [Life(main.desc.blocks[0].vars[p.var], p.first, p.last) for p in plan.placed]
        bound = names_bound(found, level, batch)
        assert plan.lower_bound <= bound <= plan.pool <= bound * (1.001 if level else 1)
        old = run(main.desc, [loss.name], level=level, strategy="first_fit", batch_size=batch)
        assert (
            declared_bytes(result.desc, batch)
            <= declared_bytes(old.desc, batch)
            < declared_bytes(main.desc, batch)
        )


def test_the_plan_s_figures_are_those_of_the_new_program() -> None:
    main, _, loss = fluid_models.build(fluid_models.lenet, fluid.optimizer.Momentum(0.1, 0.9))
    result = run(main.desc, [loss.name], level=1, batch_size=8)
    plan = result.certificate
    assert (
        declared_bytes(main.desc, 8) - declared_bytes(result.desc, 8) == plan.unshared - plan.pool
    )
    for x, y in itertools.combinations(plan.placed, 2):
        if x.first <= y.last and y.first <= x.last:
            assert x.name != y.name, "two that are alive at once share a name"
    assert plan.to_dict()["pool"] == plan.pool and "least possible" in str(plan)


# first, length, size
spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9), st.integers(1, 40)), max_size=25)


@given(spans, st.booleans())
def test_names_of_one_size_are_as_few_as_can_be(
    given_spans: list[tuple[int, int, int]], one_size: bool
) -> None:
    """At level 0: as many as are ever alive at once. Always: none alive twice, and no two lists
    could be joined.
    """
    found = [
        Life(VarDesc(f"v{i}", (-1, 1 if one_size else size), "float32"), first, first + length)
        for i, (first, length, size) in enumerate(given_spans)
    ]
    packed = pack(found, 1)
    assert sorted(x.name for users in packed for x in users) == sorted(x.name for x in found)
    for users in packed:
        users.sort(key=lambda x: x.first)
        assert all(x.last < y.first for x, y in itertools.pairwise(users))
    for one, other in itertools.combinations(packed, 2):
        assert one[0].first <= other[-1].last and other[0].first <= one[-1].last
    if one_size:
        assert len(packed) == max(
            (sum(x.first <= at <= x.last for x in found) for at in range(41)), default=0
        )


def test_many_sizes_are_packed_soundly() -> None:
    """More different sizes than are treated one by one."""
    draw = np.random.RandomState(0)
    found = []
    for i in range(600):
        var = VarDesc(f"v{i}", (int(draw.randint(1, 10**6)),), "float32")
        found.append(Life(var, i, i + int(draw.randint(1, 30))))
    packed = pack(found, 1)
    for users in packed:
        users.sort(key=lambda x: x.first)
        assert all(x.last < y.first for x, y in itertools.pairwise(users))
    alive = max(sum(elements(x.var) for x in found if x.first <= at <= x.last) for at in range(600))
    assert sum(max(elements(x.var) for x in users) for users in packed) < 1.5 * alive


@pytest.mark.once
@pytest.mark.parametrize("options", [{}, {"level": 1}, {"strategy": "first_fit"}])
def test_work_grows_with_the_program(options: dict[str, object]) -> None:
    """Counted in calls of functions, since a clock would measure the machine (python -m benchmarks
    passes does).
    """
    small, large = (calls(*training(n), **options) for n in (500, 2_000))
    assert large < 5 * small


def calls(desc: ProgramDesc, loss: str, **options: object) -> int:
    count = 0

    def called(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(called)
    try:
        result = run(desc, [loss], **options)
    finally:
        sys.setprofile(None)
    assert result.changed
    return count
