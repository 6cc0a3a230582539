"""What later Paddles added to ops of 1.8.5: values that change nothing are taken, all others are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import UnsupportedError
from fluidjax.ir import edit
from fluidjax.ir.desc import FrozenMap
from fluidjax.lower.step import Step
from fluidjax.ops.later import ANY, LATER
from fluidjax.ops.registry import HINTS, REGISTRY

DATA = Path(__file__).parent.parent / "data"
ADDED: dict[str, Any] = json.loads((DATA / "op_additions_3.3.1.json").read_text())
# 3.x has a type of attribute for it that the format of 1.8.5 lacks.
OTHER_FORMAT = {"values"}
FROM_2X = {"matmul_v2"}  # fused_* attributes, which 2.x had and 3.3.1 has no more


@pytest.mark.parametrize("kind", sorted(ADDED.keys() & REGISTRY.keys()))
def test_every_added_attribute_is_judged(kind: str) -> None:
    """Each is a hint, or has a value that means what 1.8.5 did."""
    definition = REGISTRY[kind]
    for name, type_name in ADDED[kind].get("attrs", {}).items():
        if name in OTHER_FORMAT or definition.forward is not None:
            continue
        assert name in HINTS or name in LATER[kind], name
        assert definition.attr_type(name) == type_name, name
        assert name not in definition.later or definition.later[name].type == type_name, name


def test_nothing_else_is_in_the_table() -> None:
    for kind, attrs in LATER.items():
        assert kind in FROM_2X or attrs.keys() <= ADDED[kind]["attrs"].keys(), kind


def softplus() -> Any:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        out = fluid.layers.softplus(fluid.data("x", [3], "float32"))
    return main, out.name


def with_attrs(desc: Any, **attrs: Any) -> Any:
    return edit.map_ops(desc, lambda op: replace(op, attrs=FrozenMap({**op.attrs, **attrs})))


X = {"x": np.array([-1.0, 0.5, 30.0], "float32")}


def test_a_value_that_changes_nothing_is_taken() -> None:
    main, out = softplus()
    _, (plain,) = Step(main.desc, (out,))({}, X)
    _, (same,) = Step(with_attrs(main.desc, beta=1.0, threshold=20.0), (out,))({}, X)
    np.testing.assert_array_equal(same, plain)


def test_a_value_that_means_something_new_is_refused() -> None:
    main, out = softplus()
    with pytest.raises(UnsupportedError, match=r"op 'softplus' with beta = 2.0 is of a later Paddle"):
        Step(with_attrs(main.desc, beta=2.0), (out,))({}, X)
    with fluid.program_guard(main, fluid.Program()), pytest.raises(UnsupportedError, match=r"beta = 2.0"):
        x = main.global_block().var("x")
        main.global_block().append_op("softplus", {"X": x}, {"Out": main.global_block().create_var(name="y")}, {"beta": 2.0})


def test_its_gradient_refuses_it_too() -> None:
    with pytest.raises(UnsupportedError, match=r"op 'softplus_grad' with beta = 2.0"):
        REGISTRY["softplus_grad"].arguments({"beta": 2.0})


def test_a_hint_may_have_any_value() -> None:
    assert LATER["argsort"]["stable"][1] is ANY
    assert "stable" not in REGISTRY["argsort"].arguments({"stable": True})


def test_an_input_slot_that_was_added_is_refused() -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        out = fluid.layers.gather(fluid.data("x", [3], "float32"), fluid.data("i", [2], "int64"))
        axis = fluid.layers.fill_constant([1], "int32", 0)
    assert "Axis?" in ADDED["gather"]["in"]

    def changed(op: Any) -> Any:
        return replace(op, inputs=FrozenMap({**op.inputs, "Axis": (axis.name,)})) if op.type == "gather" else op

    desc = edit.map_ops(main.desc, changed)
    ops = desc.blocks[0].ops
    desc = edit.replace_ops(desc, 0, sorted(ops, key=lambda op: op.type == "gather"))
    with pytest.raises(UnsupportedError, match=r"op 'gather' has no input slot 'Axis'"):
        Step(desc, (out.name,))({}, {**X, "i": np.array([0, 2])})
