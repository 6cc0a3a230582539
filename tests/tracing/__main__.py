"""How many functions of each package compute the same bits as programs: a column of
docs/jax-functions.md for this JAX.

    python -m tests.tracing           run all of tests/tracing/functions.py, write the column anew
    (make traced) python -m tests.tracing haiku     run those whose names hold this word, and write
    nothing
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import defaultdict
from pathlib import Path

import jax

from .functions import CASES
from .test_functions import check_case

PAGE = Path(__file__).parents[2] / "docs" / "jax-functions.md"
PACKAGES = ("linen", "nnx", "optax", "equinox", "haiku", "diffrax", "distrax", "numpyro", "jraph")
OWN = "jax.numpy, jax.lax"
TABLE = re.compile(r"\| functions of \|.*?\n\n", re.DOTALL)


def package(name: str) -> str:
    word = name.partition("_")[0]
    return word if word in PACKAGES else "linen" if name in ("vae", "diffusion_step") else OWN


def counted(word: str = "") -> dict[str, tuple[int, int]]:
    """Package -> how many of its functions are equal in every bit, and how many there are."""
    found: dict[str, list[bool]] = defaultdict(list)
    for name in CASES:
        if word not in name:
            continue
        try:
            check_case(name)
            found[package(name)].append(True)
            print(name, "is equal", flush=True)
        except Exception as error:
            found[package(name)].append(False)
            print(f"{name}: {type(error).__name__}: {str(error)[:600]}", flush=True)
        jax.clear_caches()
    return {name: (sum(each), len(each)) for name, each in found.items()}


def table(text: str, version: str, column: dict[str, tuple[int, int]]) -> str:
    """The table of a page with this version's column new; packages that are not installed keep the
    counts of the last time.
    """
    lines = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in text.strip().splitlines()
    ]
    columns = {v: [row[at] for row in lines[2:]] for at, v in enumerate(lines[0]) if at}
    packages = (OWN, *PACKAGES)
    before = columns.get(version, [""] * len(packages))
    columns[version] = [
        f"{column[n][0]} of {column[n][1]}" if n in column else old
        for n, old in zip(packages, before, strict=True)
    ]
    columns = dict(sorted(columns.items()))
    rows = [["functions of", *columns], ["---"] * (1 + len(columns))]
    rows += [[n, *(c[at] for c in columns.values())] for at, n in enumerate(packages)]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows) + "\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    column = counted(asked)
    print(jax.__version__, column)
    if not asked:
        page = PAGE.read_text()
        PAGE.write_text(
            TABLE.sub(lambda old: table(old[0], f"jax {jax.__version__}", column), page, count=1)
        )
