"""``fluidjax completion SHELL``: prints a script that makes a shell complete the commands, their
options and files.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..errors import UnsupportedError

SHELLS = ("bash", "zsh", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """SHELL."""
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def run(args: argparse.Namespace) -> int:
    """Print the script. Raises UnsupportedError if shtab, which writes it, is not installed."""
    try:
        import shtab
    except ImportError:
        raise UnsupportedError(
            "completion is written by shtab, which is not installed: pip install"
            " 'fluidjax[completion]'"
        ) from None
    from . import whole_parser

    class Completed(argparse.ArgumentParser):
        """A parser whose paths are completed as files."""

        def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
            action = super().add_argument(*names, **options)
            if options.get("type") is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            return action

    print(shtab.complete(whole_parser(Completed), args.shell))
    return 0
