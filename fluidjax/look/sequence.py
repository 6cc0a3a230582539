"""A sequence diagram: messages between actors, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .frame import count, esc
from .picture import WIDE, Picture, drawn, words

LANE, ROW, HEAD = 210.0, 28.0, 46.0
SHOWN = 500  # messages that are drawn; the text has all


class Said(NamedTuple):
    """An event: an arrow from one actor to another or, without `to`, an action of one actor."""

    actor: str
    to: str | None
    label: str
    reply: bool = False  # a reply, drawn with a broken line


def sequence(title: str, actors: Sequence[str], said: Sequence[Said]) -> Picture:
    """Actors side by side, events from top to bottom. Raises KeyError for an actor that is not
    listed.
    """
    at = {name: LANE * (i + 0.5) for i, name in enumerate(actors)}
    shown = said[:SHOWN]
    height = HEAD + ROW * (len(shown) + 1 + (len(said) > len(shown)))
    parts = [_lane(name, x, height) for name, x in at.items()]
    parts += [_arrow(at, one, HEAD + ROW * (i + 1)) for i, one in enumerate(shown)]
    if len(said) > len(shown):
        parts.append(words(12, height - 10, f"and {len(said) - len(shown):,} more"))
    lines = [
        f"{one.actor} {one.label}" if one.to is None else f"{one.actor} -> {one.to}: {one.label}"
        for one in said
    ]
    name = f"{title}: {count(len(said), 'message')} between {', '.join(actors)}"
    return Picture(
        title, drawn(LANE * max(1, len(actors)), height, name, "".join(parts)), "\n".join(lines)
    )


def _lane(name: str, x: float, height: float) -> str:
    box = (
        f'<rect x="{x - LANE / 2 + 8:.1f}" y="6" width="{LANE - 16:.1f}" height="28" rx="5"'
        ' fill="var(--panel)" stroke="var(--line)"/>'
    )
    line = (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="34" y2="{height:.1f}" stroke="var(--line)"'
        ' stroke-width="2"/>'
    )
    return line + box + words(x, 24, name, "middle", LANE - 24)


def _arrow(at: dict[str, float], one: Said, y: float) -> str:
    x = at[one.actor]
    if one.to is None:
        wide = min(LANE - 20, 16 + WIDE * len(one.label))
        place = f'x="{x - wide / 2:.1f}" y="{y - 17:.1f}" width="{wide:.1f}" height="20" rx="10"'
        return f'<rect {place} fill="var(--panel)" stroke="var(--optimize)"/>' + words(
            x, y - 3, one.label, "middle", LANE - 32
        )
    end = at[one.to]
    way = 1 if end > x else -1
    colour = "var(--soft)" if one.reply else "var(--communication)"
    dashes = ' stroke-dasharray="5 4"' if one.reply else ""
    line = (
        f'<line x1="{x:.1f}" x2="{end - 7 * way:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}"'
        f' stroke-width="1.5"{dashes}/>'
    )
    tip = f'<path d="M{end:.1f} {y:.1f}l{-8 * way} -4v8z" fill="{colour}"/>'
    room = min(abs(end - x), LANE) - 24
    # over the first gap that the arrow crosses, where no other lane crosses the text
    return f"<g><title>{esc(one.label)}</title>{line}{tip}</g>" + words(
        x + way * LANE / 2, y - 6, one.label, "middle", room
    )
