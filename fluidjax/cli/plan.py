"""``fluidjax plan MODEL``: what a model needs on many devices, on paper."""

from __future__ import annotations

import argparse
import json

from ..errors import FluidValueError
from .models import add_model, given_shapes, open_program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, and what fluid.plan takes."""
    add_model(parser)
    parser.add_argument("--devices", default="8,64,512,4096", metavar="N,N,...", help="numbers of devices (default: 8,64,512,4096)")
    parser.add_argument("--batch", type=int, metavar="N", help="samples of all devices together")
    parser.add_argument("--batch-per-device", type=int, metavar="N", help="samples of each device (default: 1)")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1,3,640,640",
                        help="the shape of an input; an unknown first dimension stays the batch")  # fmt: skip
    parser.add_argument("--fetch", metavar="NAME,...", help="its results, where the file does not name them (no fetch ops)")
    parser.add_argument("--strategies", metavar="NAME,...", help="of a model that trains: data parallel, pieces, pservers")
    parser.add_argument("--links", metavar="NAME", help="the links of a preset (h100), or a speed (50GB/s, 400Gb/s)")
    parser.add_argument("--device", metavar="NAME", help="the device of a preset (h100)")
    parser.add_argument("--measured", action="append", default=[], metavar="SAMPLES=SECONDS", help="of a step on one device")
    parser.add_argument("--budget", metavar="BYTES", help="what the step of one device may need at most (2GB)")
    parser.add_argument("--compiled", action="store_true", help="ask the compiler for the temporaries")
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the plan. Raises FluidValueError for arguments that do not fit."""
    from ..planning import plan
    from ..planning.ranks import trains
    from ..saved.model import feeds_and_fetches

    program = open_program(args)
    feeds, fetches = feeds_and_fetches(program.desc)
    fetches = args.fetch.split(",") if args.fetch else fetches
    if not fetches and not trains(program.desc):
        raise FluidValueError("the program has no fetch ops, so nothing says what it is to compute; name its results with --fetch NAME,...")
    each = 1 if args.batch is None and args.batch_per_device is None else args.batch_per_device
    found = plan(
        program,
        [_integer("--devices", n) for n in args.devices.split(",")],
        args.batch,
        each,
        strategies=args.strategies.split(",") if args.strategies else None,
        links=args.links,
        device=args.device,
        measured=dict(_time(text) for text in args.measured) or None,
        budget=args.budget,
        compiled=args.compiled,
        fetch_list=fetches,
        feed_shapes=given_shapes(args.shape, program, feeds),
    )
    print(json.dumps(found.to_dict()) if args.json else found)
    return 0


def _integer(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise FluidValueError(f"{option} takes integers, not {text!r}") from None


def _time(text: str) -> tuple[int, str | float]:
    samples, _, taken = text.partition("=")
    try:
        return _integer("--measured", samples), float(taken)
    except ValueError:
        return _integer("--measured", samples), taken
