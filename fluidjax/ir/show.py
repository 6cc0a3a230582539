"""Programs to look at: HTML for notebooks, a graph for graphviz, and the difference of two programs."""

from __future__ import annotations

import difflib
import html
import json

from . import walk
from .desc import BlockDesc, ProgramDesc
from .edit import renumber
from .lexis import type_text
from .text import styled, summary, to_text, usual_hints

# Mid-tone colours: they can be read on white and on black.
_CSS = """.fj{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.85em}
.fj pre{margin:0 0 .5em 0;white-space:pre;overflow-x:auto;color:inherit;background:none}
.fj summary{cursor:pointer;font-weight:600}
.fj .op{color:#3b82d6;font-weight:600}.fj .type{color:#1d9a8a}.fj .number{color:#b5761f}
.fj .string{color:#4f9a3d}.fj .word{color:#9a6bd0}.fj .quiet,.fj .comment{opacity:.55}"""


def to_html(desc: ProgramDesc, limit: int = 2000) -> str:
    """The printed program as HTML: a fold for each block, at most `limit` lines in each. No scripts, no links."""
    parts = [f'<div class="fj"><style>{_CSS}</style><div>{html.escape(summary(desc)).replace(chr(10), "<br>")}</div>']
    for head, lines in _sections(to_text(desc, callstacks=False)):
        shown, more = lines[:limit], len(lines) - limit
        body = _spans("\n".join(shown)) + (f"\n    ... {more:,} more lines" if more > 0 else "")
        fold = " open" if head.startswith("block") else ""
        parts.append(f"<details{fold}><summary>{html.escape(head)}</summary><pre>{body}</pre></details>")
    return "".join(parts) + "</div>"


def _sections(text: str) -> list[tuple[str, list[str]]]:
    """(head line, indented lines) of each section of printed text but the first line."""
    found: list[tuple[str, list[str]]] = []
    for line in text.split("\n")[1:]:
        if line and not line.startswith(" "):
            found.append((line, []))
        elif found and (line or found[-1][1]):
            found[-1][1].append(line)
    return [(head, lines[:-1] if lines and not lines[-1] else lines) for head, lines in found]


def _spans(text: str) -> str:
    return "".join(
        f'<span class="{style}">{html.escape(part)}</span>' if style not in ("", "name") else html.escape(part)
        for style, part in styled(text)
    )


def to_dot(desc: ProgramDesc) -> str:
    """The program as graphviz text: boxes are ops, ellipses values; a name that is written again is a new value."""
    lines = ["digraph program {", '  node [fontname="monospace", fontsize=10];', "  compound=true;"]
    for idx, block in enumerate(desc.blocks):
        title = f"block {idx}" + (f" (parent {block.parent})" if block.parent != -1 else "")
        lines += [f"  subgraph cluster_{idx} {{", f"    label={_quoted(title)};", *_cluster(desc, idx, block), "  }"]
    for idx, block in enumerate(desc.blocks):
        for at, op in enumerate(block.ops):
            for ref in op.blocks:
                if 0 <= ref < len(desc.blocks) and desc.blocks[ref].ops:
                    lines.append(f"  op_{idx}_{at} -> op_{ref}_0 [style=dashed, lhead=cluster_{ref}];")
    return "\n".join([*lines, "}"]) + "\n"


def _cluster(desc: ProgramDesc, idx: int, block: BlockDesc) -> list[str]:
    nodes: dict[walk.Version, str] = {}
    edges: list[str] = []

    def value(version: walk.Version) -> str:
        return nodes.setdefault(version, f"v_{idx}_{len(nodes)}")

    boxes = []
    for at, (op, names) in enumerate(zip(block.ops, walk.versions(block), strict=True)):
        boxes.append(f"    op_{idx}_{at} [shape=box, label={_quoted(op.type)}];")
        edges += [f"    {value(v)} -> op_{idx}_{at};" for v in dict.fromkeys(names.reads)]
        edges += [f"    op_{idx}_{at} -> {value(v)};" for v in dict.fromkeys(names.writes)]
    return boxes + [_ellipse(desc, idx, version, node) for version, node in nodes.items()] + edges


def _ellipse(desc: ProgramDesc, idx: int, version: walk.Version, node: str) -> str:
    name, k = version
    var = desc.find_var(name, idx)
    label = (f"{name} #{k}" if k > 1 else name) + (f"\n{type_text(var)}" if var else "")
    style = ", style=bold" if var and var.persistable else "" if name in desc.blocks[idx].vars else ", style=dashed"
    return f"    {node} [shape=ellipse, label={_quoted(label)}{style}];"


def _quoted(text: str) -> str:
    """A graphviz string; a backslash in `text` is shown, not obeyed, and a line break is one."""
    plain = "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def diff(a: ProgramDesc, b: ProgramDesc, names: tuple[str, str] = ("before", "after")) -> str:
    """A unified diff of two printed programs; empty if they are equal. Uids show only where nothing else differs."""
    if a == b:
        return ""
    plain = [renumber(a), renumber(b)]
    if plain[0] == plain[1]:
        plain = [a, b]
    shared = usual_hints(plain)
    old, new = (to_text(desc, hints=shared).split("\n") for desc in plain)
    return "\n".join(difflib.unified_diff(old, new, *names, n=2, lineterm="")) + "\n"
