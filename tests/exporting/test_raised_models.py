"""Networks of flax linen, nnx and equinox in onnxruntime beside JAX: raised to Fluid's ops, and as
they were traced.
"""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.graph.program import Program
from fluidjax.passes import run
from fluidjax.saved.values import put
from tests.passes.raised_models import MODELS, names

from .beside import session

pytest.importorskip("onnx", reason="pip install 'fluidjax[export]'")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")


WHOLE = "raise_to_fluid,fold_constants,fuse_batch_norm,dce"


@pytest.mark.first(4)
@pytest.mark.parametrize("raised", [True, False], ids=["raised", "traced"])
@pytest.mark.parametrize("name", names())
def test_as_jax_computes_it(name: str, raised: bool, tmp_path: Path) -> None:
    fn, params, x = MODELS[name]()
    traced = fluid.trace(fn, params, x, state=0)
    path, (fed,) = tmp_path / "net.onnx", traced.feeds
    if raised:
        result = run(WHOLE, traced.main.desc, traced.state, keep=traced.fetches)
        assert not [op.type for op in result.desc.blocks[0].ops if op.type.startswith("jax.")]
        scope, values = fluid.Scope(), {**traced.state, **result.params}
        read = {n for block in result.desc.blocks for op in block.ops for n in op.reads}
        put({n: np.asarray(v) for n, v in values.items() if n in read}, scope)
        main = Program.from_desc(result.desc)
        fluid.export(main, path, feeds=[fed], fetches=traced.fetches, scope=scope, opset=18)
    else:
        fluid.export(traced, path, opset=18)
    running = session(path)
    names = [o.name for o in running.get_outputs()]
    found = dict(zip(names, running.run(None, {fed: np.asarray(x)}), strict=True))
    for out, want in zip(traced.fetches, jax.tree.leaves(fn(params, x)), strict=True):
        want = np.asarray(want)
        assert found[out].shape == want.shape and found[out].dtype == want.dtype
        error = np.abs(found[out] - want).max() / np.abs(want).max()
        assert error <= 1e-5, f"{out}: {error:.1e} of the largest"
