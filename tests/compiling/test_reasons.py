"""Why a program was compiled again: the reason, the time and the user's line of each executable."""

from __future__ import annotations

import logging
import re

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.compiling.reasons import fed
from fluidjax.ops.fixed import Fixed
from fluidjax.ops.ragged import Ragged


@pytest.fixture(scope="module")
def ran():
    """A program that was run in six ways, and what was logged meanwhile."""
    logger = logging.getLogger("fluidjax")
    held: list[logging.LogRecord] = []
    handler, level = logging.Handler(), logger.level
    handler.emit = held.append
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    main, startup = fluid.Program(), fluid.Program()
    try:
        with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, startup):
            x = fluid.data("x", [None, 2])
            loss = layers.mean(layers.scale(x, 2.0))
            exe = fluid.Executor()
            assert str(exe.explain_recompiles(main)) == "nothing was compiled of this program"
            for n in (3, 4, 3):
                exe.run(main, {"x": np.ones((n, 2), "float32")}, [loss])
            exe.run(main, {"x": np.ones((4, 2), "float32")}, [loss, x])
            exe.run_steps(main, {"x": np.ones((2, 4, 2), "float32")}, [loss])
            fluid.set_flags({"FLAGS_check_nan_inf": True})
            exe.run(main, {"x": np.ones((4, 2), "float32")}, [loss])
            fluid.set_flags({"FLAGS_check_nan_inf": False})
            layers.relu(loss)
            exe.run(main, {"x": np.ones((4, 2), "float32")}, [loss])
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})
        logger.removeHandler(handler)
        logger.setLevel(level)
    return exe.explain_recompiles(main), [
        r.getMessage() for r in held if "compiled a step" in r.getMessage()
    ]


def test_each_has_its_reason(ran):
    report, _ = ran
    mean = report.made[0].fetches[0]
    assert [made.reason for made in report] == [
        "the first run",
        "feed 'x' is float32[4, 2], before float32[3, 2]",
        f"it fetches {mean}, x, before {mean}",
        (
            "it runs many steps in one call, before one step; feed 'x' is float32[2, 4, 2], before"
            " float32[4, 2]"
        ),
        "it runs one step that is checked for values that are not finite, before one step",
        "the program was changed: 1 relu more",
    ]


def test_each_has_its_line_and_its_time(ran):
    report, logged = ran
    lines = [
        int(re.fullmatch(r"tests/compiling/test_reasons\.py:(\d+)", made.line)[1])
        for made in report
    ]
    assert lines == sorted(lines) and lines[0] == lines[1] < lines[2]
    assert all(made.seconds > 0 for made in report)
    assert str(report).startswith("6 executables were compiled of this program, ")
    second = str(report).splitlines()[2]
    assert re.fullmatch(
        r"  2\. tests/compiling/test_reasons\.py:\d+, \d+\.\d\d s: "
        + re.escape(report.made[1].reason),
        second,
    )
    assert [text.split("): ")[-1] for text in logged] == [made.reason for made in report]


def test_ragged_feeds_and_sizes_are_told_apart():
    offsets = np.array([0, 2, 5], "int32")
    ragged = Ragged(jax.ShapeDtypeStruct((8, 1), "int64"), (offsets,), (4,), 0)
    told = fed({"x": ragged, "n": Fixed(np.array([5, 6, 7, 8]))})
    assert told["the room for rows of feed 'x'"] == "int64[8, 1]"
    assert (
        told["the number of sequences of feed 'x'"] == "2"
        and told["the longest sequence of feed 'x'"] == "4"
    )
    assert told["feed 'n', which decides a size,"] == "int64[4] of 5, 6, 7, ..."
    assert fed(({"y": np.zeros(2)}, {"y": np.zeros(3)})) == {
        "feed 'y' of rank 0": "float64[2]",
        "feed 'y' of rank 1": "float64[3]",
    }


def test_segments_of_a_cut_program_are_told_too():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 2])
        zero, n = (layers.fill_constant([1], "int64", value) for value in (0, 2))
        _, grown = layers.while_loop(
            lambda i, y: layers.less_than(i, n),
            lambda i, y: [i + 1, layers.concat([y, x])],
            [zero, x * 2.0],
        )
        out = layers.reduce_sum(grown)
        exe = fluid.Executor()
        for rows in (1, 3):
            exe.run(main, {"x": np.ones((rows, 2), "float32")}, [out])
    report = exe.explain_recompiles(main)
    segments = [made for made in report if made.kind == "segment"]
    assert segments and all(
        made.line.startswith("tests/compiling/test_reasons.py:") and made.seconds > 0
        for made in segments
    )
    summed = [made.reason for made in segments if "reduce_sum" in made.reason]
    assert summed[0].endswith(": the first run") and summed[1].endswith(
        f"variable '{grown.name}' is float32[9, 2], before float32[3, 2]"
    )
