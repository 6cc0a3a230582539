"""A program's block as a graph in layers, folded: by role, by name scope, by the user's line; each fold a graph of its own.

A graph has at most MOST boxes. Where a group has more, it is told apart by the next of these; where none is left,
consecutive ops go together. So a program of any size begins with a picture that can be read, and every op is in one.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..base.roles import OP_NAMESCOPE
from ..errors import UnsupportedError
from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc
from ..ir.show import to_dot
from ..saved.files import write_text
from .frame import count, esc, fold
from .layered import Layout, arranged
from .picture import Picture, drawn, wide, words
from .roles import section_of

MOST = 24  # boxes of one graph
ROOM, ROW, BOX = 190.0, 64.0, 34.0


@dataclass(frozen=True)
class Group:
    """Consecutive or related ops under one name. parts: groups within it; none for a single op."""

    name: str
    ops: tuple[int, ...]
    parts: tuple[Group, ...] = ()


@dataclass(frozen=True, repr=False)
class Graph(Picture):
    """The picture of a program; notebooks show the whole of it, with a fold for each group of ops that has a graph of its own."""

    desc: ProgramDesc
    inner: str
    endings: ClassVar[tuple[str, ...]] = (".svg", ".html", ".dot", ".pdf", ".png")

    def html(self) -> str:
        return super().html() + self.inner

    def save(self, path: str | Path) -> Path:
        """Write the outermost graph (.svg), all of them as a page (.html), or every op and variable by graphviz (.dot, .pdf, .png).

        Raises FluidValueError for another ending, UnsupportedError where graphviz is not installed or fails.
        """
        where = Path(path)
        if where.suffix not in (".dot", ".pdf", ".png"):
            return super().save(where)
        if where.suffix == ".dot":
            write_text(where, to_dot(self.desc))
            return where
        if not shutil.which("dot"):
            raise UnsupportedError(f"{where.name!r} is drawn by graphviz, which is not installed; .svg and .html need nothing")
        command = ["dot", f"-T{where.suffix[1:]}", "-o", str(where)]
        done = subprocess.run(command, input=to_dot(self.desc), capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnsupportedError(f"graphviz could not draw {where.name!r}: {done.stderr.strip()[:300]}")
        return where


def graph(desc: ProgramDesc, title: str = "graph") -> Graph:
    """Block 0 as a picture. The SVG, which save() writes, is that of the outermost groups; the HTML has all of them."""
    block = desc.blocks[0]
    every = tuple(range(len(block.ops)))
    top = Group(title, every, tuple(_grouped(block.ops, every, _KEYS)))
    edges = _edges(desc)
    sections = [section_of(op) for op in block.ops]
    inner = "".join(_folds(p, edges, sections) for p in top.parts)
    return Graph(title, _svg(top, edges, sections), "\n".join(_text(top, edges)), desc, inner)


def _edges(desc: ProgramDesc) -> list[tuple[int, int, str]]:
    """(from, to, name): op `to` reads the value that op `from` wrote; what blocks within an op use counts with it."""
    writer: dict[walk.Version, int] = {}
    found = []
    for at, names in enumerate(walk.versions(desc.blocks[0], desc)):
        found += [(writer[v], at, v[0]) for v in dict.fromkeys(names.reads) if v in writer]
        writer.update((v, at) for v in names.writes)
    return found


# -- groups ------------------------------------------------------------------------------------------------------------

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


# -- pictures ----------------------------------------------------------------------------------------------------------


def _between(group: Group, edges: list[tuple[int, int, str]]) -> dict[tuple[int, int], list[str]]:
    """The names that pass from one part of a group to another, by the numbers of the parts."""
    part = {op: i for i, p in enumerate(group.parts) for op in p.ops}
    found: dict[tuple[int, int], list[str]] = {}
    for a, b, name in edges:
        i, j = part.get(a), part.get(b)
        if i is not None and j is not None and i != j:
            found.setdefault((i, j), []).append(name)
    return found


def _svg(group: Group, edges: list[tuple[int, int, str]], sections: Sequence[str]) -> str:
    between = _between(group, edges)
    where = arranged(len(group.parts), between)
    widest = max([1, *where.widths])
    parts = [_edge(where, widest, pair, names) for pair, names in between.items()]
    for i, one in enumerate(group.parts):
        inside = {sections[op] for op in one.ops}
        colour = f"var(--{inside.pop()})" if len(inside) == 1 else "var(--soft)"
        parts.append(_box(one, *_at(where, widest, where.layer[i], where.place[i]), colour))
    return drawn(ROOM * widest, ROW * max(1, len(where.widths)) + 8, f"{group.name}: {count(len(group.ops), 'op')}", "".join(parts))


def _at(where: Layout, widest: int, layer: int, place: int) -> tuple[float, float]:
    """The middle of a place; layers stand in the middle of the widest."""
    return ROOM * (place + 0.5 + (widest - where.widths[layer]) / 2), ROW * layer + 8 + BOX / 2


def _box(group: Group, x: float, y: float, colour: str) -> str:
    room = ROOM - 20
    double = ' stroke-width="2.5"' if group.parts else ""
    label = f"{group.name} ({len(group.ops):,})" if group.parts else f"{group.ops[0]} {group.name}"
    box = f'<rect x="{x - room / 2:.1f}" y="{y - BOX / 2:.1f}" width="{room:.1f}" height="{BOX:.0f}" rx="6"'
    return f'{box} fill="var(--panel)" stroke="{colour}"{double}/>' + words(x, y + 4, label, "middle", room - 8)


def _edge(where: Layout, widest: int, pair: tuple[int, int], names: list[str]) -> str:
    a, b = pair
    back = a > b
    top, end = min(pair), max(pair)
    bends = where.bends[top, end]
    points = [_at(where, widest, where.layer[top], where.place[top])]
    points += [_at(where, widest, where.layer[top] + 1 + k, place) for k, place in enumerate(bends)]
    points.append(_at(where, widest, where.layer[end], where.place[end]))
    (x, y), (u, v) = points[0], points[-1]
    line = f"M{x:.1f} {y + BOX / 2:.1f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        middle, foot = (y0 + y1) / 2, y1 - (BOX / 2 if (x1, y1) == (u, v) else 0)
        line += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {foot:.1f}"
    told = ", ".join(dict.fromkeys(names))
    told = told if len(told) < 300 else f"{told[:300]} ... ({count(len(set(names)), 'variable')})"
    tip = f"M{x:.1f} {y + BOX / 2:.1f}l-4 7h8z" if back else f"M{u:.1f} {v - BOX / 2:.1f}l-4 -7h8z"
    dashes = ' stroke-dasharray="5 4"' if back else ""
    return (
        f'<g><title>{esc(told)}</title><path d="{line}" fill="none" stroke="var(--soft)" stroke-width="1.3"{dashes}/>'
        f'<path d="{tip}" fill="var(--soft)"/></g>'
    )


def _folds(group: Group, edges: list[tuple[int, int, str]], sections: Sequence[str]) -> str:
    """The graphs of a group and of those within it, which fold."""
    if not group.parts:
        return ""
    members = set(group.ops)
    own = [e for e in edges if e[0] in members and e[1] in members]
    picture = wide(group.name, _svg(group, own, sections))
    inner = "".join(_folds(p, own, sections) for p in group.parts)
    return fold(f"<b>{esc(group.name)}</b> <small>{count(len(group.ops), 'op')}</small>", picture + inner, attributes=' class="fj-block"')


def _text(group: Group, edges: list[tuple[int, int, str]]) -> Iterator[str]:
    for part in group.parts:
        yield f"{part.name}: {count(len(part.ops), 'op')}" if part.parts else f"op {part.ops[0]} {part.name}"
    for (i, j), names in _between(group, edges).items():
        shown = list(dict.fromkeys(names))
        more = f" and {len(shown) - 8:,} more" if len(shown) > 8 else ""
        yield f"{group.parts[i].name} -> {group.parts[j].name}: {', '.join(shown[:8])}{more}"
