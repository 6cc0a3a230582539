"""Curves over the steps of a training, one picture below another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from .frame import esc
from .picture import Picture, drawn, words

WIDTH, HEIGHT, LEFT, GAP = 560.0, 130.0, 84.0, 46.0
POINTS = 280  # points of a curve; a longer one is drawn by the means of as many parts
# a curve is logarithmic if its largest value is more than this many times its smallest
RANGE = 30.0
_COLOURS = ("forward", "backward", "optimize", "communication", "schedule")


def curves(title: str, series: Mapping[str, Sequence[float]]) -> Picture:
    """A picture of each series by steps; values that are not finite leave a gap. The text has the
    first, the last, the smallest and the largest value.
    """
    parts, lines = [], []
    for i, (name, values) in enumerate(series.items()):
        top = (HEIGHT + GAP) * i + 20
        parts.append(_one(name, _means(values), len(values), top, _COLOURS[i % len(_COLOURS)]))
        known = [v for v in values if math.isfinite(v)]
        lines.append(
            f"{name}: {short(values[0])} at first, {short(values[-1])} at last, least"
            f" {short(min(known))}, largest {short(max(known))}, {len(values):,} steps"
            if known
            else f"{name}: no finite value in {len(values):,} steps"
        )
    height = (HEIGHT + GAP) * max(1, len(series))
    return Picture(title, drawn(LEFT + WIDTH + 20, height, title, "".join(parts)), "\n".join(lines))


def short(value: float) -> str:
    """Four digits."""
    return f"{value:.4g}"


def _means(values: Sequence[float]) -> list[float]:
    """At most POINTS values: each the mean of as many consecutive ones."""
    each = -(-len(values) // POINTS) if values else 1
    return [
        sum(part) / len(part)
        for part in (values[i : i + each] for i in range(0, len(values), each))
    ]


def _one(name: str, points: Sequence[float], steps: int, top: float, colour: str) -> str:
    known = [v for v in points if math.isfinite(v)]
    least, largest = min(known, default=0.0), max(known, default=1.0)
    log = least > 0 and largest / least >= RANGE
    scaled = [math.log(v) if log and v > 0 else v for v in points]
    low, high = (math.log(least), math.log(largest)) if log else (least, largest)
    room = (high - low) or 1.0
    across = WIDTH / max(1, len(points) - 1)
    path, gap = "", True
    for i, value in enumerate(scaled):
        if not math.isfinite(value):
            gap = True
            continue
        x, y = LEFT + across * i, top + HEIGHT * (1 - (value - low) / room)
        path += f"{'M' if gap else 'L'}{x:.1f} {y:.1f}"
        gap = False
    frame = (
        f'<rect x="{LEFT:.1f}" y="{top:.1f}" width="{WIDTH:.1f}" height="{HEIGHT:.1f}" fill="none"'
        ' stroke="var(--line)"/>'
    )
    line = f'<path d="{path or "M0 0"}" fill="none" stroke="var(--{colour})" stroke-width="1.6"/>'
    scale = f"{name}, by logarithms" if log else name
    return (
        f"<g><title>{esc(scale)}</title>{frame}{line}</g>"
        + words(LEFT, top - 6, scale)
        + words(LEFT - 6, top + 10, short(largest), "end")
        + words(LEFT - 6, top + HEIGHT, short(least), "end")
        + words(LEFT, top + HEIGHT + 16, "step 1")
        + words(LEFT + WIDTH, top + HEIGHT + 16, f"{steps:,}", "end")
    )
