"""Every op at extreme inputs, at ties and at kinks: equal to Paddle 1.8.5, or on the page
docs/extremes.md with the reason.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from fluidjax.ops.registry import REGISTRY

from .extremes import FAMILIES, cases_of, page, recorded, without, written
from .extremes.case import Extreme
from .extremes.judge import compare, leads_of
from .extremes.reasons import REASONS
from .extremes.recorded import Answer
from .protos import paddles

CASES = {
    f"{family}-{case.name}": (family, case) for family in FAMILIES for case in cases_of(family)
}
LEADS = frozenset(f"{family}-{name}" for family in FAMILIES for name in leads_of(family))
RUN = [
    name for name, (family, case) in CASES.items() if not recorded.recorded(family, case).refused
]
REPEATED = {f"{family}-{name}" for family in FAMILIES for name in written.repeated(family)}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.thorough) if n in REPEATED else n for n in RUN]
)
def test_equals_paddle_or_stands_on_the_page(name: str) -> None:
    family, case = CASES[name]
    unexplained = [line for reason, line in page.rows(family, case.name) if reason is None]
    assert not unexplained, (
        "give these a reason in extremes/reasons.py, or correct the op:\n" + "\n".join(unexplained)
    )
    assert page.agrees(family, case.name) or not page.SHOWS_THIS_COMPILER, (
        "run python -m tests.ops.extremes.page and read the diff"
    )


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
    """A new op of Paddle's: add cases (tests/ops/README.md), or name it in extremes/without.py under
    the reason why there is none.
    """
    listed = without.listed()
    assert len(set(listed)) == len(listed) and not set(listed) & without.covered()
    forward = {kind for kind, op in REGISTRY.items() if op.forward is None}
    assert paddles() - without.covered() <= set(listed) <= forward
    assert without.section() in written.PATH.read_text(), (
        "run python -m tests.ops.extremes.page and read the diff"
    )


def test_cases_have_distinct_names() -> None:
    cases = [case for family in FAMILIES for case in cases_of(family)]
    assert len({case.name for case in cases}) == len(cases)
    assert all(isinstance(case, Extreme) for case in cases)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_recording_has_its_case(family: str) -> None:
    assert recorded.names(family) == {case.name for case in cases_of(family)}


def test_a_spectrum_is_compared_in_any_order_and_beside_its_largest() -> None:
    """What LAPACK answers for ones of 3 x 3 on two processors; another spectrum differs all the
    same.
    """
    case = Extreme(
        "of rank 1", "eigvals", {"X": np.ones((3, 3))}, {}, ["Out"], rtol=1e-9, singular=True
    )
    answer, want = Answer({}, {}), np.array([-2.2e-16, 3, 0], "complex128")
    for got, wrong in (
        ([3, 6e-33, -7.5e-17], 0),
        ([3, 1e-7, 0], 1),
        ([3, 3, 0], 1),
        ([0, -3, 0], 2),
    ):
        assert len(list(compare(case, answer, "Out", want, np.array(got, "complex128")))) == wrong
    regular = Extreme("ordinary", "eigvals", {"X": np.ones((3, 3))}, {}, ["Out"], rtol=1e-9)
    assert len(list(compare(regular, answer, "Out", want, want[::-1] + 1e-16))) == 2
