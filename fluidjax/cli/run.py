"""``fluidjax run SCRIPT [ARGS]``: run a script that imports paddle, with fluidjax in paddle's place."""

from __future__ import annotations

import argparse
import runpy
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from ..errors import FluidValueError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """SCRIPT and whatever follows it."""
    parser.add_argument("script", type=Path, metavar="SCRIPT", help="a Python file")
    parser.add_argument("args", nargs=argparse.REMAINDER, metavar="ARGS", help="the script's own arguments")


def run(args: argparse.Namespace, on_error: Callable[[Exception], None] = lambda error: None) -> int:
    """Run the script as __main__. Returns 0, or 1 after a traceback when it raises; SystemExit passes through.

    on_error: is given what the script raises, before the traceback is printed.
    """
    from .. import paddle

    script: Path = args.script
    if not script.is_file():
        raise FluidValueError(f"there is no script {str(script)!r}")
    old_argv, old_path = sys.argv, sys.path[:]
    sys.argv = [str(script), *args.args]
    sys.path.insert(0, str(script.resolve().parent))
    paddle.install()
    try:
        runpy.run_path(str(script), run_name="__main__")
    except Exception as exc:
        on_error(exc)
        traceback.print_exception(exc.with_traceback(_from(exc.__traceback__, str(script))))
        return 1
    finally:
        paddle.uninstall()
        sys.argv, sys.path[:] = old_argv, old_path
    return 0


def _from(tb: TracebackType | None, script: str) -> TracebackType | None:
    """The traceback from the script's first frame on."""
    found = tb
    while found is not None and found.tb_frame.f_code.co_filename != script:
        found = found.tb_next
    return found or tb
