"""``fluidjax compat SCRIPT``: which names of Paddle a script uses, and which of them are there."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """SCRIPT ..., --all."""
    parser.add_argument(
        "scripts",
        nargs="+",
        type=Path,
        metavar="SCRIPT",
        help="a file, or a folder with .py files; it is not run",
    )
    parser.add_argument("--all", action="store_true", help="list the names that are there too")


def run(args: argparse.Namespace) -> int:
    """Print a report; exit code 1 where a name is absent. Raises FluidValueError for a file that
    cannot be read.
    """
    from ..compat import CompatReport, compat_report

    reports = [compat_report(script) for script in args.scripts]
    report = CompatReport(
        tuple(use for r in reports for use in r), tuple(told for r in reports for told in r.unread)
    )
    print(report)
    if args.all:
        print(*report.there, sep="\n")
    return 1 if report.absent else 0
