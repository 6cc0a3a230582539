"""The examples of the documents, for tests that carry them out to the letter."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def examples(page: str, heading: str) -> list[str]:
    """The Python code of a page from a heading on, in order, up to the next heading of the same
    level or a higher one.

    page: a file of docs/. heading: the beginning of its line, with its marks ("### To add an op").
    """
    text = "\n" + (DOCS / page).read_text()
    # where a comment is not a heading
    prose = re.sub(r"```.*?```", lambda code: " " * len(code[0]), text, flags=re.S)
    begin = prose.index(f"\n{heading}") + 1
    level = len(heading) - len(heading.lstrip("#"))
    end = re.compile(rf"^#{{1,{level}}} ", re.M).search(prose, begin + 1)
    return re.findall(r"```python\n(.*?)```", text[begin : end.start() if end else None], re.S)
