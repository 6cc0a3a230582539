"""Documents stay true where a test can tell: links and files that they name exist, the glossary is
in order.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from website.navigation import sections

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
    ]
)
ROOMS = ("fluidjax", "tests", "benchmarks", "website")
FILES = {
    path.relative_to(ROOT).as_posix() for room in ROOMS for path in (ROOT / room).rglob("*.py")
}
EXAMPLES = {"train.py", "ops/curved.py", "tests/ops/samples/curved.py", "ops/control/when_positive.py", "passes/drop_casts.py",
            "tests/passes/test_drop_casts.py"}  # fmt: skip


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.S | re.M)


def anchors(page: Path) -> set[str]:
    """What a link to a heading of the page may say after its #."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose(page)):
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (heading and heading not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path) -> None:
    """A name in code font may begin at any folder (`ring.py`, `ops/ring.py`).

    Capitals (`ops/FAMILY.py`) stand for a name to choose.
    """
    named = {
        name
        for name in re.findall(r"`([\w/]+\.py)(?:::\w+)?`", prose(page))
        if name == name.lower()
    } - EXAMPLES
    assert (
        sorted(name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in FILES))
        == []
    )


def test_a_users_page_is_short() -> None:
    """Reference goes to a page of its own (NAME-reference.md) or into docstrings."""
    parts = ("Tutorial", "Guides", "Several devices", "Transpilers")
    pages = {
        path.removeprefix("docs/").removesuffix(".md"): len((ROOT / path).read_bytes())
        for part in parts
        for _, path in sections()[part]
        if path.startswith("docs/") and not path.endswith("-reference.md")
    }
    assert len(pages) > 20
    assert {page: size for page, size in pages.items() if size > 6000} == {}, "6 kB are a page"


def test_the_gpu_page_begins_with_figures_of_its_tables() -> None:
    prose, _, tables = (ROOT / "docs" / "gpu.md").read_text().partition("<!-- figures")
    figures = re.findall(r"\b\d+\.\d+\b", prose.split("\n## ")[0])
    assert len(figures) == 4 and all(f"| {figure} |" in tables for figure in figures)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_have_no_dates_in_prose(page: Path) -> None:
    """Measurements are kept in docs/benchmarks.json and docs/gpu.json, with their dates."""
    if page.stem not in ("benchmarks", "gpu"):
        assert re.findall(r"\b20\d\d-\d\d-\d\d\b", page.read_text()) == []


def terms() -> list[str]:
    return re.findall(
        r"^- \*\*(.+?)\*\*(?: \((?:of .+?|`?\w+`?)\))?",
        (ROOT / "docs" / "glossary.md").read_text(),
        re.M,
    )


def test_the_glossary_is_in_alphabetical_order() -> None:
    found = [term.lower() for term in terms()]
    assert len(found) > 40 and found == sorted(found)


def test_names_in_the_glossary_are_defined() -> None:
    """What stands in code font behind a term is a class of the package."""
    text = "\n".join((ROOT / path).read_text() for path in FILES if path.startswith("fluidjax/"))
    named = re.findall(
        r"^- \*\*[^*]+\*\* \(`(\w+)`\)", (ROOT / "docs" / "glossary.md").read_text(), re.M
    )
    assert (
        named and [name for name in named if not re.search(rf"^class {name}\b", text, re.M)] == []
    )
