"""Draws the timeline: live bytes over the ops, stacked by kind."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from ..errors import UnsupportedError
from .live import KINDS, Point

COLOURS = dict(zip(KINDS, ("#4c78a8", "#9d755d", "#bab0ac", "#59a14f", "#e1812c"), strict=True))
COLUMNS = 600  # more ops than this are drawn in groups, each as its highest op
WIDTH, HEIGHT = 720.0, 220.0


def columns(points: Sequence[Point], most: int = COLUMNS) -> list[Point]:
    """At most `most` points: the one with the most bytes of each run of neighbours."""
    step = -(-len(points) // most)
    return [
        max(points[at : at + step], key=lambda p: p.bytes) for at in range(0, len(points), step)
    ]


def svg(points: Sequence[Point]) -> str:
    """The timeline as an SVG element. No scripts, no links."""
    shown = columns(points)
    top = max(p.bytes for p in shown) or 1
    wide = WIDTH / len(shown)
    below = [0] * len(shown)
    areas = []
    for kind in KINDS:
        above = [b + p.by_kind[kind] for b, p in zip(below, shown, strict=True)]
        if above != below:
            areas.append(_area(kind, above, below, wide, HEIGHT / top))
        below = above
    peak = max(shown, key=lambda p: p.bytes)
    x = wide * (shown.index(peak) + 0.5)
    mark = (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{HEIGHT:.0f}" stroke="currentColor"'
        ' stroke-dasharray="3 3" opacity=".6"/>'
    )
    box = (
        f'viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" width="{WIDTH:.0f}" height="{HEIGHT:.0f}"'
        ' preserveAspectRatio="none"'
    )
    title = f"{len(points):,} ops; the most is {top:,} bytes at op {peak.index}, {peak.op}"
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img"'
        f" {box}><title>{escape(title)}</title>{''.join(areas)}{mark}</svg>"
    )


def _area(kind: str, above: Sequence[int], below: Sequence[int], wide: float, scale: float) -> str:
    """A path along the upper edge and back along the lower one."""
    forth = [
        f"{x:.1f},{HEIGHT - y * scale:.1f}"
        for i, y in enumerate(above)
        for x in (i * wide, (i + 1) * wide)
    ]
    back = [
        f"{x:.1f},{HEIGHT - y * scale:.1f}"
        for i, y in enumerate(below)
        for x in (i * wide, (i + 1) * wide)
    ]
    return (
        f'<polygon fill="{COLOURS[kind]}"'
        f' points="{" ".join(forth + back[::-1])}"><title>{kind}</title></polygon>'
    )


def save(points: Sequence[Point], path: Path) -> Path:
    """Draw the timeline into a file with matplotlib, without a display. Raises UnsupportedError
    without matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise UnsupportedError("save_picture needs matplotlib: pip install matplotlib") from exc
    figure = Figure(figsize=(9, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    shown = columns(points)
    kinds = [k for k in KINDS if any(p.by_kind[k] for p in shown)]
    heights = [[p.by_kind[k] / 1e6 for p in (*shown, shown[-1])] for k in kinds]
    at = [*(p.index for p in shown), len(points)]
    axes.stackplot(at, heights, labels=kinds, colors=[COLOURS[k] for k in kinds], step="post")
    peak = max(shown, key=lambda p: p.bytes)
    top = peak.bytes / 1e6
    axes.annotate(
        f"{top:,.3f} MB at {peak.op}",
        (peak.index, top),
        (0, 8),
        textcoords="offset points",
        ha="center",
    )
    axes.set(xlabel="op", ylabel="MB alive", ylim=(0, 1.15 * top or 1))
    axes.legend(loc="upper left", frameon=False)
    figure.savefig(path, dpi=120)
    return path
