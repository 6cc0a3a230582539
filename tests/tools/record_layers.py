"""Record what the layer functions of the real Paddle 1.8.5 append, which arguments they refuse, and
their signatures.

    python3.8 tests/tools/record_layers.py [WORD...]     only print the cases whose name has one of
    the words

Writes tests/data/layers_1.8.5.json: {"cases": {name: {"result", "main", "startup"}}, "errors":
{expression: [exception, text]}, "dtypes": {name: [kinds taken at each data variable]}},
and tests/data/signatures_1.8.5.json: {"layers.fc": [[name, default], ...]}. A block is {parent,
ops: [[type, inputs, outputs, attrs]], vars: {name: [dtype, shape, flags]}}; attributes that equal
the op's default are left out.
"""

import contextlib
import inspect
import io
import json
import os
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "layers"))

import paddle.fluid as fluid  # noqa: E402
from paddle.fluid import core  # noqa: E402

import cases  # noqa: E402

SKIP = (
    "op_callstack",
    "op_device",
    "op_role_var",
    "use_mkldnn",
    "use_cudnn",
    "mkldnn_data_type",
    "use_quantizer",
    "is_mkldnn",
)
DATA = os.path.join(HERE, "..", "data")
NAMES = {
    int(v): k
    for k, v in (
        ("bool", core.VarDesc.VarType.BOOL),
        ("int32", core.VarDesc.VarType.INT32),
        ("int64", core.VarDesc.VarType.INT64),
        ("uint8", core.VarDesc.VarType.UINT8),
        ("int8", core.VarDesc.VarType.INT8),
        ("int16", core.VarDesc.VarType.INT16),
        ("float16", core.VarDesc.VarType.FP16),
        ("float32", core.VarDesc.VarType.FP32),
        ("float64", core.VarDesc.VarType.FP64),
    )
}


def clean(v):
    if isinstance(v, (list, tuple)):
        return [clean(x) for x in v]
    return v if isinstance(v, (bool, int, float, str)) or v is None else int(v)


def attributes(op, defaults):
    out = {}
    for n in sorted(op.attr_names):
        if (
            n in SKIP
            or (n == "op_namescope" and op.attr(n) == "/")
            or (n == "op_role" and int(op.attr(n)) == 0)
        ):
            continue
        kind = op.desc.attr_type(n)
        value = (
            {"block": op._block_attr_id(n)}
            if kind == core.AttrType.BLOCK
            else clean(op.desc.attr(n))
        )
        if not (n in defaults and value == defaults[n]):
            out[n] = value
    return out


def variable(v):
    if v.type != core.VarDesc.VarType.LOD_TENSOR:
        return [str(v.type).split(".")[-1], None, []]
    flags = [k for k in ("persistable", "stop_gradient", "is_data") if getattr(v, k, False)]
    if isinstance(v, fluid.framework.Parameter):
        flags += ["parameter"] + (["frozen"] if not v.trainable else [])
        flags += ["lr=%g" % v.optimize_attr["learning_rate"], "average=%s" % v.do_model_average]
    if v.lod_level:
        flags.append("lod=%d" % v.lod_level)
    # a layer may take a kind for a dtype
    return [NAMES.get(int(v.dtype), str(v.dtype)), list(v.shape), flags]


def defaults_of(kind):
    """the op's attribute defaults, as the binary has them"""
    return {n: clean(v) for n, v in core.get_op_attrs_default_value(kind.encode()).items()}


def dump(program):
    return [
        {
            "parent": b.parent_idx,
            "ops": [
                [
                    op.type,
                    {k: op.input(k) for k in op.input_names if op.input(k)},
                    {k: op.output(k) for k in op.output_names if op.output(k)},
                    attributes(op, defaults_of(op.type)),
                ]
                for op in b.ops
            ],
            "vars": {n: variable(v) for n, v in b.vars.items()},
        }
        for b in program.blocks
    ]


@contextlib.contextmanager
def fresh(name):
    fluid.framework._name_scope = fluid.framework.NameScope()
    main, startup = fluid.Program(), fluid.Program()
    if name.startswith("seed:"):
        main.random_seed = startup.random_seed = 90
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        yield main, startup


def record(name, expression):
    with fresh(name) as (main, startup):
        result = cases.results(eval(expression, cases.namespace(fluid)))
        return {"result": result, "main": dump(main), "startup": dump(startup)}


