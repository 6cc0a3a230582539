"""What later Paddles added to ops of 1.8.5: values that change nothing are taken, all others are
refused.
"""

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
from fluidjax.ir.verify import verify
from fluidjax.lower.step import Step
from fluidjax.ops.later import ANY, LATER, SLOTS
from fluidjax.ops.registry import HINTS, REGISTRY, canonical

from ..nets import fresh

DATA = Path(__file__).parent.parent / "data"
ADDED: dict[str, Any] = json.loads((DATA / "op_additions_3.3.1.json").read_text())
# attributes that 2.x had and 3.3.1 has no more
FROM_2X = {
    "matmul_v2",
    "set_value",
    "assign_value",
    "fusion_gru",
    *(f"c_allreduce_{k}" for k in ("max", "min", "prod", "sum")),
}


@pytest.mark.parametrize("kind", sorted(ADDED.keys() & REGISTRY.keys()))
def test_every_added_attribute_is_judged(kind: str) -> None:
    """Each is a hint, or has a value that means what 1.8.5 did."""
    definition = REGISTRY[kind]
    for name, type_name in ADDED[kind].get("attrs", {}).items():
        if definition.forward is not None:
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
    with pytest.raises(
        UnsupportedError,
        match=r"op 'lars_momentum' with multi_precision = True is of a later Paddle",
    ):
        REGISTRY["lars_momentum"].arguments({"mu": 0.9, "multi_precision": True})
    with pytest.raises(UnsupportedError, match=r"op 'fusion_lstm' with Shift_data = 2.0"):
        canonical(REGISTRY["fusion_lstm"], "Shift_data", 2.0)


def test_a_value_that_is_there_is_taken_by_the_gradient_too() -> None:
    main, out = softplus()
    _, (twice,) = Step(with_attrs(main.desc, beta=2.0, threshold=20.0), (out,))({}, X)
    np.testing.assert_allclose(twice, np.log1p(np.exp(2 * X["x"].astype("float64"))) / 2, rtol=1e-6)
    assert REGISTRY["softplus_grad"].arguments({"beta": 2.0}) == {"beta": 2.0, "threshold": 20.0}


def test_a_hint_may_have_any_value() -> None:
    assert LATER["argsort"]["stable"][1] is ANY
    assert "stable" not in REGISTRY["argsort"].arguments({"stable": True})


@pytest.mark.parametrize("kind", ["reduce_any", "reduce_all"])
def test_dims_of_tensors(kind: str) -> None:
    """Later Paddles have slots for them, which they leave empty where the attribute tells them."""
    with fresh() as (main, _):
        x = fluid.layers.cast(fluid.layers.data("x", [2, 3], append_batch_size=False), "bool")
        one = fluid.layers.fill_constant([1], "int64", 1)
        found = [x.block.create_var(dtype="bool") for _ in range(3)]
        for out, slots in zip(
            found,
            ({"AxisTensor": [one]}, {"AxisTensorList": [one]}, {"AxisTensor": []}),
            strict=True,
        ):
            x.block.append_op(
                type=kind, inputs={"X": x, **slots}, outputs={"Out": out}, attrs={"dim": [0]}
            )
    verify(
        edit.map_ops(
            main.desc, lambda op: replace(op, inputs=op.inputs.set(ADDED_BY_A_LATER_PADDLE=()))
        ),
        REGISTRY.get,
    )
    value = np.float32([[1, 0, 1], [0, 0, 1]])
    compute = np.any if kind == "reduce_any" else np.all
    got = fluid.Executor().run(main, feed={"x": value}, fetch_list=found)
    for mine, axis in zip(got, (1, 1, 0), strict=True):
        np.testing.assert_array_equal(mine, compute(value, axis))
    assert [len(v.shape) for v in found] == [1, 1, 1]


def test_values_of_float64() -> None:
    """Of Paddle 2.6's assign_value."""
    value = REGISTRY["assign_value"]({}, {"shape": (2,), "dtype": 6, "fp64_values": (0.1, 1e300)})[
        "Out"
    ]
    assert value.dtype == np.float64 and value.tolist() == [0.1, 1e300]


def test_an_input_slot_that_was_added_is_refused() -> None:
    """But for those in SLOTS, each of which Paddle 3.3.1 has."""
    added = {
        kind: {s.rstrip("*?~") for way in ("in", "out") for s in found.get(way, ())}
        for kind, found in ADDED.items()
    }
    assert all(set(slots) <= added[kind] for kind, slots in SLOTS.items())
    main, out = softplus()
    slots = FrozenMap(
        dict.fromkeys(("Predict", "Label", "StatPos", "StatNeg", "InsTagWeight"), ("x",))
    )
    desc = edit.map_ops(
        main.desc, lambda op: replace(op, type="auc", inputs=slots, outputs=FrozenMap(AUC=(out,)))
    )
    with pytest.raises(UnsupportedError, match=r"op 'auc' has no input slot 'InsTagWeight'"):
        Step(desc, (out,))({}, X)
