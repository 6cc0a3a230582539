"""Record what Paddle 1.8.5 makes of the nets in tests/backward/gradient_nets.py (runs on the real Paddle
1.8.5).

    python3.8 tests/tools/record_gradients.py

Writes tests/data/gradients_1.8.5.json.gz: for each trained net its main program's ops and what
three steps fetch; for each seed of a random net its ops and what gradients and minimize returned.
Seeds that 1.8.5 cannot build are left out.
"""

import gzip
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.append(os.path.join(HERE, "..", "backward"))  # behind Paddle, which may have that name

import numpy as np  # noqa: E402
import paddle.fluid as fluid  # noqa: E402

import gradient_nets as nets  # noqa: E402
from record_golden import dump_op  # noqa: E402

TARGET = os.path.join(HERE, "..", "data", "gradients_1.8.5.json.gz")
SEEDS = range(140)


def fresh(build):
    fluid.framework._name_scope = fluid.framework.NameScope()
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        return main, startup, build(fluid)


def trained(build):
    main, startup, fetched = fresh(build)
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.core.Scope()):
        exe.run(startup)
        for p in main.all_parameters():
            fluid.global_scope().find_var(p.name).get_tensor().set(
                nets.values(p.name, p.shape), fluid.CPUPlace()
            )
        steps = [exe.run(main, feed=nets.feeds(main, k), fetch_list=fetched) for k in range(3)]
    return {
        "ops": [dump_op(op) for op in main.global_block().ops],
        "steps": [[float(np.asarray(v).ravel()[0]) for v in step] for step in steps],
    }


def randomly(seed):
    try:
        main, _, net = fresh(lambda f: nets.RandomNet(f, seed))
    except Exception as e:
        print("seed", seed, str(e).strip().splitlines()[-1])
        return None
    return {"ops": nets.plain(main), "log": net.log}


def main():
    table = {
        "trained": {n: trained(b) for n, b in nets.TRAINED.items()},
        "random": {s: r for s, r in ((s, randomly(s)) for s in SEEDS) if r},
    }
    with open(TARGET, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as f:
        f.write(json.dumps(table, sort_keys=True, separators=(",", ":")).encode())
    for name, r in table["trained"].items():
        print(name, len(r["ops"]), "ops", r["steps"])
    print(len(table["random"]), "random nets,", os.path.getsize(TARGET), "bytes")


if __name__ == "__main__":
    main()
