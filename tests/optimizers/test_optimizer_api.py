"""Signatures, aliases and refused calls of optimizers, clips and regularizers."""

from __future__ import annotations

import inspect
import json
import pathlib
import re
import warnings

import pytest

import fluidjax as fluid
from tests.optimizers import optimizer_cases

DATA = pathlib.Path(__file__).parents[1] / "data"
SIGNATURES = json.loads((DATA / "optimizer_signatures_1.8.5.json").read_text())
ERRORS = json.loads((DATA / "optimizer_programs_1.8.5.json").read_text())["errors"]
# what 1.8.5 accepts when it is given, to fail later or never; here it is refused at once
STRICTER = {"decay_text"}
# 1.8.5 has asserts, or fails in Python or in the kernel, where a FluidError says what is wrong
RENAMED = {"AssertionError", "EnforceNotMet", "TypeError", "ValueError"}


def plain(signature):
    """Parameter names and defaults."""
    return [(p.name, p.default) for p in signature.parameters.values() if p.name != "self"]


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_signature(name):
    made = fluid
    for part in name.split("."):
        made = getattr(made, part)
    text = re.sub(r"^\(self, ", "(", SIGNATURES[name]).replace("(self)", "()")
    scope: dict = {}
    exec(f"def wanted{text}: pass", scope)
    signature = inspect.signature(made.__init__ if inspect.isclass(made) else made)
    assert plain(signature) == plain(inspect.signature(scope["wanted"]))


def test_compressed_gradients_are_refused_as_by_a_cpu_build_of_paddle():
    with pytest.raises(AssertionError, match=r"use fluid\.optimizer\.Momentum"):
        fluid.optimizer.DGCMomentumOptimizer(0.1, 0.9, 0)


def test_short_names_are_the_classes():
    for name in fluid.optimizer.__all__:
        if name + "Optimizer" in fluid.optimizer.__all__:
            assert getattr(fluid.optimizer, name) is getattr(fluid.optimizer, name + "Optimizer")
    for kind in ("ByValue", "ByNorm", "ByGlobalNorm"):
        assert getattr(fluid.clip, "Clip" + kind) is getattr(fluid.clip, "GradientClip" + kind)
    assert fluid.regularizer.L2Decay is fluid.regularizer.L2DecayRegularizer
    assert fluid.regularizer.L1Decay is fluid.regularizer.L1DecayRegularizer


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_refused_calls(name):
    call = optimizer_cases.ERRORS[name]
    with warnings.catch_warnings(), optimizer_cases.fresh(fluid):
        warnings.simplefilter("ignore")
        if ERRORS[name] is None and name not in STRICTER:
            call(fluid)
            return
        with pytest.raises(fluid.errors.FluidError) as caught:
            call(fluid)
    text = str(caught.value)
    assert len(text.split()) > 5 and "\n" not in text
    if ERRORS[name] is not None:
        kind = ERRORS[name][0]
        assert kind in RENAMED
        if kind in ("TypeError", "ValueError"):
            assert isinstance(caught.value, TypeError | ValueError)


def test_one_optimizer_object_updates_a_parameter_once():
    with optimizer_cases.fresh(fluid):
        loss = optimizer_cases.line(fluid)
        opt = fluid.optimizer.Adam(0.1)
        opt.minimize(loss)
        with pytest.raises(
            fluid.errors.FluidValueError, match="moment1 already exists for parameter b"
        ):
            opt.minimize(loss)


def test_a_schedule_belongs_to_its_program():
    with optimizer_cases.fresh(fluid):
        opt = fluid.optimizer.SGD(fluid.layers.exponential_decay(0.1, 10, 0.5))
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            loss = optimizer_cases.line(fluid)
            with pytest.raises(fluid.errors.FluidTypeError, match="another program"):
                opt.minimize(loss)


def test_a_fixed_rate_gets_a_variable_in_each_program():
    with optimizer_cases.fresh(fluid):
        opt = fluid.optimizer.SGD(0.1)
        opt.minimize(optimizer_cases.line(fluid))
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            opt.minimize(optimizer_cases.line(fluid))
    assert [v.name for v in opt._learning_rate_map.values()] == [
        "learning_rate_0",
        "learning_rate_1",
    ]


def test_two_distributed_tables_are_refused():
    with optimizer_cases.fresh(fluid):
        ids = fluid.data("ids", [None, 1], "int64")
        tables = [
            fluid.layers.embedding(ids, (10, 4), is_sparse=True, is_distributed=True)
            for _ in range(2)
        ]
        loss = fluid.layers.mean(fluid.layers.sums(tables))
        with pytest.raises(RuntimeError, match="only one table") as caught:  # as in 1.8.5
            fluid.optimizer.SGD(0.1).minimize(loss)
        assert isinstance(caught.value, fluid.errors.FluidValueError)


def as_clone(main, loss):
    return main.clone()


def as_passes_make_it(main, loss):
    return fluid.transpiler.apply_passes(main, "dce", [loss])[0]


def as_loaded(main, loss):
    return fluid.Program.parse_from_string(main.serialize_to_string())


@pytest.mark.parametrize("derive", [as_clone, as_passes_make_it, as_loaded])
def test_the_loss_of_another_program_under_its_copy_s_guard(derive):
    with optimizer_cases.fresh(fluid) as (main, startup):
        loss = optimizer_cases.line(fluid)
        made = derive(main, loss)
        ops = [len(p.global_block().ops) for p in (main, made)]
        with fluid.program_guard(made, startup):
            with pytest.raises(fluid.errors.FluidValueError) as caught:
                fluid.optimizer.SGD(0.1).minimize(loss)
            said = str(caught.value)
            assert (
                f"is a variable of the program that has 1 block, {ops[0]} ops" in said
                and "\n" not in said
            )
            assert (
                f"another program, made later, that has 1 block, {ops[1]} ops" in said
                and f".var('{loss.name}')" in said
            )
            assert [len(p.global_block().ops) for p in (main, made)] == ops
            fluid.optimizer.SGD(0.1).minimize(made.global_block().var(loss.name))
    assert "sgd" in {op.type for op in made.global_block().ops} - {
        op.type for op in main.global_block().ops
    }


def test_the_loss_decides_which_program_is_trained():
    """As in 1.8.5: under no guard, under that of a program without such a variable, and under that
    of the first.
    """
    with optimizer_cases.fresh(fluid) as (main, startup):
        loss = optimizer_cases.line(fluid)
        copy = main.clone()
        fluid.optimizer.SGD(0.1).minimize(copy.global_block().var(loss.name), startup)
    assert "sgd" in {op.type for op in copy.global_block().ops} - {
        op.type for op in main.global_block().ops
    }
    with fluid.program_guard(fluid.Program(), startup):
        fluid.optimizer.SGD(0.1).minimize(loss)
    assert "sgd" in {op.type for op in main.global_block().ops}
