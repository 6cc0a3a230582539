"""Record what Paddle 3.3.1 computes in static mode for the cases of tests/paddle/newer_cases.py;
run with Paddle 3.3.1.

Writes tests/data/paddle_3.3.1.npz as record_paddle2.py does, and "signatures": {name: [[argument,
default as text, "" without one]]}.
"""

import inspect
import json
import os
import re
import sys

import numpy as np
import paddle

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "paddle"))
import cases  # noqa: E402
import newer_cases  # noqa: E402


def value(expression):
    """The arrays of one case, of a program of its own: Paddle 3 does not fetch all of a program
    with asserts.
    """
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        data = cases.Data(paddle.static.data)
        outs = cases.flat(
            eval(
                expression, dict(data.names(), paddle=paddle, F=paddle.nn.functional, nn=paddle.nn)
            )
        )
        exe = paddle.static.Executor(paddle.CPUPlace())
        exe.run(startup)
        return [np.asarray(v) for v in exe.run(main, feed=data.feed, fetch_list=outs)]


def signature(name):
    """The arguments of a dotted name below F, nn or paddle."""
    owner, _, last = name.rpartition(".")
    found = getattr({"F": paddle.nn.functional, "nn": paddle.nn, "paddle": paddle}[owner], last)
    parameters = inspect.signature(found).parameters.values()
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [[p.name, "" if p.default is p.empty else repr(p.default)] for p in plain]


def main():
    paddle.enable_static()
    results, shapes = {}, {}
    for name, text in newer_cases.NEWER.items():
        try:
            arrays = value(text)
        except Exception as exc:
            print(name, (str(exc) or repr(exc)).strip()[-300:])
            continue
        shapes[name] = [list(a.shape) for a in arrays]
        results[name] = np.concatenate([a.ravel().astype("float64") for a in arrays]).astype(
            "float32"
        )
    called = sorted(
        {n for t in newer_cases.NEWER.values() for n in re.findall(r"\b(?:F|nn|paddle)\.\w+", t)}
    )
    path = os.path.join(HERE, "..", "data", "paddle_3.3.1.npz")
    signatures = {
        n: signature(n)
        for n in called
        if callable(getattr(paddle, n.rpartition(".")[2], 1)) or not n.startswith("paddle")
    }
    np.savez_compressed(
        path, shapes=json.dumps(shapes), signatures=json.dumps(signatures), **results
    )
    print(len(results), "cases,", os.path.getsize(path), "bytes")


if __name__ == "__main__":
    main()
