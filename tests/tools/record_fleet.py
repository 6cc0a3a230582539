"""What Paddle 3.3.1 says of fleets: strategies, signatures, shares of files, merged gradients;
writes tests/data/fleet_3.3.1.json.

FLAGS_enable_pir_api=0 PYTHON_OF_3.3.1 tests/tools/record_fleet.py
"""

import inspect
import json
import os
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
CALLS = (
    "init is_first_worker worker_index worker_num is_worker worker_endpoints server_num"
    " server_index server_endpoints is_server barrier_worker init_worker init_server run_server"
    " stop_worker save_inference_model save_persistables minimize"
).split()
PLAIN = (
    "all_reduce broadcast all_gather scatter reduce barrier get_rank get_world_size spawn"
    " is_initialized".split()
)
FILES = list("abcdefg")
STEPS, BATCH = 6, 4


def data():
    r = np.random.RandomState(0)
    return [(r.randn(BATCH, 3).astype("f4"), r.randn(BATCH, 1).astype("f4")) for _ in range(STEPS)]


def first_values():
    return {
        "fc_0.w_0": np.array([[0.5], [-0.25], [1.0]], "f4"),
        "fc_0.b_0": np.array([0.125], "f4"),
    }


def strategy(made):
    """Fields and their defaults, those that are JSON."""
    found = {}
    for name, value in vars(type(made)).items():
        if isinstance(value, property) and not name.startswith("_"):
            given = getattr(made, name)
            if isinstance(given, dict):
                given = {
                    k: v for k, v in given.items() if isinstance(v, (int, float, str, bool, list))
                }
            if isinstance(given, (int, float, str, bool, dict)):
                found[name] = given
    return found


def shares(fleet):
    """Which files each of three workers gets."""
    found = []
    for index in range(3):
        ends = ["127.0.0.1:%d" % (6170 + i) for i in range(3)]
        util = fleet.UtilBase()
        util._set_role_maker(
            fleet.UserDefinedRoleMaker(is_collective=True, current_id=index, worker_endpoints=ends)
        )
        found.append(util.get_file_shard(list(FILES)))
    return found


def local_files(fs, folder):
    """What LocalFS answers, call by call; of an error its kind."""
    one, two, found = os.path.join(folder, "one"), os.path.join(folder, "one", "two"), []
    for name, words in (
        ("mkdirs", [two]), ("mkdirs", [two]), ("ls_dir", [one]), ("touch", [one + "/f"]), ("touch", [one + "/f"]),
        ("touch", [one + "/f", False]), ("ls_dir", [one]), ("list_dirs", [one]), ("ls_dir", [one + "/no"]), ("is_file", [one + "/f"]),
        ("is_dir", [one + "/f"]), ("is_exist", [one + "/g"]), ("mkdirs", [one + "/f"]), ("mv", [one + "/no", one + "/g"]),
        ("mv", [one + "/f", one + "/g"]), ("touch", [one + "/f"]), ("mv", [one + "/f", one + "/g"]), ("mv", [one + "/f", one + "/g", True]),
        ("rename", [one + "/g", two + "/h"]), ("ls_dir", [two]), ("need_upload_download", []), ("delete", [two + "/h"]), ("delete", [one]),
        ("delete", [one]), ("is_exist", [one]), ("list_dirs", [one]),
    ):  # fmt: skip
        try:
            found.append([name, getattr(fs, name)(*words)])
        except Exception as error:
            found.append(
                [name, "raises" if isinstance(error, AssertionError) else type(error).__name__]
            )
    return json.loads(json.dumps(found))


def merged(paddle, k_steps, avg):
    """The ops of a program whose gradients are merged, and losses and parameters of six steps."""
    from paddle.incubate.optimizer import GradientMergeOptimizer

    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.utils.unique_name.guard(), paddle.static.program_guard(main, startup):
        x, y = (
            paddle.static.data("x", [-1, 3], "float32"),
            paddle.static.data("y", [-1, 1], "float32"),
        )
        loss = paddle.mean(paddle.square(paddle.static.nn.fc(x, 1) - y))
        optimizer = paddle.optimizer.Momentum(
            0.1, 0.9, weight_decay=paddle.regularizer.L2Decay(0.1)
        )
        GradientMergeOptimizer(optimizer, k_steps=k_steps, avg=avg).minimize(loss)
    exe, scope = paddle.static.Executor(paddle.CPUPlace()), paddle.static.Scope()
    steps = []
    with paddle.static.scope_guard(scope):
        exe.run(startup)
        for name, value in first_values().items():
            scope.find_var(name).get_tensor().set(value, paddle.CPUPlace())
        for a, b in data():
            (value,) = exe.run(main, feed={"x": a, "y": b}, fetch_list=[loss])
            steps.append(
                [float(value)]
                + [
                    np.array(scope.find_var(n).get_tensor()).ravel().tolist()
                    for n in sorted(first_values())
                ]
            )
    ops = [
        [b.idx, op.type, sorted(n for s in op.output_names for n in op.output(s))]
        for b in main.blocks
        for op in b.ops
    ]
    state = [op.output_arg_names[0] for op in startup.global_block().ops]
    return {"ops": ops, "startup": state, "steps": steps}


def main():
    import paddle
    import paddle.distributed as distributed
    from paddle.distributed import fleet

    paddle.enable_static()
    found = {
        "strategy": strategy(fleet.DistributedStrategy()),
        "fleet": {n: list(inspect.signature(getattr(fleet, n)).parameters) for n in CALLS},
        "distributed": {
            n: list(inspect.signature(getattr(distributed, n)).parameters) for n in PLAIN
        },
        "shares": shares(fleet),
        "local": local_files(fleet.utils.LocalFS(), tempfile.mkdtemp()),
        "merged": {
            "%d %s" % (k, avg): merged(paddle, k, avg) for k, avg in ((2, True), (3, False))
        },
    }
    with open(os.path.join(HERE, "..", "data", "fleet_3.3.1.json"), "w") as file:
        json.dump(found, file, sort_keys=True, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
