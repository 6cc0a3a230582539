"""``fluidjax compat SCRIPT``: reports which names of Paddle a script uses, and which of them are
supported.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from . import terminal

_STYLES = {"absent": "bad", "different": "doubtful", "there": "good"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """SCRIPT ..., --all."""
    parser.add_argument(
        "scripts",
        nargs="+",
        type=Path,
        metavar="SCRIPT",
        help="a file, or a folder with .py files; it is not run",
    )
    parser.add_argument(
        "--json", action="store_true", help="print all uses as JSON, those that are there too"
    )
    parser.add_argument("--all", action="store_true", help="list the names that are there too")


def run(args: argparse.Namespace) -> int:
    """Print a report; exit code 1 if a name is absent. Raises FluidValueError for a file that
    cannot be read.
    """
    from ..compat import CompatReport, compat_report

    reports = [compat_report(script) for script in args.scripts]
    report = CompatReport(
        tuple(use for r in reports for use in r),
        tuple(error for r in reports for error in r.unread),
    )
    if args.json:
        uses = [use._asdict() for use in report]
        print(json.dumps({"uses": uses, "unread": report.unread}, indent=1))
    else:
        head, *_ = str(report).split("\n")
        shown = [*report.absent, *report.different, *(report.there if args.all else ())]
        terminal.say(terminal.paint(head, "head"))
        for use in shown:
            print(terminal.paint(terminal.folded(str(use), terminal.width()), _STYLES[use.status]))
        for line in report.not_read():
            terminal.say(line)
    return 1 if report.absent else 0
