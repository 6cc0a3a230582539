"""``fluidjax export MODEL OUT``: write a saved model for another runtime, and report what became of
each op.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..errors import FluidValueError
from ..ir.dims import bare
from . import terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, OUT, --format, --opset, --shape, --json."""
    from ..exporting import FORMATS, SUFFIXES

    parser.add_argument(
        "model",
        type=Path,
        metavar="MODEL",
        help="a folder that a model was saved in, or a .pdmodel",
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="the file to write")
    parser.add_argument(
        "--format",
        metavar="NAME",
        help=f"{', '.join(FORMATS)} (default: what OUT ends in: {', '.join(SUFFIXES)})",
    )
    parser.add_argument("--opset", type=int, default=17, help="of ONNX, 17 to 21 (default: 17)")
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=n,3,32,32",
        help="the sizes of an input: a number fixes an open size, a word names it, h>=32 bounds it",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(args: argparse.Namespace) -> int:
    """Export, and print the report. If the format lacks something the report says so, OUT does not
    change, and the exit code is 1.
    """
    from ..exporting import ExportError, export

    shapes = dict(_sizes(text) for text in args.shape)
    try:
        report = export(args.model, args.out, args.format, shapes=shapes, opset=args.opset)
        code = 0
    except ExportError as error:
        report, code = error.report, 1
    if args.json:
        print(json.dumps(report.to_dict(), indent=1))
    else:
        terminal.say(report)
    return code


def _sizes(text: str) -> tuple[str, tuple[int | str, ...]]:
    name, _, sizes = text.partition("=")
    words = [w.strip() for w in sizes.split(",")]
    if not name or not all(bare(w).isidentifier() or w.isdigit() for w in words):
        raise FluidValueError(f"--shape {text!r} should look like image=n,3,640,h>=32")
    return name, tuple(int(w) if w.isdigit() else w for w in words)
