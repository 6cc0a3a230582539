"""Record what the real Paddle 1.8.5 makes of networks with control flow: programs, losses,
gradients, three steps of SGD.

    python3.8 tests/tools/record_control.py [control | rank | state]

Writes tests/data/control_1.8.5.json.gz: for each net of control_nets.py (or rank_nets.py) the
forward program, that of minimize, and for each of its feeds, one step after another, the loss, the
gradients, and the parameters (and other state) after the step. A net that 1.8.5 cannot build or run
has the text of what it raised instead.
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

import control_nets  # noqa: E402
import rank_nets  # noqa: E402
import state_nets  # noqa: E402
from record_golden import dump_program, without_all_vars  # noqa: E402

FROM = {"control": control_nets, "rank": rank_nets, "state": state_nets}


def run(nets, net, found):
    fluid.framework._name_scope = fluid.framework.NameScope()
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(
        fluid.Scope()
    ):
        loss = net(fluid)
        found["forward"] = without_all_vars(dump_program(main))
        _, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
        pairs = [(p, g) for p, g in pairs if g is not None]
        found["main"] = without_all_vars(dump_program(main))
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        names = [p.name for p, _ in pairs] + [
            n for n in getattr(nets, "KEPT", ()) if main.global_block().has_var(n)
        ]
        for p, _ in pairs:
            fluid.global_scope().find_var(p.name).get_tensor().set(
                control_nets.initial(p.name, p.shape), fluid.CPUPlace()
            )
        for feed in nets.FEEDS[net.__name__]:
            given = {k: control_nets.fed(fluid, v) for k, v in feed.items()}
            values = exe.run(main, feed=given, fetch_list=[loss] + [g for _, g in pairs])
            after = {
                n: np.array(fluid.global_scope().find_var(n).get_tensor()).tolist() for n in names
            }
            found["steps"].append(
                {
                    "loss": values[0].tolist(),
                    "after": after,
                    "grads": {p.name: v.tolist() for (p, _), v in zip(pairs, values[1:])},
                }
            )


def main(name="control"):
    records, nets = {}, FROM[name]
    for net in nets.NETS:
        found = {"steps": []}
        try:
            run(nets, net, found)
        except Exception as e:
            found["raised"] = "%s: %s" % (type(e).__name__, str(e)[-400:])
        records[net.__name__] = found
        print(
            "%-24s %d steps %s"
            % (net.__name__, len(found["steps"]), found.get("raised", "")[:300]),
            flush=True,
        )
    with open(os.path.join(HERE, "..", "data", name + "_1.8.5.json.gz"), "wb") as f, gzip.GzipFile(
        "", "wb", 9, f, mtime=0
    ) as z:
        z.write(json.dumps(records, sort_keys=True, separators=(",", ":")).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
