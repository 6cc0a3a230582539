"""Record a small inference model in the program format of Paddle 3.3.1: tests/data/saved_3.3.1/.
Run with Paddle 3.3.1.

The net has what later Paddles write otherwise: attributes of types SCALARS and FLOAT64, versions of
op types, tensors of shape [], `gather` along an axis, values set by slices.
"""

import os

os.environ["FLAGS_enable_pir_api"] = "0"

import numpy as np  # noqa: E402
import paddle  # noqa: E402
from paddle.base import core  # noqa: E402

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "saved_3.3.1")


def op(kind, inputs, attrs=None):
    """One op of that type; some functions of 3.3.1 no longer write the older kind of program."""
    block = paddle.static.default_main_program().global_block()
    out = block.create_var(dtype="float32")
    block.append_op(type=kind, inputs=inputs, outputs={"Out": out}, attrs=attrs or {})
    return out


def net():
    x = paddle.static.data("x", [-1, 3, 6, 6], "float32")
    h = paddle.nn.functional.relu(paddle.nn.BatchNorm2D(4)(paddle.nn.Conv2D(3, 4, 3, padding=1)(x)))
    h = paddle.nn.functional.adaptive_avg_pool2d(h, 2).flatten(1)
    y = paddle.nn.Linear(16, 5)(h)
    y = paddle.nn.LayerNorm(5)(y) + paddle.to_tensor(np.arange(5, dtype="float64")).astype(
        "float32"
    )
    # of shape []
    total = op(
        "reduce_sum",
        {"X": op("softplus", {"X": y}, {"beta": 2.0})},
        {"reduce_all": True, "dim": [0, 1]},
    )
    picked = paddle.gather(y, paddle.to_tensor([3, 1]), axis=1)
    z = paddle.static.setitem(y, (slice(None), slice(1, 3)), 0.5)
    return x, [
        paddle.nn.functional.softmax(y),
        total,
        picked + total,
        paddle.einsum("ij,kj->ik", z, z),
    ]


def main():
    paddle.enable_static()
    paddle.seed(3)
    program, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(program, startup):
        x, outs = net()
        exe = paddle.static.Executor(paddle.CPUPlace())
        exe.run(startup)
        for block in program.blocks:
            for op in block.ops:
                op._remove_attr("op_callstack")
        paddle.static.save_inference_model(
            os.path.join(OUT, "model"), [x], outs, exe, program=program
        )
        feed = {"x": np.random.RandomState(0).randn(2, 3, 6, 6).astype("float32")}
        loaded, _, fetches = paddle.static.load_inference_model(os.path.join(OUT, "model"), exe)
        found = exe.run(loaded, feed=feed, fetch_list=fetches)
    np.savez_compressed(
        os.path.join(OUT, "ref.npz"), **feed, **{"out%d" % i: v for i, v in enumerate(found)}
    )
    versions = {k: v.version_id for k, v in core.get_op_version_map().items()}
    print(
        [v.shape for v in found], sorted({op.type for op in program.global_block().ops}), versions
    )


if __name__ == "__main__":
    main()
