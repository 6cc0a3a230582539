"""``python serve.py SIDE CASE``: one side of a comparison. It follows commands on stdin, and
answers in lines of JSON.

    make      build the net and run its startup     -> {"wall": s, "cpu": s}
    steps N   run N steps and wait for the last one's value -> the same, and "value": the last loss
    or the mean of what was predicted wait      until all that was begun is done, the updates of a
    step too (where values come before that)

The first line says which version runs, and how long its import took. CPU seconds are those of all
threads of the process.
"""

import importlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
SIDES = {
    "fluidjax": "fluid_side",
    "paddle": "fluid_side",
    "flax": "flax_side",
    "torch": "torch_side",
    "onnxruntime": "onnx_side",
    "XLA's kernels": "kernel_side",
    "scan": "scan_side",
}


def timed(run):
    wall, cpu = time.perf_counter(), time.process_time()
    value = run()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "value": value}


def main():
    side, case = sys.argv[1:3]
    # what a library prints is not an answer
    answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr

    def say(answer):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    module = importlib.import_module(SIDES[side])
    took = timed(lambda: module.load(side))
    say({"version": took.pop("value"), "import": took})
    net = []

    def make():
        net.append(module.make(case))

    def steps(count):
        return lambda: net[0](count)

    def wait():
        return getattr(net[0], "wait", lambda: None)()

    for line in sys.stdin:
        words = line.split()
        say(timed({"make": make, "wait": wait}.get(words[0]) or steps(int(words[1]))))


if __name__ == "__main__":
    main()
