"""A plan as tables: text, and HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterator

from ..look.frame import esc, fragment
from .figures import Figures, Row
from .links import KINDS

_HEADS = (
    "devices", "batch each", "parameters", "state", "activations", "in all", "flops", "collectives", "sent", "step", "samples/s", "bound",
)  # fmt: skip


def _scaled(number: float | None, unit: str = "", base: str = " kMGTPE") -> str:
    if number is None:
        return "?"
    step = 0
    while abs(number) >= 999.5 and step < len(base) - 1:
        number, step = number / 1000, step + 1
    digits = f"{number:.3g}" if number else "0"
    return f"{digits} {base[step].strip()}{unit}".rstrip()


def size(number: float | None) -> str:
    """Bytes, shortened: 1.23 GB is 1,230,000,000."""
    return _scaled(number, "B")


def time(seconds: float | None) -> str:
    """Seconds, shortened."""
    if seconds is None:
        return "?"
    unit, each = next(
        ((u, e) for u, e in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)) if seconds >= e), ("ns", 1e-9)
    )
    return f"{seconds / each:.3g} {unit}"


def _cells(row: Row) -> tuple[str, ...]:
    room = size(row.activations) + (
        "" if row.temporaries is None else f" ({size(row.temporaries)} compiled)"
    )
    moved = (
        ", ".join(f"{kind} {size(row.payload[kind])}" for kind in KINDS if row.payload.get(kind))
        or "none"
    )
    return (
        f"{row.devices:,}", f"{row.each:,}", size(row.parameters), size(row.state), room, size(row.bytes),
        _scaled(row.flops), moved, size(row.sent), time(row.seconds), _scaled(row.samples_a_second), row.bound or "?",
    )  # fmt: skip


def _groups(plan: Figures) -> Iterator[tuple[str, list[Row]]]:
    for strategy in dict.fromkeys(r.strategy for r in plan.rows):
        yield strategy, [r for r in plan.rows if r.strategy == strategy]


TEXTS = {_HEADS.index("collectives"), _HEADS.index("bound")}  # columns that hold no numbers


def tables(plan: Figures) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Each strategy's table: its name, the names of the columns, the rows."""
    for strategy, rows in _groups(plan):
        yield strategy, _HEADS, list(map(_cells, rows))


def text(plan: Figures) -> str:
    """All tables, as text. Sizes and flops are those of one device."""
    lines = [f"{what}: {value}" for what, value in plan.given.items()]
    for strategy, head, rows in tables(plan):
        cells = [head, *rows]
        wide = [max(len(row[i]) for row in cells) for i in range(len(head))]
        left = TEXTS
        lines += ["", strategy]
        lines += ["  " + "  ".join(c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, wide, strict=True))).rstrip()
                  for row in cells]  # fmt: skip
    return "\n".join(lines)


def html(plan: Figures) -> str:
    """All tables, as HTML. No scripts, no links."""
    parts = [f"<div>{esc(what)}: {esc(value)}</div>" for what, value in plan.given.items()]
    for strategy, rows in _groups(plan):
        head = "".join(f"<th>{name}</th>" for name in _HEADS)
        body = "".join(
            "<tr>" + "".join(f'<td class="num">{esc(c)}</td>' for c in _cells(r)) + "</tr>"
            for r in rows
        )
        parts.append(f"<div><b>{esc(strategy)}</b></div><table><tr>{head}</tr>{body}</table>")
    return fragment(f"<div>{''.join(parts)}</div>", script=False)
