"""Ragged feeds of the ranks of a job, padded to common sizes; the ranks of one process stand for
those of several.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.devices.placement import Mesh
from fluidjax.dist.spmd.ragged_ranks import RaggedRanks
from fluidjax.errors import FeedError
from fluidjax.feeds.ragged_shards import of_each


def tensor(lengths: list[int], *above: list[int]) -> Any:
    return fluid.create_lod_tensor(
        np.arange(sum(lengths), dtype="f4")[:, None], [*above, lengths], fluid.CPUPlace()
    )


def joined(*ranks: dict[str, Any], compared: Any = None) -> dict[str, Any]:
    where = Mesh(
        tuple(jax.local_devices()[:2]),
        compares=lambda _mesh, text: compared.append(text) if compared is not None else None,
    )
    return RaggedRanks(where).joined(ranks)


def test_every_rank_keeps_its_rows_and_lods_are_equal_where_they_are_on_all() -> None:
    compared: list[str] = []
    one = {
        "a": tensor([2, 1]),
        "b": tensor([2, 1]),
        "c": tensor([2, 1]),
        "y": np.ones((2, 1), "f4"),
    }
    two = {"a": tensor([9]), "b": tensor([9]), "c": tensor([1]), "y": np.zeros((1, 1), "f4")}
    found = joined(one, two, compared=compared)
    assert found["a"].key == found["b"].key != found["c"].key
    assert found["a"].longest == (12,) and found["c"].longest == (8,)
    assert found["y"].each == "rows" and found["y"].key == found["a"].each == found["c"].each
    for name, value in found.items():
        for part, given in zip(of_each(value), (one[name], two[name]), strict=True):
            rows = np.asarray(given)
            np.testing.assert_array_equal(part.rows[: len(rows)], rows)
            np.testing.assert_array_equal(
                part.rows[len(rows) :], np.broadcast_to(rows[-1:], part.rows[len(rows) :].shape)
            )
            assert part.count == len(rows)
            if name != "y":
                assert part.alive == len(given.lod()[0]) - 1 and part.offsets[0].shape == (9,)
    assert compared == ["feed 'a': float32, rows of [1] with a LoD\nfeed 'b': float32, rows of [1] with a LoD\n"
                        "feed 'c': float32, rows of [1] with a LoD\nfeed 'y': float32, rows of [1]"]  # fmt: skip


def test_equal_numbers_of_sequences_stay_as_they_are() -> None:
    found = joined(
        {"a": tensor([2, 0]), "y": np.ones((3, 1))}, {"a": tensor([0, 0]), "y": np.ones((3, 1))}
    )
    assert (
        found["a"].alive is None
        and found["a"].offsets[0].shape == (6,)
        and found["y"].shape == (6, 1)
    )


def test_of_several_levels_each_goes_up_to_a_bucket_of_its_own() -> None:
    """Where only the lower level has other numbers, both are filled, and what has a row for each
    sequence of the first.
    """
    one = {"a": tensor([2, 1, 9], [1, 2]), "b": tensor([1, 1]), "y": np.ones((2, 1), "f4")}
    two = {"a": tensor([1] * 10, [0, 10]), "b": tensor([1, 3]), "y": np.zeros((2, 1), "f4")}
    found = joined(one, two)
    # sentences of a paragraph, words of a sentence; words of each
    assert found["a"].longest == (12, 12) and found["a"].most == (12, 12)
    assert found["y"].each == "rows" and found["y"].key == found["a"].each == found["b"].each
    for part, given in zip(of_each(found["a"]), (one["a"], two["a"]), strict=True):
        upper, lower = given.lod()
        assert part.alive == 2 and part.offsets[0].tolist() == upper + upper[-1:] * 6
        assert part.offsets[1].tolist() == lower + lower[-1:] * (13 - len(lower))
        np.testing.assert_array_equal(part.rows[: len(np.asarray(given))], np.asarray(given))


@pytest.mark.parametrize(
    ("one", "two", "error", "sentence"),
    [
        ({"a": tensor([1, 1], [2])}, {"a": tensor([1])}, FeedError,
         "one gets `feed 'a': float32, rows of [1] with a LoD of 2 levels` and another `feed 'a': float32, rows of [1] with a LoD`"),
        ({"a": tensor([1])}, {"a": np.ones((1, 1), "f4")}, FeedError,
         "one gets `feed 'a': float32, rows of [1] with a LoD` and another `feed 'a': float32, rows of [1]`"),
        ({"a": tensor([1, 1]), "y": np.ones(3)}, {"a": tensor([1]), "y": np.ones(4)}, FeedError, "feed 'y' has 3, 4 rows on the devices"),
        ({"a": tensor([1]), "y": np.float32(1)}, {"a": tensor([1]), "y": np.float32(1)}, FeedError, "feed 'y' is one number"),
    ],
)  # fmt: skip
def test_refused(
    one: dict[str, Any], two: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        joined(one, two)
    assert sentence in str(caught.value)
