"""One process of a data parallel job that saves checkpoints and goes on from them.

job.py FOLDER UNTIL KIND: goes on from the latest checkpoint, if any, saves after every second step, and prints losses and
state. KIND pieces: the optimizer state is in pieces.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import jax

import fluidjax as fluid
from fluidjax.ranks import Mesh

job = fluid.dist.init_from_env()

from tests.checkpoint import model  # noqa: E402  # it may use devices, so the job is joined first


def over_all_processes(run: model.Job) -> None:
    """Have the program run on every device of the job, of which each process feeds its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two places on the one device here
        parallel: Any = run.runs._parallel
    parallel.where = Mesh(tuple(jax.devices()))


def main() -> None:
    folder, until, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    run = model.Job(devices=jax.device_count(), reduce=kind == "pieces", normed=True)
    over_all_processes(run)
    whole = model.feed_of

    def part(batch: Any) -> Any:
        each = len(batch) // job.count
        return whole(batch[job.rank * each : (job.rank + 1) * each])

    model.feed_of = part
    if fluid.io.get_latest_checkpoint_serial(folder) >= 0:
        run.load(folder)
    run.train(until, folder, range(2, 100, 2))
    fluid.io.wait_checkpoint(folder)
    print("RESULT", json.dumps({"losses": run.losses, "state": run.state()}), flush=True)


main()
