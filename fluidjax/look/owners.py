"""Shows which holder has which part of which array: a bar for each array, divided between its
holders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .frame import count, esc
from .picture import WIDE, Picture, drawn, words

WIDTH, ROW = 420.0, 26.0
_COLOURS = ("communication", "forward", "backward", "optimize", "schedule")
SHOWN = 200  # arrays that are drawn; the text has all


@dataclass(frozen=True)
class Part:
    """Elements `start` to `start + size` of a flattened array, held by the holder with this
    number.
    """

    holder: int
    start: int
    size: int
    name: str = ""


@dataclass(frozen=True)
class Held:
    """An array and its holders. everywhere: each holder has all of it. spread: its rows are
    assigned to the holders in turn.

    apart: each holder has a value of its own.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    parts: tuple[Part, ...] = ()
    everywhere: bool = False
    spread: bool = False
    apart: bool = False

    @property
    def holding(self) -> str:
        """How holders have it, if not in parts."""
        ways = (
            ("whole on each", self.everywhere),
            ("row by row in turn", self.spread),
            ("another value on each", self.apart),
        )
        return next((way for way, holds in ways if holds), "" if self.parts else "held by none")

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}" + (
            f", {self.holding}" if self.holding else ""
        )


def owners(title: str, holders: Sequence[str], arrays: Sequence[Held]) -> Picture:
    """The picture, and the text: each array's parts, and the total of each holder."""
    room = WIDE * min(34, max([10, *(len(a.name) for a in arrays)])) + 16
    shown = arrays[:SHOWN]
    parts = [_key(i, holder, room) for i, holder in enumerate(holders)]
    top = ROW * len(holders) + 12
    for i, array in enumerate(shown):
        parts.append(_bar(array, room, top + ROW * i))
    if len(arrays) > len(shown):
        parts.append(
            words(room, top + ROW * len(shown) + 14, f"and {len(arrays) - len(shown):,} more")
        )
    height = top + ROW * (len(shown) + (len(arrays) > len(shown))) + 6
    name = f"{title}: {count(len(arrays), 'array')} on {', '.join(holders)}"
    return Picture(
        title,
        drawn(room + WIDTH + 200, height, name, "".join(parts)),
        "\n".join(_text(holders, arrays)),
    )


def _key(i: int, holder: str, room: float) -> str:
    box = (
        f'<rect x="{room:.1f}" y="{ROW * i + 4:.1f}" width="26" height="18" rx="3" fill="none"'
        f' stroke="{_colour(i)}" stroke-width="2"/>'
    )
    return (
        box
        + words(room + 13, ROW * i + 17, str(i), "middle")
        + words(room + 36, ROW * i + 17, holder)
    )


def _bar(array: Held, room: float, y: float) -> str:
    total = max(1, math.prod(array.shape))
    made = [words(room - 8, y + 16, array.name, "end", room - 12)]
    if array.holding:
        made.append(_box(room, y, WIDTH, "var(--soft)", array.holding, str(array), dashed=True))
    for part in array.parts:
        x, wide = room + WIDTH * part.start / total, max(1.5, WIDTH * part.size / total)
        hint = (
            f"{part.name or array.name}: elements {part.start:,} to {part.start + part.size - 1:,},"
            f" held by {part.holder}"
        )
        made.append(
            _box(x, y, wide, _colour(part.holder), str(part.holder) if wide > 16 else "", hint)
        )
    return "".join(made) + words(
        room + WIDTH + 8, y + 16, f"{array.dtype}{list(array.shape)}", room=190
    )


def _box(
    x: float, y: float, wide: float, colour: str, label: str, hint: str, dashed: bool = False
) -> str:
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    box = (
        f'<rect x="{x:.1f}" y="{y + 3:.1f}" width="{wide:.1f}" height="19" fill="{colour}"'
        f' fill-opacity=".18" stroke="{colour}"{dashes}/>'
    )
    return f"<g><title>{esc(hint)}</title>{box}{words(x + wide / 2, y + 17, label, 'middle') if label else ''}</g>"


def _colour(i: int) -> str:
    return f"var(--{_COLOURS[i % len(_COLOURS)]})"


def _text(holders: Sequence[str], arrays: Sequence[Held]) -> list[str]:
    lines = []
    for i, holder in enumerate(holders):
        mine = [p for a in arrays for p in a.parts if p.holder == i]
        whole = sum(a.everywhere for a in arrays)
        more = f", and {count(whole, 'array')} whole" if whole else ""
        lines.append(
            f"{i} = {holder}: {count(sum(p.size for p in mine), 'element')} in"
            f" {count(len(mine), 'part')}{more}"
        )
    for array in arrays:
        lines.append(str(array))
        lines += [
            f"  {p.name or array.name}: {p.start:,} to {p.start + p.size - 1:,} on {p.holder}"
            for p in array.parts
        ]
    return lines
