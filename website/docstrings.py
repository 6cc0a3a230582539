"""Docstrings as HTML: formulas, lists of arguments, names that lead to where they are explained."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from html import escape

Link = Callable[[str], str | None]  # a name, or a page ("docs/lod.md") -> its address

SPAN = re.compile(
    r":(?:class|func|meth|mod|data):`~?([^`]+)`|``(.+?)``|`([^`\n]+)`|\b(docs/[\w-]+\.md(?:#[\w-]+)?)",
    re.S,
)
NEXT = re.compile(r"(?<=\. )(?=(?:Raises|Returns|State:|Other arguments|Gives|Yields) ?)")


def inline(text: str, link: Link) -> str:
    """A piece of prose: code and the names of pages are marked, everything else stands as it is
    written.
    """
    out, at = [], 0
    for found in SPAN.finditer(text):
        out.append(escape(text[at : found.start()], quote=False))
        name = " ".join((found[1] or found[2] or found[3] or found[4]).split())
        shown = f"<code>{escape(name, quote=False)}</code>"
        address = link(name)
        out.append(f'<a href="{address}">{shown}</a>' if address else shown)
        at = found.end()
    return "".join([*out, escape(text[at:], quote=False)])


def blocks(doc: str) -> list[str]:
    """Paragraphs, lists and indented pieces of a docstring, each as its lines."""
    return [block for block in re.split(r"\n\s*\n", doc) if block.strip()]


def arguments(text: str, names: Collection[str]) -> tuple[str, list[tuple[str, str]]]:
    """What stands before the first "name: ..." sentence, and these sentences; only names in `names`
    begin one.
    """
    if not names:
        return text, []
    one = (
        r"\*{0,2}(?:" + "|".join(re.escape(n) for n in sorted(names, key=len, reverse=True)) + r")"
    )
    starts = list(re.finditer(rf"(?:^|(?<=[.;)] ))({one}(?:(?:, | and ){one})*): ", text))
    if not starts:
        return text, []
    ends = [*(m.start() for m in starts[1:]), len(text)]
    return text[: starts[0].start()], [
        (m[1], text[m.end() : end].strip()) for m, end in zip(starts, ends, strict=True)
    ]


def html(doc: str, names: Collection[str], link: Link) -> str:
    """A docstring. names: of the arguments."""
    out = []
    for block in blocks(doc):
        lines = block.splitlines()
        if all(line.startswith("    ") for line in lines):
            out.append(
                f"<pre><code>{escape(re.sub('^    ', '', block, flags=re.M), quote=False)}</code></pre>"
            )
        elif re.match(r"[-*] ", lines[0]):
            items = [" ".join(item.split()) for item in re.split(r"^[-*] ", block, flags=re.M)[1:]]
            out.append(
                "<ul>" + "".join(f"<li>{inline(item, link)}</li>" for item in items) + "</ul>"
            )
        else:
            out += paragraphs(" ".join(block.split()), names, link)
    return "".join(out).replace("\n", "&#10;")


def paragraphs(text: str, names: Collection[str], link: Link) -> list[str]:
    """A paragraph, its arguments as a list, and what follows them."""
    out = []
    for part in NEXT.split(text):
        before, given = arguments(part, names)
        if before.strip():
            out.append(f"<p>{inline(before.strip(), link)}</p>")
        if given:
            rows = (
                f"<dt><code>{escape(name)}</code></dt><dd>{inline(says, link)}</dd>"
                for name, says in given
            )
            out.append(f"<dl>{''.join(rows)}</dl>")
    return out
