"""Flax models raised to Fluid's ops and quantised after training, beside the function itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.contrib.slim.quantization import PostTrainingQuantization
from fluidjax.errors import FluidValueError
from fluidjax.graph.program import Program
from fluidjax.passes import run
from fluidjax.saved.values import put

from .raised_models import MODELS
from .test_raise_to_fluid import WHOLE

KINDS = ["conv2d", "depthwise_conv2d", "mul"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["mobilenet", "nnx_images", pytest.param("resnet", marks=pytest.mark.thorough)]
)
def test_results_are_those_of_the_function_within_eight_bits(name: str, tmp_path: Path) -> None:
    fn, params, x = MODELS[name]()
    (feed,) = fluid.trace(fn, params, x, state=0).feeds
    traced = fluid.trace(fn, params, x, state=0, dynamic={feed: ("b",)})
    whole = run(WHOLE, traced.main.desc, traced.state, keep=traced.fetches)
    samples = np.asarray(jax.random.normal(jax.random.key(5), (8, *x.shape[1:])))
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        program, values = Program.from_desc(whole.desc), {**traced.state, **whole.params}
        read = {n for op in whole.desc.blocks[0].ops for n in op.reads}
        put({n: np.array(values[n]) for n in read if n in values}, None)
        targets = [program.global_block().var(n) for n in traced.fetches]
        fluid.io.save_inference_model(str(tmp_path), [feed], targets, exe, program)
    with fluid.scope_guard(fluid.Scope()):
        made = PostTrainingQuantization(
            exe, model_dir=str(tmp_path), sample_generator=lambda: ((s,) for s in samples),
            batch_size=4, algo="abs_max", weight_quantize_type="abs_max", quantizable_op_type=KINDS,
        )  # fmt: skip
        program = made.quantize()
        (found,) = exe.run(program, feed={feed: samples}, fetch_list=[t.name for t in targets])
        weights = _weights(program)
    expected = np.asarray(jax.jit(fn)(params, samples))
    scale = np.abs(expected).max()
    assert weights and all(np.array_equal(w, w.round()) and abs(w).max() <= 127 for w in weights)
    error = np.abs(found - expected).max() / scale
    assert 0 < error < 0.05 and (found.argmax(-1) == expected.argmax(-1)).mean() >= 0.75


def test_scales_of_channels_of_another_layout_are_refused(tmp_path: Path) -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, 4, 4, 4])
        out = fluid.layers.conv2d(x, 4, 1, data_format="NHWC")
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        fluid.io.save_inference_model(str(tmp_path), ["x"], [out], exe)
        made = PostTrainingQuantization(
            exe, model_dir=str(tmp_path), sample_generator=lambda: iter([(np.ones((4, 4, 4), "f"),)] * 2),
            batch_size=2, algo="abs_max",
        )  # fmt: skip
        with pytest.raises(FluidValueError, match=r"NHWC.*weight_quantize_type='abs_max'"):
            made.quantize()


def _weights(program: Any) -> list[np.ndarray]:
    """Those of the ops that were quantised."""
    slots = {"mul": "Y"}
    block = program.global_block()
    names = [op.input(slots.get(op.type, "Filter"))[0] for op in block.ops if op.type in KINDS]
    return [np.asarray(fluid.global_scope().find_var(n).get_tensor()) for n in names]
