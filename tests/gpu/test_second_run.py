"""What is compiled on the GPU is compiled once: another process finds it, and a predictor pads
batches to the sizes that it was warmed up for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import fluidjax as fluid
from fluidjax import layers
from tests.nets import fresh

from .card import PLACE, REHEARSAL

ROOT = Path(__file__).parents[2]
CODE = """
import json, jax, fluidjax as fluid
from benchmarks import data, fluid_models
seen = {"cache_hits": 0, "cache_misses": 0}
def count(event, **_):
    word = event.rsplit("/", 1)[-1]
    seen[word] = seen.get(word, 0) + 1
jax.monitoring.register_event_listener(count)
main, startup, loss = fluid_models.build(fluid_models.lenet, fluid.optimizer.Adam(1e-3))
main.random_seed = startup.random_seed = 1
exe, scope, feed = fluid.Executor(), fluid.Scope(), data.images(16, 28, 1)
exe.run(startup, scope=scope)
losses = [exe.run(main, feed, [loss], scope=scope)[0].item() for _ in range(3)]
print(json.dumps({"losses": losses, "hits": seen["cache_hits"], "misses": seen["cache_misses"]}))
"""


def process(folder: Path) -> dict[str, Any]:
    unset = ("JAX_COMPILATION", "JAX_PERSISTENT", "FLAGS_")
    environ = {n: v for n, v in os.environ.items() if not n.startswith(unset)}
    environ["FLAGS_compilation_cache_dir"] = str(folder)
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_another_process_finds_what_one_compiled(tmp_path: Path, record_property: Any) -> None:
    first, second = process(tmp_path), process(tmp_path)
    record_property("seen", [first, second])
    assert second["hits"] >= first["misses"] >= 2
    np.testing.assert_allclose(second["losses"], first["losses"], rtol=1e-4)


def test_a_predictor_pads_to_the_batches_it_was_warmed_up_for(tmp_path: Path) -> None:
    with fresh(1) as (main, startup):
        x = fluid.data("x", [None, 3, 16, 16])
        h = layers.batch_norm(layers.conv2d(x, 8, 3), act="relu")
        out = layers.softmax(layers.fc(layers.pool2d(h, 2, pool_stride=2), 5))
    exe, scope = fluid.Executor(PLACE), fluid.Scope()
    exe.run(startup, scope=scope)
    with fluid.scope_guard(scope):
        fluid.io.save_inference_model(str(tmp_path), ["x"], [out], exe, main)
    found = []
    images = np.random.RandomState(0).rand(5, 3, 16, 16).astype("float32")
    for on_gpu in (True, False):
        config = fluid.core.AnalysisConfig(str(tmp_path))
        if on_gpu and not REHEARSAL:
            config.enable_use_gpu(100, 0)
        config.set_batch_sizes([2, 8])
        predictor = fluid.core.create_paddle_predictor(config)
        predictor.warm_up(config.batch_sizes())
        warm = len(predictor.compilations())
        batches = [images[:n] for n in (1, 2, 3, 5)]
        found.append([predictor.run([fluid.core.PaddleTensor(b)])[0].as_ndarray() for b in batches])
        assert [len(v) for v in found[-1]] == [1, 2, 3, 5]
        assert len(predictor.compilations()) == warm == 2
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
