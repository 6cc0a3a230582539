"""The parts that all pictures share: escaping, the style and the script, a fragment for a notebook,
a page of its own.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

from ..ir.lexis import printable

# A page may use only its own content: the browser fetches nothing, whatever names contain.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none';"
    " form-action 'none'"
)


def esc(text: object) -> str:
    """`text` escaped for HTML, also for attributes; characters that do not print, or that reverse
    the line, become ``\u202e``.
    """
    return html.escape(printable(str(text), kept="\n"))


def as_script(value: Any) -> str:
    """A value as JSON for a ``<script>``: nothing in it can end the element."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# The colours of both themes; look.css decides where each applies.
LIGHT = (
    "--bg:#fff;--panel:#f5f7f9;--line:#d5dbe1;--text:#1c2329;--soft:#56616c;--op:#0b57b0;--type:#0a6b5e;"
    "--name:#1c2329;--bad:#b3261e;--mark:#fff0b3;--focus:#0b57b0;--forward:#2f7d4f;--backward:#a8500c;"
    "--optimize:#7a3fb0;--communication:#0b6e99;--schedule:#8a6100;--add:#dff5e3;--gone:#fde4e1;--addw:#9fdcae;"
    "--gonew:#f3b0a9"
)
DARK = (
    "--bg:#15191d;--panel:#1d2328;--line:#38424b;--text:#e4e9ed;--soft:#a3afb9;--op:#82b7ff;--type:#6fd1bf;"
    "--name:#e4e9ed;--bad:#ff8f85;--mark:#574a14;--focus:#82b7ff;--forward:#6fcf97;--backward:#f0a45d;"
    "--optimize:#c79bf2;--communication:#69c3ea;--schedule:#e0bd55;--add:#17321f;--gone:#3f1d1b;--addw:#2a6b3d;"
    "--gonew:#84332c"
)


@cache
def _style() -> str:
    return _asset("look.css").replace("$light", LIGHT).replace("$dark", DARK)


@cache
def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


def fragment(inner: str, data: Any = None, script: bool = True) -> str:
    """An element with its style, for a notebook's output. data: further data for the script.

    Without scripts (on a sanitised page) everything can still be read and folded.
    """
    held = (
        ""
        if data is None
        else f'<script type="application/json" class="fj-data">{as_script(data)}</script>'
    )
    code = f"<script>{_asset('look.js')}</script>" if script else ""
    return f'<div class="fj"><style>{_style()}</style>{inner}{held}{code}</div>'


def page(fragment: str, title: str) -> str:
    """A whole document around a fragment. It is self-contained, and its policy forbids fetching
    anything.
    """
    head = (
        '<meta charset="utf-8"><meta http-equiv="Content-Security-Policy"'
        f' content="{_POLICY}"><meta name="viewport" content="width=device-width"><meta'
        f' name="color-scheme" content="light dark"><title>{esc(title)}</title>'
    )
    body = f'<main><h1 class="fj-title">{esc(title)}</h1>{fragment}</main>'
    return (
        '<!doctype html>\n<html lang="en"'
        f' class="fj-page"><head>{head}</head><body>{body}</body></html>\n'
    )


def fold(head: str, inner: str, is_open: bool = False, attributes: str = "") -> str:
    """A part that folds. head: HTML of the line that stays visible."""
    return f"<details{attributes}{' open' if is_open else ''}><summary>{head}</summary>{inner}</details>"


def table(
    rows: Iterable[Sequence[object]],
    names: Sequence[str] = (),
    numbers: Iterable[int] = (),
    caption: str = "",
) -> str:
    """Rows of text as a table that scrolls by itself. numbers: columns that are right-aligned."""
    right = set(numbers)

    def cells(row: Sequence[object]) -> str:
        return "".join(
            f'<td class="num">{esc(c)}</td>' if i in right else f"<td>{esc(c)}</td>"
            for i, c in enumerate(row)
        )

    said = f"<caption>{esc(caption)}</caption>" if caption else ""
    head = (
        "<thead><tr>" + "".join(f'<th scope="col">{esc(n)}</th>' for n in names) + "</tr></thead>"
        if names
        else ""
    )
    body = "".join(f"<tr>{cells(row)}</tr>" for row in rows)
    return f"<table>{said}{head}<tbody>{body}</tbody></table>"


def count(n: int, noun: str) -> str:
    """``1 op``, ``2,000 ops``."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
