"""Carries out a page: its Python blocks one after another, in an empty folder, as one script; and
what they print.

python -m tests.document_code docs/tutorial.md     puts what they print now into the page
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import fluidjax as fluid
from fluidjax.base.flags import DEFAULTS

from .document_setups import BEFORE
from .test_readme import close

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.M | re.S)


@contextlib.contextmanager
def fresh() -> Iterator[None]:
    """New default programs, names and scope, in an empty folder; flags and loggers are put back."""
    programs = fluid.program_guard(fluid.Program(), fluid.Program())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        flags, loggers = (
            fluid.get_flags(DEFAULTS),
            [(log, log.level, [*log.handlers]) for log in map(logging.getLogger, ("", "fluidjax"))],
        )
        try:
            with programs, fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
                yield
        finally:
            fluid.set_flags(
                {
                    name: value
                    for name, value in flags.items()
                    if fluid.get_flags(name)[name] != value
                }
            )
            for log, level, handlers in loggers:
                log.setLevel(level)
                log.handlers[:] = handlers


def printed(page: str, before: str = "") -> list[tuple[str, str | None]]:
    """(what a block prints, what the page says that it prints or None) of each block of a page.

    before: what a page leaves out because every script has it. Errors call a block train.py, with
    its own lines.
    """
    text = (ROOT / page).read_text()
    names: dict = {"__name__": "__main__"}
    found = []
    with fresh():
        exec(before, names)
        for block in BLOCK.finditer(text):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block[1], os.path.join(os.getcwd(), "train.py"), "exec"), names)
            found.append((out.getvalue().rstrip() + "\n", block[2]))
    return found


def carry_out(page: str, before: str = "") -> None:
    """Run a page, and compare what it prints with what it says."""
    for said, promised in printed(page, before):
        assert promised is None or close(said, promised), (
            f"{page} says\n{promised}\nbut its example prints\n{said}"
        )


def write(page: str) -> None:
    answers = iter(printed(page, BEFORE.get(Path(page).stem, "")))

    def put(block: re.Match[str]) -> str:
        said, promised = next(answers)
        return block[0] if promised is None else f"```python\n{block[1]}```\n\n```text\n{said}```\n"

    path = ROOT / page
    path.write_text(BLOCK.sub(put, path.read_text()))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(name)
