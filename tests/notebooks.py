"""Notebooks run without a kernel, and what their cells showed: ``python -m tests.notebooks`` writes
it into them (make notebooks).

A cell shows what it prints and, as in Jupyter, the value of a last line that is an expression
without a semicolon, and the figures of pyplot that it leaves open. That needs no IPython, so the
tests can compare what is committed with what the cells show now. What a machine or a compiler
decides is left out of that comparison: numbers count as equal, and the looks of HTML and the pixels
of figures do not count.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
_LOOKS = re.compile(r"<(style|script)\b.*?</\1>", re.DOTALL)


def cells(path: Path) -> list[dict[str, Any]]:
    """The code cells."""
    return [
        c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"
    ]


def run(path: Path) -> list[list[dict[str, Any]]]:
    """The outputs of every code cell, run in order in one namespace and in the notebook's folder."""
    os.environ["MPLBACKEND"] = "agg"
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(path.parent):
        return [
            _outputs("".join(cell["source"]), f"{path.stem}, cell {k}", k, names)
            for k, cell in enumerate(cells(path), 1)
        ]


def _outputs(source: str, file: str, number: int, names: dict[str, Any]) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    quiet = source.rstrip().endswith(";")
    last = (
        tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) and not quiet else None
    )
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, file, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), file, "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append(
            {"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())}
        )
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        found.append(
            {
                "output_type": "execute_result",
                "execution_count": number,
                "metadata": {},
                "data": data,
            }
        )
    return found + _figures()


def _figures() -> list[dict[str, Any]]:
    """The figures that are open, as small PNGs; they are closed."""
    plt = sys.modules.get("matplotlib.pyplot")
    found: list[dict[str, Any]] = []
    for number in plt.get_fignums() if plt else ():
        figure, held = plt.figure(number), io.BytesIO()
        wide, high = figure.get_size_inches() * 80
        figure.savefig(held, format="png", dpi=80, bbox_inches="tight", metadata={"Software": None})
        data = {
            "image/png": base64.b64encode(held.getvalue()).decode(),
            "text/plain": [f"<Figure size {wide:.0f}x{high:.0f}>"],
        }
        found.append({"output_type": "display_data", "metadata": {}, "data": data})
        plt.close(figure)
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def told(outputs: list[list[dict[str, Any]]]) -> list[list[str]]:
    """What outputs say, cell by cell, without numbers and looks: to be compared."""
    texts = [
        [t for out in cell for t in (out.get("text"), *_texts(out.get("data", {}))) if t]
        for cell in outputs
    ]
    return [[_masked("".join(t)) for t in cell] for cell in texts]


def _texts(data: dict[str, Any]) -> list[Any]:
    return [value for kind, value in data.items() if not kind.startswith("image/")]


def _masked(text: str) -> str:
    return re.sub(r"\s+", " ", _NUMBER.sub("#", _LOOKS.sub("", text)))


def write(path: Path) -> None:
    """Run a notebook and keep its outputs in it."""
    book = json.loads(path.read_text(encoding="utf-8"))
    shown = run(path)
    for number, (cell, outputs) in enumerate(
        zip([c for c in book["cells"] if c["cell_type"] == "code"], shown, strict=True), 1
    ):
        cell["outputs"], cell["execution_count"] = outputs, number
    path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--tell", file]:  # for the tests
            print(json.dumps(told(run(Path(file)))))
        case ["--write", file]:
            write(Path(file))
        case _:
            # each in a process of its own: names of variables are counted from the start, and
            # scopes are empty
            for each in NOTEBOOKS:
                subprocess.run(
                    [sys.executable, "-m", "tests.notebooks", "--write", str(each)],
                    check=True,
                    cwd=ROOT,
                )
                print(f"{each.relative_to(ROOT)}: {each.stat().st_size:,} bytes")
