"""Shows programs as text: a graph for graphviz, and the difference of two programs. look/ makes
HTML and pictures.
"""

from __future__ import annotations

import difflib

from . import walk
from .desc import BlockDesc, ProgramDesc
from .edit import renumber
from .lexis import printable, type_text
from .text import to_text, usual_hints


def to_dot(desc: ProgramDesc) -> str:
    """The program as graphviz text: boxes are ops, ellipses values; a name that is written again is
    a new value.
    """
    lines = ["digraph program {", '  node [fontname="monospace", fontsize=10];', "  compound=true;"]
    for idx, block in enumerate(desc.blocks):
        title = f"block {idx}" + (f" (parent {block.parent})" if block.parent != -1 else "")
        lines += [
            f"  subgraph cluster_{idx} {{",
            f"    label={quoted(title)};",
            *_cluster(desc, idx, block),
            "  }",
        ]
    for idx, block in enumerate(desc.blocks):
        for at, op in enumerate(block.ops):
            for ref in op.blocks:
                if 0 <= ref < len(desc.blocks) and desc.blocks[ref].ops:
                    lines.append(
                        f"  op_{idx}_{at} -> op_{ref}_0 [style=dashed, lhead=cluster_{ref}];"
                    )
    return "\n".join([*lines, "}"]) + "\n"


def _cluster(desc: ProgramDesc, idx: int, block: BlockDesc) -> list[str]:
    nodes: dict[walk.Version, str] = {}
    edges: list[str] = []

    def value(version: walk.Version) -> str:
        return nodes.setdefault(version, f"v_{idx}_{len(nodes)}")

    boxes = []
    for at, (op, names) in enumerate(zip(block.ops, walk.versions(block), strict=True)):
        boxes.append(f"    op_{idx}_{at} [shape=box, label={quoted(op.type)}];")
        edges += [f"    {value(v)} -> op_{idx}_{at};" for v in dict.fromkeys(names.reads)]
        edges += [f"    op_{idx}_{at} -> {value(v)};" for v in dict.fromkeys(names.writes)]
    return boxes + [_ellipse(desc, idx, version, node) for version, node in nodes.items()] + edges


def _ellipse(desc: ProgramDesc, idx: int, version: walk.Version, node: str) -> str:
    name, k = version
    var = desc.find_var(name, idx)
    label = (f"{name} #{k}" if k > 1 else name) + (f"\n{type_text(var)}" if var else "")
    style = (
        ", style=bold"
        if var and var.persistable
        else ""
        if name in desc.blocks[idx].vars
        else ", style=dashed"
    )
    return f"    {node} [shape=ellipse, label={quoted(label)}{style}];"


def quoted(text: str) -> str:
    """A graphviz string; backslashes and line breaks in `text` are escaped."""
    return (
        '"'
        + printable(text, kept="\n").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        + '"'
    )


def diff(a: ProgramDesc, b: ProgramDesc, names: tuple[str, str] = ("before", "after")) -> str:
    """A unified diff of two printed programs; empty if they are equal. Uids are shown only if
    nothing else differs.
    """
    if a == b:
        return ""
    return "\n".join(difflib.unified_diff(*both(a, b), *names, n=2, lineterm="")) + "\n"


def both(a: ProgramDesc, b: ProgramDesc) -> tuple[list[str], list[str]]:
    """The lines of two programs for a comparison: uids only if nothing else differs, with hints
    that both share.
    """
    plain = [renumber(a), renumber(b)]
    if plain[0] == plain[1]:
        plain = [a, b]
    shared = usual_hints(plain)
    old, new = (to_text(desc, hints=shared).split("\n") for desc in plain)
    return old, new
