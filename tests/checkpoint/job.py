"""One process of a data parallel job that saves checkpoints and goes on from them.

job.py FOLDER UNTIL KIND: goes on from the latest checkpoint, if any, saves after every second step,
and prints losses and state. KIND pieces: the optimizer state is sharded. lone: trainer 0 alone
saves. apart: trainers save in folders of their own.
"""

from __future__ import annotations

import json
import sys

import fluidjax as fluid

job = fluid.dist.init_from_env()

from tests.checkpoint import model  # it may use devices, so the job is joined first  # noqa: E402


def main() -> None:
    folder, until, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    run = model.Job(reduce=kind == "pieces", trainers=job.count, rank=job.rank, normed=True)
    if fluid.io.get_latest_checkpoint_serial(folder) >= 0:
        run.load(folder)
    folder += str(job.rank) if kind == "apart" else ""
    run.train(until, folder, range(2, 100, 2) if kind != "lone" or job.rank == 0 else ())
    fluid.io.wait_checkpoint(folder)
    print("RESULT", json.dumps({"losses": run.losses, "state": run.state()}), flush=True)


main()
