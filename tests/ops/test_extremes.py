"""Every op at extreme inputs, at ties and at kinks: equal to Paddle 1.8.5, or on the page docs/extremes.md with the reason."""

from __future__ import annotations

import re

import pytest

from .extremes import FAMILIES, cases_of, page, recorded, without, written
from .extremes.case import Extreme
from .extremes.judge import leads_of
from .extremes.reasons import REASONS

CASES = {f"{family}-{case.name}": (family, case) for family in FAMILIES for case in cases_of(family)}
LEADS = frozenset(f"{family}-{name}" for family in FAMILIES for name in leads_of(family))
RUN = [name for name, (family, case) in CASES.items() if not recorded.recorded(family, case).refused]
REPEATED = {f"{family}-{name}" for family in FAMILIES for name in written.repeated(family)}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.thorough) if n in REPEATED else n for n in RUN])
def test_equals_paddle_or_stands_on_the_page(name: str) -> None:
    family, case = CASES[name]
    unexplained = [line for reason, line in page.rows(family, case.name) if reason is None]
    assert not unexplained, "give these a reason in extremes/reasons.py, or correct the op:\n" + "\n".join(unexplained)
    assert page.agrees(family, case.name) or not page.SHOWS_THIS_COMPILER, "run python -m tests.ops.extremes.page and read the diff"


def test_every_reason_claims_cases_that_there_are() -> None:
    idle = [
        (reason.title, pattern)
        for reason in REASONS
        for pattern, _, _ in reason.claims
        if not any(re.fullmatch(pattern, case.name) for _, case in CASES.values())
    ]
    assert not idle


def test_the_page_speaks_of_no_other_case() -> None:
    assert set(written.written()) <= {case.name for _, case in CASES.values()}


def test_every_op_has_a_case_or_a_reason() -> None:
    """A new op: add cases (tests/ops/README.md), or name it in extremes/without.py under the reason why there is none."""
    listed = without.listed()
    assert len(set(listed)) == len(listed)
    assert without.uncovered() == set(listed)
    assert without.section() in written.PATH.read_text(), "run python -m tests.ops.extremes.page and read the diff"


def test_cases_have_distinct_names() -> None:
    cases = [case for family in FAMILIES for case in cases_of(family)]
    assert len({case.name for case in cases}) == len(cases)
    assert all(isinstance(case, Extreme) for case in cases)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_recording_has_its_case(family: str) -> None:
    assert recorded.names(family) == {case.name for case in cases_of(family)}
