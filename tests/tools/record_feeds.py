"""Records what Paddle 1.8.5 makes of feeds that are other than a variable of layers.data declares
(runs on 1.8.5).

    python3.8 tests/tools/record_feeds.py

Writes tests/data/feeds_1.8.5.json: {net of feed_cases.py: {what is fed: [shape, dtype, first
numbers], or null where 1.8.5 refuses}}.
"""

import json
import os

import numpy as np
import paddle.fluid as fluid
from feed_cases import FED, build, key

TARGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "feeds_1.8.5.json")


def recorded(name):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(
        fluid.Scope()
    ):
        out, found = build(fluid, name), {}
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        for value in FED[name]:
            try:
                got = np.array(
                    exe.run(main, feed={"x": value}, fetch_list=[out], return_numpy=False)[0]
                )
                found[key(value)] = [
                    list(got.shape),
                    str(got.dtype),
                    [round(float(v), 4) for v in got.ravel()[:6]],
                ]
            except (fluid.core.EnforceNotMet, RuntimeError, ValueError):
                found[key(value)] = None
        return found


if __name__ == "__main__":
    with open(TARGET, "w") as f:
        json.dump(
            {name: recorded(name) for name in FED},
            f,
            indent=None,
            separators=(",", ":"),
            sort_keys=True,
        )
        f.write("\n")
