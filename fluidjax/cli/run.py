"""``fluidjax run SCRIPT [ARGS]``: run a script that imports paddle, with fluidjax in paddle's place."""

from __future__ import annotations

import argparse
import re
import runpy
import sys
import traceback
from pathlib import Path
from types import TracebackType

from ..errors import FluidValueError, near, note
from .paddle_names import in_paddles_place


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """SCRIPT and whatever follows it."""
    parser.add_argument("script", type=Path, metavar="SCRIPT", help="a Python file")
    parser.add_argument("args", nargs=argparse.REMAINDER, metavar="ARGS", help="the script's own arguments")


def run(args: argparse.Namespace) -> int:
    """Run the script as __main__. Its exit code; 1 after a traceback when it raises."""
    script: Path = args.script
    if not script.is_file():
        raise FluidValueError(f"there is no script {str(script)!r}")
    old_argv, old_path = sys.argv, sys.path[:]
    sys.argv = [str(script), *args.args]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        with in_paddles_place():
            runpy.run_path(str(script), run_name="__main__")
    except Exception as exc:
        _hint(exc)
        traceback.print_exception(exc.with_traceback(_from(exc.__traceback__, str(script))))
        return 1
    finally:
        sys.argv, sys.path[:] = old_argv, old_path
    return 0


def _hint(exc: Exception) -> None:
    """Say what resembles a name that a ``from paddle.x import name`` did not find."""
    match = re.match(r"cannot import name '(\w+)'", str(exc))
    module = sys.modules.get(getattr(exc, "name", None) or "")
    if isinstance(exc, ImportError) and match and module is not None and (module.__name__ + ".").startswith("fluidjax."):
        likely = near(match[1], [n for n in dir(module) if not n.startswith("_")])
        note(exc, f"fluidjax lacks {match[1]!r} here{likely}")


def _from(tb: TracebackType | None, script: str) -> TracebackType | None:
    """The traceback from the script's first frame on."""
    found = tb
    while found is not None and found.tb_frame.f_code.co_filename != script:
        found = found.tb_next
    return found or tb
