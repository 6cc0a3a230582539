"""``fluidjax trace MODULE:FUNCTION``: show a JAX function as a program."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

from ..errors import FluidValueError, near
from ..ir.text import paint
from ..saved.files import write_text
from . import terminal

_TYPE = re.compile(r"([a-z]+\d*(?:<\w+>)?)\[([\d, ]*)\]")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The function, its arguments, and the form."""
    parser.add_argument(
        "function", metavar="MODULE:FUNCTION", help="a function, or a module of flax nnx or equinox"
    )
    usage = (
        'types such as "f32[8, 16]", or one MODULE:FUNCTION that returns the arguments as a tuple'
    )
    parser.add_argument("arguments", metavar="ARGUMENT", nargs="*", help=usage)
    parser.add_argument(
        "--state", help="arguments that persist, by position or name: 0,1 or params,opt_state"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--text", action="store_true", help="the whole program, not its outline")
    form.add_argument("--json", action="store_true", help="the whole program as JSON")
    form.add_argument("--graph", action="store_true", help="a page for a browser with the graph")
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help="write into FILE instead of printing"
    )


def run(args: argparse.Namespace) -> int:
    """Print, or write. Raises TraceError for a function that cannot be traced, FluidValueError for
    an unknown name or type.
    """
    from ..tracing import trace

    sys.path.insert(0, os.getcwd())
    given = args.arguments
    values = (
        _found(given[0])() if len(given) == 1 and ":" in given[0] else tuple(map(_typed, given))
    )
    traced = trace(
        _found(args.function), *values, state="auto" if args.state is None else _state(args.state)
    )
    text = _text(traced, args)
    if args.out is None:
        print(_seen(text, args))
    else:
        write_text(args.out, text)
        print(f"wrote {args.out} ({len(text.encode()):,} bytes)")
    return 0


def _text(traced: Any, args: argparse.Namespace) -> str:
    from ..ir.jsonio import to_json
    from ..look.frame import page
    from ..look.graph import graph

    if args.text:
        return str(traced)
    if args.json:
        return to_json(traced.main.desc, indent=1)
    if args.graph:
        return page(graph(traced.main.desc).fragment(), args.function)
    return str(traced.outline())


def _seen(text: str, args: argparse.Namespace) -> str:
    """The text as a terminal shows it."""
    if args.json or args.graph or not terminal.watched():
        return text
    text = terminal.folded(terminal.shortened(text), terminal.width())
    return paint(text) if terminal.coloured() else text


def _found(name: str) -> Any:
    """The object that MODULE:NAME names."""
    module, _, attribute = name.partition(":")
    try:
        holder = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (module, module.partition(".")[0]):
            raise
        raise FluidValueError(
            f"there is no module {module!r} in {os.getcwd()} or among the installed ones"
        ) from None
    if not attribute or not hasattr(holder, attribute):
        raise FluidValueError(
            f"module {module!r} has no {attribute!r}{near(attribute, vars(holder))}; write"
            " MODULE:NAME"
        )
    return getattr(holder, attribute)


def _typed(text: str) -> Any:
    """An argument given only by its type, from text such as ``f32[8, 16]``."""
    import jax

    from ..base.dtypes import numpy_dtype
    from ..ir.lexis import DTYPE_OF

    match = _TYPE.fullmatch(text.strip())
    if match is None or match[1] not in DTYPE_OF:
        raise FluidValueError(
            f"{text!r} is not a type of an array; write one such as f32[8, 16] or i32[]"
        )
    sizes = tuple(int(n) for n in match[2].replace(",", " ").split())
    return jax.ShapeDtypeStruct(sizes, numpy_dtype(DTYPE_OF[match[1]]))


def _state(text: str) -> list[int | str]:
    return [int(word) if word.isdigit() else word for word in text.replace(",", " ").split()]
