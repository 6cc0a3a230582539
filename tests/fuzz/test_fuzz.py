"""A few hundred spoiled files of all kinds, in a process under a limit of memory; `make fuzz` reads
many more.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from fluidjax.errors import FluidError
from tests.fuzz import mutations

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_spoiled_files_do_no_harm() -> None:
    """Only our own errors, at most 2 s of CPU time and 300 MB for each; an abort would be the end
    of that process.
    """
    run = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--count", "15"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    lines = run.stdout.splitlines()
    assert run.returncode == 0, run.stdout + run.stderr[-3000:]
    assert len(lines) >= 25 and all(", 0 did harm" in line for line in lines), run.stdout
    assert (
        sum(int(line.split(" copies, ")[1].split(" read")[0]) for line in lines) > 60
    )  # not all are refused at the first byte


def test_mutations_are_the_same_for_a_seed_and_differ() -> None:
    data = bytes(range(200))
    one, again = (
        [mutations.of_bytes(data, random.Random(f"a {i}")) for i in range(20)] for _ in range(2)
    )
    assert one == again and len(set(one)) > 15


def test_long_words_are_cut_in_messages() -> None:
    error = FluidError("the variable " + "w" * 5000 + " is not there, and " + "v" * 399 + " is")
    assert (
        len(str(error)) < 700 and str(error).endswith("v" * 399 + " is") and "w...w" in str(error)
    )
