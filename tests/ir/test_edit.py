"""Edits: renaming, dropping, for_test and prune as Paddle 1.8.5 does them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

import fluidjax as fluid
from fluidjax.errors import FluidValueError
from fluidjax.ir import edit, walk
from fluidjax.ir.desc import BlockRef, ProgramDesc, VarDesc
from fluidjax.ir.text import parse, to_text
from fluidjax.ir.verify import verify
from tests.golden import desc_from_golden

from .strategies import programs
from .test_text import chain, small

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "edit_1.8.5.json").read_text())
TRAIN = parse(
    """program seed=0
    block 0:
        param w: f32[2]
        persist lr: f32[1]
        data x: f32[2]
        h: f32[2] = mul(X=x, Y=w)
        d: f32[2] = dropout(X=h, is_test=False)
        p: f32[2] = print(X=h)
        loss: f32[1] = mean(X=d) {role=Loss}
        loss@GRAD: f32[1] = fill_constant() {role=Backward|Loss}
        (Out=w@GRAD: f32[2]) = while_grad(X=loss@GRAD, sub_block=block 1) {role=Backward}
        (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, LearningRate=lr) {role=Optimize}
        (Out=k: f32[2]) = while(X=h, sub_block=block 2)
    block 1 (parent 0):
        g: f32[2] = relu(X=h)
    block 2 (parent 0):
        q: f32[2] = relu(X=h, is_test=False)
    """
)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
def test_for_test_equals_paddle(case):
    got = edit.for_test(desc_from_golden(case["main"]))
    verify(got)
    assert [[op.type for op in block.ops] for block in got.blocks] == case["for_test"]


@pytest.mark.parametrize(
    "case", [c for c in RECORDED if "prune" in c], ids=lambda case: case["name"]
)
def test_prune_equals_paddle(case):
    got = edit.prune(edit.for_test(desc_from_golden(case["main"])), [case["prune"]["target"]])
    verify(got)
    assert [[op.type for op in block.ops] for block in got.blocks] == case["prune"]["ops"]
    assert sorted(got.blocks[0].vars) == case["prune"]["vars"]


def test_for_test_drops_blocks_and_renumbers_the_rest():
    desc = edit.for_test(TRAIN)
    verify(desc)
    assert [op.type for op in desc.blocks[0].ops] == ["mul", "dropout", "print", "mean", "while"]
    assert desc.blocks[0].ops[-1].attrs["sub_block"] == BlockRef(1)
    assert desc.blocks[0].ops[1].attrs["is_test"] is True
    assert desc.blocks[1].ops[0].attrs["is_test"] is True
    assert set(desc.blocks[0].vars) == {"w", "x", "h", "d", "p", "loss", "k"}
    assert [op.uid for op in desc.blocks[0].ops] == [0, 1, 2, 3, 7]


def test_for_test_without_a_loss_gradient_keeps_all_ops():
    forward = edit.keep_ops(TRAIN, lambda _, op: edit.role(op) != edit.BACKWARD | edit.LOSS)
    assert len(edit.for_test(forward).blocks[0].ops) == 7


def test_prune_stops_at_feeds_and_takes_the_first_writer():
    assert [op.type for op in edit.prune(TRAIN, ["loss"]).blocks[0].ops] == [
        "mul",
        "dropout",
        "mean",
    ]
    fed = edit.prune(TRAIN, ["loss"], feeds=["d"])
    assert [op.type for op in fed.blocks[0].ops] == ["mean"]
    assert set(fed.blocks[0].vars) == {"d", "loss"}
    assert not edit.prune(TRAIN, ["d"], feeds=["d"]).blocks[0].ops
    looped = edit.prune(TRAIN, ["k"])
    assert [len(block.ops) for block in looped.blocks] == [2, 1]


def test_prune_keeps_no_update_of_a_parameter_that_is_read_after_it():
    """As 1.8.5 saves the book's labelling net, whose decoding is written after minimize: 1 op, no
    gradients, no learning rate.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3])
        y = fluid.layers.fc(x, 2, param_attr="w", bias_attr=False)
        fluid.optimizer.SGD(fluid.layers.exponential_decay(0.1, 2, 0.5)).minimize(
            fluid.layers.mean(y)
        )
        again = fluid.layers.fc(x, 2, param_attr="w", bias_attr=False)
        got = edit.prune(
            edit.for_test(fluid.default_main_program().desc), [again.name], feeds=["x"]
        )
        whole = edit.prune(fluid.default_main_program().desc, [again.name], feeds=["x"])
    assert [[op.type for op in desc.blocks[0].ops] for desc in (got, whole)] == [["mul"]] * 2
    assert sorted(whole.blocks[0].vars) == sorted(["x", "w", again.name])


