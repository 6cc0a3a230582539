"""The README's examples run, and print what it says: equal texts, and numbers within a few per
cent.

python -m tests.test_readme     puts what they print now into the README
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import fluidjax as fluid
from fluidjax.cli import COMMANDS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?!\w)")


def run(code: str, names: dict) -> str:
    """What a piece of code prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(ROOT / "example.py"), "exec"), names)
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
    with programs, fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
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


if __name__ == "__main__":
    printed = iter([text for text, _ in outputs()])
    found = EXAMPLE.sub(lambda m: f"```python\n{m[1]}```\n\n```text\n{next(printed)}```", README)
    (ROOT / "README.md").write_text(found)
