"""``fluidjax launch SCRIPT [ARGS]``: run a script as a job of several processes on this machine, or
as one process of a cluster's job.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ..dist.jobs.env import SECRET, endpoint, endpoints
from ..errors import FluidValueError
from . import run as run_script

_NO_MEANING = (  # names of Paddle's launchers
    "started_port", "start_port", "log_level", "log_overwrite", "print_config", "run_mode", "job_id", "http_port", "gloo_port",
    "backend", "host",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--nproc, --pservers, --devices-per-proc, --gpus, SCRIPT and its arguments; also Paddle's
    names of these options.
    """
    parser.add_argument(
        "--nproc", "--worker_num", "--trainer_num", "--nproc_per_node", type=int, metavar="N",
        help="start N trainers here (default: one for each of --gpus, else be the one process that the environment describes)",
    )  # fmt: skip
    parser.add_argument(
        "--pservers",
        "--server_num",
        type=int,
        metavar="P",
        help="and P processes with the role PSERVER (default: 0)",
    )
    parser.add_argument(
        "--devices-per-proc", type=int, metavar="K", help="virtual CPU devices of each trainer"
    )
    parser.add_argument(
        "--servers",
        "--endpoints",
        default="",
        metavar="IP:PORT,...",
        help="as many with the role PSERVER as are listed",
    )
    parser.add_argument(
        "--workers",
        "--trainers",
        default="",
        metavar="IP:PORT,...",
        help="as many trainers as are listed",
    )
    parser.add_argument(
        "--gpus",
        "--selected_gpus",
        "--devices",
        default="",
        metavar="0,1,...",
        help="a GPU for each trainer",
    )
    parser.add_argument(
        "--cluster_node_ips",
        "--ips",
        default="",
        metavar="IP",
        help="this machine's address, as Paddle takes it",
    )
    parser.add_argument("--node_ip", default="", metavar="IP", help="the same")
    parser.add_argument(
        "--nnodes", default="1", metavar="1", help="machines: one, as Paddle's launchers take it"
    )
    parser.add_argument(
        "--use_paddlecloud",
        action="store_true",
        help="without --nproc or --gpus: be the process of the environment",
    )
    parser.add_argument(
        "--log_dir",
        type=Path,
        metavar="DIR",
        help="write what each process says into files there, too",
    )
    parser.add_argument(
        "--restarts",
        type=int,
        default=0,
        metavar="N",
        help="start the job again up to N times after it lost a process (default: 0)",
    )
    for name in _NO_MEANING:
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    run_script.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """With --nproc or --gpus, start the job and return its exit code. Otherwise take part in a job,
    and return the script's exit code.
    """
    if not args.script.is_file():
        raise FluidValueError(f"there is no script {str(args.script)!r}")
    gpus = _gpus(args.gpus)
    workers, servers = (
        _endpoints("--workers", "--worker_num", args.workers),
        _endpoints("--servers", "--server_num", args.servers),
    )
    _refuse_several_machines(
        _listed(args.cluster_node_ips), args.node_ip, [*workers, *servers], args.nnodes
    )
    nproc = _number("--nproc or --worker_num", args.nproc, "--workers", workers)
    nproc = len(gpus) or None if nproc is None else nproc
    pservers = _number("--pservers or --server_num", args.pservers, "--servers", servers) or 0
    idle = [f"--{n}" for n in _NO_MEANING if getattr(args, n) is not None]
    if idle:
        print(
            f"fluidjax launch: {', '.join(idle)}: no meaning here; free ports are taken",
            file=sys.stderr,
        )
    if nproc is None:
        if pservers or args.devices_per_proc is not None or args.log_dir or args.restarts:
            raise FluidValueError(
                "--pservers, --devices-per-proc, --gpus, --log_dir and --restarts go with --nproc"
            )
        return take_part(args)
    if args.use_paddlecloud:
        _refuse_several_machines(_hosts_of_cloud(), "", [], "1")
    from ..dist.jobs.launch import run_job

    command = [sys.executable, "-m", "fluidjax", "launch", str(Path(args.script)), *args.args]
    return run_job(
        command,
        nproc,
        pservers,
        devices_per_proc=args.devices_per_proc,
        gpus=gpus,
        log_dir=args.log_dir,
        restarts=args.restarts,
    )


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _gpus(text: str) -> list[str]:
    """The GPUs of a list. Raises FluidValueError for anything but a number or a UUID, which CUDA
    would take for the end of the list.
    """
    listed = _listed(text)
    for gpu in listed:
        if not (gpu.isdecimal() or gpu.startswith(("GPU-", "MIG-"))):
            raise FluidValueError(
                f"--gpus lists GPUs by number or UUID, as in --gpus=0,1, but {gpu!r} is neither"
            )
    return listed


def _endpoints(option: str, counting: str, text: str) -> list[str]:
    """The hosts of a list of endpoints, or of addresses without ports. Raises FluidValueError for a
    number, and for anything but an endpoint.
    """
    listed = _listed(text)
    if len(listed) == 1 and listed[0].lstrip("+-").isdigit():
        raise FluidValueError(
            f"{option} {text} lists no endpoint, such as 127.0.0.1:6170; for {text} processes write"
            f" {counting} {text}"
        )
    found = [endpoint(one, option, 1) for one in listed]
    hosts = ["127.0.0.1" if one.loopback else one.host for one in found]
    if len(set(listed)) < len(listed) and any(":" in one for one in listed):
        endpoints(text, option)  # names a duplicate
    return hosts


def _number(option: str, given: int | None, listing: str, listed: list[str]) -> int | None:
    """The number of processes. Raises FluidValueError if a number and a list contradict each
    other.
    """
    if given is not None and listed and given != len(listed):
        raise FluidValueError(
            f"{option} is {given}, but {listing} lists {len(listed)}; one of the two is enough"
        )
    return given if given is not None else len(listed) or None


def _hosts_of_cloud() -> list[str]:
    """The machines that Paddle's cloud names in the environment."""
    listed = _listed(os.environ.get("PADDLE_TRAINERS", ""))
    return [] if len(listed) == 1 and listed[0].isdigit() else listed


def _refuse_several_machines(addresses: list[str], own: str, hosts: list[str], nnodes: str) -> None:
    if own and addresses and own not in addresses:
        raise FluidValueError(
            f"--node_ip is {own}, which is none of --cluster_node_ips {', '.join(addresses)}"
        )
    several = sorted({*addresses} or {*hosts})
    if len({*addresses}) > 1 or len({*hosts}) > 1 or nnodes not in ("1", "1:1"):
        named = f"the arguments name several machines ({', '.join(several)})"
        raise FluidValueError(
            f"{named if len(several) > 1 else f'--nnodes is {nnodes}'}, and this starts processes"
            " on one; on each machine start them by a shell or a batch system, with"
            f" PADDLE_TRAINER_ENDPOINTS, PADDLE_TRAINER_ID and the same {SECRET}, and `python -m"
            " fluidjax run SCRIPT`"
        )


def take_part(args: argparse.Namespace) -> int:
    """Join the job that the environment describes, and run the script."""
    from ..dist.jobs import notice
    from ..dist.jobs.process import init_from_env

    init_from_env()
    notice.listen()
    return run_script.run(args)


__all__ = ["add_arguments", "run", "take_part"]
