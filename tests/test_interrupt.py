"""Ctrl-C during a run: every variable of the scope is readable, unchanged or wholly updated, although it was donated."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np

import fluidjax as fluid
from fluidjax import layers

from .nets import fresh


def counters(count=6):
    """A program whose variables all go up by one per run, with enough work for a signal to arrive in the middle."""
    with fresh() as (main, startup):
        x = fluid.data("x", [300, 300])
        h = x
        for _ in range(6):
            h = layers.tanh(layers.matmul(h, x))
        for i in range(count):
            layers.increment(layers.create_global_var([2], 0.0, "float32", persistable=True, name=f"v{i}"))
        out = layers.mean(h)
    return main, startup, out


def send_interrupt(after):
    def run():
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_interrupted_runs_lose_nothing():
    main, startup, out = counters()
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    feed = {"x": np.full((300, 300), 0.01, np.float32)}
    rng = np.random.default_rng(0)
    interrupted = 0
    for trial in range(40):
        if trial % 4 == 0:
            exe = fluid.Executor()  # first calls too: they compile
        thread = send_interrupt(float(rng.uniform(0.0, 0.02)))
        try:
            for _ in range(50):
                exe.run(main, feed=feed, fetch_list=[out], scope=scope)
            thread.join()
        except KeyboardInterrupt:
            interrupted += 1
        try:
            thread.join()
        except KeyboardInterrupt:
            interrupted += 1
        values = [scope.get(f"v{i}") for i in range(6)]
        assert all((v == values[0][0]).all() for v in values), f"trial {trial}: {values}"
    assert interrupted >= 20
    before = scope.get("v0")[0]
    exe.run(main, feed=feed, fetch_list=[out], scope=scope)
    assert scope.get("v0")[0] == before + 1
