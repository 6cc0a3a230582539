"""fluid.contrib.slim.quantization: small nets from training to int8, equal to Paddle 1.8.5's at each stage."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid

from .test_golden_programs import compare
from .tools.slim_nets import CASES

RECORDED = json.loads(gzip.decompress((Path(__file__).parent / "data" / "slim_1.8.5.json.gz").read_bytes()))


@pytest.mark.parametrize("name", [n for n in sorted(CASES) if hasattr(fluid.contrib, "QuantizeTranspiler") or "transpiler" not in n])
def test_stages_equal_paddles(name):
    """Programs op by op with all their attributes, losses, everything that is kept, what saved models compute."""
    with fluid.unique_name.guard():
        said = CASES[name](fluid)
    want = RECORDED[name]
    assert said["programs"].keys() == want["programs"].keys()
    for stage, program in said["programs"].items():
        compare(program, want["programs"][stage], stage)
        for op, w in zip(program.global_block().ops, want["programs"][stage]["blocks"][0]["ops"], strict=True):
            assert op.type == w["type"], stage
    assert said["arrays"].keys() == want["arrays"].keys()
    for what, w in want["arrays"].items():
        got = said["arrays"][what]
        assert (str(got.dtype), list(got.shape)) == (w["dtype"], w["shape"]), what
        np.testing.assert_allclose(got.reshape(-1), np.array(w["values"]), rtol=1e-5, atol=1e-6, err_msg=what)
