"""Record learning rates of Paddle 2.6.2's schedulers, and parameters that optimizers train:
tests/data/rates_2.6.2.json.

    python3.8 tests/tools/record_rates.py
"""

import json
import os
import sys

import numpy as np
import paddle

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "paddle"))
import rate_cases  # noqa: E402


def adamw():
    """weight and bias after three steps, the bias without decay"""
    paddle.enable_static()
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        x = paddle.static.data("x", [2, 2])
        weight = paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(0.5))
        bias = paddle.ParamAttr(name="b", initializer=paddle.nn.initializer.Constant(0.25))
        loss = paddle.mean(
            paddle.square(paddle.static.nn.fc(x, 1, weight_attr=weight, bias_attr=bias))
        )
        rate = paddle.optimizer.lr.ExponentialDecay(0.1, 0.5)
        paddle.optimizer.AdamW(
            rate, weight_decay=0.2, apply_decay_param_fun=lambda n: n == "w"
        ).minimize(loss)
        exe = paddle.static.Executor()
        exe.run(startup)
        found = []
        for _ in range(3):
            exe.run(main, feed={"x": np.array([[1, 2], [3, -1]], "float32")})
            rate.step()
            scope = paddle.static.global_scope()
            found.append(
                [np.asarray(scope.find_var(n).get_tensor()).ravel().tolist() for n in ("w", "b")]
            )
        op = [op for op in main.global_block().ops if op.type == "adamw"]
        attrs = [
            {k: op.attr(k) for k in ("coeff", "with_decay", "lr_ratio", "beta1", "epsilon")}
            for op in op
        ]
    return {"steps": found, "attrs": sorted(attrs, key=str)}


def trained(text):
    """weight and bias after three steps of an optimizer"""
    paddle.enable_static()
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(
        main, startup
    ), paddle.utils.unique_name.guard(), paddle.static.scope_guard(paddle.static.Scope()):
        x = paddle.static.data("x", [2, 2])
        weight = paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(0.5))
        bias = paddle.ParamAttr(name="b", initializer=paddle.nn.initializer.Constant(0.25))
        loss = paddle.mean(
            paddle.square(paddle.static.nn.fc(x, 1, weight_attr=weight, bias_attr=bias))
        )
        eval(text, {"o": paddle.optimizer}).minimize(loss)
        exe = paddle.static.Executor()
        exe.run(startup)
        for _ in range(3):
            exe.run(main, feed={"x": np.array([[1, 2], [3, -1]], "float32")})
        scope = paddle.static.global_scope()
        return [
            float(v) for n in ("w", "b") for v in np.asarray(scope.find_var(n).get_tensor()).ravel()
        ]


if __name__ == "__main__":
    found = {
        name: rate_cases.rates(paddle.optimizer.lr, text) for name, text in rate_cases.CASES.items()
    }
    with open(os.path.join(HERE, "..", "data", "rates_2.6.2.json"), "w") as file:
        json.dump(
            {
                "rates": found,
                "adamw": adamw(),
                "trained": {k: trained(v) for k, v in rate_cases.TRAINED.items()},
            },
            file,
        )
        file.write("\n")
