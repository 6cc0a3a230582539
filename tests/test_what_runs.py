"""The tests that run are all that there are, and property tests run the same examples wherever and
after whatever they run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest
from hypothesis import settings

pytestmark = pytest.mark.once

TESTS = Path(__file__).parent

DRAWS = """
import tests.conftest
from hypothesis import given, settings, strategies as st
from tests.random_programs import recipes
from tests.ir.strategies import programs
%s
@settings(max_examples=10)
@given(recipes(), programs(), st.floats(), st.text())
def seen(a, b, c, d):
    print(ascii((a, b, c, d)))
seen()
"""


def test_no_folder_of_tests_is_left_out(pytestconfig: pytest.Config) -> None:
    """pytest's own norecursedirs names "dist"."""
    folders = {
        part for path in TESTS.rglob("test_*.py") for part in path.relative_to(TESTS).parts[:-1]
    }
    assert "dist" in folders
    left_out = {
        f
        for f in folders
        for pattern in pytestconfig.getini("norecursedirs")
        if fnmatch(f, pattern)
    }
    assert not left_out


# beside those of a package of fluidjax: one kind of tests each, and what tests are made of
OWN_KINDS = {"data", "fuzz", "gpu", "models", "random_nets", "sizes", "tools"}


def test_folders_are_those_of_the_package() -> None:
    """Tests of fluidjax/lower lie in tests/lower."""
    packages, folders = (
        {path.parent.name for path in root.glob("*/__init__.py")}
        for root in (TESTS.parent / "fluidjax", TESTS)
    )
    assert folders - OWN_KINDS <= packages and not folders & packages & OWN_KINDS


@pytest.mark.slow
def test_the_same_examples_in_every_process() -> None:
    """Whatever the hash seed, and whatever has been imported (hypothesis collects constants from
    modules).
    """
    if not settings.default.derandomize:
        pytest.skip("this is a search")
    kinds = [
        ("1", ""),
        ("2", "import fluidjax.demo, fluidjax.cli, fluidjax.paddle, benchmarks.transpile"),
    ]
    said = []
    for seed, more in kinds:
        env = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", DRAWS % more]
        said.append(
            subprocess.run(
                command, capture_output=True, text=True, check=True, env=env, cwd=TESTS.parent
            ).stdout
        )
    assert said[0] == said[1] and said[0].count("\n") >= 10
