"""A parameter-server job whose whole batch depends on the step alone, so that any number of
trainers continues it.

python -m fluidjax launch --nproc 4 --pservers 2 pserver_job.py FOLDER STEPS: goes on from the
latest checkpoint in FOLDER until so many steps are taken, saves, and writes trainer_K.npz: every
variable as it was loaded, and as it is in the end.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import fluidjax as fluid

BATCH = 24


def build() -> tuple[Any, Any, Any]:
    """main, startup, loss; the first weight is large enough to be cut into blocks."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 100], "float32"), fluid.data("y", [None, 1], "int64")
        hidden = fluid.layers.fc(x, 300, act="tanh")
        loss = fluid.layers.mean(
            fluid.layers.softmax_with_cross_entropy(fluid.layers.fc(hidden, 3), y)
        )
        fluid.optimizer.Adam(
            fluid.layers.exponential_decay(0.01, decay_steps=2, decay_rate=0.7)
        ).minimize(loss)
    return main, startup, loss


def feed_of(step: int, part: int = 0, parts: int = 1) -> dict[str, np.ndarray]:
    """A trainer's part of the step's batch."""
    rng = np.random.RandomState(step)
    mine = slice(part * BATCH // parts, (part + 1) * BATCH // parts)
    return {
        "x": rng.rand(BATCH, 100).astype("float32")[mine],
        "y": rng.randint(0, 3, (BATCH, 1))[mine],
    }


def held(names: list[str], scope: Any) -> dict[str, np.ndarray]:
    return {n: np.array(scope.find_var(n).get_tensor()) for n in names}


def train(transpiler: Any, names: list[str], startup: Any, loss: Any) -> None:
    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    rank, count = int(os.environ["PADDLE_TRAINER_ID"]), int(os.environ["PADDLE_TRAINERS"])
    program, exe, scope = (
        transpiler.get_trainer_program(),
        fluid.Executor(fluid.CPUPlace()),
        fluid.global_scope(),
    )
    exe.run(startup)
    done = 0
    if fluid.io.get_latest_checkpoint_serial(folder) >= 0:
        done = fluid.io.load_checkpoint(exe, folder, program).step
    loaded = held(names, scope)
    for step in range(done + 1, steps + 1):
        exe.run(program, feed_of(step, rank, count), [loss])
    fluid.io.save_checkpoint(exe, folder, program, steps, asynchronous=False)
    ended = held(names, scope)
    np.savez(
        folder / f"trainer_{rank}.npz", **{f"loaded {n}": v for n, v in loaded.items()}, **ended
    )


def main() -> None:
    program, startup, loss = build()
    names = [v.name for v in fluid.io.get_program_persistable_vars(program)]
    t = fluid.DistributeTranspiler()
    pservers, trainers = (
        os.environ["PADDLE_PSERVERS_IP_PORT_LIST"],
        int(os.environ["PADDLE_TRAINERS"]),
    )
    rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    t.transpile(
        rank, program=program, pservers=pservers, trainers=trainers, startup_program=startup
    )
    if os.environ["PADDLE_TRAINING_ROLE"] == "TRAINER":
        return train(t, names, startup, loss)
    exe = fluid.Executor(fluid.CPUPlace())
    main, first = t.get_pserver_programs(os.environ["PADDLE_CURRENT_ENDPOINT"])
    exe.run(first)
    exe.run(main)
    return None


if __name__ == "__main__":
    main()
