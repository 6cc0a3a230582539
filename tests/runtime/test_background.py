"""Work in the background: what it returns and raises, and how a process ends while XLA compiles."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fluidjax.runtime.background import in_background

ROOT = Path(__file__).parents[2]


def test_the_future_tells_what_became_of_it() -> None:
    seen: list[str] = []

    def work() -> Iterator[None]:
        seen.append("first")
        yield
        seen.append("second")

    assert in_background(work).result(10) is None and seen == ["first", "second"]

    def wrong() -> Iterator[None]:
        raise ValueError("so it is")
        yield

    with pytest.raises(ValueError, match="so it is"):
        in_background(wrong).result(10)


LEAVE = '''
import os, signal, sys, threading, time
import jax, jax.numpy as jnp
from fluidjax.runtime.background import in_background

how = sys.argv[1]
there = threading.Event()
home = jax.devices()[0]

def long(x):
    for i in range(400):
        x = jnp.sin(x) * (i + 1) + jnp.dot(x, x)[::-1]
    return x

def work():
    if how == "python":  # before XLA, where the thread can be stopped
        there.set()
        while True:
            jnp.ones(3).block_until_ready()
    lowered = jax.jit(long, compiler_options={"xla_backend_optimization_level": 3}).lower(jnp.ones((8, 8)))
    yield
    there.set()
    lowered.compile()
    print("compiled", flush=True)

future = in_background(work)
there.wait(60)
print("leaves", future.done(), flush=True)
if how == "exit":
    sys.exit(3)
if how == "interrupt":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
'''


def test_a_process_that_ends_meanwhile_ends() -> None:
    """With its own exit code, without waiting for XLA, without a word: by its last line, sys.exit, Ctrl-C, in XLA or before."""
    ways = {"end": 0, "python": 0, "exit": 3, "interrupt": -2}
    started = [
        subprocess.Popen([sys.executable, "-c", LEAVE, how], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for how in ways
    ]
    for (how, code), process in zip(ways.items(), started, strict=True):
        out, err = process.communicate(timeout=300)
        assert out.splitlines()[:1] == ["leaves False"], (how, out, err)
        assert process.returncode == code, (how, process.returncode, err)
        if how == "interrupt":
            assert err.splitlines()[-1] == "KeyboardInterrupt", err
            assert "terminate" not in err
        else:
            assert err == "", err
