"""Op types of 1.8.5 that are not there: those without meaning here, for a reason that programs are
told.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fluidjax.ops  # noqa: F401
from fluidjax.errors import UnsupportedError
from fluidjax.ir.desc import BlockDesc, FrozenMap, OpDesc, ProgramDesc, VarDesc
from fluidjax.lower.step import Step
from fluidjax.ops.absent import WITHOUT_MEANING
from fluidjax.ops.registry import REGISTRY

PADDLES = set(json.loads((Path(__file__).parents[1] / "data" / "op_protos_1.8.5.json").read_text()))


def test_the_table_names_ops_of_paddle_that_are_not_there() -> None:
    assert WITHOUT_MEANING.keys() <= PADDLES
    assert not WITHOUT_MEANING.keys() & REGISTRY.keys()


def test_no_other_op_is_missing() -> None:
    assert PADDLES - REGISTRY.keys() == WITHOUT_MEANING.keys()


def test_a_program_that_needs_one_is_told_why() -> None:
    op = OpDesc(1, "run_program", FrozenMap({}), FrozenMap({"Out": ("x",)}), FrozenMap({}))
    with pytest.raises(
        UnsupportedError,
        match=r"not supported: run_program \(run_program runs a program of Paddle's dynamic mode",
    ):
        Step(ProgramDesc((BlockDesc(FrozenMap({"x": VarDesc("x")}), (op,)),)), ("x",))
