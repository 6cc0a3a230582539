"""Flags: typed, all or none, and what is refused is told."""

from __future__ import annotations

from typing import Any

import pytest

import fluidjax as fluid
from fluidjax.errors import FluidTypeError, FluidValueError

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("flags", "error", "says"),
    [
        (
            {"FLAGS_check_nan": 1},
            FluidValueError,
            r"unknown flag 'FLAGS_check_nan' \(did you mean 'FLAGS_check_nan_inf'",
        ),
        (
            {"FLAGS_check_nan_inf": "yes"},
            FluidValueError,
            "is a boolean flag: 0, 1, true or false, not 'yes'",
        ),
        ({"FLAGS_recompile_warning": "many"}, FluidValueError, "wants int, not 'many'"),
        # 1.8.5: ValueError, "Flag FLAGS_selected_gpus cannot set its value through this function."
        (
            {"FLAGS_selected_gpus": "1"},
            FluidValueError,
            "FLAGS_selected_gpus is read from the environment alone",
        ),
        (
            ["FLAGS_check_nan_inf"],
            FluidTypeError,
            "set_flags takes a dict of flag names and values, not list",
        ),
    ],
)
def test_what_is_no_flag_is_told_and_changes_none(
    flags: Any, error: type[Exception], says: str
) -> None:
    before = fluid.get_flags(["FLAGS_benchmark", "FLAGS_check_nan_inf"])
    given = {"FLAGS_benchmark": True, **flags} if isinstance(flags, dict) else flags
    with pytest.raises(error, match=says):
        fluid.set_flags(given)
    assert fluid.get_flags(before) == before
