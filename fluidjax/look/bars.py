"""Bars beside names, the longest first, to show where time or memory is spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .frame import esc
from .picture import WIDE, Picture, drawn, words

WIDTH, ROW = 360.0, 26.0


class Bar(NamedTuple):
    """One bar. label: the text after it."""

    name: str
    size: float
    label: str
    colour: str = "forward"  # one of look.roles.SECTIONS


def bars(title: str, shown: Sequence[Bar]) -> Picture:
    """The picture, and a line of text for each bar. Sizes are in one unit, none negative."""
    room = WIDE * max([8, *(len(bar.name) for bar in shown)]) + 16
    behind = WIDE * max([0, *(len(bar.label) for bar in shown)]) + 20
    longest = max((bar.size for bar in shown), default=0) or 1
    parts = []
    for i, bar in enumerate(shown):
        y, long = ROW * i + 4, max(1.0, WIDTH * bar.size / longest)
        place = f'x="{room:.1f}" y="{y:.1f}" width="{long:.1f}" height="18" rx="3"'
        parts.append(
            words(0, y + 13, bar.name)
            + f'<rect {place} fill="none" stroke="var(--{esc(bar.colour)})" stroke-width="2"/>'
            + words(room + long + 8, y + 13, bar.label)
        )
    height = ROW * max(1, len(shown)) + 6
    text = "\n".join(f"{bar.name}: {bar.label}" for bar in shown)
    return Picture(title, drawn(room + WIDTH + behind, height, title, "".join(parts)), text)
