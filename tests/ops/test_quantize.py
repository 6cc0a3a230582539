"""The quantiser that keeps a window of scales, step by step as 1.8.5 has it; what quantisers
refuse.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import EnforceNotMet, FluidError
from fluidjax.ops.registry import lookup

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "quantize_range_1.8.5.json").read_text()
)
WINDOW = 3


def quantiser(is_test: bool = False) -> tuple[Any, Any, list[Any]]:
    """The program that tests/tools/record_quantize_range.py builds."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x = fluid.data("x", [4], "float32")
        kinds = (
            ("scale", 1, 0.001, "float32"),
            ("scales", WINDOW, 0.0, "float32"),
            ("step", 1, 0, "int64"),
        )
        scale, scales, step = (
            fluid.layers.create_global_var([n], v, d, True, name=k) for k, n, v, d in kinds
        )
        block = main.global_block()
        out = block.create_var(name="out", dtype="float32", shape=[4])
        inputs, outputs = {"X": x, "InScale": scale}, {"Out": out, "OutScale": scale}
        if not is_test:
            inputs["Iter"], outputs["OutScales"] = step, scales
        block.append_op(
            "fake_quantize_range_abs_max",
            inputs,
            outputs,
            {"window_size": WINDOW, "bit_length": 8, "is_test": is_test},
        )
        if not is_test:
            fluid.layers.increment(step, 1)
    return main, startup, [out, scale] if is_test else [out, scale, scales]


def test_the_window_moves_as_in_paddle() -> None:
    """The greatest value of the window is the scale; where it leaves the window, the greatest of
    those that are there.
    """
    main, startup, fetches = quantiser()
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    for i, x in enumerate(RECORDED["x"]):
        out, scale, scales = exe.run(
            main, feed={"x": np.array(x, "float32")}, fetch_list=fetches, scope=scope
        )
        for name, value in (("out", out), ("scale", scale), ("scales", scales)):
            np.testing.assert_array_equal(
                value, np.array(RECORDED[name][i], "float32"), err_msg=f"{name} of step {i}"
            )


def test_a_test_program_keeps_its_scale() -> None:
    main, startup, fetches = quantiser(is_test=True)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    scope.find_var("scale").get_tensor().set(np.array([2.0], "float32"))
    out, scale = exe.run(
        main, feed={"x": np.array([1, -2, 3, 0], "float32")}, fetch_list=fetches, scope=scope
    )
    assert scale == 2.0 and out.tolist() == [64, -127, 127, 0]


def test_the_window_must_have_been_initialised() -> None:
    main, startup, fetches = quantiser()
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    fresh = fluid.Scope()
    for name in ("scale", "step"):
        fresh.var(name).get_tensor().set(np.array(scope.find_var(name).get_tensor()))
    with pytest.raises(EnforceNotMet, match="'scales' is not initialised"):
        exe.run(main, feed={"x": np.zeros(4, "float32")}, fetch_list=fetches, scope=fresh)


X = np.ones((2, 3), "float32")
REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    (
        "fake_quantize_abs_max",
        {"X": X},
        {"bit_length": 1},
        "bits of a quantised number are from 2 to 31",
    ),
    (
        "fake_quantize_moving_average_abs_max",
        {"X": X, "InScale": X[0, :1]},
        {},
        "takes InAccum and InState, unless is_test",
    ),
    (
        "fake_dequantize_max_abs",
        {"X": X, "Scale": X[0]},
        {"max_range": 127.0},
        "a Scale of one number",
    ),
    (
        "fake_channel_wise_dequantize_max_abs",
        {"X": X, "Scales": [X[0]]},
        {},
        "a number of Scales for each index of axis 0",
    ),
    (
        "fake_channel_wise_dequantize_max_abs",
        {"X": X, "Scales": [X[:, 0], X[0, :1]]},
        {"quant_bits": (8,)},
        "quant_bits for each",
    ),
    ("dequantize_log", {"X": X.astype("int8"), "Dict": X}, {}, "a Dict of 128 numbers"),
]


@pytest.mark.parametrize(("kind", "inputs", "attrs", "message"), REFUSED)
def test_refused(kind: str, inputs: dict[str, Any], attrs: dict[str, Any], message: str) -> None:
    definition = lookup(kind)
    with pytest.raises(FluidError, match=message):
        definition(inputs, {**definition.defaults, **attrs})
