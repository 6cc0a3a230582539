"""Record the programs that 1.8.5's wrapped optimizers make, and three steps of some:
tests/data/wrapped_1.8.5.json.gz.

    python3.8 tests/tools/record_wrapped.py
"""

import gzip
import json
import os
import sys

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import numpy as np  # noqa: E402
import paddle.fluid as fluid  # noqa: E402
import record_golden  # noqa: E402
import wrapped_nets  # noqa: E402


def names(result):
    """The pairs that minimize returns, as names; None where it returns none."""
    return None if not result else [[p.name, g.name] for p, g in result[1]]


def dumped(program):
    found = record_golden.dump_program(program)
    del found["all_vars"]
    return found


def stepped(program, startup, loss):
    exe, scope, steps = fluid.Executor(fluid.CPUPlace()), fluid.global_scope(), []
    exe.run(startup)
    params = sorted(p.name for p in program.all_parameters())
    for name in params:
        value = wrapped_nets.initial(name, program.global_block().var(name).shape)
        scope.find_var(name).get_tensor().set(value, fluid.CPUPlace())
        slow = scope.find_var(name + "@SLOW")
        if slow is not None:
            slow.get_tensor().set(value, fluid.CPUPlace())
    for feed in wrapped_nets.FEEDS:
        value = exe.run(program, feed=feed, fetch_list=[loss])[0].tolist()
        steps.append(
            [value, {n: np.array(scope.find_var(n).get_tensor()).tolist() for n in params}]
        )
    return steps


def main():
    records = {}
    record_golden.count_control_variables()
    for net in wrapped_nets.NETS:
        fluid.framework._name_scope = fluid.framework.NameScope()
        program, startup = fluid.Program(), fluid.Program()
        with fluid.unique_name.guard(), fluid.program_guard(program, startup), fluid.scope_guard(
            fluid.Scope()
        ):
            loss, result = net(fluid)
            record = {"main": dumped(program), "startup": dumped(startup), "pairs": names(result)}
            if net.__name__ in wrapped_nets.RUN:
                record["steps"] = stepped(program, startup, loss)
        records[net.__name__] = record
        print(net.__name__, [len(b.ops) for b in program.blocks])
    with gzip.GzipFile(
        os.path.join(HERE, "..", "data", "wrapped_1.8.5.json.gz"), "wb", mtime=0
    ) as f:
        f.write(json.dumps(records, sort_keys=True, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
