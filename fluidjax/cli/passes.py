"""``fluidjax passes``: the passes that pipelines can name, with their options."""

from __future__ import annotations

import argparse
import inspect
from dataclasses import fields


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[NAME ...]: all that these say about themselves; without names, one line each."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="print the whole text of these passes"
    )


def run(args: argparse.Namespace) -> int:
    """Print the table, or the whole text of some passes. Raises FluidValueError for an unknown
    name.
    """
    from ..passes import PASSES
    from ..passes.base import find

    for name in args.names:
        cls = find(name)
        options = "".join(f"\n    {f.name}: {f.type} = {f.default!r}" for f in fields(cls))
        print(
            f"{name}\n   "
            f" {(inspect.getdoc(cls) or '').replace(chr(10), chr(10) + '    ')}{options}\n"
        )
    if not args.names:
        for name in sorted(PASSES):
            options = ", ".join(f"{f.name}={f.default!r}" for f in fields(PASSES[name]))
            summary = (
                inspect.cleandoc(PASSES[name].__doc__ or "").split("\n\n")[0].replace("\n", " ")
            )
            print(f"{name + (f'({options})' if options else ''):<36} {summary}")
    return 0
