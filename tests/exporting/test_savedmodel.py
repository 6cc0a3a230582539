"""SavedModel: written, and read by TensorFlow in a process without fluidjax; or a sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import UnsupportedError
from fluidjax.exporting import ExportError


def net() -> tuple[fluid.Program, fluid.Scope, list[Any]]:
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, ids = fluid.data("the.x", [None, 3, 8, 8]), fluid.data("ids", [None, 4], "int64")
        h = layers.batch_norm(layers.conv2d(x, 4, 3), act="relu", is_test=True)
        words = layers.reduce_sum(fluid.embedding(ids, [9, 5]), dim=1)
        out = layers.softmax(layers.elementwise_add(layers.fc(h, 5), words))
        best = layers.cast(layers.argmax(out, 1), "int64")
    fluid.Executor().run(startup, scope=scope)
    return main, scope, [out, best]


def feed(n: int) -> dict[str, np.ndarray]:
    drawn = np.random.RandomState(n)
    x = drawn.standard_normal((n, 3, 8, 8)).astype("float32")
    return {"the.x": x, "ids": drawn.randint(0, 9, (n, 4)).astype("int64")}


READ = """
import sys
import numpy as np
import tensorflow as tf
run = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
given = np.load(sys.argv[2])
found = run(**{n: tf.constant(given[n]) for n in given.files})
np.savez(sys.argv[3], **{n: v.numpy() for n, v in found.items()})
assert "fluidjax" not in sys.modules
"""


def test_tensorflow_computes_the_same(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="pip install tensorflow-cpu")
    main, scope, outs = net()
    path = tmp_path / "saved"
    report = fluid.export(main, path, "savedmodel", fetches=outs, scope=scope)
    assert report.inputs == ("the_x float32[batch, 3, 8, 8]", "ids int64[batch, 4]")
    assert "input 'the.x' is called 'the_x'" in report.notes
    assert report.ops["conv2d"] == (1, ("StableHLO",))
    exe = fluid.Executor()
    for n in (1, 7):
        given = feed(n)
        np.savez(tmp_path / "given.npz", the_x=given["the.x"], ids=given["ids"])
        words = [sys.executable, "-c", READ, str(path), "given.npz", "found.npz"]
        subprocess.run(words, check=True, cwd=tmp_path)
        found = np.load(tmp_path / "found.npz")
        want = exe.run(main, feed=given, fetch_list=outs, scope=scope)
        for out, array in zip(outs, want, strict=True):
            assert found[out.name].dtype == array.dtype
            np.testing.assert_allclose(found[out.name], array, rtol=1e-5, atol=1e-6)


def test_what_cannot_leave_is_told_at_once(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="pip install tensorflow-cpu")
    main = fluid.Program()
    with fluid.program_guard(main):
        x = fluid.data("x", [None, 3], lod_level=1)
        out = layers.sequence_pool(x, "sum")
    with pytest.raises(ExportError, match="savedmodel lacks 1"):
        fluid.export(main, tmp_path / "saved", "savedmodel", fetches=[out])
    assert not list(tmp_path.iterdir())


def test_code_that_tensorflow_does_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a later JAX, or damaged."""
    pytest.importorskip("tensorflow", reason="pip install tensorflow-cpu")
    from tensorflow.compiler.tf2xla.python import xla

    call = xla.call_module
    monkeypatch.setattr(
        xla, "call_module", lambda *a, module, **k: call(*a, module=module[:-9], **k)
    )
    main, scope, outs = net()
    with pytest.raises(ExportError, match="does not read its code"):
        fluid.export(main, tmp_path / "saved", "savedmodel", fetches=outs, scope=scope)
    assert not list(tmp_path.iterdir())


def test_without_tensorflow_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fluidjax.exporting import savedmodel

    monkeypatch.setattr(savedmodel, "find_spec", lambda name: None)
    main, scope, outs = net()
    with pytest.raises(UnsupportedError, match="pip install tensorflow-cpu"):
        fluid.export(main, tmp_path / "saved", "savedmodel", fetches=outs, scope=scope)
    assert not list(tmp_path.iterdir())