@pytest.mark.parametrize("target", ["w", "x", "los"])
def test_prune_refuses_what_nothing_computes(target):
    with pytest.raises(FluidValueError, match=f"cannot prune to '{target}'"):
        edit.prune(TRAIN, [target])


def test_rename_everywhere():
    desc = edit.rename(TRAIN, {"w": "w.1", "h": "w"})
    verify(desc)
    assert desc.blocks[0].vars["w.1"].name == "w.1"
    assert desc.blocks[0].ops[0].outputs["Out"] == ("w",)
    assert desc.blocks[1].ops[0].inputs["X"] == ("w",)
    role_var = edit.rename(small(), {"w": "v"}).blocks[0].ops[3].attrs["op_role_var"]
    assert role_var == ("v", "w@GRAD")


def test_rename_refuses_to_merge():
    with pytest.raises(FluidValueError, match="merge two variables"):
        edit.rename(TRAIN, {"w": "x"})


def test_drop_dead_vars_decides_by_its_parameters():
    desc = edit.replace_ops(TRAIN, 0, TRAIN.blocks[0].ops[:1])
    left = lambda **options: set(edit.drop_dead_vars(desc, **options).blocks[0].vars)  # noqa: E731
    assert left() == {"w", "lr", "x", "h"}
    assert left(keep_persistable=False) == {"w", "x", "h"}
    assert left(keep=["loss"]) == {"w", "lr", "x", "h", "loss"}
    assert (
        "x"
        not in edit.drop_dead_vars(edit.replace_ops(TRAIN, 0, ()), keep_data=False).blocks[0].vars
    )


def test_adding_and_replacing():
    desc = edit.add_vars(TRAIN, 1, [VarDesc("new"), VarDesc("g", (3,))])
    assert set(desc.blocks[1].vars) == {"g", "new"}
    assert desc.blocks[1].vars["g"].shape == (3,)
    for bad in (lambda: edit.add_vars(TRAIN, 3, []), lambda: edit.replace_ops(TRAIN, -1, ())):
        with pytest.raises(FluidValueError, match="there is no block"):
            bad()


def test_uids():
    assert edit.max_uid(ProgramDesc()) == -1
    assert edit.max_uid(small()) == 9
    assert [op.uid for _, op in walk.ops(edit.renumber(small()))] == list(range(6))


@given(programs())
def test_edits_keep_programs_well_formed(desc):
    verify(edit.for_test(desc))
    verify(edit.renumber(desc))
    verify(edit.drop_dead_vars(desc, keep_persistable=False, keep_data=False))
    verify(edit.drop_dead_blocks(desc))
    assert edit.for_test(edit.for_test(desc)) == edit.for_test(desc)
    written = [
        n for op in desc.blocks[0].ops if not edit.role(op) & edit.OPTIMIZE for n in op.writes
    ]
    if written:
        pruned = edit.prune(desc, written[:2])
        verify(pruned)
        assert edit.prune(pruned, written[:2]) == pruned


def test_ten_thousand_ops():
    desc = chain(10_000)
    assert len(edit.prune(desc, ["v5000"]).blocks[0].ops) == 5000
    assert edit.for_test(desc) == desc
    assert to_text(edit.renumber(desc)) == to_text(desc)


def test_role_names_are_names_or_nothing() -> None:
    """A file may hold anything in op_role_var; a step that orders its updates by it still runs."""
    op = small().blocks[0].ops[3]
    named = ("w", "w@GRAD")
    for value, names in ((named, named), (5, ()), ("w", ()), ((1, 2), ()), ((), ())):
        assert edit.role_names(replace(op, attrs=op.attrs.set(op_role_var=value))) == names


def test_a_loop_that_updates_a_feed_is_kept() -> None:
    """By both ways to prune; an op in whose place the feed stands is left out."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [2])
        before = fluid.layers.scale(x, 2.0)
        i, n = (fluid.layers.fill_constant([1], "int32", v) for v in (0, 3))
        _, after = fluid.layers.while_loop(
            lambda i, v: fluid.layers.less_than(i, n), lambda i, v: [i + 1, v + 1.0], [i, before]
        )
        out = fluid.layers.scale(after, 1.0)
    fed = {before.name}
    for target in (out.name, after.name):
        for pruned in (
            edit.prune(main.desc, [target], fed),
            edit.run_only(main.desc, [target], (), fed),
        ):
            kinds = [op.type for op in pruned.blocks[0].ops]
            assert "while" in kinds
            assert kinds.count("scale") == (target == out.name)
