"""The notebooks run from top to bottom, each in a process of its own, and what is committed is what
they show.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbclient", reason="the package nbclient is not installed")
pytest.importorskip("ipykernel", reason="the package ipykernel is not installed")

from nbformat.v4 import new_code_cell, new_notebook

from tests.look.dom import harmless, parsed
from tests.notebooks import NOTEBOOKS, outputs, read, run, told

pytestmark = pytest.mark.once


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_runs_and_its_outputs_are_current(path: Path) -> None:
    book = read(path)
    committed = told(outputs(book))
    run(book)
    for number, (now, then) in enumerate(zip(told(outputs(book)), committed, strict=True), 1):
        assert now == then, (
            f"cell {number} of {path.name} shows something else now; make notebooks writes it anew"
        )


def test_what_notebooks_hold_fetches_nothing() -> None:
    assert NOTEBOOKS
    found = [out for path in NOTEBOOKS for cell in outputs(read(path)) for out in cell]
    shown = [out.data["text/html"] for out in found if "text/html" in out.get("data", {})]
    assert len(shown) >= 5
    for html in shown:
        root = parsed(html)
        for e in root.walk():
            e.attrs.pop("style", None)  # the key of the memory report has colours
        harmless(root)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_opens_with_a_title_and_what_it_is_about(path: Path) -> None:
    first = read(path).cells[0]
    title, _, told = first.source.partition("\n\n")
    assert first.cell_type == "markdown" and title.startswith("# ") and len(told.split(".")) > 1


WATCHED = """
import time
import fluidjax as fluid
fluid.set_flags({"FLAGS_progress": "auto"})
with fluid.watch(total=4) as log:
    for loss in (4.0, 3.0, 2.0, 1.0):
        log(loss=loss)
        time.sleep(0.6)
"""


@pytest.mark.slow
def test_the_kernel_is_of_this_python_and_shows_figures_and_live_curves() -> None:
    code = (
        "import sys\nsys.executable, sys.prefix",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2]);",
        WATCHED,
    )
    book = new_notebook(cells=[new_code_cell(c) for c in code])
    run(book, coalesce_streams=False)  # lines that are written over are kept
    python, drawn, watched = outputs(book)
    assert python[0].data["text/plain"] == repr((sys.executable, sys.prefix))
    (figure,) = drawn
    assert base64.b64decode(figure.data["image/png"]).startswith(b"\x89PNG")
    bar = "".join(o.text for o in watched if o.get("name") == "stderr")
    assert "4/4" in bar and "loss 1" in bar
    (curves,) = [o for o in watched if o.output_type == "display_data"]
    assert "4 steps" in curves.data["text/html"]  # one picture, drawn anew to the end
    assert parsed(curves.data["text/html"]).one("svg")


def test_what_shows_depends_on_no_length_of_time() -> None:
    wait = (
        "import time\nfrom fluidjax.base import progress\n"
        "with progress.waiting('compiling', after=0):\n    time.sleep(0.3)\nprint('ready')"
    )
    book = new_notebook(cells=[new_code_cell(wait)])
    run(book)
    assert told(outputs(book)) == [["ready "]]


def test_a_number_is_not_compared_and_a_word_is() -> None:
    def stream(text: str) -> list[list[dict]]:
        return [[{"output_type": "stream", "text": text}]]

    assert told(stream("loss 0.25\n")) == told(stream("loss  1.5e-07\n"))
    assert told(stream("loss 0.25\n")) != told(stream("cost 0.25\n"))
