"""Figures as tables: printed as they come, kept in docs/benchmarks.json, and put from there into
docs/benchmarks.md.

The page has a pair of comments for each table, `<!-- figures: NAME -->` and `<!-- end of figures
-->`; what stands between them is made anew from the JSON. A table says when and where it was
measured and with which versions. A part that returns no tables is kept as the lines that it
printed. What has no place of its own stands at the name `others`.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import jax

DOCS = Path(__file__).parents[1] / "docs"
PAGE, FIGURES = DOCS / "benchmarks.md", DOCS / "benchmarks.json"
OTHERS = "others"
_PLACE = re.compile(r"(<!-- figures: (.+?) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


@dataclass(frozen=True)
class Table:
    """A table of figures. name: its place on the page. peers: versions of what it is compared with."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    peers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measured:
    """What was measured at a time on a machine: a table, or the lines that a part printed."""

    when: str
    where: str
    versions: tuple[str, ...]
    table: Table | None = None
    lines: tuple[str, ...] = field(default=())


def shown(
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    peers: Iterable[str] = (),
    widths: Sequence[int] = (),
) -> Table:
    """The table of rows that come one by one, each printed at once."""
    wide = widths or [26] + [20] * (len(columns) - 1)
    line = "".join(
        f"{text:<{w}}" if i == 0 else f"{text:>{w}}"
        for i, (text, w) in enumerate(zip(columns, wide, strict=True))
    )
    print(f"\n{title}\n{line}")
    found = []
    for row in rows:
        cells = zip(row, wide, strict=True)
        print(
            "".join(
                f"{text:<{w}}" if i == 0 else f"{text:>{w}}" for i, (text, w) in enumerate(cells)
            ),
            flush=True,
        )
        found.append(tuple(row))
    return Table(name, title, tuple(columns), tuple(found), tuple(peers))


class _Both(io.TextIOBase):
    """What is written goes to two files."""

    def __init__(self, *files: TextIO) -> None:
        self.files = files

    def write(self, text: str) -> int:
        for file in self.files:
            file.write(text)
        return len(text)

    def flush(self) -> None:
        for file in self.files:
            file.flush()


def measured(name: str, part: Callable[[], Any]) -> dict[str, Measured]:
    """What a part finds, by the names of its tables; where it returns none, its printed lines by
    its own name.
    """
    when, where, kept = datetime.now(UTC).strftime("%Y-%m-%d %H:%M"), machine(), io.StringIO()
    with redirect_stdout(_Both(sys.stdout, kept)):  # type: ignore[type-var]
        tables: list[Table] = part() or []
    if not tables:
        return {
            name: Measured(
                when, where, versions(), lines=tuple(kept.getvalue().strip().splitlines())
            )
        }
    return {t.name: Measured(when, where, (*versions(), *t.peers), t) for t in tables}


def versions() -> tuple[str, ...]:
    return f"Python {platform.python_version()}", f"jax {jax.__version__}"


def machine() -> str:
    """The processor, its cores, and how many processes run on it: 0.0 is an idle machine."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        model = next(
            (
                line.partition(":")[2].strip()
                for line in info.read_text().splitlines()
                if line.startswith("model name")
            ),
            model,
        )
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{model}, {os.cpu_count()} cores{load}"


def read(path: Path = FIGURES) -> dict[str, Measured]:
    """All figures that are kept, by name."""
    found = {}
    for name, kept in json.loads(path.read_text()).items():
        table = kept.pop("table")
        if table is not None:
            table = Table(
                **{k: tuple(map(_tuple, v)) if isinstance(v, list) else v for k, v in table.items()}
            )
        found[name] = Measured(
            **{k: tuple(v) if isinstance(v, list) else v for k, v in kept.items()}, table=table
        )
    return found


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def keep(new: Mapping[str, Measured], figures: Path = FIGURES, page: Path = PAGE) -> None:
    """The new figures take the place of those of their names, in the file and on the page."""
    there = {**(read(figures) if figures.exists() else {}), **new}
    text = rendered(page.read_text(), there)
    figures.write_text(
        json.dumps({n: asdict(there[n]) for n in sorted(there)}, indent=1, ensure_ascii=False)
        + "\n"
    )
    page.write_text(text)


def rendered(text: str, figures: Mapping[str, Measured]) -> str:
    """The page with what is kept. Raises KeyError where it has a place for figures that are not
    there.
    """
    places = {name for _, name, _ in _PLACE.findall(text)} - {OTHERS}
    if places - set(figures):
        raise KeyError(
            f"docs/benchmarks.md has places for {sorted(places - set(figures))}, of which"
            " docs/benchmarks.json has no figures"
        )

    def filled(match: re.Match[str]) -> str:
        wanted = sorted(set(figures) - places) if match[2] == OTHERS else [match[2]]
        return (
            match[1]
            + "\n\n".join(_markdown(name, figures[name]) for name in wanted)
            + "\n" * bool(wanted)
            + match[3]
        )

    return _PLACE.sub(filled, text)


def _markdown(name: str, found: Measured) -> str:
    if found.table is None:
        return "\n".join(
            [
                f"`make bench ARGS={name}` printed this. {_said(found)}",
                "",
                "```text",
                *found.lines,
                "```",
            ]
        )
    rows = [found.table.columns, ("---",) * len(found.table.columns), *found.table.rows]
    return "\n".join(
        [f"{found.table.title}. {_said(found)}", "", *(f"| {' | '.join(row)} |" for row in rows)]
    )


def _said(found: Measured) -> str:
    return f"Measured {found.when} on {found.where}; {', '.join(found.versions)}."
