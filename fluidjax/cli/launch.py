"""``fluidjax launch SCRIPT [ARGS]``: run a script as a job of several processes, on this machine or as one of a cluster."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..errors import FluidValueError
from . import INTERRUPTED
from . import run as run_script


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--nproc, --pservers, --devices-per-proc, --gpus, SCRIPT and whatever follows it."""
    parser.add_argument("--nproc", type=int, metavar="N",
                        help="start N trainers here (default: be the one process that the environment describes)")  # fmt: skip
    parser.add_argument("--pservers", type=int, default=0, metavar="P", help="and P processes with the role PSERVER (default: 0)")
    parser.add_argument("--devices-per-proc", type=int, metavar="K", help="virtual CPU devices of each trainer")
    parser.add_argument("--gpus", default="", metavar="0,1,...", help="a GPU for each trainer")
    run_script.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """With --nproc: start the job and return its exit code. Without: take part in one, and return the script's."""
    if not args.script.is_file():
        raise FluidValueError(f"there is no script {str(args.script)!r}")
    gpus = [g.strip() for g in args.gpus.split(",") if g.strip()]
    if args.nproc is None:
        if args.pservers or gpus or args.devices_per_proc is not None:
            raise FluidValueError("--pservers, --devices-per-proc and --gpus go with --nproc")
        return take_part(args)
    from ..dist.jobs.launch import run_job

    command = [sys.executable, "-m", "fluidjax", "launch", str(Path(args.script)), *args.args]
    return run_job(command, args.nproc, args.pservers, devices_per_proc=args.devices_per_proc, gpus=gpus)


def take_part(args: argparse.Namespace) -> int:
    """Join the job that the environment describes, run the script, and tell the job if it fails."""
    from ..dist.jobs.process import in_one_line, init_from_env

    job = init_from_env()
    try:
        code = run_script.run(args, on_error=lambda error: job.fail(in_one_line(error)))
    except SystemExit as exit:
        if exit.code not in (None, 0):
            code = exit.code if isinstance(exit.code, int) and 0 < exit.code < 256 else 1
            job.fail(f"its script ended by sys.exit({exit.code!r})", code)
        raise
    except KeyboardInterrupt:
        job.fail("interrupted", INTERRUPTED)
        raise
    return code


__all__ = ["add_arguments", "run", "take_part"]