def refused(expression):
    with fresh("") as _:
        try:
            eval(expression, cases.namespace(fluid))
        except Exception as exc:
            return [
                c.__name__
                for c in type(exc).__mro__
                if c.__name__
                in (
                    "TypeError",
                    "ValueError",
                    "AssertionError",
                    "EnforceNotMet",
                    "AttributeError",
                    "IndexError",
                    "KeyError",
                    "NotImplementedError",
                )
            ][:1] or [type(exc).__name__], str(exc).strip().split("\n")[-1][:200]
    return None


def dtypes(name):
    """for each data variable of a case, the kinds (see cases.namespace) that 1.8.5 does not refuse
    with a TypeError
    """
    taken = []
    for _, expression in cases.dtype_variants(name):
        taken.append("")
        for kind in ("f", "d", "h", "i", "i32", "b"):
            with fresh(""):
                try:
                    eval(expression.replace("%s(", kind + "(", 1), cases.namespace(fluid))
                except TypeError:
                    continue
                except Exception:
                    pass
                taken[-1] += {"i32": "n"}.get(kind, kind)
    return taken


def default(v):
    if v is inspect.Parameter.empty:
        return "<required>"
    return v if isinstance(v, (bool, int, float, str, list)) or v is None else str(v)


def signatures():
    found = {}
    modules = {
        "layers": fluid.layers,
        "nets": fluid.nets,
        "input": fluid.input,
        "initializer": fluid.initializer,
        "param_attr": fluid.param_attr,
    }
    for prefix, module in modules.items():
        for n in module.__all__:
            o = getattr(module, n)
            params = inspect.signature(o.__init__ if inspect.isclass(o) else o).parameters.values()
            found["%s.%s" % (prefix, n)] = [
                [p.name, default(p.default)]
                for p in params
                if p.name != "self" and p.kind == p.POSITIONAL_OR_KEYWORD
            ]
    found["data"] = [
        [p.name, default(p.default)] for p in inspect.signature(fluid.data).parameters.values()
    ]
    return found


def main(words):
    warnings.simplefilter("ignore")
    out, errors = {}, {}
    for name, expression in cases.CASES.items():
        if words and not any(w in name for w in words):
            continue
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                out[name] = record(name, expression)
        except Exception as exc:
            print(
                "FAILED",
                name,
                expression,
                type(exc).__name__,
                str(exc).strip().split("\n")[-1][:300],
            )
    for expression in cases.ERRORS:
        if not words or any(w in expression for w in words):
            found = refused(expression)
            if found:
                errors[expression] = found
    if words:
        return show(out, errors)
    with contextlib.redirect_stderr(io.StringIO()):
        accepted = {name: dtypes(name) for name in cases.CASES if cases.dtype_variants(name)}
    write("layers_1.8.5.json", {"cases": out, "errors": errors, "dtypes": accepted})
    write("signatures_1.8.5.json", signatures())
    print(
        len(out),
        "cases",
        len(errors),
        "errors; accepted:",
        [e for e in cases.ERRORS if e not in errors],
    )


def show(out, errors):
    for name, c in out.items():
        print("==", name, "::", cases.CASES[name], "->", c["result"])
        for which in ("main", "startup"):
            for k, b in enumerate(c[which]):
                for op in b["ops"]:
                    print(
                        "   ",
                        which[0],
                        k,
                        op[0],
                        json.dumps(op[1]),
                        "->",
                        json.dumps(op[2]),
                        json.dumps(op[3]),
                    )
    for e, (kind, message) in errors.items():
        print(kind[0], e, "::", message)


def write(name, value):
    with open(os.path.join(DATA, name), "w") as f:
        if "cases" in value:
            f.write(
                '{"cases": {\n'
                + ",\n".join(
                    "%s: %s" % (json.dumps(k), json.dumps(v, separators=(",", ":")))
                    for k, v in value["cases"].items()
                )
            )
            for part in ("errors", "dtypes"):
                f.write(
                    '},\n"%s": {\n' % part
                    + ",\n".join(
                        "%s: %s" % (json.dumps(k), json.dumps(v)) for k, v in value[part].items()
                    )
                )
            f.write("}}\n")
        else:
            f.write(
                "{\n"
                + ",\n".join(
                    "%s: %s" % (json.dumps(k), json.dumps(v)) for k, v in sorted(value.items())
                )
                + "\n}\n"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
