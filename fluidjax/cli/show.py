"""``fluidjax show MODEL``: print a saved program as text, HTML or a graph."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..saved.files import write_text
from . import terminal
from .models import add_model, open_program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, and the form."""
    add_model(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--html",
        action="store_true",
        help="a page for a browser, graph and list, in one file that fetches nothing",
    )
    form.add_argument(
        "--graph",
        action="store_true",
        help="a page with the graph in layers, folded by what its parts are",
    )
    form.add_argument("--dot", action="store_true", help="a graph for graphviz")
    form.add_argument(
        "--counts",
        action="store_true",
        help="how many ops of each type there are, and which cannot run here",
    )
    form.add_argument("--json", action="store_true", help="the program as JSON")
    usage = (
        "who arranges the graph: graphviz, fluidjax's own layers, or (the default) graphviz where"
        " it is installed"
    )
    parser.add_argument("--engine", choices=("auto", "own", "graphviz"), default="auto", help=usage)
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help="write into FILE instead of printing"
    )


def run(args: argparse.Namespace) -> int:
    """Print, or write. Raises the errors of loading the program, FluidValueError for a file that
    cannot be written.

    Parameters are not read.
    """
    text = _text(args)
    if args.out is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        write_text(args.out, text)
        print(f"wrote {args.out} ({len(text.encode()):,} bytes)")
    return 0


def _text(args: argparse.Namespace) -> str:
    from ..ir import show
    from ..ir.jsonio import to_json
    from ..ir.text import paint, to_text
    from ..look.frame import page
    from ..look.graph import graph
    from ..look.program import to_page
    from ..lower.step import unsupported
    from ..passes.base import count_ops

    desc = open_program(args).desc
    if args.html:
        return to_page(desc, args.model.resolve().name, engine=args.engine)
    if args.graph:
        return page(graph(desc, engine=args.engine).fragment(), args.model.resolve().name)
    if args.dot:
        return show.to_dot(desc)
    if args.json:
        return to_json(desc, indent=1)
    if args.counts:
        missing = set(unsupported(desc))
        rows = [
            (f"{n:,}", kind, "not there" if kind in missing else "")
            for kind, n in count_ops(desc).most_common()
        ]
        return terminal.table(("ops", "type", ""), rows, (0,))
    text = to_text(desc, callstacks=False)
    if args.out is not None or not terminal.watched():
        return text
    text = terminal.folded(terminal.shortened(text), terminal.width())
    return paint(text) if terminal.coloured() else text
