"""Passes on a small program: the printed text before and after, as it should stand.

Every registered pass is here, or has a test module of its own name.

After a change that is meant: ``python -m tests.passes.test_golden`` writes the files anew.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers, passes
from fluidjax.ir import text
from fluidjax.ir.desc import FrozenMap, ProgramDesc
from fluidjax.ir.edit import map_ops, renumber
from fluidjax.passes import PASSES
from tests.nets import fresh

GOLDEN = Path(__file__).parent / "golden"
Case = tuple[fluid.Program, list[str]]


def training() -> Case:
    """A small training program, with an op that nothing needs."""
    with fresh() as (main, _):
        x = fluid.data("x", [None, 4])
        label = fluid.data("label", [None, 1], dtype="int64")
        out = layers.softmax(layers.dropout(layers.fc(x, 3), 0.5))
        layers.tanh(x)
        loss = layers.mean(layers.cross_entropy(out, label))
        fluid.optimizer.SGD(0.1).minimize(loss)
    return main, [out.name, loss.name]


def convolution() -> Case:
    """conv2d, batch_norm, a per-channel scale, and a batch_norm that must stay."""
    with fresh() as (main, _):
        image = fluid.data("image", [None, 3, 8, 8])
        hidden = layers.batch_norm(layers.conv2d(image, 4, 3), act="relu")
        hidden = layers.scale(layers.conv2d(hidden, 2, 1, bias_attr=False), 0.5)
        out = layers.batch_norm(layers.tanh(hidden))
    return main.clone(for_test=True), [out.name]


def constants() -> Case:
    """A product with a matrix that is computed from a parameter and a constant."""
    with fresh() as (main, _):
        x = fluid.data("x", [None, 2])
        w = layers.create_parameter([2, 2], "float32", name="w")
        doubled = layers.elementwise_mul(w, layers.fill_constant([2, 2], "float32", 2.0))
        out = layers.matmul(x, doubled)
    return main, [out.name]


CASES: dict[str, Callable[[], Case]] = {
    "dce": training,
    "prune": training,
    "is_test": training,
    "inference": training,
    "fold_constants": constants,
    "fuse_batch_norm": convolution,
    "fuse_conv_affine": convolution,
    "memory_optimize": training,
    "release_memory": training,
}


def bare(desc: ProgramDesc) -> ProgramDesc:
    """`desc` without attributes that say nothing about the rewrite."""
    quiet = ("op_role", "op_role_var", "op_namescope")
    return renumber(map_ops(desc, lambda op: op if not op.attrs else type(op)(
        op.uid, op.type, op.inputs, op.outputs, FrozenMap({k: v for k, v in op.attrs.items() if k not in quiet}), op.loc
    )))  # fmt: skip


def render(name: str) -> str:
    program, keep = CASES[name]()
    params = {v.name: np.ones(v.shape, "float32") for v in program.list_vars() if v.persistable}
    result = passes.run(name, program.desc, params, keep)
    notes = "\n".join(
        f"{'refused' if n.refused else 'done'}: {n.op}: {n.what}" for n in result.notes
    )
    again = passes.run(name, result.desc, {**params, **result.params}, keep)
    assert not again.changed, f"{name} is not idempotent:\n{again.diff()}"
    return (
        f"== before\n{text.to_text(bare(program.desc))}\n=="
        f" after\n{text.to_text(bare(result.desc))}\n== notes\n{notes}\n"
    )


def test_every_pass_has_its_test() -> None:
    folder = Path(__file__).parent
    assert [
        name for name in PASSES if name not in CASES and not (folder / f"test_{name}.py").exists()
    ] == []


@pytest.mark.parametrize("name", sorted(CASES))
def test_golden(name: str) -> None:
    assert render(name) == (GOLDEN / f"{name}.txt").read_text()


if __name__ == "__main__":
    for each in sorted(CASES):
        (GOLDEN / f"{each}.txt").write_text(render(each))
