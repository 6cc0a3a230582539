"""A notebook as a page: its texts, its code, and what its cells showed when they were last run."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

FRAME = "<style>html { color-scheme: light dark } body { margin: 0 }</style>"


def markdown(path: Path) -> str:
    """The page of a notebook."""
    cells = json.loads(path.read_text())["cells"]
    return "\n\n".join(part for cell in cells for part in parts(cell)) + "\n"


def parts(cell: dict[str, Any]) -> list[str]:
    source = joined(cell["source"]).strip()
    if not source:
        return []
    if cell["cell_type"] == "markdown":
        return [source]
    if cell["cell_type"] != "code":
        return []
    return [
        fenced(source, "python"),
        *(shown for output in cell["outputs"] if (shown := output_of(output))),
    ]


def output_of(output: dict[str, Any]) -> str:
    """What one output looks like: pages in a frame of their own, pictures, text."""
    if output["output_type"] == "stream":
        return fenced(joined(output["text"]).rstrip(), "text")
    if output["output_type"] == "error":
        return fenced(f"{output['ename']}: {output['evalue']}", "text")
    data = output["data"]
    if "text/html" in data:  # styles and scripts of its own, which must not meet the site's
        page = html.escape(FRAME + joined(data["text/html"]), quote=True).replace("\n", "&#10;")
        return (
            '<iframe class="output" title="what the cell shows" loading="lazy"'
            f' srcdoc="{page}"></iframe>'
        )
    if "image/svg+xml" in data:
        return flat(joined(data["image/svg+xml"]))
    if "image/png" in data:
        return (
            '<img class="output" alt="what the cell draws"'
            f' src="data:image/png;base64,{joined(data["image/png"]).strip()}">'
        )
    return fenced(joined(data.get("text/plain", "")).rstrip(), "text")


def joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def fenced(text: str, language: str) -> str:
    marks = "`" * max(3, 1 + max((len(run) for run in re.findall(r"^`+", text, re.M)), default=0))
    return f"{marks}{language}\n{text}\n{marks}"


def flat(svg: str) -> str:
    """A picture as one block, which Markdown leaves alone."""
    return '<div class="output">' + re.sub(r"\s*\n\s*", " ", svg[svg.index("<svg") :]) + "</div>"
