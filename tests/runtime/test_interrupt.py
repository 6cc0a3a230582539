"""Ctrl-C during a run: every variable of the scope is readable, unchanged or wholly updated,
although it was donated.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.runtime.building import compile_lowered

from ..nets import fresh

ROOT = Path(__file__).parents[2]


def counters(count=6):
    """A program whose variables all go up by one per run, with enough work for a signal to arrive
    in the middle.
    """
    with fresh() as (main, startup):
        x = fluid.data("x", [300, 300])
        h = x
        for _ in range(6):
            h = layers.tanh(layers.matmul(h, x))
        for i in range(count):
            v = layers.create_global_var([2], 0.0, "float32", persistable=True, name=f"v{i}")
            main.global_block().append_op(
                type="scale", inputs={"X": v}, outputs={"Out": v}, attrs={"bias": 1.0}
            )
        out = layers.mean(h)
    return main, startup, out


def send_interrupt(after):
    def run():
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def interrupt_many_runs():
    """Run with Ctrl-C arriving at random moments; the counters always agree."""
    # a job in the background is started with SIGINT ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main, startup, out = counters()
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    feed = {"x": np.full((300, 300), 0.01, np.float32)}
    # JAX imports modules when it first compiles, which must not be cut short
    exe.run(main, feed=feed, fetch_list=[out], scope=scope)
    rng = np.random.default_rng(0)
    interrupted = 0
    for trial in range(40):
        if trial % 4 == 0:
            exe = fluid.Executor()  # first calls too: they compile
        try:
            thread = send_interrupt(float(rng.uniform(0.0, 0.02)))
            for _ in range(50):
                exe.run(main, feed=feed, fetch_list=[out], scope=scope)
            thread.join()
            time.sleep(0.01)
        except KeyboardInterrupt:
            interrupted += 1
        values = [scope.get(f"v{i}") for i in range(6)]
        assert all((v == values[0][0]).all() for v in values), f"trial {trial}: {values}"
    assert interrupted >= 20, interrupted
    before = scope.get("v0")[0]
    exe.run(main, feed=feed, fetch_list=[out], scope=scope)
    assert scope.get("v0")[0] == before + 1
    print("interrupted", interrupted)


class Lowered:
    """Raises what JAX raises where something is raised while Python looks at a module."""

    def __init__(self, text):
        self.text = text

    def compile(self):
        raise RuntimeError(
            'Exception raised in callback: Traceback (most recent call last):\n  File "a.py", line'
            f" 1, in f\n{self.text}\n"
        )


def test_an_interrupt_that_arrives_as_text_is_one():
    with pytest.raises(KeyboardInterrupt):
        compile_lowered(Lowered("KeyboardInterrupt: "))
    with pytest.raises(RuntimeError, match="ValueError"):
        compile_lowered(Lowered("ValueError: no KeyboardInterrupt"))


@pytest.mark.slow
def test_interrupted_runs_lose_nothing():
    """In a process of its own, since the signal would reach the test runner too."""
    code = "from tests.runtime.test_interrupt import interrupt_many_runs; interrupt_many_runs()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0 and "interrupted" in done.stdout, done.stderr[-3000:]
