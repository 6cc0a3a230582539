"""The plan of a parameter-server job: where blocks lie, who owns them, whose programs it hands out."""

import numpy as np
import pytest

from fluidjax.dist.pserver_plan import ParamBlock, PlannedParam, PserverPlan
from fluidjax.errors import FluidValueError
from fluidjax.ir.desc import ProgramDesc
from tests.look.dom import parsed

EPS = ("127.0.0.1:6174", "127.0.0.1:6175")


def block(index, first, rows, endpoint):
    return ParamBlock(
        f"w.block{index}", f"w@GRAD.block{index}", endpoint, index, first * 3 * 2, (rows, 3, 2)
    )


def plan(**changes):
    blocks = (block(0, 0, 4, EPS[1]), block(1, 4, 3, EPS[0]))
    bias = ParamBlock("b", "b@GRAD", EPS[0], 0, 0, (5,))
    params = (
        PlannedParam("b", "b@GRAD", (5,), "float32", (bias,)),
        PlannedParam("w", "w@GRAD", (7, 3, 2), "float32", blocks),
    )
    programs = {"main": ProgramDesc(), "startup": ProgramDesc()}
    given = {
        "endpoints": EPS,
        "trainers": 2,
        "trainer_id": 0,
        "mode": "sync",
        "params": params,
        **programs,
    }
    return PserverPlan(**{**given, **changes})


def test_blocks_cover_the_parameter_row_by_row():
    _, w = plan().params
    whole = np.arange(7 * 3 * 2).reshape(7, 3, 2)
    assert [whole[b.rows].shape for b in w.blocks] == [b.shape for b in w.blocks]
    assert [whole[b.rows].flat[0] for b in w.blocks] == [b.offset for b in w.blocks]
    assert np.concatenate([whole[b.rows] for b in w.blocks]).tolist() == whole.tolist()
    assert sum(b.size for b in w.blocks) == whole.size


def test_blocks_of_an_endpoint():
    assert [b.name for b in plan().owned(EPS[0])] == ["b", "w.block1"]
    assert [b.name for b in plan().owned(EPS[1])] == ["w.block0"]


def test_unknown_endpoint_names_the_near_miss():
    with pytest.raises(
        FluidValueError, match=r"no pserver '127.0.0.1:6176' \(did you mean '127.0.0.1:617\d'"
    ):
        plan().owned("127.0.0.1:6176")


def test_programs_come_from_the_builder():
    made = plan(build=lambda role: (role, "startup"))
    assert made.trainer(1) == (1, "startup")
    assert made.pserver(EPS[1]) == (EPS[1], "startup")
    with pytest.raises(
        FluidValueError, match="trainer_id is 2, but the job has 2 trainers, 0 to 1"
    ):
        made.trainer(2)
    with pytest.raises(FluidValueError, match="made without programs"):
        plan().trainer(0)


def test_plans_compare_without_their_builder():
    assert plan(build=print) == plan()
    assert plan(trainers=3) != plan()


def test_a_plan_shows_who_holds_which_block():
    lines = str(plan().picture()).splitlines()
    assert [line for line in lines if line.startswith("  w.block")] == [
        f"  {b.name}: {b.offset:,} to {b.offset + b.size - 1:,} on {EPS.index(b.endpoint)}"
        for b in plan().params[1].blocks
    ]
    assert parsed(plan()._repr_html_()).one("svg").all("rect")
