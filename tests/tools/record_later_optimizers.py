"""What Paddle 3.3.1's static NAdam, RAdam and Rprop append, and the parameter after each step;
tests/data/later_optimizers_3.3.1.json.

FLAGS_enable_pir_api=0 PYTHON_OF_3.3.1 tests/tools/record_later_optimizers.py

ASGD is not recorded: in programs of this kind its own Python raises a TypeError, and in others it
loses the gradients that it keeps.
"""

import inspect
import json
import os

os.environ["FLAGS_enable_pir_api"] = "0"  # Paddle 3 would build another kind of program
HERE = os.path.dirname(os.path.abspath(__file__))
CASES = {
    "NAdam": {"learning_rate": 0.05},
    "NAdam, decay": {"learning_rate": 0.1, "beta1": 0.8, "momentum_decay": 0.1, "weight_decay": 0.02},
    "RAdam": {"learning_rate": 0.05}, "RAdam, short": {"learning_rate": 0.05, "beta2": 0.8, "weight_decay": 0.02},
    "Rprop": {"learning_rate": 0.05}, "Rprop, bounds": {"learning_rate": 0.02, "learning_rate_range": (0.01, 0.03), "etas": (0.3, 1.9)},
}  # fmt: skip
STEPS = 8
X = [[0.1 * (3 * i + j) - 0.3 for j in range(3)] for i in range(4)]
Y = [[0.5 - i, 0.2 * i] for i in range(4)]


def net(paddle):
    """A product with w [3, 2], and the mean square of its distance from y."""
    x, y = paddle.static.data("x", [4, 3], "float32"), paddle.static.data("y", [4, 2], "float32")
    start = paddle.nn.initializer.Constant(0.5)
    out = paddle.static.nn.fc(
        x, 2, weight_attr=paddle.ParamAttr(name="w", initializer=start), bias_attr=False
    )
    return paddle.mean(paddle.nn.functional.square_error_cost(out, y))


def run(paddle, case, new_names):
    """The names and filled values of the state, the update op's slots and attributes, and w after
    each step.
    """
    import numpy as np

    kind = case.partition(",")[0]
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), new_names():
        loss = net(paddle)
        getattr(paddle.optimizer, kind)(**CASES[case]).minimize(loss)
    (op,) = [o for o in main.global_block().ops if o.type == kind.lower()]
    state = {
        o.output("Out")[0]: round(o.attr("value"), 6)
        for o in startup.global_block().ops
        if o.output("Out")[0].startswith("w_")
    }
    exe, seen = paddle.static.Executor(paddle.CPUPlace()), []
    exe.run(startup)
    for _ in range(STEPS):
        exe.run(
            main, feed={"x": np.array(X, "float32"), "y": np.array(Y, "float32")}, fetch_list=[loss]
        )
        seen.append(np.array(paddle.static.global_scope().find_var("w").get_tensor()).tolist())
    slots = {
        s: op.input(s)
        for s in op.input_names
        if op.input(s) and s not in ("learning_rate_range", "etas")
    }
    slots = {
        s: ["learning_rate"] if v[0].startswith("learning_rate_") else v for s, v in slots.items()
    }
    attrs = {
        n: round(op.attr(n), 12)
        for n in ("beta1", "beta2", "epsilon", "momentum_decay")
        if n in op.attr_names
    }
    return {
        "state": state,
        "inputs": slots,
        "outputs": {s: op.output(s) for s in op.output_names if op.output(s)},
        "attrs": attrs,
        "w": seen,
    }


if __name__ == "__main__":
    import paddle

    paddle.enable_static()
    found = {case: run(paddle, case, paddle.utils.unique_name.guard) for case in CASES}
    kinds = [c for c in CASES if "," not in c]
    signatures = {
        k: [
            [p.name, p.default]
            for p in list(
                inspect.signature(getattr(paddle.optimizer, k).__init__).parameters.values()
            )[1:]
        ]
        for k in kinds
    }
    with open(os.path.join(HERE, "..", "data", "later_optimizers_3.3.1.json"), "w") as file:
        json.dump({"cases": found, "signatures": signatures}, file)
