"""Record what the real Paddle 1.8.5 makes of tests/lower/sparse_cases.py: ops on sparse rows, and sparse
training.

    python3.8 tests/tools/record_sparse.py

Writes tests/data/sparse_1.8.5.json.gz.
"""

import gzip
import json
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, ROOT)

import numpy as np  # noqa: E402
import paddle.fluid as fluid  # noqa: E402

from tests.lower import sparse_cases as cases  # noqa: E402

SPARSE = fluid.core.VarDesc.VarType.SELECTED_ROWS
CPU = fluid.CPUPlace()


def store(block, scope, name, value):
    if isinstance(value, cases.Rows):
        rows = scope.var(name).get_selected_rows()
        rows.set_height(cases.HEIGHT)
        rows.set_rows(value.rows)
        rows.get_tensor().set(value.values, CPU)
        return block.create_var(
            name=name,
            type=SPARSE,
            shape=[cases.HEIGHT, cases.WIDTH],
            dtype="float32",
            persistable=True,
        )
    scope.var(name).get_tensor().set(value, CPU)
    return block.create_var(name=name, shape=value.shape, dtype=str(value.dtype), persistable=True)


def plain(scope, var):
    found = scope.find_var(var.name)
    if var.type != SPARSE:
        return np.array(found.get_tensor()).tolist()
    rows = found.get_selected_rows()
    return {
        "rows": list(rows.rows()),
        "values": np.array(rows.get_tensor()).tolist(),
        "height": rows.height(),
    }


def run_op(op, inputs, attrs, outputs):
    main, scope = fluid.Program(), fluid.Scope()
    block = main.global_block()
    ins = {}
    for slot, value in inputs.items():
        many = value if isinstance(value, list) else [value]
        ins[slot] = [store(block, scope, "%s_%d" % (slot, i), v) for i, v in enumerate(many)]
    outs = {}
    for slot, what in outputs.items():
        if what in ("sparse", "dense"):
            kind = {"type": SPARSE} if what == "sparse" else {}
            outs[slot] = [
                block.create_var(name="out_" + slot, dtype="float32", persistable=True, **kind)
            ]
        else:
            outs[slot] = ins[what]
    block.append_op(type=op, inputs=ins, outputs=outs, attrs=attrs)
    with fluid.scope_guard(scope):
        fluid.Executor(CPU).run(main)
        return {slot: plain(scope, names[0]) for slot, names in outs.items()}


def train(case):
    main, startup = cases.build(fluid, *case)
    scope, exe, after = fluid.Scope(), fluid.Executor(CPU), []
    lists = main.list_vars()
    tensors = sorted((v for v in lists if v.persistable), key=lambda v: v.name)
    with fluid.scope_guard(scope):
        exe.run(startup)
        for feed in cases.feeds():
            exe.run(main, feed=feed)
            after.append(
                {
                    v.name: np.array(scope.find_var(v.name).get_tensor()).ravel().tolist()
                    for v in tensors
                }
            )
    sparse = sorted(v.name for v in main.list_vars() if v.type == SPARSE)
    return {
        "ops": [op.type for op in main.global_block().ops],
        "sparse": sparse,
        "after": after[1::2],
    }


def short(digits):
    """All digits that a float32 has"""
    return float("%.9g" % float(digits))


def refused(case):
    try:
        run_op(*case)
    except Exception as e:
        return type(e).__name__
    return None


def main():
    result = {
        "ops": {name: run_op(*case) for name, case in cases.OPS.items()},
        "refused": {name: refused(case) for name, case in cases.REFUSED.items()},
        "training": {"/".join(map(str, case)): train(case) for case in cases.TRAINING},
    }
    text = json.dumps(json.loads(json.dumps(result), parse_float=short), sort_keys=True)
    with open(os.path.join(ROOT, "tests", "data", "sparse_1.8.5.json.gz"), "wb") as f:
        f.write(gzip.compress(text.encode()))


if __name__ == "__main__":
    main()
