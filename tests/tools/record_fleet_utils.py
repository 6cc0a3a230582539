"""What Paddle 1.8.5's fleet utils make of a small saved model: writes tests/data/fleet_model. Run
with its Python.
"""

import json
import os
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "..", "data", "fleet_model")
LOGS = ("vars_persistable.log", "vars_all.log", "ops.log")


class Config(object):
    """What a user hands over: names, sizes, dtypes and files of what is fed, names of what is
    fetched.
    """

    def __init__(self, **fields):
        self.__dict__.update(fields)


def feeds(folder, files):
    return Config(
        feeded_vars_names=["x", "y"], feeded_vars_dims=[3, (2,)], feeded_vars_types=["float32", "float32"],
        feeded_vars_filelist=[os.path.join(folder, "x.txt"), os.path.join(folder, "y.txt")] if files else None,
    )  # fmt: skip


def fetches(names=None):
    return Config(fetch_vars_names=names)


def dumped(utils, folder):
    """The results with what is fed from files: of the targets, and of another variable; and of the
    program as text.
    """
    found = []
    for name, text, wanted in (
        ("__model__", False, None),
        ("__model__", False, ["fc_0.tmp_1"]),
        ("__model__.pbtxt", True, None),
    ):
        found += utils.check_saved_vars_try_dump(
            folder, name, text, feeds(folder, True), fetches(wanted), 2, "params"
        )
    return [[list(v.shape), [float(n) for n in v.ravel()]] for v in found]


def without_lines(path):
    """Take out of a model where its lines stood on the machine of the recording."""
    from paddle.fluid.proto import framework_pb2

    message = framework_pb2.ProgramDesc()
    with open(path, "rb") as file:
        message.ParseFromString(file.read())
    for op in message.blocks[0].ops:
        kept = [attr for attr in op.attrs if attr.name not in ("op_callstack", "op_namescope")]
        del op.attrs[:]
        op.attrs.extend(kept)
    with open(path, "wb") as file:
        file.write(message.SerializeToString())


def main():
    import numpy as np
    import paddle.fluid as fluid
    from paddle.fluid.incubate.fleet.utils import utils

    if os.path.isdir(FOLDER):
        shutil.rmtree(FOLDER)
    x, y = fluid.data("x", [None, 3], "float32"), fluid.data("y", [None, 2], "float32")
    out = fluid.layers.elementwise_add(fluid.layers.fc(x, 2, act="tanh"), y)
    exe = fluid.Executor(fluid.CPUPlace())
    fluid.default_startup_program().random_seed = 1
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(FOLDER, ["x", "y"], [out], exe, params_filename="params")
    without_lines(os.path.join(FOLDER, "__model__"))
    r = np.random.RandomState(0)
    for name, width in (("x", 3), ("y", 2)):
        # two batches of two and a rest; one batch
        with open(os.path.join(FOLDER, name + ".txt"), "w") as file:
            for count in (4 * width + 2, 2 * width):
                file.write(" ".join("%.3f" % n for n in r.uniform(-1, 1, count)) + "\n")
    assert utils.program_type_trans(FOLDER, "__model__", False) == "__model__.pbtxt"
    program = utils.load_program(os.path.join(FOLDER, "__model__"))
    utils.parse_program(program, FOLDER)
    found = {"dumped": dumped(utils, FOLDER)}
    for name in LOGS:
        with open(os.path.join(FOLDER, name)) as file:
            found[name] = file.read()
        os.remove(os.path.join(FOLDER, name))
    os.remove(os.path.join(FOLDER, "__model__.pbtxt.bin"))
    with open(os.path.join(FOLDER, "recorded.json"), "w") as file:
        json.dump(found, file, indent=1, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main()
