"""The recorded models, lowered for CUDA where there is none: as they predict, and as they train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from benchmarks.gpu import lowered
from fluidjax import layers
from fluidjax.saved.model import read_program
from tests.models.test_lac import BATCHES

pytestmark = pytest.mark.once
DATA = Path(__file__).parents[1] / "data/models"
SIZES = {"det": (1, 3, 64, 96), "rec": (2, 3, 48, 64), "cls": (2, 3, 48, 192)}


def model(name: str) -> tuple[fluid.Program, Any, dict[str, Any]]:
    """Program, what it gives, a feed."""
    if name == "lac":
        data = (DATA / "lac_seg/model/__model__").read_bytes()
        lengths = BATCHES["1/lengths"].tolist()
        words = fluid.create_lod_tensor(BATCHES["1/ids"], [lengths], fluid.CPUPlace())
        program, feeds, (target,) = read_program(data, name)
        return program, target, {feeds[0]: words}
    program, _, (target,) = read_program((DATA / f"ocr_{name}.pdmodel").read_bytes(), name)
    return program, target, {"x": np.zeros(SIZES[name], "float32")}


@pytest.mark.first(1)
@pytest.mark.parametrize("name", [*SIZES, "lac"])
def test_it_predicts(name: str) -> None:
    program, target, feed = model(name)
    text = lowered.saved(program, [target.name], feed)
    assert "stablehlo." in text


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_it_trains(name: str) -> None:
    """Fine-tuned by Momentum, with the batch's own statistics where they are computed."""
    program, target, feed = model(name)
    with fluid.program_guard(program, fluid.Program()):
        for parameter in program.list_vars():
            if parameter.persistable and parameter.name.endswith((".w_0", ".b_0")):
                parameter.stop_gradient = False
        loss = layers.mean(target)
        trained = [p for p in program.list_vars() if p.name.endswith(".w_0") and p.persistable]
        slopes = [g for g in fluid.gradients(loss, trained) if g is not None]
    assert len(slopes) > 5
    text = lowered.saved(program, [loss.name, *(g.name for g in slopes)], feed)
    assert "stablehlo.convolution" in text


def test_a_step_in_segments() -> None:
    """A loop decides how long an array is, as in a beam search: each segment is lowered."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [2, 3])
        limit = layers.cast(layers.reduce_sum(x), "int64")
        i, written = layers.fill_constant([1], "int64", 0), layers.create_array("float32")
        more = layers.less_than(i, limit)
        loop = layers.While(more)
        with loop.block():
            layers.array_write(layers.fc(x, 4), i, written)
            layers.increment(i, 1, in_place=True)
            layers.less_than(i, limit, cond=more)
        out, _ = layers.tensor_array_to_tensor(written, axis=0)
        program, startup = fluid.default_main_program(), fluid.default_startup_program()
    scope = fluid.Scope()
    fluid.Executor(fluid.CPUPlace()).run(startup, scope=scope)
    text = lowered.for_cuda(program, [out.name], scope, {"x": np.ones((2, 3), "float32")})
    assert text.count("module @") > 2 and "stablehlo.dot_general" in text
