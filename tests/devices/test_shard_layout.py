"""Where parts of variables lie: dealing and joining are each other's inverse, wherever the parts
are.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidjax.devices.shard_layout import ShardLayout, Span, arrays_of, distributed, even


@given(st.lists(st.integers(1, 7), min_size=0, max_size=3), st.integers(1, 5))
def test_even_pieces(shape, ranks):
    placed = even("v", tuple(shape), ranks)
    value = np.arange(placed.size, dtype=np.float32).reshape(shape)
    each = -(-placed.size // ranks)
    found = distributed({"v": placed}, {"v": value}, {"v": each}, ranks)["v"]
    np.testing.assert_array_equal(found.reshape(-1)[: placed.size], value.reshape(-1))
    np.testing.assert_array_equal(placed.joined({"v": found}.__getitem__), value)


@given(st.integers(1, 12), st.integers(1, 3), st.integers(1, 4))
def test_rows_dealt_in_turn(height, width, ranks):
    """Row r of a table to rank r mod n, as row r // n."""
    counts = [len(range(k, height, ranks)) for k in range(ranks)]
    spans = tuple(
        Span("t", k, 0, k * width, width, ranks * width, n) for k, n in enumerate(counts) if n
    )
    placed = ShardLayout((height, width), spans)
    value = np.random.default_rng(0).normal(size=(height, width))
    found = distributed({"t": placed}, {"t": value}, {"t": max(counts) * width}, ranks)["t"]
    for r in range(height):
        np.testing.assert_array_equal(found[r % ranks, r // ranks * width :][:width], value[r])
    np.testing.assert_array_equal(placed.joined({"t": found}.__getitem__), value)


def test_several_variables_in_one_array_and_copies():
    a = ShardLayout(
        (4,), (Span("x", 0, 0, 0, 3), Span("x", 1, 1, 3, 1)), copies=(Span("y", 1, 0, 0, 4),)
    )
    b = ShardLayout((1,), (Span("x", 1, 0, 0, 1),))
    values = {"a": np.array([1.0, 2, 3, 4]), "b": np.array([9.0])}
    found = distributed({"a": a, "b": b}, values, {"x": 3, "y": 4}, 2)
    assert found["x"].tolist() == [[1, 2, 3], [9, 4, 0]] and found["y"].tolist() == [
        [0, 0, 0, 0],
        [1, 2, 3, 4],
    ]
    found["y"][:] = 7  # the copies went their own way
    assert a.joined(found.__getitem__).tolist() == [1, 2, 3, 4] and b.joined(
        found.__getitem__
    ).tolist() == [9]
    assert list(arrays_of([a, b])) == ["x", "y"] and a.arrays == ("x",)


def test_one_array_has_one_dtype():
    placed = {
        "a": ShardLayout((1,), (Span("x", 0, 0, 0, 1),)),
        "b": ShardLayout((1,), (Span("x", 0, 1, 0, 1),)),
    }
    with pytest.raises(ValueError, match="'b' is int32, but 'x', which holds it too, is float32"):
        distributed(placed, {"a": np.zeros(1, np.float32), "b": np.zeros(1, np.int32)}, {"x": 2}, 1)
