"""Record what the real Paddle 1.8.5 makes of tests/optimizers/optimizer_cases.py: programs, refused calls,
parameters after steps.

    python3.8 tests/tools/record_optimizers.py

Writes tests/data/optimizer_programs_1.8.5.json and tests/data/optimizer_signatures_1.8.5.json.
"""

import inspect
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "optimizers")]

import numpy as np  # noqa: E402
import optimizer_cases  # noqa: E402
import paddle.fluid as fluid  # noqa: E402
from record_golden import count_control_variables, dump_program  # noqa: E402

DATA = os.path.join(os.path.dirname(HERE), "data")
LEFT_OUT = {
    "use_mkldnn",
    "use_cudnn",
    "use_quantizer",
    "mkldnn_data_type",
    "op_device",
    "x_data_format",
    "y_data_format",
    "force_fp32_output",
    "scale_x",
    "scale_y",
    "scale_out",
    "skip_eager_deletion_vars",
}


def compact(program):
    """What the tests compare: ops, and the persistable variables"""
    dumped = dump_program(program)
    blocks = []
    for b in dumped["blocks"]:
        ops = [
            [
                o["type"],
                o["inputs"],
                o["outputs"],
                {k: v for k, v in o["attrs"].items() if k not in LEFT_OUT},
            ]
            for o in b["ops"]
        ]
        kept = [v for v in b["vars"] if v["persistable"] and v["type"] == "LOD_TENSOR"]
        blocks.append(
            {
                "ops": ops,
                "vars": {v["name"]: [v["shape"], v["dtype"], v["stop_gradient"]] for v in kept},
            }
        )
    return blocks


def parameters_after(main, startup, steps=3):
    """{name: values} of the persistable float variables after each step"""
    scope, exe, result = fluid.Scope(), fluid.Executor(fluid.CPUPlace()), []
    names = sorted(
        v.name
        for v in main.global_block().vars.values()
        if v.persistable and v.type == fluid.core.VarDesc.VarType.LOD_TENSOR
    )
    with fluid.scope_guard(scope):
        exe.run(startup)
        for feed in optimizer_cases.feeds(main, steps):
            exe.run(main, feed=feed)
            values = {n: np.array(scope.find_var(n).get_tensor()) for n in names}
            result.append({n: v.ravel().tolist() for n, v in values.items()})
    return result


def cases():
    result = {}
    for name, build in optimizer_cases.CASES.items():
        with optimizer_cases.fresh(fluid) as (main, startup):
            programs = dict(main=main, startup=startup, **(build(fluid) or {}))
        result[name] = {"programs": {k: compact(p) for k, p in programs.items()}}
        try:
            result[name]["after"] = parameters_after(main, startup)
        except Exception as e:
            result[name]["fails"] = type(e).__name__
    return result


def errors():
    result = {}
    for name, call in optimizer_cases.ERRORS.items():
        with optimizer_cases.fresh(fluid):
            try:
                call(fluid)
            except Exception as e:
                result[name] = [
                    type(e).__name__,
                    str(e).strip().splitlines()[0] if str(e).strip() else "",
                ]
            else:
                result[name] = None
    return result


def averages():
    """parameters before, within and after apply"""
    result = {}
    for name in ("model_average", "moving_average", "moving_average_thres"):
        with optimizer_cases.fresh(fluid) as (main, startup):
            average = optimizer_cases.AVERAGES[name](fluid)
        result[name] = optimizer_cases.applied(fluid, average, main, startup)
    return result


def signatures():
    result = {}
    for module in (fluid.optimizer, fluid.clip, fluid.regularizer):
        for name in module.__all__ + (
            ["ClipByValue", "ClipByNorm", "ClipByGlobalNorm"] if module is fluid.clip else []
        ):
            made = getattr(module, name)
            short = module.__name__.rsplit(".", 1)[-1]
            result["%s.%s" % (short, name)] = str(
                inspect.signature(made.__init__ if inspect.isclass(made) else made)
            )
    for name in ("minimize", "backward", "apply_gradients", "apply_optimize"):
        result["optimizer.SGD." + name] = str(inspect.signature(getattr(fluid.optimizer.SGD, name)))
    for name in ("apply", "restore"):
        for owner in ("ModelAverage", "ExponentialMovingAverage"):
            result["optimizer.%s.%s" % (owner, name)] = str(
                inspect.signature(getattr(getattr(fluid.optimizer, owner), name))
            )
    return result


def write(name, value):
    with open(os.path.join(DATA, name), "w") as f:
        json.dump(value, f, separators=(",", ":"), sort_keys=True)


if __name__ == "__main__":
    count_control_variables()
    write(
        "optimizer_programs_1.8.5.json",
        {"cases": cases(), "errors": errors(), "averages": averages()},
    )
    write("optimizer_signatures_1.8.5.json", signatures())
