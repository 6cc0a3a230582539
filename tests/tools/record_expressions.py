"""Record what index and operator expressions on variables append in the real Paddle 1.8.5, and what
they give.

    python3.8 tests/tools/record_expressions.py

Writes tests/data/expressions_1.8.5.json.gz: {expression: {"ops", "vars", "value" or "run": error}
or {"error": [class, text]} or {"python": text}}. An expression whose result is not a variable has its
repr under "python". Shapes and dtypes are those declared; a value is [shape, flat list].
"""

import gzip
import json
import os
import sys
import warnings

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "layers"))

import paddle.fluid as fluid  # noqa: E402

import expressions  # noqa: E402
from record_layers import attributes, defaults_of, variable  # noqa: E402


def text_of(exc):
    lines = [line for line in str(exc).strip().split("\n") if line.strip()]
    return [type(exc).__name__, lines[-1].strip()[:160] if lines else ""]


def record(expression):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        scope = expressions.variables(fluid)
        block = main.global_block()
        before, known = len(block.ops), set(block.vars)
        try:
            result = eval(expression, scope)
        except Exception as exc:
            return {"error": text_of(exc)}
    found = {
        "ops": [
            [
                op.type,
                {k: op.input(k) for k in op.input_names if op.input(k)},
                {k: op.output(k) for k in op.output_names if op.output(k)},
                attributes(op, defaults_of(op.type)),
            ]
            for op in block.ops[before:]
        ],
        "vars": {n: variable(v) for n, v in block.vars.items() if n not in known},
    }
    if not isinstance(result, fluid.framework.Variable):
        return dict(found, python=repr(result))
    found["result"] = result.name
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        fluid.global_scope().find_var("w").get_tensor().set(
            np.arange(6, dtype="float32").reshape(3, 2), fluid.CPUPlace()
        )
        feed = {n: v for n, v in expressions.feed().items() if n in block.vars}
        try:
            (value,) = exe.run(main, feed=feed, fetch_list=[result.name])
        except Exception as exc:
            return dict(found, run=text_of(exc))
    value = np.asarray(value)
    return dict(found, value=[list(value.shape), str(value.dtype), value.ravel().tolist()])


def main():
    warnings.simplefilter("ignore")
    names = expressions.listed(expressions.INDEX) + expressions.listed(expressions.OPERATOR)
    found = {n: record(n) for n in names}
    for name, entry in found.items():
        if "error" in entry or "run" in entry or "python" in entry:
            print(
                "%-30s %s" % (name, entry.get("error") or entry.get("run") or entry.get("python"))
            )
    path = os.path.join(HERE, "..", "data", "expressions_1.8.5.json.gz")
    with gzip.GzipFile(path, "wb", mtime=0) as f:
        f.write(json.dumps(found, separators=(",", ":"), sort_keys=True).encode())
    print(len(found), "expressions,", os.path.getsize(path), "bytes")


if __name__ == "__main__":
    main()
