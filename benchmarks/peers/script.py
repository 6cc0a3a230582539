"""``script.py SIDE NET LAST SECONDS``: a whole training script, from the start of its process
(STARTED in the environment) on.

Prints a line of JSON for each step of MARKS that is reached: {"step": n, "cpu": s, "wall": s}, CPU
seconds of all threads. It ends after step LAST, or at the first of MARKS after so many SECONDS.
"""

import importlib
import json
import os
import sys
import time

MARKS = (1, 10, 30, 100, 300, 1000)
BATCHES = 60  # different ones of a ragged net, in turn


def main(side, net, last, seconds):
    sides = importlib.import_module("flax_side" if side == "flax" else "fluid_side")
    sides.load(side)
    steps = sides.make(net if "text" not in net else f"{net} {BATCHES}")
    taken = 0
    for mark in (m for m in MARKS if m <= last):
        value = steps(mark - taken)  # and waits for its loss
        taken = mark
        wall = time.time() - float(os.environ["STARTED"])
        print(
            json.dumps({"step": mark, "cpu": time.process_time(), "wall": wall, "value": value}),
            flush=True,
        )
        if wall > seconds:
            break


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
