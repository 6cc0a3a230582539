"""Record what quantisation of Paddle 1.8.5 makes of small nets: tests/data/slim_1.8.5.json.gz.

    python3.8 tests/tools/record_slim.py

1.8.5 takes the nodes of a graph in the order of their addresses, so that numbered names differ from
run to run; here they are taken in the order of their numbers.
"""

import gzip
import json
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)


def in_order(kind, name):
    """have a method of IrGraph give its nodes by number"""
    method = getattr(kind, name)
    setattr(kind, name, lambda self: sorted(method(self), key=lambda n: n.id()))


def listed(array):
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "values": array.reshape(-1).tolist(),
    }


if __name__ == "__main__":
    import paddle.fluid as fluid
    import record_golden
    import slim_nets

    record_golden.count_control_variables()
    for name in ("all_op_nodes", "all_var_nodes", "all_persistable_nodes"):
        in_order(fluid.framework.IrGraph, name)
    found = {}
    for name, case in sorted(slim_nets.CASES.items()):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        fluid.framework._name_scope = fluid.framework.NameScope()
        with fluid.unique_name.guard():
            said = case(fluid)
        programs = {k: record_golden.dump_program(p) for k, p in said["programs"].items()}
        for p in programs.values():
            del p["all_vars"]
        found[name] = {
            "programs": programs,
            "arrays": {k: listed(a) for k, a in said["arrays"].items()},
        }
    path = os.path.join(FOLDER, "..", "data", "slim_1.8.5.json.gz")
    with gzip.GzipFile(path, "wb", mtime=0) as f:
        f.write(json.dumps(found, sort_keys=True).encode())
