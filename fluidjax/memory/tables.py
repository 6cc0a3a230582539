"""The memory report as text and as HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

from ..look.frame import fragment
from .figures import StepMemory
from .live import KINDS
from .picture import COLOURS, svg

LARGEST = 12  # listed variables of the peak

_CSS = """.fjm .key{display:inline-block;width:.8em;height:.8em;margin-right:.4em}"""


def unit(report: StepMemory) -> tuple[str, float]:
    """The unit of the report's bytes: kB, MB or GB, by its largest figure."""
    most = max([report.plain, *(f.total for f in report.compiled.values())])
    return next(
        (name, size)
        for name, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
        if most >= size or size == 1e3
    )


def _shown(report: StepMemory) -> Callable[[int], str]:
    _, size = unit(report)
    return lambda n: f"{n / size:,.3f}"


def totals(report: StepMemory) -> list[tuple[str, str, str]]:
    """(name, size, source) for the whole step."""
    size = _shown(report)
    rows = [("op by op", size(report.plain), "every variable takes memory until its last read")]
    for name, f in report.compiled.items():
        parts = (
            f"arguments {size(f.arguments)} + outputs {size(f.outputs)} + temporaries"
            f" {size(f.temporaries)}"
        )
        used = "; Executor.run uses this one" if name == report.scheduler else ""
        rows.append((f"compiler, {name}", size(f.total), f"{parts} - alias {size(f.alias)}{used}"))
    return rows


def kinds(report: StepMemory) -> list[tuple[str, str]]:
    """(kind, size) at the peak."""
    size = _shown(report)
    return [(kind, size(report.peak.by_kind[kind])) for kind in KINDS]


def largest(report: StepMemory) -> list[tuple[str, str, str, str]]:
    """(name, kind, size, line) of the largest variables at the peak; the last row is the sum of the
    others.
    """
    alive, size = report.peak.alive, _shown(report)
    rows = [(a.name, a.kind, size(a.bytes), a.line or "") for a in alive[:LARGEST]]
    rest = alive[LARGEST:]
    if rest:
        rows.append((f"{len(rest):,} more", "", size(sum(a.bytes for a in rest)), ""))
    if report.peak.inside:
        rows.append(("in its sub-blocks", "activations", size(report.peak.inside), ""))
    return rows


def head(report: StepMemory) -> str:
    feeds = ", ".join(f"{n} {list(shape)}" for n, shape in report.feeds.items()) or "nothing"
    fetches = ", ".join(report.fetches) or "nothing"
    name, size = unit(report)
    return (
        f"one step of {len(report.timeline):,} ops, fed {feeds}, fetching {fetches}; {name} are"
        f" {size:,.0f} bytes"
    )


def place(report: StepMemory) -> str:
    peak = report.peak
    return f"alive at op {peak.index}, {peak.op}" + (f" ({peak.line})" if peak.line else "")


def text(report: StepMemory) -> str:
    """All tables, as text."""
    parts = [
        head(report),
        "",
        *_aligned(totals(report), {1}),
        "",
        place(report),
        *_aligned(kinds(report), {1}),
        "",
    ]
    return "\n".join(
        [*parts, *_aligned([("variable", "kind", unit(report)[0], "line"), *largest(report)], {2})]
    )


def _aligned(rows: Sequence[Sequence[str]], right: set[int]) -> Iterable[str]:
    """Rows as lines of aligned columns; those in `right` are numbers."""
    wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [
            c.rjust(w) if i in right else c.ljust(w)
            for i, (c, w) in enumerate(zip(row, wide, strict=True))
        ]
        yield ("  " + "  ".join(cells)).rstrip()


def html(report: StepMemory) -> str:
    """The timeline and all tables, as HTML. No scripts, no links."""
    key = " ".join(
        f'<span class="key" style="background:{COLOURS[k]}"></span>{k}'
        for k in KINDS
        if report.peak.by_kind[k]
    )
    inner = (
        f'<div class="fjm"><style>{_CSS}</style><div>{escape(head(report))}</div>'
        f"{_table(totals(report), {1})}{svg(report.timeline)}<div>{key}</div><div>{escape(place(report))}</div>"
        f"{_table(kinds(report), {1})}{_table(largest(report), {2}, ('variable', 'kind', unit(report)[0], 'line'))}</div>"
    )
    return fragment(inner, script=False)


def _table(rows: Sequence[Sequence[str]], right: set[int], names: Sequence[str] = ()) -> str:
    def cell(i: int, value: str) -> str:
        return (
            f'<td class="num">{escape(value)}</td>' if i in right else f"<td>{escape(value)}</td>"
        )

    first = "<tr>" + "".join(f"<th>{n}</th>" for n in names) + "</tr>" if names else ""
    body = "".join(
        "<tr>" + "".join(cell(i, v) for i, v in enumerate(row)) + "</tr>" for row in rows
    )
    return f"<table>{first}{body}</table>"
