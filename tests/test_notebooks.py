"""The notebooks run from top to bottom, each in a process of its own, and what is committed is what
they show.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked
from tests.look.dom import harmless, parsed
from tests.notebooks import NOTEBOOKS, ROOT, cells, run, told

pytestmark = pytest.mark.once


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_runs_and_its_outputs_are_current(path: Path) -> None:
    command = [sys.executable, "-m", "tests.notebooks", "--tell", str(path)]
    process = forked.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        out, err = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 0, err[-2000:]
    committed = told([c["outputs"] for c in cells(path)])
    for number, (now, then) in enumerate(zip(json.loads(out), committed, strict=True), 1):
        assert now == then, (
            f"cell {number} of {path.name} shows something else now; make notebooks writes it anew"
        )


def test_what_notebooks_hold_fetches_nothing() -> None:
    assert NOTEBOOKS
    outputs = [out for path in NOTEBOOKS for c in cells(path) for out in c["outputs"]]
    shown = [out["data"]["text/html"] for out in outputs if "text/html" in out.get("data", {})]
    assert len(shown) >= 5
    for html in shown:
        root = parsed("".join(html))
        for e in root.walk():
            e.attrs.pop("style", None)  # the key of the memory report has colours
        harmless(root)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_opens_with_a_title_and_what_it_is_about(path: Path) -> None:
    first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]
    title, _, told = "".join(first["source"]).partition("\n\n")
    assert first["cell_type"] == "markdown" and title.startswith("# ") and len(told.split(".")) > 1


def test_figures_that_are_open_are_shown_and_closed_and_a_semicolon_keeps_a_value(
    tmp_path: Path,
) -> None:
    code = ["import matplotlib.pyplot as plt\nplt.figure()\nplt.plot([1, 2]);", "1 + 1;", "1 + 1"]
    book = {"cells": [{"cell_type": "code", "source": [c], "outputs": []} for c in code]}
    (tmp_path / "plots.ipynb").write_text(json.dumps(book))
    drawn, quiet, loud = run(tmp_path / "plots.ipynb")
    (figure,) = drawn
    assert base64.b64decode(figure["data"]["image/png"]).startswith(b"\x89PNG") and quiet == []
    assert told([drawn, quiet, loud]) == [["<Figure size #x#>"], [], ["#"]]


def test_a_number_is_not_compared_and_a_word_is() -> None:
    def stream(text: str) -> list[list[dict]]:
        return [[{"output_type": "stream", "text": [text]}]]

    assert told(stream("loss 0.25\n")) == told(stream("loss  1.5e-07\n"))
    assert told(stream("loss 0.25\n")) != told(stream("cost 0.25\n"))
