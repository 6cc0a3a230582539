"""The gradient of a max pool of JAX's whose windows do not overlap: its bits, ties, infinities and
nan included, in a part of its memory.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

from fluidjax.ops.lax.windows import select_and_scatter_add

Sizes = tuple[int, ...]


def by_jax(source: Any, x: Any, select: str, dims: Sizes, strides: Sizes) -> Any:
    function, start = (lax.max, -np.inf) if select == "ge" else (lax.min, np.inf)

    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, np.float32(start), function, dims, strides, "VALID")

    return jax.vjp(pooled, x)[1](source)[0]


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("shape", "dims", "strides"),
    [
        ((2, 8, 6, 3), (1, 2, 2, 1), (1, 2, 2, 1)),
        ((2, 7, 9, 3), (1, 2, 3, 1), (1, 3, 3, 1)),
        ((3, 10), (1, 3), (1, 4)),
        ((1, 8, 8, 2), (1, 2, 2, 1), (1, 3, 2, 1)),
        ((5, 5), (3, 3), (1, 2)),  # these overlap
    ],
)
@pytest.mark.parametrize("select", ["ge", "le"])
def test_its_bits(shape: Sizes, dims: Sizes, strides: Sizes, select: str) -> None:
    rng = np.random.default_rng(0)
    x = np.round(rng.standard_normal(shape) * 2).astype(np.float32)
    for value in (np.nan, np.inf, -np.inf):
        x[rng.random(shape) < 0.1] = value
    outs = [(n - k) // s + 1 for n, k, s in zip(shape, dims, strides, strict=True)]
    source = rng.standard_normal(outs).astype(np.float32)
    sizes: dict[str, Any] = {"window_dimensions": dims, "window_strides": strides}
    found = select_and_scatter_add(source, x, select=select, padding=(0,) * 2 * x.ndim, **sizes)
    np.testing.assert_array_equal(found, by_jax(source, x, select, dims, strides))


@pytest.mark.optimized
def test_its_memory() -> None:
    """XLA makes an index for each element and axis."""
    size, dims = (8, 32, 32, 16), (1, 2, 2, 1)
    x, source = (jax.ShapeDtypeStruct(s, "float32") for s in (size, (8, 16, 16, 16)))

    def ours(source: Any, x: Any) -> Any:
        sizes: dict[str, Any] = {"window_dimensions": dims, "window_strides": dims}
        return select_and_scatter_add(source, x, select="ge", padding=(0,) * 8, **sizes)

    def theirs(source: Any, x: Any) -> Any:
        return by_jax(source, x, "ge", dims, dims)

    def temporaries(f: Any) -> int:
        figures: Any = jax.jit(f).lower(source, x).compile().memory_analysis()
        return int(figures.temp_size_in_bytes)

    assert 4 * temporaries(ours) < temporaries(theirs)
