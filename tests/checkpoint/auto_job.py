"""One process that trains in an AutoCheckpoint: auto_job.py FOLDER UNTIL EVERY TOLD.

TOLD: the trainer that is sent SIGTERM after its third step, "none", or "deaf" for a script that
keeps no checkpoints and sleeps.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import fluidjax as fluid

job = fluid.dist.init_from_env()

from tests.checkpoint import model  # it may use devices, so the job is joined first  # noqa: E402


def main() -> None:
    folder, until, every, told = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    if told == "deaf":
        print("READY", os.getpid(), flush=True)
        time.sleep(600)
    run = model.Job(trainers=job.count, rank=job.rank, normed=True)
    auto = fluid.io.AutoCheckpoint(
        run.exe, folder, run.runs, reader=run.reader, every_steps=every or None, scope=run.scope
    )
    with auto:
        print("RESUMED", auto.resume(), flush=True)
        here = 0
        while auto.steps < until:
            for batch in run.reader():
                feed = model.feed_of(batch, job.rank, job.count)
                run.exe.run(run.runs, feed=feed, fetch_list=[run.loss], scope=run.scope)
                here += 1
                if here == 3 and told == str(job.rank):
                    os.kill(os.getpid(), signal.SIGTERM)
                auto.step()
                if auto.steps == until:
                    break
    print("RESULT", json.dumps(run.state()), flush=True)


main()
