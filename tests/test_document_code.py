"""Pages whose Python blocks run, one after another, and print what stands below them; and tables
that follow the code.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from fluidjax import paddle
from fluidjax.base.flags import DEFAULTS

from .document_code import carry_out
from .document_setups import BEFORE, ELSEWHERE

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[1]


def test_the_tutorial_takes_ten_minutes() -> None:
    """As long as its steps take, and as one reads it: 150 words a minute, code too."""
    begin = time.process_time()
    carry_out("docs/tutorial.md")
    seconds = time.process_time() - begin
    words = len((ROOT / "docs/tutorial.md").read_text().split())
    assert words / 150 + seconds / 60 < 10, (
        f"{words} words to read and {seconds:.0f} s to run are more than ten minutes"
    )


def test_every_error_that_is_explained_reads_so() -> None:
    carry_out("docs/errors.md")
    carry_out("docs/errors-reference.md")
    explained = re.findall(r"^### ", (ROOT / "docs/errors-reference.md").read_text(), re.M)
    assert len(explained) >= 20


LONGER = pytest.mark.thorough  # what these show is tested elsewhere
PAGES = [
    pytest.param(page, marks=LONGER)
    if page in ("memory", "planning", "planning-reference", "profiler", "pserver")
    else page
    for page in BEFORE
]


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page(page: str) -> None:
    if page == "export":
        pytest.importorskip("onnx", reason="the package onnx is not installed")
    try:
        carry_out(f"docs/{page}.md", BEFORE[page])
    finally:
        paddle.uninstall()


def test_every_page_with_examples_is_carried_out() -> None:
    assert not [
        path.name for path in (ROOT / "docs").glob("*.md") if "~~~py" in path.read_text()
    ], "code that nobody runs"
    with_code = {
        path.stem for path in (ROOT / "docs").glob("*.md") if "\n```python\n" in path.read_text()
    }
    assert sorted(with_code - {*BEFORE, *ELSEWHERE}) == [], (
        "tests/document_setups.py: give the page a line in BEFORE, with what its examples leave out"
    )
    assert sorted({*BEFORE, *ELSEWHERE} - with_code) == []
    for page, test in ELSEWHERE.items():
        assert f"{page}.md" in (ROOT / test).read_text(), (
            f"{test} does not run the examples of docs/{page}.md"
        )


def test_every_flag_is_on_the_page_with_its_default() -> None:
    rows = re.findall(
        r"^\| `(FLAGS_\w+)` \| `(.*?)` \| .{20,}\|$", (ROOT / "docs/flags.md").read_text(), re.M
    )
    assert dict(rows) == {name: repr(value) for name, value in DEFAULTS.items()}, (
        "docs/flags.md: | `FLAGS_x` | `default` | what it does |"
    )
    carry_out("docs/flags.md")


def test_every_logger_is_on_the_page() -> None:
    loggers = {
        path.relative_to(ROOT)
        .with_suffix("")
        .as_posix()
        .replace("/", ".")
        .removesuffix(".__init__")
        for path in (ROOT / "fluidjax").rglob("*.py")
        if "getLogger(__name__)" in path.read_text()
    }
    for path in (ROOT / "fluidjax").rglob("*.py"):  # those with a name that outlasts their module
        loggers |= set(re.findall(r'getLogger\("(fluidjax[\w.]*)"\)', path.read_text()))
    page = set(re.findall(r"^\| `(fluidjax[\w.]*)` \|", (ROOT / "docs/flags.md").read_text(), re.M))
    assert sorted(loggers - page) == [], (
        "write a row for each into the table of loggers in docs/flags.md"
    )
    assert sorted(page - loggers) == [], "docs/flags.md lists loggers that no module has"
