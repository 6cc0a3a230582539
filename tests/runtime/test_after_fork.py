"""What a forked process can do: run programs if its parent had not used JAX, else say so at once
instead of waiting for ever.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BEGIN = """
import multiprocessing, os, signal, sys
import numpy as np
import fluidjax as fluid
x = fluid.data("x", [None, 2]); loss = fluid.layers.mean(fluid.layers.fc(x, 1)); fluid.optimizer.SGD(0.1).minimize(loss)
main, startup = fluid.default_main_program(), fluid.default_startup_program()
feed = {"x": np.ones((2, 2), np.float32)}
def train():
    exe = fluid.Executor(); exe.run(startup); return exe.run(main, feed=feed, fetch_list=[loss])[0]
def child(work, hangs=30):
    pid = os.fork()
    if pid == 0:
        signal.alarm(hangs)
        try: print(work(), flush=True); os._exit(0)
        except fluid.FluidError as error: print(type(error).__name__, str(error).splitlines()[0], flush=True); os._exit(7)
        except BaseException as error: print(repr(error), flush=True); os._exit(8)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""
SCRIPT = (
    BEGIN
    + """
assert child(lambda: float(train()) < 9) == 0  # the parent has built programs and run none
exe = fluid.Executor(); exe.run(startup); step = fluid.step_fn(main, [loss]); state = fluid.read_state(main)
def run(): return exe.run(main, feed=feed, fetch_list=[loss])
run(), run()
ways = {
    "run": run, "Executor": fluid.Executor, "startup": lambda: exe.run(startup), "step_fn": lambda: step(state, feed),
    "run_steps": lambda: exe.run_steps(main, [feed, feed], [loss]), "init_fn": lambda: fluid.init_fn(startup)(None),
    "grandchild": lambda: child(run),
}
for name, work in ways.items():
    assert child(work) == (0 if name == "grandchild" else 7), name
pool = multiprocessing.get_context("fork").Pool(1)
try: pool.apply_async(run).get(30)
except fluid.FluidError as error: print("pool", type(error).__name__)
pool.terminate()
assert child(lambda: fluid.read_state(main)[main.all_parameters()[0].name].shape) == 0  # values can be read
print("parent", np.isfinite(run()[0]).all())
"""
)


@pytest.mark.slow
def test_a_forked_process_runs_or_says_why_not() -> None:
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, timeout=200
    )
    assert found.returncode == 0, found.stderr[-3000:]
    lines = found.stdout.splitlines()
    said = [line for line in lines if line.startswith("UnsupportedError")]
    assert lines[0] == "True" and lines[-1] == "parent True" and "pool UnsupportedError" in lines
    assert len(said) == 7 and all(
        "forked from one that had made an executor or run a program" in line for line in said
    )


WITHIN_A_STEP = (
    BEGIN
    + """
import threading
exe = fluid.Executor(); exe.run(startup)
within, go = threading.Event(), threading.Event()
def wait(x):
    within.set(); assert go.wait(60); return x
with fluid.program_guard(fluid.Program(), fluid.Program()):
    w = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True, name="w")
    late = fluid.default_main_program().current_block().create_var(name="late", dtype="float32", shape=[1])
    fluid.layers.py_func(wait, w, late)
    fluid.layers.assign(late + 1.0, w)
    exe.run(fluid.default_startup_program())
    stepping = fluid.default_main_program()
thread = threading.Thread(target=exe.run, args=(stepping,)); thread.start(); assert within.wait(60)
read = lambda name: np.array(fluid.global_scope().find_var(name).get_tensor()).size
assert child(lambda: read("w")) == child(lambda: fluid.io.save_persistables(exe, "never", stepping)) == 7
assert child(lambda: read(main.all_parameters()[0].name)) == 0  # no step changes it
go.set(); thread.join()
print("parent", read("w"))
"""
)


@pytest.mark.slow
def test_what_a_thread_was_changing_at_the_fork_is_told() -> None:
    """A child has none of its parent's threads, so it would wait for their turn for ever."""
    found = subprocess.run(
        [sys.executable, "-c", WITHIN_A_STEP], cwd=ROOT, capture_output=True, text=True, timeout=200
    )
    assert found.returncode == 0, found.stderr[-3000:]
    lines = found.stdout.splitlines()
    assert lines[-1] == "parent 1"
    assert sum("forked while another thread of its parent ran a program" in n for n in lines) == 2
