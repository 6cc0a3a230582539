"""The README's examples run, and print what it says: equal texts, and numbers within a few per
cent. Its figures are those of docs/benchmarks.json. docs/README.md has the same examples.

python -m tests.test_readme     puts what they print now, and the figures, into both
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import tempfile
from pathlib import Path

import fluidjax as fluid
from fluidjax.cli import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs" / "README.md")
README = PAGES[0].read_text()
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
FIGURES = re.compile(r"(<!-- figures -->\n\n).*?(\n<!-- end of figures -->)", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?!\w)")


def run(code: str, names: dict) -> str:
    """What a piece of code prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, os.path.join(os.getcwd(), "train.py"), "exec"), names)
    return out.getvalue().rstrip() + "\n"


def close(printed: str, promised: str) -> bool:
    """Equal but for decimal fractions, which may be 5 % or 0.02 off."""
    if NUMBER.sub("#", printed) != NUMBER.sub("#", promised):
        return False
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(promised), strict=True)
    return all(abs(float(a) - float(b)) <= max(0.02, 0.05 * abs(float(b))) for a, b in pairs)


def outputs() -> list[tuple[str, str]]:
    """(printed, promised) of every example, run one after another in one name space."""
    names: dict = {"__name__": "__main__"}
    programs = fluid.program_guard(fluid.Program(), fluid.Program())
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        programs,
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        return [(run(code, names), promised) for code, promised in EXAMPLE.findall(README)]


def test_examples_print_what_the_readme_says():
    results = outputs()
    assert len(results) == README.count("```python")
    for printed, promised in results:
        assert close(printed, promised), (
            f"the README says\n{promised}\nbut the example prints\n{printed}"
        )


def test_the_commands_and_files_exist():
    targets = re.findall(r"\bmake ([a-z]+)", README)
    assert set(targets) <= set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    ) | {"demo"}
    assert set(re.findall(r"python -m fluidjax (\w+)", README)) <= set(COMMANDS)
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / link).exists(), link


def figures() -> str:
    """The table of a training step's time, and of a prediction's."""
    kept = json.loads((ROOT / "docs" / "benchmarks.json").read_text())

    def cells(row: list[str]) -> list[str]:
        numbers = [float(cell.split()[0]) for cell in row[1:]]
        return [row[0], *(f"{n:,.0f}" if n >= 100 else f"{n:.2g}" for n in numbers)]

    steps, predictions = (kept[name]["table"]["rows"] for name in ("later steps", "prediction"))
    rows = [
        ["one core of a CPU, ms", "fluidjax", "flax", "Paddle 1.8.5", "torch", "onnxruntime"],
        ["---"] * 6,
        *([f"training step, {name}", *times, "-"] for name, *times in map(cells, steps)),
    ]
    for name, ours, other, *_ in map(cells, predictions):
        if name in ("MobileNet-v1, 1", "PP-OCRv4 rec 48x320, 1"):
            rows.append([f"prediction, {name.removesuffix(', 1')}", ours, "-", "-", "-", other])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def test_the_figures_are_those_that_were_measured():
    for page in PAGES:
        assert figures() in page.read_text(), (
            f"{page.name} has other figures than docs/benchmarks.json: python -m tests.test_readme"
        )


def test_both_front_pages_have_the_same_doors():
    pages = [page.read_text() for page in PAGES]
    first, second = (
        re.sub(r"\]\((docs/)?", "](", page[page.index("## I have") : page.index("## Install")])
        for page in pages
    )
    assert first == second and len(re.findall("^## I have", first, re.M)) == 3


if __name__ == "__main__":
    texts = [text for text, _ in outputs()]
    for page in PAGES:
        printed = iter(texts)
        found = EXAMPLE.sub(
            lambda m, printed=printed: f"```python\n{m[1]}```\n\n```text\n{next(printed)}```",
            page.read_text(),
        )
        page.write_text(FIGURES.sub(lambda m: m[1] + figures() + m[2], found))
