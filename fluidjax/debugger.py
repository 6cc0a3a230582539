"""Shows programs, under Fluid's names: a picture of a block for graphviz, and a program's text."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any

from .errors import FluidTypeError, FluidValueError, UnsupportedError
from .graph.block import Block
from .graph.program import Program
from .ir.desc import VarDesc

_HIGHLIGHT = "orange"


def draw_block_graphviz(
    block: Block, highlights: Iterable[str] | None = None, path: str = "./temp.dot"
) -> None:
    """Write a block as a graph in graphviz' language DOT: its ops and their variables, parameters
    with type and shape.

        fluid.debugger.draw_block_graphviz(main.global_block(), highlights=["fc_0.w_0"],
        path="net.dot")

    highlights: patterns (regular expressions, searched anywhere in a name) of variables to draw in
    another colour. If graphviz's program ``dot`` is installed, `path` with the suffix ".pdf" is
    drawn too, as in Paddle 1.8.5, which raises an error without it.

    Raises FluidTypeError for anything but a Block, FluidValueError for an invalid pattern,
    UnsupportedError with the output of ``dot`` if it fails.
    """
    if not isinstance(block, Block):
        raise FluidTypeError(
            f"block is a Block, such as program.global_block(), not {type(block).__name__}"
        )
    where = Path(path)
    where.write_text("\n".join(_dot(block, _patterns(highlights or ()))) + "\n", encoding="utf-8")
    if shutil.which("dot"):
        drawn = where.with_suffix(".pdf")
        done = subprocess.run(
            ["dot", "-Tpdf", str(where), "-o", str(drawn)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise UnsupportedError(
                f"{where} is written, but dot could not draw it: {done.stderr.strip()[:300]}"
            )


def _patterns(highlights: Iterable[str]) -> list[Any]:
    import re

    if isinstance(highlights, str):
        raise FluidTypeError(f"highlights is a list of patterns, not the text {highlights!r}")
    try:
        return [re.compile(h) for h in highlights]
    except re.error as error:
        raise FluidValueError(
            f"highlights has a pattern that is not a regular expression: {error}"
        ) from None


def _dot(block: Block, patterns: list[Any]) -> Iterator[str]:
    yield "digraph G {"
    yield '  rankdir="TB"; concentrate="true"; node [fontname="Arial"];'
    nodes: dict[str, str] = {}
    for i, op in enumerate(block.desc.ops):
        yield (
            f'  op_{i} [label={_quoted(op.type)}, shape="box", style="rounded,filled,bold",'
            ' color="#303A3A", fontcolor="#ffffff"];'
        )
        for name in dict.fromkeys((*op.reads, *op.writes)):
            if name not in nodes:
                nodes[name] = f"var_{len(nodes)}"
                yield (
                    f"  {nodes[name]}"
                    f" [{_variable(name, block.program.desc.find_var(name, block.idx), patterns)}];"
                )
        yield from (f"  {nodes[n]} -> op_{i};" for n in dict.fromkeys(op.reads))
        yield from (f"  op_{i} -> {nodes[n]};" for n in dict.fromkeys(op.writes))
    yield "}"


def _variable(name: str, var: VarDesc | None, patterns: list[Any]) -> str:
    marked = any(p.search(name) for p in patterns)
    if var is None or not var.is_parameter:
        colour = _HIGHLIGHT if marked else "#dddddd"
        return (
            f'label={_quoted(name)}, shape="box", style="rounded,filled,bold", color="{colour}",'
            ' fontcolor="#666666"'
        )
    what = f"{var.dtype} {list(var.shape or ())}" if var.kind == "LOD_TENSOR" else var.kind
    colour = _HIGHLIGHT if marked else "#148b97"
    return (
        f'label=<<b>{escape(name)}</b><br/>{escape(what)}>, shape="box", style="filled",'
        f' color="{colour}", fontcolor="#ffffff"'
    )


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def pprint_program_codes(program_desc: Program) -> str:
    """Print the text of a program, block by block. Paddle takes the program's protobuf message; a
    Program works too here.
    """
    return str(program_desc)


def pprint_block_codes(block_desc: Block, show_backward: bool = False) -> str:
    """Print the text of a block. show_backward: include gradient ops, which are otherwise left
    out.
    """
    if not isinstance(block_desc, Block):
        raise FluidTypeError(f"block_desc is a Block, not {type(block_desc).__name__}")
    ops = (op for op in block_desc.ops if show_backward or not op.type.endswith("_grad"))
    return "\n".join(map(str, ops))


__all__ = ["draw_block_graphviz", "pprint_block_codes", "pprint_program_codes"]
