"""``fluidjax serve MODEL``: serve a saved model over HTTP."""

from __future__ import annotations

import argparse
import sys

from ..errors import FluidValueError
from .models import add_model, find, given_sizes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, the address, the batches and the limits."""
    add_model(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine alone)")  # fmt: skip
    parser.add_argument(
        "--port", type=int, default=8000, help="0: any that is free (default: 8000)"
    )
    parser.add_argument(
        "--name", default="", help="of the model in addresses (default: its folder's)"
    )
    parser.add_argument("--batch-sizes", default="1,2,4,8", metavar="1,2,4,8",
                        help="rows of waiting requests run together, padded to these sizes, or none (default: 1,2,4,8)")  # fmt: skip
    parser.add_argument("--wait", type=float, default=0.0, metavar="MS",
                        help="how many milliseconds a request waits for others to run with (default: 0)")  # fmt: skip
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1,3,640,640",
                        help="sizes to warm up, of an input that leaves more than the batch open")  # fmt: skip
    for flag, default, what in _LIMITS:
        parser.add_argument(flag, type=type(default), default=default, metavar="N", help=f"{what} (default: {default})")  # fmt: skip


_LIMITS: tuple[tuple[str, int | float, str], ...] = (
    ("--threads", 1, "batches that run at once"),
    ("--max-body", 16, "MiB of a request's body"),
    ("--max-elements", 1 << 22, "elements of an input"),
    ("--max-waiting", 256, "requests that wait; more are refused with 503"),
    ("--max-executables", 64, "executables that are kept"),
    ("--body-seconds", 30.0, "seconds within which a body comes"),
    ("--grace", 30.0, "seconds in which running requests are answered after SIGTERM"),
)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM. Raises the errors of loading and running, and FluidValueError for
    invalid settings or an address that cannot be used.
    """
    from ..predictors import AnalysisConfig
    from ..serving import Application, Settings, is_loopback, serve

    path, values = find(args)
    settings = Settings(
        name=args.name or path.resolve().parent.name, batch_sizes=_sizes(args.batch_sizes), wait=args.wait / 1e3,
        threads=args.threads, body=args.max_body << 20, elements=args.max_elements,
        waiting=args.max_waiting, seconds=args.body_seconds, executables=args.max_executables,
    )  # fmt: skip
    config = AnalysisConfig()
    config.set_prog_file(str(path))
    if values is not None:
        config.set_params_file(str(path.parent / values))
    app = Application(config, settings, given_sizes(args.shape))
    if not is_loopback(args.host):
        print(
            f"fluidjax serve: {args.host} is reachable from other machines, and anyone there may"
            " use the model: put a proxy in front of it that checks who may (and TLS)",
            file=sys.stderr,
        )
    return serve(app, args.host, args.port, args.grace, lambda text: print(text, flush=True))


def _sizes(text: str) -> tuple[int, ...]:
    if text == "none":
        return ()
    words = text.split(",")
    if not all(w.strip().isdigit() and int(w) for w in words):
        raise FluidValueError(f"--batch-sizes {text!r} should look like 1,2,4,8, or be none")
    return tuple(sorted({int(w) for w in words}))
