"""A program's block as a graph in layers, folded: by role, by name scope, by the user's line; each
fold a graph of its own.

A graph has at most MOST boxes. Where a group has more, it is told apart by the next of these; where
none is left, consecutive ops go together. So a program of any size begins with a picture that can
be read, and every op is in one.

    <g class="fj-node" data-op="17">  the box of an op, which the script leads from and to the list
    of ops <g class="fj-node" data-group="4"> that of a group, and <details data-group="4"> its own
    graph below
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..base.roles import OP_NAMESCOPE
from ..errors import UnsupportedError
from ..ir import walk
from ..ir.desc import BlockDesc, OpDesc, ProgramDesc
from ..ir.show import to_dot
from ..saved.files import write_text
from .frame import count, esc, fold
from .geometry import BOX, WIDE, Point, arrange
from .picture import Picture, drawn, wide, words
from .roles import section_of

MOST = 24  # boxes of one graph
ENGINES = {"own": "fluidjax", "graphviz": "graphviz"}


@dataclass(frozen=True)
class Group:
    """Consecutive or related ops under one name. parts: groups within it; none for a single op."""

    name: str
    ops: tuple[int, ...]
    parts: tuple[Group, ...] = ()


@dataclass(frozen=True, repr=False)
class Graph(Picture):
    """The picture of a program; notebooks show the whole of it, with a fold for each group of ops
    that has a graph of its own.

    engine: what has arranged it, "own" or "graphviz".
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

        Raises FluidValueError for another ending, UnsupportedError where graphviz is not installed
        or fails.
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
    """Block 0 as a picture. The SVG, which save() writes, is that of the outermost groups; the HTML
    has all of them.

    engine: who arranges the boxes, as in `arrange`. Raises what that raises.
    """
    block = desc.blocks[0] if desc.blocks else BlockDesc()
    every = tuple(range(len(block.ops)))
    top = Group(title, every, tuple(_grouped(block.ops, every, _KEYS)))
    drawing = _Drawing(
        top, _edges(desc) if desc.blocks else [], [section_of(op) for op in block.ops], engine
    )
    inner = "".join(drawing.folds(p) for p in top.parts)
    text = "\n".join(_text(top, drawing.between[0]))
    return Graph(title, drawing.svg(top), text, desc, inner, drawing.geometry[0].engine)


def _edges(desc: ProgramDesc) -> list[tuple[int, int, str]]:
    """(from, to, name): op `to` reads the value that op `from` wrote; what blocks within an op use
    counts with it.
    """
    writer: dict[walk.Version, int] = {}
    found = []
    for at, names in enumerate(walk.versions(desc.blocks[0], desc)):
        found += [(writer[v], at, v[0]) for v in dict.fromkeys(names.reads) if v in writer]
        writer.update((v, at) for v in names.writes)
    return found


# -- groups ----------------------------------------------------------------------------------------

Key = Callable[[OpDesc], str]


def _scope(depth: int) -> Key:
    def key(op: OpDesc) -> str:
        scope = op.attrs.get(OP_NAMESCOPE)
        parts = scope.strip("/").split("/") if isinstance(scope, str) else []
        return parts[depth] if len(parts) > depth and parts[depth] else ""

    return key


_KEYS: tuple[Key, ...] = (section_of, _scope(0), _scope(1), _scope(2), lambda op: op.loc or "")


