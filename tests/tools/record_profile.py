"""Record which events a profile of Paddle 1.8.5 shows, in the order in which they first end:
tests/data/profile_1.8.5.json.

    python3.8 tests/tools/record_profile.py

{"events": [[name, calls], ...], "heads": the sentence and the columns for each sorted_key}
"""

import json
import os
import re
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
KEYS = [None, "calls", "total", "max", "min", "ave"]


def net(fluid):
    x = fluid.data("x", [4, 6])
    y = fluid.layers.fc(x, 5, act="relu")
    loss = fluid.layers.mean(fluid.layers.fc(y, 3))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


def main(key):
    import numpy as np
    import paddle.fluid as fluid
    from paddle.fluid import profiler

    loss = net(fluid)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    with profiler.profiler("CPU", key, "/tmp/profile_of_1.8.5"):
        for _ in range(3):
            exe.run(feed={"x": np.ones((4, 6), "f")}, fetch_list=[loss])


def record():
    heads, events = {}, []
    for key in KEYS:
        out = subprocess.check_output(
            [sys.executable, __file__, str(key)], stderr=subprocess.DEVNULL
        ).decode()
        heads[str(key)] = [next(s for s in out.splitlines() if s.startswith(("Sorted by")))] + [
            " ".join(s.split()) for s in out.splitlines() if s.startswith("Event")
        ]
        if key is None:
            events = [[n, int(c)] for n, c in re.findall(r"^thread0::(\w+) +(\d+) ", out, re.M)]
    with open(os.path.join(FOLDER, "..", "data", "profile_1.8.5.json"), "w") as f:
        json.dump({"events": events, "heads": heads}, f, indent=0, sort_keys=True)
        f.write("\n")


if __name__ == "__main__":
    main(None if sys.argv[1] == "None" else sys.argv[1]) if len(sys.argv) > 1 else record()
