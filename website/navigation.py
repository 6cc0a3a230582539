"""The site's navigation is docs/README.md: its headings above lists are the sections, the links
that begin their lines are the pages.
"""

from __future__ import annotations

import posixpath
import re

from .paths import ROOT, in_site

INDEX = "docs/README.md"
ADVICE = (
    "add a line `- [Title]({path}): what the reader finds there.` under the heading of"
    " docs/README.md that fits"
)


def sections() -> dict[str, list[tuple[str, str]]]:
    """Heading -> [(title, path from the root)], of headings above lists of pages."""
    found: dict[str, list[tuple[str, str]]] = {}
    pages: list[tuple[str, str]] = []
    for line in (ROOT / INDEX).read_text().splitlines():
        if heading := re.match(r"## (.+)", line):
            pages = found.setdefault(heading[1], [])
        elif page := re.match(r"- \[(.+?)\]\(([^)#]+)\)", line):
            pages.append((page[1], posixpath.normpath(posixpath.join("docs", page[2]))))
    return {heading: pages for heading, pages in found.items() if pages}


def missing() -> list[str]:
    """A sentence for each page of docs/ and each notebook that docs/README.md does not list, or
    lists twice.
    """
    every = [path for pages in sections().values() for _, path in pages]
    listed = {*every, INDEX}
    there = [*(ROOT / "docs").glob("*.md"), *(ROOT / "notebooks").glob("*.ipynb")]
    paths = sorted(path.relative_to(ROOT).as_posix() for path in there)
    advice = {path: ADVICE.format(path=posixpath.relpath(path, "docs")) for path in paths}
    twice = sorted(path for path in listed if every.count(path) > 1)
    return [
        *(
            f"{path} is not in the navigation: {advice[path]}"
            for path in paths
            if path not in listed
        ),
        *(
            f"{path} is in the navigation twice: leave one of its lines in docs/README.md"
            for path in twice
        ),
    ]


def nav(more: dict[str, list[object]]) -> list[object]:
    """mkdocs's `nav`. more: generated pages to put behind those of a section."""
    pages: list[object] = ["README.md"]
    for heading, listed in sections().items():
        pages.append(
            {heading: [*({title: in_site(path)} for title, path in listed), *more.get(heading, [])]}
        )
    return pages
