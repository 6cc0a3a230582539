"""The view of rows by sequence and its inverse, beside NumPy's loops; how they are differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from fluidjax.ops.ragged import Ragged, pack, trimmed, view

LENGTHS = {
    "of all lengths": [3, 0, 1, 4],
    "one": [4],
    "empty ones": [0, 0, 2],
}
LONGEST, BEHIND, WIDTH = 4, 3, 2


def ragged(lengths: list[int], rows: Any) -> Ragged:
    offsets = jnp.asarray(np.concatenate([[0], np.cumsum(lengths)]), jnp.int32)
    return Ragged(rows, (offsets,), (LONGEST,), "rows", padded=True)


def cells_of(lengths: list[int], reverse: bool) -> list[tuple[int, int, int]]:
    """Row, sequence and place of each cell that has a row."""
    found, begin = [], 0
    for sequence, length in enumerate(lengths):
        for at in range(length):
            found.append((begin + at, sequence, length - 1 - at if reverse else at))
        begin += length
    return found


@pytest.mark.first(3)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", LENGTHS)
def test_a_view_has_each_row_in_its_cell_and_0_elsewhere(name: str, reverse: bool) -> None:
    lengths = LENGTHS[name]
    rows = np.random.default_rng(0).standard_normal((sum(lengths) + BEHIND, WIDTH), np.float32)
    wanted = np.zeros((len(lengths), LONGEST, WIDTH), np.float32)
    for row, sequence, place in cells_of(lengths, reverse):
        wanted[sequence, place] = rows[row]
    np.testing.assert_array_equal(view(ragged(lengths, jnp.asarray(rows)), reverse), wanted)


def functions(
    lengths: list[int], reverse: bool
) -> list[tuple[Callable[[Any], Any], tuple[int, ...]]]:
    """Both functions, of what they move, and the shape that each takes."""
    rows, cells = (sum(lengths) + BEHIND, WIDTH), (len(lengths), LONGEST, WIDTH)
    return [
        (jax.jit(lambda x: view(ragged(lengths, x), reverse)), rows),
        (jax.jit(lambda x: pack(ragged(lengths, jnp.zeros(rows)), x, reverse)), cells),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", LENGTHS)
def test_they_are_inverse_and_differentiate_as_any_function(name: str, reverse: bool) -> None:
    rng = np.random.default_rng(1)
    (viewed, rows), (packed, cells) = functions(LENGTHS[name], reverse)
    x = rng.standard_normal(rows, np.float32)
    kept = np.where(np.arange(len(x))[:, None] < sum(LENGTHS[name]), x, 0)
    np.testing.assert_array_equal(packed(viewed(jnp.asarray(x))), kept)
    for function, shape in ((viewed, rows), (packed, cells)):
        value = jnp.asarray(rng.standard_normal(shape, np.float32))
        check_grads(function, (value,), 2, modes=("fwd", "rev"))
        both = jax.vmap(function)(jnp.stack([value, 2 * value]))
        np.testing.assert_array_equal(both, jnp.stack([function(value), 2 * function(value)]))
        matrix = jax.jacfwd(function)(value)  # of a linear function: of its value too
        np.testing.assert_array_equal(matrix, jax.jacrev(function)(value))
        np.testing.assert_allclose(
            jnp.tensordot(matrix, value, value.ndim), function(value), rtol=1e-6
        )


def test_their_gradients_scatter_nothing() -> None:
    """A scatter on a CPU is a loop over its rows."""
    for function, shape in functions([3, 1, 4], False):
        made = jax.make_jaxpr(jax.grad(lambda x, f=function: jnp.sum(f(x) ** 2)))(jnp.ones(shape))
        assert "gather" in str(made) and "scatter" not in str(made)


@pytest.mark.parametrize("lengths", [[[2, 1]], [[2, 1], [1, 0, 3]]])
def test_a_trimmed_value_has_no_filler_sequences(lengths: list[list[int]]) -> None:
    offsets = [np.concatenate([[0], np.cumsum(one)]) for one in lengths]
    rows = np.arange(8.0)
    padded = Ragged(
        rows,
        tuple(np.pad(one, (0, 2), mode="edge") for one in offsets),
        (8,) * len(offsets),
        "rows",
        padded=True,
        each="batch",
        alive=np.int32(2),
    )
    got = trimmed(padded)
    for level, wanted in zip(got.offsets, offsets, strict=True):
        np.testing.assert_array_equal(level, wanted)
    np.testing.assert_array_equal(got.rows, rows[: offsets[-1][-1]])
    assert got.longest == tuple(map(max, lengths)) and got.alive is None and not got.padded
