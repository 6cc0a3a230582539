"""Block.create_parameter and create_var with an initializer append its op to that very block, as
1.8.5 does (tried there).
"""

from __future__ import annotations

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.graph.program import Program

from ..nets import fresh

TWO, NORMAL, XAVIER = (
    fluid.initializer.Constant(2.0),
    fluid.initializer.Normal(),
    fluid.initializer.Xavier(),
)


def types(program: Program) -> list[str]:
    return [op.type for op in program.global_block().ops]


def test_the_op_is_in_the_block_that_was_asked() -> None:
    with fresh() as (main, startup), fluid.scope_guard(fluid.Scope()):
        startup.global_block().create_parameter(
            name="w", shape=[2], dtype="float32", initializer=TWO
        )
        assert types(startup) == ["fill_constant"] and types(main) == []
        main.global_block().create_parameter(name="v", shape=[2], dtype="float32", initializer=TWO)
        assert types(startup) == types(main) == ["fill_constant"]
        fluid.Executor().run(startup)
        assert fluid.global_scope().get("w").tolist() == [2, 2]


def test_a_parameter_is_filled_once() -> None:
    with fresh() as (_, startup):
        for fill in (TWO, TWO, NORMAL):
            startup.global_block().create_parameter(
                name="w", shape=[2], dtype="float32", initializer=fill
            )
        assert types(startup) == ["fill_constant"]


@pytest.mark.parametrize(
    ("dtype", "fill", "want"),
    [("float16", TWO, ["fill_constant", "cast"]), ("float32", XAVIER, ["uniform_random"])],
)
def test_the_ops_of_an_initializer(
    dtype: str, fill: fluid.initializer.Initializer, want: list[str]
) -> None:
    with fresh() as (_, startup):
        startup.global_block().create_parameter(
            name="w", shape=[2, 2], dtype=dtype, initializer=fill
        )
        assert types(startup) == want


def test_variables_too() -> None:
    with fresh() as (_, startup), fluid.scope_guard(fluid.Scope()):
        startup.global_block().create_var(
            name="v", shape=[2], dtype="float32", persistable=True, initializer=TWO
        )
        assert types(startup) == ["fill_constant"]
        fluid.Executor().run(startup)
        np.testing.assert_array_equal(fluid.global_scope().get("v"), [2, 2])
