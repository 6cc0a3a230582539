"""Fed values that decide sizes: what 1.8.5 computes, value by value, and a sentence where it
refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FluidError

from .cases import CASES, Case

DATA = Path(__file__).parents[1] / "data" / "sizes_1.8.5.npz"
Built = tuple[fluid.Program, list[Any]]

# Feeds that 1.8.5 takes and we refuse, or the other way round, and why.
DIFFERS = {
    ("split_at_an_axis", 2): "axis -1, which 1.8.5 dies of, is the last one here",
    ("top_k_of_a_number", 4): "more than there are: 1.8.5 never comes back, we refuse",
    ("top_k_of_a_number", 5): "a negative number: 1.8.5 never comes back, we refuse",
}


@cache
def recorded() -> Mapping[str, np.ndarray]:
    with np.load(DATA) as file:
        return dict(file)


def built(case: Case) -> Built:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        return main, case.build(fluid)


def answers(name: str, feed: int) -> list[np.ndarray] | None:
    """What 1.8.5 gave for one feed of a case; None if it refused or died."""
    mine = {
        k.rsplit("/", 1)[1]: v for k, v in recorded().items() if k.startswith(f"{name}/{feed}/")
    }
    assert mine, f"nothing is recorded for feed {feed} of {name}; run tests/tools/record_sizes.py"
    return None if {"refused", "died"} & set(mine) else [mine[str(i)] for i in range(len(mine))]


def same(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Equal within rounding. 1.8.5 makes no array of an empty tensor, so its shape and dtype are
    not known.
    """
    if not theirs.size:
        assert not ours.size
        return
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6)


@pytest.mark.first(12)
@pytest.mark.parametrize("name", CASES)
def test_each_value_gives_what_paddle_gives(name: str) -> None:
    case = CASES[name]
    main, fetches = built(case)
    exe = fluid.Executor(fluid.CPUPlace())
    for i, feed in enumerate(case.feeds):
        theirs = answers(name, i)
        try:
            ours = exe.run(main, feed=feed, fetch_list=fetches)
        except FluidError as error:
            assert theirs is None, f"feed {i} is refused: {error}"
            assert "\n" not in str(error) and any(n in str(error) for n in feed), str(error)
            continue
        assert theirs is not None or (name, i) in DIFFERS, (
            f"feed {i} gives {[v.shape for v in ours]}, and 1.8.5 refuses it"
        )
        for mine, other in zip(ours, theirs or (), strict=False):
            same(mine, other)
