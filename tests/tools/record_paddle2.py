"""Record what Paddle 2.6.2 computes in static mode for the cases of tests/paddle/cases.py.

    python3.8 tests/tools/record_paddle2.py [late]

Writes tests/data/paddle_2.6.2.npz, and paddle_2.6.2_late.npz of tests/paddle/late_cases.py: "CASE"
holds one array of float64, all results of the case one after the other; "shapes" a JSON text {case:
[shape, ...]}, "parameters" one {case: {name: shape}} of the layers' parameters.
"""

import json
import os
import re
import sys

import numpy as np
import paddle

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "paddle"))
import cases  # noqa: E402
import late_cases  # noqa: E402


# the vector in which a recurrent layer's weights lie for a GPU's kernel
FLAT = re.compile(r"(simple_rnn|lstm|gru)_\d+\.w_0$")


def run(expressions):
    main, startup = paddle.static.Program(), paddle.static.Program()
    shapes, parameters, failed, results = {}, {}, [], {}
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        data = cases.Data(paddle.static.data)
        scope = dict(data.names(), paddle=paddle, F=paddle.nn.functional, nn=paddle.nn)
        outs, seen = {}, set()
        for name, text in expressions.items():
            try:
                outs[name] = cases.flat(eval(text, scope))
            except Exception as exc:
                failed.append("%s: %s" % (name, (str(exc) or repr(exc)).strip().splitlines()[-1]))
            made = {
                p.name: list(p.shape)
                for p in main.all_parameters()
                if p.name not in seen and not FLAT.match(p.name)
            }
            seen.update(made)
            if made:
                parameters[name] = made
        exe = paddle.static.Executor(paddle.CPUPlace())
        exe.run(startup)
        for made in parameters.values():
            for name, shape in made.items():
                paddle.static.global_scope().find_var(name).get_tensor().set(
                    cases.parameter(name, shape), paddle.CPUPlace()
                )
        flat = [v for vs in outs.values() for v in vs]
        values = iter(exe.run(main, feed=data.feed, fetch_list=flat))
        for name, vs in outs.items():
            arrays = [np.asarray(next(values)) for _ in vs]
            shapes[name] = [list(a.shape) for a in arrays]
            results[name] = np.concatenate([a.ravel().astype("float64") for a in arrays])
    return results, shapes, parameters, failed


def record(name, tables):
    """Write what the cases of these tables give into tests/data/NAME."""
    results, shapes, parameters, failed = {}, {}, {}, []
    for table in tables:
        found = run(table)
        results.update(found[0])
        shapes.update(found[1])
        parameters.update(found[2])
        failed += found[3]
    path = os.path.join(HERE, "..", "data", name)
    arrays = {k: v.astype("float32") for k, v in results.items()}
    np.savez_compressed(
        path, shapes=json.dumps(shapes), parameters=json.dumps(parameters), **arrays
    )
    print("\n".join(failed))
    print(len(results), "cases,", os.path.getsize(path), "bytes")


def main():
    paddle.enable_static()
    only = sys.argv[1:]
    if "late" not in only:
        record("paddle_2.6.2.npz", (cases.FUNCTIONS, cases.TENSORS, cases.LAYERS, cases.RECURRENT))
    record("paddle_2.6.2_late.npz", (late_cases.LATE, late_cases.MORE, late_cases.METHODS))


if __name__ == "__main__":
    main()