def _grouped(ops: Sequence[OpDesc], members: Sequence[int], keys: Sequence[Key]) -> Iterator[Group]:
    """`members` in at most MOST groups."""
    if len(members) <= MOST and (len(keys) < len(_KEYS) or len(members) <= MOST // 2):
        yield from (Group(ops[i].type, (i,)) for i in members)
        return
    for k, key in enumerate(keys):
        found: dict[str, list[int]] = {}
        for i in members:
            found.setdefault(key(ops[i]) or "other ops", []).append(i)
        if len(found) > 1:
            groups = [_group(name, ops, inside, keys[k + 1 :]) for name, inside in found.items()]
            yield from _joined(groups)
            return
    singles = [Group(ops[i].type, (i,)) for i in members]
    yield from _joined(singles)


def _group(name: str, ops: Sequence[OpDesc], members: list[int], keys: Sequence[Key]) -> Group:
    if len(members) == 1:
        return Group(ops[members[0]].type, tuple(members))
    return Group(name, tuple(members), tuple(_grouped(ops, members, keys)))


def _joined(groups: list[Group]) -> list[Group]:
    """At most MOST: consecutive ones together, evenly."""
    while len(groups) > MOST:
        each = min(MOST, -(-len(groups) // MOST))
        groups = [_together(groups[i : i + each]) for i in range(0, len(groups), each)]
    return groups


def _together(groups: list[Group]) -> Group:
    if len(groups) == 1:
        return groups[0]
    first, last = groups[0].name, groups[-1].name
    name = first if first == last else f"{first} ... {last}"
    return Group(name, tuple(sorted(i for g in groups for i in g.ops)), tuple(groups))


# -- pictures --------------------------------------------------------------------------------------


def _between(group: Group, edges: list[tuple[int, int, str]]) -> dict[tuple[int, int], list[str]]:
    """The names that pass from one part of a group to another, by the numbers of the parts."""
    part = {op: i for i, p in enumerate(group.parts) for op in p.ops}
    found: dict[tuple[int, int], list[str]] = {}
    for a, b, name in edges:
        i, j = part.get(a), part.get(b)
        if i is not None and j is not None and i != j:
            found.setdefault((i, j), []).append(name)
    return found


class _Drawing:
    """The graphs of a group and of all groups within it; each has a number, that of the outermost
    is 0.
    """

    def __init__(
        self, top: Group, edges: list[tuple[int, int, str]], sections: Sequence[str], engine: str
    ) -> None:
        self.sections = sections
        self.numbers: dict[tuple[int, ...], int] = {}
        self.between: list[dict[tuple[int, int], list[str]]] = []
        self._number(top, edges)
        graphs = [
            (len(parts), list(between))
            for parts, between in zip(self._parts(top), self.between, strict=True)
        ]
        self.geometry = arrange(graphs, engine)

    def _number(self, group: Group, edges: list[tuple[int, int, str]]) -> None:
        self.numbers[group.ops] = len(self.numbers)
        self.between.append(_between(group, edges))
        for part in group.parts:
            if part.parts:
                members = set(part.ops)
                self._number(part, [e for e in edges if e[0] in members and e[1] in members])

    def _parts(self, group: Group) -> Iterator[tuple[Group, ...]]:
        """The parts of every graph, in the order of their numbers."""
        yield group.parts
        for part in group.parts:
            if part.parts:
                yield from self._parts(part)

    def svg(self, group: Group) -> str:
        number = self.numbers[group.ops]
        geometry = self.geometry[number]
        parts = [
            _arrow(geometry.paths[pair], names, pair[0] > pair[1])
            for pair, names in self.between[number].items()
        ]
        parts += [self._box(part, at) for part, at in zip(group.parts, geometry.boxes, strict=True)]
        title = f"{group.name}: {count(len(group.ops), 'op')}"
        return drawn(geometry.width, geometry.height, title, "".join(parts))

    def _box(self, group: Group, at: Point) -> str:
        (x, y), inside = at, {self.sections[op] for op in group.ops}
        colour = f"var(--{inside.pop()})" if len(inside) == 1 else "var(--soft)"
        double = ' stroke-width="2.5"' if group.parts else ""
        label = (
            f"{group.name} ({len(group.ops):,})" if group.parts else f"{group.ops[0]} {group.name}"
        )
        place = (
            f'x="{x - WIDE / 2:.1f}" y="{y - BOX / 2:.1f}" width="{WIDE:.1f}" height="{BOX:.0f}"'
            ' rx="6"'
        )
        leads = (
            f'data-group="{self.numbers[group.ops]}"'
            if group.parts
            else f'data-op="{group.ops[0]}"'
        )
        box = f'<rect {place} fill="var(--panel)" stroke="{colour}"{double}/>' + words(
            x, y + 4, label, "middle", WIDE - 8
        )
        return f'<g class="fj-node" {leads}>{box}</g>'

    def folds(self, group: Group) -> str:
        """The graphs of a group and of those within it, which fold."""
        if not group.parts:
            return ""
        inner = "".join(map(self.folds, group.parts))
        head = f"<b>{esc(group.name)}</b> <small>{count(len(group.ops), 'op')}</small>"
        known = f' class="fj-block" data-group="{self.numbers[group.ops]}"'
        return fold(head, wide(group.name, self.svg(group)) + inner, attributes=known)


def _arrow(path: Sequence[Point], names: list[str], back: bool) -> str:
    (x, y), *bends = path
    line = f"M{x:.1f} {y:.1f}" + "".join(
        "C" + " ".join(f"{u:.1f} {v:.1f}" for u, v in bends[i : i + 3])
        for i in range(0, len(bends), 3)
    )
    told = ", ".join(dict.fromkeys(names))
    told = told if len(told) < 300 else f"{told[:300]} ... ({count(len(set(names)), 'variable')})"
    end, before = path[-1], path[-2]
    tip = f"M{end[0]:.1f} {end[1]:.1f}l-4 {7 if before[1] > end[1] else -7}h8z"
    dashes = ' stroke-dasharray="5 4"' if back else ""
    return (
        f'<g><title>{esc(told)}</title><path d="{line}" fill="none" stroke="var(--soft)"'
        f' stroke-width="1.3"{dashes}/><path d="{tip}" fill="var(--soft)"/></g>'
    )


def _text(group: Group, between: Mapping[tuple[int, int], list[str]]) -> Iterator[str]:
    for part in group.parts:
        yield (
            f"{part.name}: {count(len(part.ops), 'op')}"
            if part.parts
            else f"op {part.ops[0]} {part.name}"
        )
    for (i, j), names in between.items():
        shown = list(dict.fromkeys(names))
        more = f" and {len(shown) - 8:,} more" if len(shown) > 8 else ""
        yield f"{group.parts[i].name} -> {group.parts[j].name}: {', '.join(shown[:8])}{more}"
