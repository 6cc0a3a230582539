"""What mkdocs calls (mkdocs.yml names this file): navigation, generated pages, links between files
of the repository.
"""

from __future__ import annotations

import posixpath
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from website import navigation, notebooks, ops, reference
from website.paths import ROOT, in_site, linked, rewritten

made: dict[str, str] = {}  # pages that are not files of docs/: site path -> Markdown


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Find all pages, and the navigation with them."""
    if missing := navigation.missing():
        raise PluginError("\n".join(missing))
    made.clear()
    made.update(beside())
    names = reference.pages()
    types = ops.pages()
    made.update({page.path: page.markdown for page in (*names, *types)})
    layers = {page.title: page.path for page in names if page.path.startswith("api/layers/")}
    subjects = {
        page.title: page.path
        for page in names
        if page.path.startswith("api/") and page.path not in layers.values()
    }
    first = subjects.pop("All names")
    later = {page.title: page.path for page in names if page.path.startswith("paddle/")}
    groups = {
        "fluid.layers": layers, "fluid, by subject": subjects, "Paddle 2": later,
        "Op types": {page.title: page.path for page in types},
    }  # fmt: skip
    listed: list[Any] = [
        {group: [{title: path} for title, path in pages.items()]} for group, pages in groups.items()
    ]
    behind = {"Reference": [{"All names": first}, *listed]}
    config.nav = navigation.nav(behind)
    return config


def beside() -> dict[str, str]:
    """Pages of the repository outside of docs/ that those of docs/ link to: the README, changes,
    notebooks, READMEs of rooms.
    """
    found: dict[str, str] = {}
    todo = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
    while todo:
        path = todo.pop()
        text = (
            notebooks.markdown(ROOT / path)
            if path.endswith(".ipynb")
            else (ROOT / path).read_text()
        )
        if not path.startswith("docs/"):
            found[in_site(path) or path] = rewritten(text, path)
        for other in linked(text, path):
            site = in_site(other)
            if (
                site
                and site.endswith(".md")
                and not other.startswith("docs/")
                and site not in found
                and other not in todo
            ):
                todo.append(other)
    return found


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Give mkdocs the pages that are made."""
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    for name in ("site.css", "site.js", "iframe-worker.js"):
        files.append(
            File.generated(config, f"assets/{name}", abs_src_path=str(ROOT / "website" / name))
        )
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of docs/*.md that lead out of docs/."""
    path = page.file.src_uri
    return markdown if path in made else rewritten(markdown, posixpath.join("docs", path))
