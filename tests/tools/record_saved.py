"""Record small saved models with the real Paddle 1.8.5: tests/data/saved/. Run in the environment
of record_ops.py.
"""

import inspect
import json
import os
import shutil
import sys

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.proto import framework_pb2

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "saved")


def nameless(program):
    """Take out where ops were written: file names of this machine."""
    for block in program.blocks:
        for op in block.ops:
            if op.has_attr("op_callstack"):
                op._remove_attr("op_callstack")


SAVING = (
    "get_parameter_value get_parameter_value_by_name get_program_parameter"
    " get_program_persistable_vars is_belong_to_optimizer is_parameter is_persistable load"
    " load_inference_model load_params load_persistables load_program_state load_vars save"
    " save_inference_model save_params save_persistables save_vars set_program_state"
)


def signatures():
    """Arguments and defaults of the functions that save and load: signatures.json."""
    found = {"io." + n: getattr(fluid.io, n) for n in SAVING.split()}
    found.update({n: getattr(fluid, n) for n in SAVING.split() if hasattr(fluid, n)})
    table = {
        name: [
            [p.name, "<required>" if p.default is p.empty else p.default]
            for p in inspect.signature(function).parameters.values()
        ]
        for name, function in found.items()
    }
    with open(os.path.join(OUT, "signatures.json"), "w") as f:
        f.write(
            "{\n"
            + ",\n".join(
                " %s: %s" % (json.dumps(k), json.dumps(v)) for k, v in sorted(table.items())
            )
            + "\n}\n"
        )


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)
    main_program, startup = fluid.Program(), fluid.Program()
    main_program.random_seed = startup.random_seed = 3
    with fluid.program_guard(main_program, startup):
        x = fluid.data("x", [None, 3, 6, 6])
        label = fluid.data("label", [None, 1], "int64")
        h = fluid.layers.batch_norm(fluid.layers.conv2d(x, 4, 3), act="relu")
        y = fluid.layers.fc(h, 5, act="softmax")
        loss = fluid.layers.mean(fluid.layers.cross_entropy(y, label))
        test = main_program.clone(for_test=True)
        fluid.optimizer.Adam(0.01).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    rng = np.random.RandomState(0)
    feed = {
        "x": rng.randn(4, 3, 6, 6).astype("float32"),
        "label": rng.randint(0, 5, (4, 1)).astype("int64"),
    }
    for _ in range(3):
        exe.run(main_program, feed=feed)
    (out,) = exe.run(test, feed=feed, fetch_list=[y.name])
    np.savez_compressed(os.path.join(OUT, "ref.npz"), x=feed["x"], y=out)
    at = lambda name: os.path.join(OUT, name)
    nameless(main_program)
    with fluid.program_guard(main_program):
        fluid.io.save_inference_model(at("separate"), ["x"], [y], exe)
        fluid.io.save_inference_model(
            at("combined"), ["x"], [y], exe, model_filename="model", params_filename="params"
        )
    # feed, fetch and scale ops came with the saving
    for path in (at("separate/__model__"), at("combined/model")):
        program = framework_pb2.ProgramDesc()
        with open(path, "rb") as f:
            program.ParseFromString(f.read())
        for op in program.blocks[0].ops:
            kept = [a for a in op.attrs if a.name != "op_callstack"]
            del op.attrs[:]
            op.attrs.extend(kept)
        with open(path, "wb") as f:
            f.write(program.SerializeToString())
    fluid.io.save_persistables(exe, at("persistables"), main_program, "all")
    nameless(main_program)
    fluid.save(main_program, at("prefix"))
    lod = fluid.create_lod_tensor(
        np.arange(10, dtype="float32").reshape(5, 2), [[2, 1], [2, 0, 3]], fluid.CPUPlace()
    )
    scope = fluid.global_scope()
    scope.var("ragged").get_tensor().set(np.array(lod), fluid.CPUPlace())
    scope.var("ragged").get_tensor().set_lod(lod.lod())
    saver = fluid.Program()
    ragged = saver.global_block().create_var(
        name="ragged", shape=[5, 2], dtype="float32", lod_level=2, persistable=True
    )
    fluid.io.save_vars(exe, at("lod"), saver, vars=[ragged])
    signatures()


if __name__ == "__main__":
    sys.exit(main())
