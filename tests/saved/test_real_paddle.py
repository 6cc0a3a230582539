"""What we save, the real Paddle loads and computes the same. Runs where Paddle is: these variables
name its Pythons.

    FLUIDJAX_PADDLE18=.../bin/python FLUIDJAX_PADDLE3=.../bin/python pytest
    tests/saved/test_real_paddle.py -s
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from tests.models import test_ocr
from tests.nets import fresh

PADDLES = {name: os.environ.get(name) for name in ("FLUIDJAX_PADDLE18", "FLUIDJAX_PADDLE3")}

OLD = """
import sys, numpy as np, paddle, paddle.fluid as fluid
folder, how = sys.argv[1:]
ref = np.load(folder + "/ref.npz")
exe = fluid.Executor(fluid.CPUPlace())
files = dict(model_filename="inference.pdmodel", params_filename="inference.pdiparams") if how == "combined" else {}
program, feeds, targets = fluid.io.load_inference_model(folder, exe, **files)
(out,) = exe.run(program, feed={feeds[0]: ref["x"]}, fetch_list=targets)
print(paddle.__version__, how, "largest difference", np.abs(out - ref["y"]).max(), "largest value", np.abs(ref["y"]).max())
assert np.allclose(out, ref["y"], rtol=1e-4, atol=1e-5)
"""
STATE = """
import sys, numpy as np, paddle.fluid as fluid
state = fluid.io.load_program_state(sys.argv[1] + "/state")
ref = np.load(sys.argv[1] + "/state.npz")
assert set(state) == set(ref.files) and all((state[n] == ref[n]).all() and state[n].dtype == ref[n].dtype for n in state)
print("load_program_state:", len(state), "values, all equal")
"""
NEW = """
import sys, numpy as np, paddle
from paddle import inference
folder = sys.argv[1]
ref = np.load(folder + "/ref.npz")
predictor = inference.create_predictor(inference.Config(folder + "/inference.pdmodel", folder + "/inference.pdiparams"))
handle = predictor.get_input_handle(predictor.get_input_names()[0])
handle.copy_from_cpu(ref["x"])
predictor.run()
out = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
print(paddle.__version__, "predictor: largest difference", np.abs(out - ref["y"]).max(), "largest value", np.abs(ref["y"]).max())
assert np.allclose(out, ref["y"], rtol=1e-4, atol=1e-5)
"""


def paddle(which: str, script: str, *args: str) -> None:
    python = PADDLES[which]
    if not python:
        pytest.skip(f"{which} names no Python with that Paddle")
    done = subprocess.run(
        [python, "-c", script, *args], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    print(done.stdout.strip().splitlines()[-1])


def save_small(folder: Path, how: str) -> None:
    """A trained convolution network with its answer; its passes have run, so folded weights are
    saved too.
    """
    with fresh(2) as (main, startup):
        x = fluid.data("x", [None, 3, 8, 8])
        h = layers.batch_norm(layers.conv2d(x, 4, 3, padding=1), act="relu")
        h = layers.pool2d(layers.batch_norm(layers.conv2d(h, 8, 3, groups=2)), 2, pool_stride=2)
        out = layers.fc(layers.dropout(h, 0.3), 5, act="softmax")
        fluid.optimizer.Momentum(0.1, 0.9).minimize(layers.mean(layers.square(out)))
    exe = fluid.Executor()
    feed = {"x": np.random.RandomState(0).standard_normal((4, 3, 8, 8)).astype("float32")}
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        for _ in range(3):
            exe.run(main, feed=feed)
        fluid.save(main, str(folder / "state"))
        np.savez(
            folder / "state.npz",
            **{v.name: fluid.global_scope().get(v.name) for v in main.list_vars() if v.persistable},
        )
        program, _ = fluid.transpiler.apply_passes(main, "inference,fuse_batch_norm", [out])
        target = program.global_block().var(out.name)
        files = ("inference.pdmodel", "inference.pdiparams") if how == "combined" else (None, None)
        fluid.io.save_inference_model(str(folder), ["x"], [target], exe, program, *files)
        (y,) = exe.run(program, feed=feed, fetch_list=[target])
    np.savez(folder / "ref.npz", x=feed["x"], y=y)


@pytest.mark.parametrize("how", ["separate", "combined"])
def test_paddle_1_8_5(how: str, tmp_path: Path) -> None:
    save_small(tmp_path, how)
    paddle("FLUIDJAX_PADDLE18", OLD, str(tmp_path), how)
    paddle("FLUIDJAX_PADDLE18", STATE, str(tmp_path))


def test_paddle_3(tmp_path: Path) -> None:
    save_small(tmp_path, "combined")
    paddle("FLUIDJAX_PADDLE3", NEW, str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cls", "det"])
def test_a_fine_tuned_ocr_model_goes_back_to_paddle(name: str, tmp_path: Path) -> None:
    """Ten steps of tuning, saved, and read by the predictor of Paddle 3."""
    if not PADDLES["FLUIDJAX_PADDLE3"]:
        pytest.skip("FLUIDJAX_PADDLE3 names no Python with that Paddle")
    x, y = test_ocr.reference(name)
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        program, feeds, targets = fluid.io.load_inference_model(
            test_ocr.folder(name), exe, trainable=True
        )
        startup = fluid.Program()
        with fluid.program_guard(program, startup):
            wanted = fluid.data("wanted", [None, *y.shape[1:]])
            loss = layers.mean(layers.square(targets[0] - wanted))
            fluid.optimizer.SGD({"cls": 1e-2, "det": 1e-4}[name]).minimize(loss, startup)
        exe.run(startup)
        feed = {feeds[0]: x, "wanted": np.roll(y, 1, -1)}
        losses = [float(exe.run(program, feed=feed, fetch_list=[loss])[0]) for _ in range(10)]
        assert losses[-1] < losses[0]
        (tuned,) = exe.run(program.clone(for_test=True), feed=feed, fetch_list=[targets[0].name])
        fluid.io.save_inference_model(
            str(tmp_path), feeds, targets, exe, program, "inference.pdmodel", "inference.pdiparams"
        )
    np.savez(tmp_path / "ref.npz", x=x, y=tuned)
    print(f"{name}: loss {losses[0]:.6f} -> {losses[-1]:.6f}")
    paddle("FLUIDJAX_PADDLE3", NEW, str(tmp_path))
