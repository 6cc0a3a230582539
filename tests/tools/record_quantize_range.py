"""Record steps of fake_quantize_range_abs_max in the real Paddle 1.8.5: python3.8
tests/tools/record_quantize_range.py

Writes tests/data/quantize_range_1.8.5.json: {"x": what is fed in each step, "scale": OutScale after
it, "scales": OutScales, "out": Out}.
"""

import json
import os

import numpy as np
import paddle.fluid as fluid

HERE = os.path.dirname(os.path.abspath(__file__))
WINDOW = 3
SIZES = [0.5, 2.0, 1.0, 0.25, 0.75, 0.5, 3.0, 1.0, 1.0, 0.125, 0.25]


def build(fluid):
    """a quantiser with a window of three steps, and its counter, as 1.8.5's pass writes them; ->
    main, startup, fetches
    """
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x = fluid.data("x", [4], "float32")
        state = [
            fluid.layers.create_global_var([n], v, d, True, name=k)
            for k, n, v, d in (
                ("scale", 1, 0.001, "float32"),
                ("scales", WINDOW, 0.0, "float32"),
                ("step", 1, 0, "int64"),
            )
        ]
        block = main.global_block()
        out = block.create_var(name="out", dtype="float32", shape=[4])
        block.append_op(
            type="fake_quantize_range_abs_max",
            inputs={"X": x, "InScale": state[0], "Iter": state[2]},
            outputs={"Out": out, "OutScale": state[0], "OutScales": state[1]},
            attrs={"window_size": WINDOW, "bit_length": 8, "is_test": False},
        )
        fluid.layers.increment(state[2], 1)
    return main, startup, [out, state[0], state[1]]


def fed():
    return [np.array([s, -s / 2, s / 3, 0], "float32") for s in SIZES]


def main():
    program, startup, fetches = build(fluid)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    found = {"x": [x.tolist() for x in fed()], "out": [], "scale": [], "scales": []}
    for x in fed():
        values = exe.run(program, feed={"x": x}, fetch_list=fetches)
        for name, value in zip(("out", "scale", "scales"), values):
            found[name].append(value.tolist())
    with open(os.path.join(HERE, "..", "data", "quantize_range_1.8.5.json"), "w") as f:
        json.dump(found, f)
        f.write("\n")


if __name__ == "__main__":
    main()
