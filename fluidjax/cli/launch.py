"""``fluidjax launch SCRIPT [ARGS]``: run a script as a job of several processes, on this machine or as one of a cluster."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..errors import FluidValueError
from . import INTERRUPTED
from . import run as run_script

_NO_MEANING = (  # of Paddle's launchers
    "started_port", "start_port", "endpoints", "log_dir", "log_level", "log_overwrite", "print_config", "run_mode", "job_id", "http_port",
    "gloo_port", "backend", "host",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--nproc, --pservers, --devices-per-proc, --gpus, SCRIPT and whatever follows it; Paddle's names of the same too."""
    parser.add_argument(
        "--nproc", "--worker_num", "--trainer_num", "--nproc_per_node", type=int, metavar="N",
        help="start N trainers here (default: one for each of --gpus, else be the one process that the environment describes)",
    )  # fmt: skip
    parser.add_argument(
        "--pservers", "--server_num", type=int, default=0, metavar="P", help="and P processes with the role PSERVER (default: 0)"
    )
    parser.add_argument("--devices-per-proc", type=int, metavar="K", help="virtual CPU devices of each trainer")
    parser.add_argument("--servers", default="", metavar="IP:PORT,...", help="as many processes with the role PSERVER as are listed")
    parser.add_argument("--workers", "--trainers", default="", metavar="IP:PORT,...", help="as many trainers as are listed")
    parser.add_argument("--gpus", "--selected_gpus", "--devices", default="", metavar="0,1,...", help="a GPU for each trainer")
    parser.add_argument("--cluster_node_ips", "--ips", default="", metavar="IP", help="this machine's address, as Paddle takes it")
    parser.add_argument("--node_ip", default="", metavar="IP", help="the same")
    parser.add_argument("--nnodes", default="1", metavar="1", help="machines: one, as Paddle's launchers take it")
    parser.add_argument("--use_paddlecloud", action="store_true", help="be the one process that the environment describes")
    for name in _NO_MEANING:
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    run_script.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """With --nproc or --gpus: start the job and return its exit code. Without: take part in one, and return the script's."""
    if not args.script.is_file():
        raise FluidValueError(f"there is no script {str(args.script)!r}")
    gpus, workers, servers = (_listed(text) for text in (args.gpus, args.workers, args.servers))
    nproc = len(workers) or len(gpus) or None if args.nproc is None else args.nproc
    _refuse_several_machines(args.cluster_node_ips, workers + servers, args.nnodes)
    pservers = args.pservers or len(servers)
    idle = [f"--{n}" for n in _NO_MEANING if getattr(args, n) is not None]
    if idle:
        told = "no meaning here; free ports are taken, and what processes write is shown"
        print(f"fluidjax launch: {', '.join(idle)}: {told}", file=sys.stderr)
    if nproc is None or args.use_paddlecloud:
        if pservers or args.devices_per_proc is not None:
            raise FluidValueError("--pservers, --devices-per-proc and --gpus go with --nproc")
        return take_part(args)
    from ..dist.jobs.launch import run_job

    command = [sys.executable, "-m", "fluidjax", "launch", str(Path(args.script)), *args.args]
    return run_job(command, nproc, pservers, devices_per_proc=args.devices_per_proc, gpus=gpus)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _refuse_several_machines(addresses: str, endpoints: list[str], nnodes: str) -> None:
    hosts = {*_listed(addresses)} or {e.rpartition(":")[0] for e in endpoints}
    if len(hosts) > 1 or nnodes != "1":
        named = f"--cluster_node_ips, --ips, --servers or --workers names several machines ({', '.join(sorted(hosts))})"
        raise FluidValueError(
            f"{named if len(hosts) > 1 else f'--nnodes is {nnodes}'}, and this starts processes on one; on each machine start them by a "
            "shell or a batch system, with PADDLE_TRAINER_ENDPOINTS and PADDLE_TRAINER_ID, and `python -m fluidjax launch SCRIPT`"
        )


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
