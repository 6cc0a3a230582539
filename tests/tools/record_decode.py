"""Record what the real Paddle 1.8.5 makes of networks that decode: programs, what they fetch, three
steps of SGD.

    python3.8 tests/tools/record_decode.py

Writes tests/data/decode_1.8.5.json.gz: for each net of decode_nets.py the program (of minimize,
too, where it is trained), and for each feed what is fetched with its LoD; of a trained net the
loss, gradients and parameters of each step.
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

import decode_nets  # noqa: E402
from record_golden import dump_program, without_all_vars  # noqa: E402

TARGET = os.path.join(HERE, "..", "data", "decode_1.8.5.json.gz")


def plain(value):
    return {
        "values": np.array(value).tolist(),
        "shape": list(np.array(value).shape),
        "lod": value.lod(),
    }


def run(net, found):
    name = net.__name__
    fluid.framework._name_scope = fluid.framework.NameScope()
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(
        fluid.Scope()
    ):
        fetches, pairs = net(fluid), []
        found["forward"] = without_all_vars(dump_program(main))
        if name in decode_nets.TRAINED:
            _, pairs = fluid.optimizer.SGD(0.1).minimize(fetches)
            found["main"] = without_all_vars(dump_program(main))
            fetches = [fetches] + [g for _, g in pairs]
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        for p in main.global_block().all_parameters():
            fluid.global_scope().find_var(p.name).get_tensor().set(
                decode_nets.initial(p.name, p.shape), fluid.CPUPlace()
            )
        for feed in decode_nets.FEEDS[name]:
            given = {k: decode_nets.fed(fluid, v) for k, v in feed.items()}
            found["steps"].append(
                [
                    plain(v)
                    for v in exe.run(main, feed=given, fetch_list=fetches, return_numpy=False)
                ]
            )


def main():
    records = {}
    for net in decode_nets.NETS:
        found = {"steps": []}
        try:
            run(net, found)
        except Exception as e:
            found["raised"] = "%s: %s" % (type(e).__name__, str(e)[-400:])
        records[net.__name__] = found
        print(
            "%-24s %d steps %s"
            % (net.__name__, len(found["steps"]), found.get("raised", "")[:600]),
            flush=True,
        )
    with open(TARGET, "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as z:
        z.write(json.dumps(records, sort_keys=True, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
