"""Networks of flax linen, nnx and equinox in onnxruntime beside JAX, their batch open: raised to
Fluid's ops, and as they were traced.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import export

import fluidjax as fluid
from fluidjax.graph.program import Program
from fluidjax.passes import run
from fluidjax.saved.values import put
from tests.passes.raised_models import MODELS

from .beside import session

onnx = pytest.importorskip("onnx", reason="pip install 'fluidjax[export]'")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")


WHOLE = "raise_to_fluid,fold_constants,fuse_batch_norm,dce"
# what is different of each library; its relatives run with -m thorough
QUICK = [n for n in ("nnx_images", "bert", "tagger", "equinox_series") if n in MODELS]


def samples(like: Any, count: int) -> np.ndarray:
    """So many of the kind of an input."""
    rng, shape = np.random.RandomState(count), (count, *like.shape[1:])
    if np.issubdtype(like.dtype, np.integer):
        return rng.randint(1, int(like.max()) + 1, shape).astype(like.dtype)
    return rng.standard_normal(shape).astype(like.dtype)


def raised(traced: Any, path: Path) -> None:
    result = run(WHOLE, traced.main.desc, traced.state, keep=traced.fetches)
    kinds = [op.type.startswith("jax.") for op in result.desc.blocks[0].ops]
    assert kinds and not any(kinds)
    scope, values = fluid.Scope(), {**traced.state, **result.params}
    read = {n for block in result.desc.blocks for op in block.ops for n in op.reads}
    put({n: np.asarray(v) for n, v in values.items() if n in read}, scope)
    main = Program.from_desc(result.desc)
    fluid.export(main, path, feeds=list(traced.feeds), fetches=traced.fetches, scope=scope)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "name",
    [*QUICK, *(pytest.param(n, marks=pytest.mark.thorough) for n in MODELS if n not in QUICK)],
)
def test_as_jax_computes_it(name: str, tmp_path: Path) -> None:
    fn, params, x = MODELS[name]()
    sizes = export.symbolic_shape(", ".join(["b", *map(str, x.shape[1:])]))
    traced = fluid.trace(fn, params, jax.ShapeDtypeStruct(sizes, x.dtype), state=0)
    given = {count: samples(x, count) for count in (1, 7)}
    expected = {count: jax.tree.leaves(jax.jit(fn)(params, v)) for count, v in given.items()}
    for write in (raised, fluid.export):
        path = tmp_path / f"{write.__name__}.onnx"
        write(traced, path)
        onnx.checker.check_model(str(path), full_check=True)
        running = session(path)
        (fed,) = running.get_inputs()
        assert fed.shape[0] == "b"
        names = [o.name for o in running.get_outputs()]
        for count, v in given.items():
            found = dict(zip(names, running.run(None, {fed.name: v}), strict=True))
            for out, value in zip(traced.fetches, expected[count], strict=True):
                want = np.asarray(value)
                assert found[out].shape == want.shape and found[out].dtype == want.dtype
                error = np.abs(found[out] - want).max() / np.abs(want).max()
                assert error <= 1e-5, f"{write.__name__}, {count}, {out}: {error:.1e}"
