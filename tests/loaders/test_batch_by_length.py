"""Batches of samples of like length, in an order that a seed decides."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax.errors import FluidTypeError, FluidValueError
from fluidjax.io import Position, batch_by_length, resumable

SAMPLES = [(list(range(n)), i) for i, n in enumerate([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5])]


def reader() -> Any:
    return iter(SAMPLES)


@given(
    st.lists(st.integers(0, 9), max_size=30), st.integers(1, 4), st.integers(1, 4), st.booleans()
)
def test_every_sample_comes_once_beside_those_of_like_length(
    lengths: list[int], size: int, window: int, drop: bool
) -> None:
    samples = [(np.zeros(n), i) for i, n in enumerate(lengths)]
    batches = list(batch_by_length(lambda: iter(samples), size, window, seed=3, drop_last=drop)())
    seen = sorted(i for batch in batches for _, i in batch)
    whole = len(samples) - (len(samples) % size if drop else 0)
    assert len(seen) == len(set(seen)) == whole and all(len(b) <= size for b in batches)
    # of one window no batch reaches into another one's lengths
    for begin in range(0, len(samples), size * window):
        inside = {i for i in range(begin, min(begin + size * window, len(samples)))}
        ends = sorted(
            (min(lengths[i] for _, i in b), max(lengths[i] for _, i in b))
            for b in batches
            if b[0][1] in inside
        )
        assert all(high <= low for (_, high), (low, _) in itertools.pairwise(ends))
        for batch in batches:
            assert len({i in inside for _, i in batch}) == 1
            places = [(lengths[i], i) for _, i in batch]
            assert places == sorted(places)


def test_the_order_follows_from_the_seed_and_the_pass() -> None:
    made = batch_by_length(reader, 2, 3, seed=5)
    first, second = list(made()), list(made())
    again = batch_by_length(reader, 2, 3, seed=5)
    assert first == list(again()) and second == list(again()) and first != second
    going = resumable(batch_by_length(reader, 2, 3, seed=5))
    going.resume(Position(1, 4))
    assert list(going()) == second[4:]
    without = resumable(batch_by_length(reader, 2))
    without.resume(Position(0, 1))
    with pytest.raises(
        FluidValueError, match="cannot resume in the middle of a pass without a seed"
    ):
        list(without())


def test_a_loader_sorts() -> None:
    words, number = (
        fluid.data("words", [None, 1], "int64", lod_level=1),
        fluid.data("number", [None, 1], "int64"),
    )
    loader = fluid.io.DataLoader.from_generator([words, number], 2)
    loader.set_sample_generator(
        reader, 2, drop_last=False, places=fluid.CPUPlace(), sort_window=6, sort_seed=1
    )
    found = [np.asarray(feed["number"]).reshape(-1).tolist() for (feed,) in loader()]
    made = batch_by_length(reader, 2, 6, seed=1)
    assert found == [[i for _, i in batch] for batch in made()]


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(FluidTypeError, match="takes a reader"):
        batch_by_length(SAMPLES, 2)  # type: ignore[arg-type]
    with pytest.raises(FluidValueError, match="window is a positive whole number, not 0"):
        batch_by_length(reader, 2, 0)
    with pytest.raises(FluidTypeError, match="which is a single number here"):
        list(batch_by_length(lambda: iter([(3, 1)]), 2)())
