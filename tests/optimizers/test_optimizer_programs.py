"""Optimizers, clips, regularizers and averages write the programs that Paddle 1.8.5 writes, and
train as it does.
"""

from __future__ import annotations

import json
import pathlib
import warnings

import numpy as np
import pytest

import fluidjax as fluid
from tests.optimizers import optimizer_cases

RECORD = json.loads(
    (pathlib.Path(__file__).parents[1] / "data" / "optimizer_programs_1.8.5.json").read_text()
)
CASES = RECORD["cases"]
DTYPES = {"BOOL": "bool", "INT32": "int32", "INT64": "int64", "FP32": "float32", "FP64": "float64"}


def build(name):
    with warnings.catch_warnings(), optimizer_cases.fresh(fluid) as (main, startup):
        warnings.simplefilter("ignore")
        more = optimizer_cases.CASES[name](fluid) or {}
    return {"main": main, "startup": startup, **more}


def value(v):
    """An attribute as the recording has it."""
    if isinstance(v, fluid.program.BlockRef):
        return {"block": v.idx}
    if isinstance(v, tuple | list):
        return [value(x) for x in v]
    return v


def view(op, wanted):
    """What is compared: the sub-blocks' captured names come in set order, and only recorded
    attributes count.
    """
    ins = {s: list(n) for s, n in op.desc.inputs.items() if n}
    outs = {s: list(n) for s, n in op.desc.outputs.items() if n}
    if op.type == "conditional_block":
        ins = {s: sorted(n) for s, n in ins.items()}
    attrs = {k: value(op.desc.attrs.get(k)) for k in wanted}
    return [op.type, ins, outs, attrs]


def recorded(op):
    kind, ins, outs, attrs = op
    if kind == "conditional_block":
        ins = {s: sorted(n) for s, n in ins.items()}
    return [kind, ins, outs, attrs]


@pytest.mark.parametrize("name", sorted(CASES))
def test_programs_equal_those_of_paddle(name):
    programs = build(name)
    assert set(programs) == set(CASES[name]["programs"])
    for which, blocks in CASES[name]["programs"].items():
        program = programs[which]
        assert len(program.blocks) == len(blocks), which
        for block, wanted in zip(program.blocks, blocks, strict=True):
            assert [o.type for o in block.ops] == [o[0] for o in wanted["ops"]], which
            for op, want in zip(block.ops, wanted["ops"], strict=True):
                assert view(op, want[3]) == recorded(want), which


@pytest.mark.parametrize("name", sorted(CASES))
def test_persistable_variables_equal_those_of_paddle(name):
    programs = build(name)
    for which in ("main", "startup"):
        for block, wanted in zip(
            programs[which].blocks, CASES[name]["programs"][which], strict=True
        ):
            held = {
                n: v for n, v in block.vars.items() if v.persistable and v.desc.kind == "LOD_TENSOR"
            }
            assert set(held) == set(wanted["vars"]), which
            for n, (shape, dtype, stopped) in wanted["vars"].items():
                assert [list(held[n].shape), held[n].desc.dtype] == [shape, DTYPES[dtype]], (
                    which,
                    n,
                )
                assert held[n].stop_gradient == stopped, (which, n)


@pytest.mark.first(12)
@pytest.mark.parametrize("name", sorted(n for n in CASES if "after" in CASES[n]))
def test_training_equals_paddle(name):
    programs = build(name)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    wanted = CASES[name]["after"]
    with fluid.scope_guard(scope):
        exe.run(programs["startup"])
        feeds = optimizer_cases.feeds(programs["main"], len(wanted))
        for step, (feed, want) in enumerate(zip(feeds, wanted, strict=True)):
            exe.run(programs["main"], feed=feed)
            for n, values in want.items():
                got = np.array(scope.find_var(n).get_tensor()).ravel()
                np.testing.assert_allclose(
                    got, values, rtol=2e-6, atol=1e-6, err_msg=f"{n} after step {step}"
                )


def test_returned_ops_and_pairs():
    with optimizer_cases.fresh(fluid) as (main, _):
        w = optimizer_cases.constant(fluid, "w", learning_rate=0.5)
        ops, pairs = fluid.optimizer.Adamax(0.1).minimize(optimizer_cases.line(fluid, w=w))
    assert [o.type for o in ops] == ["adamax", "scale", "adamax", "scale", "scale"]
    assert all(op in main.global_block().ops for op in ops)
    assert [(p.name, g.name) for p, g in pairs] == [("w", "w@GRAD"), ("b", "b@GRAD")]


def test_accumulator_names_are_listed_in_order():
    with optimizer_cases.fresh(fluid):
        opt = fluid.optimizer.RMSProp(0.1)
        opt.minimize(optimizer_cases.line(fluid))
    fields = ("momentum", "mean_square", "mean_grad")
    assert opt.get_opti_var_name_list() == [f"{p}_{f}_0" for p in "bw" for f in fields]
