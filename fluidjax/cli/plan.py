"""``fluidjax plan MODEL``: estimate what a model needs on many devices."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import FluidValueError
from ..lower.step import Step
from . import terminal
from .models import add_model, example, given_shapes, open_program

if TYPE_CHECKING:
    from ..graph.program import Program
    from ..memory.sizes import Lengths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, and the arguments of fluid.plan."""
    add_model(parser)
    parser.add_argument(
        "--devices",
        default="8,64,512,4096",
        metavar="N,N,...",
        help="numbers of devices (default: 8,64,512,4096)",
    )
    parser.add_argument("--batch", type=int, metavar="N", help="samples of all devices together")
    parser.add_argument(
        "--batch-per-device", type=int, metavar="N", help="samples of each device (default: 1)"
    )
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1,3,640,640",
                        help="the shape of an input; an unknown first dimension stays the batch")  # fmt: skip
    parser.add_argument("--length", action="append", default=[], metavar="[NAME=]N,...",
                        help="rows of the sequences of ragged inputs, or of one; for several levels a number each")  # fmt: skip
    parser.add_argument(
        "--fetch",
        metavar="NAME,...",
        help="its results, where the file does not name them (no fetch ops)",
    )
    parser.add_argument(
        "--strategies",
        metavar="NAME,...",
        help="of a model that trains: data parallel, pieces, pservers",
    )
    parser.add_argument(
        "--links", metavar="NAME", help="the links of a preset (h100), or a speed (50GB/s, 400Gb/s)"
    )
    parser.add_argument("--device", metavar="NAME", help="the device of a preset (h100)")
    parser.add_argument(
        "--measured",
        action="append",
        default=[],
        metavar="SAMPLES=SECONDS",
        help="of a step on one device",
    )
    parser.add_argument(
        "--budget", metavar="BYTES", help="what the step of one device may need at most (2GB)"
    )
    parser.add_argument(
        "--compiled", action="store_true", help="ask the compiler for the temporaries"
    )
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the plan. Raises FluidValueError for arguments that do not fit."""
    from ..planning import plan
    from ..planning.ranks import trains
    from ..planning.tables import TEXTS, tables
    from ..saved.model import feeds_and_fetches

    program = open_program(args)
    feeds, fetches = feeds_and_fetches(program.desc)
    fetches = args.fetch.split(",") if args.fetch else fetches
    if not fetches and not trains(program.desc):
        raise FluidValueError(
            "the program has no fetch ops, so nothing says what it is to compute; name its results"
            " with --fetch NAME,..."
        )
    shapes, lengths = (
        given_shapes(
            args.shape, program, feeds or [v.name for v in program.list_vars() if v.is_data]
        ),
        _lengths(args.length),
    )
    _refuse_unknown(program, fetches, shapes, lengths)
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
        feed_shapes=shapes,
        lengths=lengths,
    )
    if args.json:
        print(json.dumps(found.to_dict()))
        return 0
    for what, value in found.given.items():
        terminal.say(f"{what}: {value}")
    for title, head, rows in tables(found):
        print(f"\n{terminal.paint(title, 'head')}")
        print(terminal.table(head, rows, set(range(len(head))) - TEXTS))
    return 0


def _refuse_unknown(
    program: Program,
    fetches: Sequence[str],
    shapes: Mapping[str, Sequence[int]],
    lengths: Lengths | None,
) -> None:
    """Raises FluidValueError for an input with unknown sizes; names the option that gives them."""
    for name, var in Step(program.desc, tuple(fetches)).feeds.items():
        if var.lod_level and (
            lengths is None or (isinstance(lengths, dict) and name not in lengths)
        ):
            raise FluidValueError(
                f"input {name!r} is ragged; say how many rows its sequences have with --length"
                f" {name}=N"
            )
        if not var.lod_level and name not in shapes and -1 in (var.shape or ())[1:]:
            raise FluidValueError(
                f"input {name!r} is declared as {list(var.shape or ())}; give its sizes, as in"
                f" {example(name, var.shape or ())}"
            )


def _integer(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise FluidValueError(f"{option} takes integers, not {text!r}") from None


def _lengths(texts: list[str]) -> Lengths | None:
    """The value of --length, for all ragged inputs or for the named ones."""
    named: dict[str, list[int]] = {}
    for text in texts:
        name, equals, numbers = text.rpartition("=")
        if not equals and len(texts) > 1:
            raise FluidValueError(
                f"--length {text!r} is of all ragged inputs, so it stands alone; name an input in"
                " each, --length NAME=N"
            )
        found = [_integer("--length", n) for n in numbers.split(",")]
        if not equals:
            return found[0] if len(found) == 1 else found
        named[name] = found
    return named or None


def _time(text: str) -> tuple[int, str | float]:
    samples, _, taken = text.partition("=")
    try:
        return _integer("--measured", samples), float(taken)
    except ValueError:
        return _integer("--measured", samples), taken
