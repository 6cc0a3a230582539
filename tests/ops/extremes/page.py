"""docs/extremes.md: every difference from Paddle 1.8.5 that the audit finds, under its reason.

python -m tests.ops.extremes.page      writes it anew, after a change that is meant
"""

from __future__ import annotations

from typing import Any

import jaxlib

from . import FAMILIES
from .judge import Difference, differences, runs
from .reasons import REASONS, Reason, reason_of
from .without import section
from .written import PATH, written

# The compiler whose answers the page shows; another one adds up in another order, so that other
# sums overflow.
SHOWS_THIS_COMPILER = jaxlib.__version__.startswith("0.10.")
SHOWN = 4  # elements of one output that a row shows; it tells how many there are
HEAD = """# At the extremes

Ops get zeros of both signs, infinities, nan, ties and the largest numbers, and answer what Paddle 1.8.5 answers. This
page lists every exception, with its reason. For instance, `relu` of -0 is -0 in 1.8.5 and 0 here.

The inputs also include the bounds of piecewise functions and their neighbours, the smallest numbers, equal elements,
empty tensors, and integers at their limits. Results and gradients are compared, in float32 and float64. Two numbers
count as equal

- if they are the same special value: nan, an infinity, or a zero of the same sign (in gradients both zeros are equal);
- or if they are ordinary numbers within rounding: 2e-5 of their size in float32, 1e-11 in float64.

In a row, "differing" is the number of elements that differ, and the other columns show the first of them. `a or b` is
what 1.8.5 answers in its vector code or in its scalar code, which runs for the last few elements of a tensor.

A test compares this page with what the ops compute with jaxlib 0.10 on the CPU. Later versions of jaxlib must differ
for the same reasons.

Not listed are subnormal numbers, and those below four times the smallest normal one: XLA takes them for zero on the
CPU. Ops that only later Paddles have are compared with 3.3.1, whose answers are in 1.8.5's column. The last section
names the ops without a case.
"""
COLUMNS = (
    "| case | of | differing | inputs | 1.8.5 | here |\n| --- | --- | --- | --- | --- | --- |\n"
)
ROUNDING = "| case | of |\n| --- | --- |\n"


def rows(family: str, name: str) -> list[tuple[Reason | None, str]]:
    """The rows of a case, each with its reason if there is one."""
    grouped: dict[tuple[Reason | None, str], list[Difference]] = {}
    for d in differences(family, name):
        grouped.setdefault((reason_of(d), d.key), []).append(d)
    return [
        (reason, f"| {name} | {key} |" if reason and reason.rounding else row(found))
        for (reason, key), found in grouped.items()
    ]


def row(found: list[Difference]) -> str:
    """One line of a table."""
    first, shown = found[0], found[:SHOWN]
    dots = ["..."] if len(found) > SHOWN else []
    cells = [
        first.case, first.key, "all" if first.at is None else str(len(found)), "; ".join([*map(place, shown), *dots]),
        "; ".join([" or ".join(map(text, d.paddle)) for d in shown] + dots), "; ".join([text(d.here) for d in shown] + dots),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def place(d: Difference) -> str:
    if d.inputs:
        return ", ".join(f"{slot} = {text(value, 9)}" for slot, value in d.inputs)
    return "" if d.at is None else f"[{d.at}]"


def text(value: Any, digits: int = 4) -> str:
    return value if isinstance(value, str) else f"{value:.{digits}g}"


def page() -> str:
    """The whole page, from the recordings and from what the ops compute."""
    found: dict[str, list[str]] = {r.title: [] for r in REASONS}
    for family in FAMILIES:
        for name in runs(family):
            for reason, line in rows(family, name):
                if reason is None:
                    raise AssertionError(f"no reason in tests/ops/extremes/reasons.py for\n{line}")
                found[reason.title].append(line)
    parts = [
        f"## {r.title}\n\n{r.text}\n\n{ROUNDING if r.rounding else COLUMNS}" + "\n".join(found[r.title])
        for r in REASONS if found[r.title]
    ]  # fmt: skip
    return "\n\n".join([HEAD.rstrip(), *parts, section()]) + "\n"


def agrees(family: str, name: str) -> bool:
    """Whether the page has the rows of a case and no others, but for rounding that another
    processor may do.
    """
    found = {(r.title, line) for r, line in rows(family, name) if r is not None}
    may = {r.title for r in REASONS if r.rounding}
    there = written().get(name, set())
    return found <= there and all(title in may for title, _ in there - found)


if __name__ == "__main__":
    PATH.write_text(page())
