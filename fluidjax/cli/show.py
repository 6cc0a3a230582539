"""``fluidjax show MODEL``: print a saved program as text, HTML or a graph."""

from __future__ import annotations

import argparse

from .models import add_model, open_program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, and the form."""
    add_model(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--html", action="store_true", help="a page for a browser")
    form.add_argument("--dot", action="store_true", help="a graph for graphviz")
    form.add_argument("--counts", action="store_true", help="how many ops of each type there are, and which cannot run here")


def run(args: argparse.Namespace) -> int:
    """Print. Raises what loading the program raises; parameters are not read."""
    from ..ir import show
    from ..ir.text import to_text
    from ..lower.step import unsupported
    from ..passes.base import count_ops

    desc = open_program(args).desc
    if args.html:
        print(f"<!doctype html><meta charset=utf-8><title>{args.model.name}</title>{show.to_html(desc)}")
    elif args.dot:
        print(show.to_dot(desc), end="")
    elif args.counts:
        missing = set(unsupported(desc))
        for kind, count in count_ops(desc).most_common():
            print(f"{count:>6}  {kind}{'  (not there)' if kind in missing else ''}")
    else:
        print(to_text(desc, callstacks=False), end="")
    return 0

