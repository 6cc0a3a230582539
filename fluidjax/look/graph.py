"""A program as a graph in layers, folded by the groups of folding.py; each fold is a graph of its
own.

A graph has at most MOST boxes. So a program of any size begins with a readable picture, and every
op of block 0 is in one.

    <g class="fj-node" data-op="17">     the box of an op, of another block than 0 with data-b, which
                                         the script leads from and to the list of ops
    <g class="fj-node" data-group="4">   that of a group, and <details data-group="4"> its own graph
                                         below; an op that runs blocks has both
"""

from __future__ import annotations

import math
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..errors import UnsupportedError
from ..ir.desc import BlockDesc, ProgramDesc
from ..ir.show import to_dot
from ..ir.walk import weights
from ..saved.files import write_text
from .folding import edges, folded
from .frame import count, esc, fold
from .geometry import BOX, WIDE, Point, arrange
from .groups import Group
from .picture import WIDE as CHARACTER
from .picture import Picture, drawn, wide, words
from .roles import section_of
from .structure import Edge

MANY = 4  # arrows from or to one box
NARROW = 6.4  # pixels of a character of a box's second line
ENGINES = {"own": "fluidjax", "graphviz": "graphviz"}


@dataclass(frozen=True, repr=False)
class Graph(Picture):
    """The picture of a program; notebooks show the whole of it, with a fold for each group of ops
    that has a graph of its own.

    engine: the layout engine, "own" or "graphviz".
    """

    desc: ProgramDesc
    inner: str
    engine: str = "own"
    endings: ClassVar[tuple[str, ...]] = (".svg", ".html", ".dot", ".pdf", ".png")

    def __repr__(self) -> str:
        ops = sum(len(block.ops) for block in self.desc.blocks[:1])
        return f"<Graph: {count(ops, 'op')}, arranged by {ENGINES[self.engine]}>"

    def html(self) -> str:
        return (
            f"{super().html()}<p><small>arranged by {ENGINES[self.engine]}</small></p>{self.inner}"
        )

    def save(self, path: str | Path) -> Path:
        """Write the outermost graph (.svg), all of them as a page (.html), or every op and variable
        by graphviz (.dot, .pdf, .png).

        Raises FluidValueError for another suffix, UnsupportedError if graphviz is not installed or
        fails.
        """
        where = Path(path)
        if where.suffix not in (".dot", ".pdf", ".png"):
            return super().save(where)
        if where.suffix == ".dot":
            write_text(where, to_dot(self.desc))
            return where
        if not shutil.which("dot"):
            raise UnsupportedError(
                f"{where.name!r} is drawn by graphviz, which is not installed; .svg and .html need"
                " nothing"
            )
        command = ["dot", f"-T{where.suffix[1:]}", "-o", str(where)]
        done = subprocess.run(
            command, input=to_dot(self.desc), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise UnsupportedError(
                f"graphviz could not draw {where.name!r}: {done.stderr.strip()[:300]}"
            )
        return where


def graph(desc: ProgramDesc, title: str = "graph", engine: str = "own") -> Graph:
    """A program as a picture. The SVG, which save() writes, shows the outermost groups; the HTML
    has all groups.

    engine: as in `arrange`, whose errors it raises.
    """
    block = desc.blocks[0] if desc.blocks else BlockDesc()
    top = Group(title, tuple(range(len(block.ops))), folded(desc))
    drawing = _Drawing(desc, top, engine)
    inner = "".join(map(drawing.folds, top.parts))
    text = "\n".join(_text(top, drawing.between[0]))
    return Graph(title, drawing.svg(top), text, desc, inner, drawing.geometry[0].engine)


def _crossing_names(
    parts: Sequence[Group], edges: Sequence[Edge]
) -> dict[tuple[int, int], list[str]]:
    """The names that pass from one part of a group to another, by the numbers of the parts."""
    part = {op: i for i, p in enumerate(parts) for op in p.ops}
    found: dict[tuple[int, int], list[str]] = {}
    for a, b, name in edges:
        i, j = part.get(a), part.get(b)
        if i is not None and j is not None and i != j:
            found.setdefault((i, j), []).append(name)
    return found


def _implied(count: int, pairs: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Arrows of which only the ends are drawn: if MANY begin or end at one box, those that a longer
    path replaces. So a picture of a training step is not covered by arrows from the forward to the
    backward pass.
    """
    after: dict[int, set[int]] = {i: set() for i in range(count)}
    into: Counter[int] = Counter()
    for i, j in pairs:
        after[i].add(j)
        into[j] += 1
    reach: dict[int, set[int]] = {}
    for i in reversed(range(count)):  # parts are in order: nearly all arrows lead to later ones
        reach[i] = {k for j in after[i] if j > i for k in (j, *reach[j])}
    return {
        (i, j)
        for i, j in pairs
        if i < j
        and (into[j] >= MANY or len(after[i]) >= MANY)
        and any(j in reach[k] for k in after[i] if i < k < j)
    }


def _inside(group: Group) -> tuple[Group, ...]:
    return group.parts or group.body


class _Drawing:
    """The graphs of a group and of all groups within it, by number; the outermost is 0."""

    def __init__(self, desc: ProgramDesc, top: Group, engine: str) -> None:
        self.desc = desc
        self.weights = weights(desc)
        self.numbers: dict[int, int] = {}  # id of a group -> the number of its graph
        self.groups: list[Group] = []
        self.between: list[dict[tuple[int, int], list[str]]] = []
        self._number(top, edges(desc) if desc.blocks else [])
        self.short = [
            _implied(len(_inside(g)), b) for g, b in zip(self.groups, self.between, strict=True)
        ]
        graphs = [
            (len(_inside(group)), [pair for pair in between if pair not in short])
            for group, between, short in zip(self.groups, self.between, self.short, strict=True)
        ]
        self.geometry = arrange(graphs, engine)

    def _number(self, group: Group, known: Sequence[Edge]) -> None:
        self.numbers[id(group)] = len(self.numbers)
        self.groups.append(group)
        self.between.append(_crossing_names(_inside(group), known))
        for part in _inside(group):
            if part.parts:
                members = set(part.ops)
                self._number(part, [e for e in known if e[0] in members and e[1] in members])
            elif part.body:
                self._number(part, edges(self.desc, part.body[0].block))

    def svg(self, group: Group) -> str:
        number = self.numbers[id(group)]
        geometry = self.geometry[number]
        inside = _inside(group)
        parts = [
            _arrow(geometry.paths[pair], names, pair[0] > pair[1])
            for pair, names in self.between[number].items()
            if pair not in self.short[number]
        ]
        for end, way in ((0, "to"), (1, "from")):
            for i, at in enumerate(geometry.boxes):
                there = [p for p in self.short[number] if p[end] == i]
                if there:
                    parts.append(_arrow_end(at, way, [inside[p[1 - end]].name for p in there]))
        parts += map(self._box, inside, geometry.boxes)
        title = f"{group.name}: {count(len(group.ops), 'op')}"
        return drawn(geometry.width, geometry.height, title, "".join(parts))

    def _box(self, group: Group, at: Point) -> str:
        (x, y), ops = at, self.desc.blocks[group.block].ops
        inside = {section_of(ops[op]) for op in group.ops}
        colour = f"var(--{inside.pop()})" if len(inside) == 1 else "var(--soft)"
        opens = id(group) in self.numbers
        leads = f' data-group="{self.numbers[id(group)]}"' if opens else ""
        if not group.parts:
            block = f' data-b="{group.block}"' if group.block else ""
            leads += f' data-op="{group.ops[0]}"{block}'
        name = group.name if group.parts else f"{group.ops[0]} {ops[group.ops[0]].type}"
        place = (
            f'x="{x - WIDE / 2:.1f}" y="{y - BOX / 2:.1f}" width="{WIDE:.1f}" height="{BOX:.0f}"'
            ' rx="6"'
        )
        double = ' stroke-width="2.5"' if opens else ""
        box = f'<rect {place} fill="var(--panel)" stroke="{colour}"{double}/>'
        box += words(x, y - 2, name, "middle", WIDE - 8)
        box += words(
            x,
            y + 13,
            self._summary(group, not group.parts),
            "middle",
            (WIDE - 8) * CHARACTER / NARROW,
            "sub",
        )
        return f'<g class="fj-node"{leads}>{box}</g>'

    def _summary(self, group: Group, alone: bool = False) -> str:
        """The number of ops, the shape of the output, the parameters."""
        ops = [self.desc.blocks[group.block].ops[i] for i in group.ops]
        held = {n: self.weights[n] for op in ops for n in op.reads if n in self.weights}
        size = sum(math.prod(max(d, 1) for d in v.shape or ()) for v in held.values())
        last = ops[-1]
        main = [n for slot in ("Out", "Output", "Y", "Hidden") for n in last.output(slot)]
        made = next((n for n in (*main, *last.writes) if n not in held), "")
        var = self.desc.find_var(made, group.block)
        shape = "×".join("?" if d < 0 else str(d) for d in (var.shape if var else None) or ())
        parts = [
            "" if alone else count(len(ops), "op"),
            shape,
            f"{short(size)} params" if size else "",
        ]
        return " · ".join(filter(None, parts))

    def folds(self, group: Group) -> str:
        """The graphs of a group and of those within it, which fold."""
        if id(group) not in self.numbers:
            return ""
        inner = "".join(map(self.folds, _inside(group)))
        head = f"<b>{esc(group.name)}</b> <small>{esc(self._summary(group))}</small>"
        known = f' class="fj-block" data-group="{self.numbers[id(group)]}"'
        name = f"{group.name}, graph {self.numbers[id(group)]}"  # another one for each
        return fold(head, wide(name, self.svg(group)) + inner, attributes=known)


def short(n: int) -> str:
    """``1.2M``."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if n >= size:
            return f"{n / size:.3g}{unit}"
    return str(n)


def _arrow(path: Sequence[Point], names: list[str], back: bool) -> str:
    (x, y), *bends = path
    line = f"M{x:.1f} {y:.1f}" + "".join(
        "C" + " ".join(f"{u:.1f} {v:.1f}" for u, v in bends[i : i + 3])
        for i in range(0, len(bends), 3)
    )
    hint = ", ".join(dict.fromkeys(names))
    hint = hint if len(hint) < 300 else f"{hint[:300]} ... ({count(len(set(names)), 'variable')})"
    end, before = path[-1], path[-2]
    tip = f"M{end[0]:.1f} {end[1]:.1f}l-4 {7 if before[1] > end[1] else -7}h8z"
    dashes = ' stroke-dasharray="5 4"' if back else ""
    return (
        f'<g><title>{esc(hint)}</title><path d="{line}" fill="none" stroke="var(--soft)"'
        f' stroke-width="1.3"{dashes}/><path d="{tip}" fill="var(--soft)"/></g>'
    )


def _arrow_end(at: Point, way: str, names: list[str]) -> str:
    """The end of an arrow that is not drawn: below the box that it leaves, above the one that it
    reaches.
    """
    x, y = at[0] + WIDE / 2 - 14, at[1] + (BOX / 2 if way == "to" else -BOX / 2 - 13)
    hint = f"{way} {', '.join(dict.fromkeys(names))}"
    return (
        f'<g><title>{esc(hint)}</title><path d="M{x:.1f} {y:.1f}v11" fill="none" stroke="var(--soft)"'
        f' stroke-dasharray="2 2"/><path d="M{x:.1f} {y + 13:.1f}l-3 -5h6z" fill="var(--soft)"/></g>'
    )


def _text(group: Group, between: Mapping[tuple[int, int], list[str]]) -> Iterator[str]:
    for part in group.parts:
        yield (
            f"{part.name}: {count(len(part.ops), 'op')}"
            if part.parts
            else f"op {part.ops[0]}: {part.name}"
        )
    for (i, j), names in between.items():
        shown = list(dict.fromkeys(names))
        more = f" and {len(shown) - 8:,} more" if len(shown) > 8 else ""
        yield f"{group.parts[i].name} -> {group.parts[j].name}: {', '.join(shown[:8])}{more}"
