"""``fluidjax run SCRIPT [ARGS]``: run a script that imports paddle, with fluidjax in paddle's
place.
"""

from __future__ import annotations

import argparse
import contextlib
import runpy
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from ..errors import FluidValueError
from . import INTERRUPTED
from .surroundings import around, leftover


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--report, SCRIPT and its arguments."""
    usage = (
        "say afterwards on stderr which of Paddle's names were used, what was compiled, and what"
        " differs from Paddle"
    )
    parser.add_argument("--report", action="store_true", help=usage)
    parser.add_argument("script", type=Path, metavar="SCRIPT", help="a Python file")
    parser.add_argument(
        "args", nargs=argparse.REMAINDER, metavar="ARGS", help="the script's own arguments"
    )


def run(args: argparse.Namespace) -> int:
    """Run the script as __main__. Returns 0, or 1 after a traceback if it raises; SystemExit is
    passed on.

    If the process has joined a job, the other processes get the reason why it ends.
    """
    from .. import paddle
    from ..dist.jobs.process import telling_why

    script: Path = args.script
    if not script.is_file():
        raise FluidValueError(f"there is no script {str(script)!r}")
    old_argv = sys.argv
    sys.argv = [str(script), *args.args]
    paddle.install()
    try:
        with (
            around(script) as old_names,
            _reporting(getattr(args, "report", False), old_names),
            telling_why(INTERRUPTED),
        ):
            runpy.run_path(str(script), run_name="__main__")
    except Exception as exc:
        if hint := leftover(exc):
            exc.add_note(hint)
        traceback.print_exception(exc.with_traceback(_from(exc.__traceback__, str(script))))
        return 1
    finally:
        paddle.uninstall()
        sys.argv = old_argv
    return 0


@contextlib.contextmanager
def _reporting(wanted: bool, old_names: set[str]) -> Iterator[None]:
    """Print a report at the end, also if the script fails."""
    if not wanted:
        yield
        return
    from .run_report import watched

    with watched(old_names) as report:
        try:
            yield
        finally:
            print(report(), file=sys.stderr)


def _from(tb: TracebackType | None, script: str) -> TracebackType | None:
    """The traceback from the script's first frame on."""
    found = tb
    while found is not None and found.tb_frame.f_code.co_filename != script:
        found = found.tb_next
    return found or tb
