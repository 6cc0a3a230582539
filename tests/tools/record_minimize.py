"""Record what the real Paddle 1.8.5 makes of scripts that call minimize within a block: programs,
and four steps of each.

    python3.8 tests/tools/record_minimize.py

Writes tests/data/minimize_1.8.5.json: for each net of minimize_nets.py the blocks (parent, forward
block, ops with their names by slot, sorted, since 1.8.5 puts what a gradient block reads in the
order of a set), what is fetched, and the parameters after each step.
"""

import json
import os
import sys

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import numpy as np  # noqa: E402
import paddle.fluid as fluid  # noqa: E402

import minimize_nets  # noqa: E402


def blocks(program):
    """As the recording has them; also of ours."""
    return [
        [b.parent_idx, b.forward_block_idx, [named(op) for op in b.ops]] for b in program.blocks
    ]


def named(op):
    ins = {s: sorted(op.input(s)) for s in op.input_names if op.input(s)}
    return [op.type, ins, {s: sorted(op.output(s)) for s in op.output_names if op.output(s)}]


def main():
    records = {}
    for net in minimize_nets.NETS:
        program, startup = fluid.Program(), fluid.Program()
        with fluid.unique_name.guard(), fluid.program_guard(program, startup), fluid.scope_guard(
            fluid.Scope()
        ):
            out = net(fluid)
            exe, steps = fluid.Executor(fluid.CPUPlace()), []
            exe.run(startup)
            params = program.all_parameters()
            for p in params:
                fluid.global_scope().find_var(p.name).get_tensor().set(
                    minimize_nets.initial(p.name, p.shape), fluid.CPUPlace()
                )
            for feed in minimize_nets.FEEDS:
                value = exe.run(program, feed=feed, fetch_list=[out])[0].tolist()
                after = {
                    p.name: np.array(fluid.global_scope().find_var(p.name).get_tensor()).tolist()
                    for p in params
                }
                steps.append([value, after])
        records[net.__name__] = {"blocks": blocks(program), "steps": steps}
    with open(os.path.join(HERE, "..", "data", "minimize_1.8.5.json"), "w") as f:
        json.dump(records, f, sort_keys=True, separators=(",", ":"))


if __name__ == "__main__":
    main()
