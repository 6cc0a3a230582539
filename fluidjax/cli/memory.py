"""``fluidjax memory MODEL``: report the memory that a saved model needs, before it is run."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from . import terminal
from .models import add_model, add_sizes, open_program, shapes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, --batch, --shape, --picture, --json."""
    add_model(parser)
    add_sizes(parser)
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="draw the timeline (.png or .svg)"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON, in bytes")


def run(args: argparse.Namespace) -> int:
    """Print the report. Raises FluidValueError if a size is unknown."""
    from ..saved.model import feeds_and_fetches

    program = open_program(args)
    feeds, fetches = feeds_and_fetches(program.desc)
    sizes = shapes(args, program, feeds)
    report = program.memory_report(batch_size=args.batch, fetch_list=fetches, feed_shapes=sizes)
    if args.json:
        print(json.dumps(report.to_dict(), indent=1))
    else:
        terminal.say(report)
    if args.picture:
        report.save_picture(args.picture)
    return 0
