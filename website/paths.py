"""Where files of the repository stand in the site, and links between them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
# pages from outside of docs/ under the names that they have in the site
RENAMED = {
    "README.md": "project.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
}
CODE = re.compile(r"^(```|~~~).*?^\1$|`[^`\n]+`", re.M | re.S)
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#)([^)\s#]+)(#[^)\s]*)?\)")


def in_site(path: str) -> str | None:
    """The site's source for a file of the repository ("docs/lod.md" -> "lod.md"); None for files
    that it does not show.
    """
    if path in RENAMED:
        return RENAMED[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.endswith(".ipynb"):
        return path.removesuffix(".ipynb") + ".md"
    return f"repository/{path}" if path.endswith(".md") else None


def outside(turn: Callable[[re.Match[str]], str], markdown: str) -> str:
    """A page with its links converted, except for what looks like a link in code."""
    codes: list[str] = []

    def keep(code: re.Match[str]) -> str:
        codes.append(code[0])
        return f"\0{len(codes) - 1}\0"

    converted = LINK.sub(turn, CODE.sub(keep, markdown))
    return re.sub("\0(\\d+)\0", lambda kept: codes[int(kept[1])], converted)


def linked(markdown: str, path: str) -> list[str]:
    """The files of the repository that a page links to. path: its own, from the root."""
    links: list[str] = []

    def note(link: re.Match[str]) -> str:
        links.append(link[2])
        return link[0]

    outside(note, markdown)
    return [posixpath.normpath(posixpath.join(posixpath.dirname(path), link)) for link in links]


def rewritten(markdown: str, path: str) -> str:
    """A page with its links as the site needs them; one to a file that the site does not show
    becomes plain text.
    """
    here = posixpath.dirname(in_site(path) or path)

    def turn(link: re.Match[str]) -> str:
        target = in_site(posixpath.normpath(posixpath.join(posixpath.dirname(path), link[2])))
        return (
            f"[{link[1]}]({posixpath.relpath(target, here or '.')}{link[3] or ''})"
            if target
            else link[1]
        )

    return outside(turn, markdown)
