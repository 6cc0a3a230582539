"""``fluidjax passes``: list the passes that pipelines can name, with their options."""

from __future__ import annotations

import argparse
import inspect
import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from . import terminal

if TYPE_CHECKING:
    from ..passes import Pass


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[NAME ...]: passes to describe in full; without names, one line for each pass."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="print the whole text of these passes"
    )
    parser.add_argument(
        "--json", action="store_true", help="print the passes and their options as JSON"
    )


def run(args: argparse.Namespace) -> int:
    """Print the table, or the full description of some passes. Raises FluidValueError for an
    unknown name.
    """
    from ..passes import PASSES
    from ..passes.base import find

    chosen = {name: find(name) for name in args.names or sorted(PASSES)}
    if args.json:
        print(json.dumps({name: _described(cls) for name, cls in chosen.items()}, indent=1))
        return 0
    for name, cls in chosen.items():
        text = inspect.getdoc(cls) or ""
        if args.names:
            options = "".join(f"\n    {f.name}: {f.type} = {f.default!r}" for f in fields(cls))
            terminal.say(f"{name}\n    {text.replace(chr(10), chr(10) + '    ')}{options}\n")
        else:
            options = ", ".join(f"{f.name}={f.default!r}" for f in fields(cls))
            summary = text.split("\n\n")[0].replace("\n", " ")
            terminal.say(f"{name + (f'({options})' if options else ''):<36} {summary}")
    return 0


def _described(cls: type[Pass]) -> dict[str, Any]:
    options = {f.name: {"type": str(f.type), "default": f.default} for f in fields(cls)}
    return {"text": inspect.getdoc(cls) or "", "options": options}
