"""Every name of the API index is called by a test that compares numbers (or texts) with something
else.

Cases that are kept apart stand with the test that compares them. `python -m
tests.test_index_is_called` prints which file calls each name.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

import fluidjax.paddle  # noqa: F401

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
INDEX = json.loads((DATA / "api_index.json").read_text())
NAMES = [f"{module}.{name}" for module, names in INDEX.items() for name in names.split()]
# files of cases, and the test that compares what they give with recordings
COMPARED_IN = {
    "tests/layers/cases.py": "tests/layers/test_layers.py", "tests/paddle/cases.py": "tests/paddle/test_functions.py",
    "tests/paddle/late_cases.py": "tests/paddle/test_functions.py", "tests/paddle/transform_cases.py": "tests/paddle/test_transforms.py",
    "tests/layers/detection_cases.py": "tests/layers/test_detection.py", "tests/tools/decode_nets.py": "tests/layers/test_decode.py",
    "tests/sizes/cases.py": "tests/sizes/test_fed_sizes.py",
}  # fmt: skip
COMPARES = re.compile(
    r"\b(?:assert_\w+|approx|array_equal|allclose)\(|^\s*assert .*==", re.MULTILINE
)
# how tests write a module, besides its last word
SHORT: dict[str, set[str]] = {
    "paddle": {"paddle", "p"}, "paddle.fluid": {"fluid"}, "paddle.fluid.layers": {"layers", "L"},
    "paddle.nn.functional": {"F", "functional"}, "paddle.nn": {"nn"}, "paddle.static": {"static", "fluid"},
    "paddle.vision.transforms": {"T", "transforms"},
}  # fmt: skip


@cache
def called(file: str) -> frozenset[tuple[str, str]]:
    """(the word before it, name) of all that a file calls, in texts that are evaluated too;
    imported names have none before them.
    """
    found: set[tuple[str, str]] = set()
    imported: set[str] = set()
    trees: list[ast.AST] = [ast.parse((ROOT / file).read_text())]
    while trees:
        for node in ast.walk(trees.pop()):
            if isinstance(node, ast.Call):
                found.add(words(node.func))
            elif isinstance(node, ast.ClassDef):  # what a class derives from runs too
                found.update(map(words, node.bases))
            elif isinstance(node, ast.ImportFrom):
                imported.update(a.asname or a.name for a in node.names)
            elif (
                isinstance(node, ast.Constant) and isinstance(node.value, str) and "(" in node.value
            ):
                with suppress(SyntaxError, ValueError):  # the latter of a null byte, up to 3.11.3
                    trees.append(ast.parse(node.value.strip(), mode="eval"))
    return frozenset((owner, name) for owner, name in found if owner or name in imported)


def words(node: ast.expr) -> tuple[str, str]:
    """The last two words of a.b.c; empty where there are none."""
    if isinstance(node, ast.Attribute):
        return words(node.value)[1], node.attr
    return "", node.id if isinstance(node, ast.Name) else ""


def calls(file: str, path: str) -> bool:
    """Whether the file calls the name, in whichever of Paddle's modules it finds it."""
    return any((owner, path.rpartition(".")[2]) in called(file) for owner in owners(path))


@cache
def owners(path: str) -> set[str]:
    module, _, name = path.rpartition(".")
    return SHORT[module].union(
        {""},
        *(SHORT[m] for m in SHORT if m != module and resolved(f"{m}.{name}") is resolved(path)),
    )


@cache
def resolved(path: str) -> object:
    """What a name of Paddle is here; another object for each that is not there."""
    module, _, name = path.rpartition(".")
    here = (
        module.replace("paddle.fluid", "fluidjax")
        if module.startswith("paddle.fluid")
        else f"fluidjax.{module}"
    )
    return getattr(importlib.import_module(here), name, object())


@cache
def compares(file: str) -> bool:
    return bool(COMPARES.search((ROOT / COMPARED_IN.get(file, file)).read_text()))


def test_each_is_called_by_a_test_that_compares_something() -> None:
    wrong = [name for name, file in found().items() if file is None]
    assert not wrong, "call them in a test that compares what they give"


def found() -> dict[str, str | None]:
    """For each name the first file that calls it; recorded cases come first, files whose subject is
    the name's module next.
    """
    files = sorted(
        str(p.relative_to(ROOT)) for p in (ROOT / "tests").rglob("test_*.py") if p != Path(__file__)
    )
    files = [*COMPARED_IN, *sorted(files, key=lambda f: (not f.startswith("tests/paddle"), f))]
    return {
        name: next((f for f in files if calls(f, name) and compares(f)), None) for name in NAMES
    }


if __name__ == "__main__":
    print(*(f"{name}: {file}" for name, file in sorted(found().items())), sep="\n")
