"""Computes positions of the boxes and arrows of graphs: by our own layers, or by graphviz if that
is requested and installed.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import FluidValueError, UnsupportedError
from .layered import Layout, arranged

# pixels of a box with its margins, of a layer, of a box's height
ROOM, ROW, BOX = 260.0, 68.0, 42.0
WIDE = ROOM - 20
ENGINES = ("own", "graphviz", "auto")
PATIENCE = 60.0  # seconds after which graphviz is stopped

Point = tuple[float, float]
Nodes = tuple[int, Sequence[tuple[int, int]]]  # the number of boxes, and arrows from one to another


@dataclass(frozen=True)
class Geometry:
    """In pixels: the size, the middle of each box, and for each arrow the points of its Bezier
    curves, tail first.

    engine: the layout engine, "own" or "graphviz".
    """

    width: float
    height: float
    boxes: tuple[Point, ...]
    paths: dict[tuple[int, int], tuple[Point, ...]]
    engine: str


def arrange(graphs: Sequence[Nodes], engine: str = "own") -> list[Geometry]:
    """The positions of all boxes and arrows of several graphs.

    engine: "own": our own layers, which need no other software and are the same everywhere;
    "graphviz": its ``dot``; "auto": graphviz if it is installed and works, else our own. Raises
    FluidValueError for another engine, UnsupportedError if graphviz is requested but missing, or
    fails.
    """
    if engine not in ENGINES:
        raise FluidValueError(
            f"a graph is arranged by {', '.join(map(repr, ENGINES[:-1]))} or {ENGINES[-1]!r}, not"
            f" by {engine!r}"
        )
    if engine == "graphviz" or (engine == "auto" and shutil.which("dot")):
        try:
            return _by_graphviz(graphs)
        except UnsupportedError:
            if engine == "graphviz":
                raise
    return [_by_layers(*one) for one in graphs]


def _by_layers(count: int, edges: Sequence[tuple[int, int]]) -> Geometry:
    where = arranged(count, edges)
    widest = max([1, *where.widths])
    boxes = tuple(
        _center(where, widest, layer, place)
        for layer, place in zip(where.layer, where.place, strict=True)
    )
    paths = {pair: _bends(where, widest, pair) for pair in edges}
    return Geometry(ROOM * widest, ROW * max(1, len(where.widths)) + 8, boxes, paths, "own")


def _center(where: Layout, widest: int, layer: int, place: int) -> Point:
    """The middle of a place; layers are centred on the widest."""
    return ROOM * (place + 0.5 + (widest - where.widths[layer]) / 2), ROW * layer + 8 + BOX / 2


def _bends(where: Layout, widest: int, pair: tuple[int, int]) -> tuple[Point, ...]:
    """The points of an arrow, which has places of its own in the layers between its ends."""
    top, end = min(pair), max(pair)
    stops = [_center(where, widest, where.layer[top], where.place[top])]
    stops += [
        _center(where, widest, where.layer[top] + 1 + k, place)
        for k, place in enumerate(where.bends[top, end])
    ]
    stops.append(_center(where, widest, where.layer[end], where.place[end]))
    found = [(stops[0][0], stops[0][1] + BOX / 2)]
    for (x0, y0), (x1, y1) in itertools.pairwise(stops):
        middle, foot = (y0 + y1) / 2, y1 - (BOX / 2 if (x1, y1) == stops[-1] else 0)
        found += [(x0, middle), (x1, middle), (x1, foot)]
    return tuple(found if pair[0] < pair[1] else found[::-1])


# -- graphviz --------------------------------------------------------------------------------------


def _by_graphviz(graphs: Sequence[Nodes]) -> list[Geometry]:
    """All graphs by one process. Its input has nothing from the program: boxes are numbers."""
    if not shutil.which("dot"):
        raise UnsupportedError(
            'a graph is arranged by graphviz, which is not installed; engine="own" needs nothing'
        )
    try:
        done = subprocess.run(
            ["dot", "-Tplain"], input="".join(_source(*one) for one in graphs), capture_output=True, text=True, check=False,
            timeout=PATIENCE,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedError(
            f'graphviz could not arrange a graph ({error}); engine="own" needs nothing'
        ) from None
    if done.returncode:
        raise UnsupportedError(
            f'graphviz could not arrange a graph ({done.stderr.strip()[:300]}); engine="own" needs'
            " nothing"
        )
    texts = done.stdout.split("stop\n")[:-1]
    if len(texts) != len(graphs):
        raise UnsupportedError(
            f'graphviz arranged {len(texts)} graphs of {len(graphs)}; engine="own" needs nothing'
        )
    return [_read(text, count) for text, (count, _) in zip(texts, graphs, strict=True)]


def _source(count: int, edges: Sequence[tuple[int, int]]) -> str:
    boxes = "".join(f"{i};" for i in range(count))
    arrows = "".join(f"{a}->{b};" for a, b in edges)
    size = f"width={WIDE / 72:.4f},height={BOX / 72:.4f},fixedsize=true,shape=box"
    return f"digraph{{nodesep={20 / 72:.4f};ranksep={(ROW - BOX) / 72:.4f};node[{size}];{boxes}{arrows}}}\n"


def _read(text: str, count: int) -> Geometry:
    """Graphviz's plain format: inches from the lower left corner."""
    boxes: list[Point] = [(0.0, 0.0)] * count
    paths: dict[tuple[int, int], tuple[Point, ...]] = {}
    width = height = 0.0

    def point(x: str, y: str) -> Point:
        return float(x) * 72 + 8, height - float(y) * 72 + 8

    for line in text.splitlines():
        match line.split():
            case ["graph", _, wide, high]:
                width, height = float(wide) * 72, float(high) * 72
            case ["node", name, x, y, *_]:
                boxes[int(name)] = point(x, y)
            case ["edge", tail, head, n, *numbers]:
                xs, ys = numbers[: 2 * int(n) : 2], numbers[1 : 2 * int(n) : 2]
                made = tuple(map(point, xs, ys))
                paths[int(tail), int(head)] = (
                    *made[:-1],
                    _extended_to_box(made[-1], boxes[int(head)]),
                )
    return Geometry(width + 16, height + 16, tuple(boxes), paths, "graphviz")


def _extended_to_box(end: Point, box: Point) -> Point:
    """Extend a curve to the box; graphviz ends it at the head of its own arrow."""
    return end[0], box[1] + (BOX / 2 if end[1] > box[1] else -BOX / 2)
