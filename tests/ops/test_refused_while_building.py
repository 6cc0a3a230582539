"""What Paddle 1.8.5 refuses while a program is built is refused there and not in the first run:
an axis that is not there, a negative size, labels for other rows. (Each was built on 1.8.5, which
raises EnforceNotMet or an AssertionError.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fluidjax as fluid
from fluidjax.errors import ShapeError
from tests.nets import fresh

L = fluid.layers

LAYERS: dict[str, Callable[[Any], Any]] = {
    "concat": lambda x: L.concat([x, x], 3),
    "concat, negative": lambda x: L.concat([x, x], -4),
    "reduce_sum": lambda x: L.reduce_sum(x, 3),
    "reduce_max, negative": lambda x: L.reduce_max(x, -4),
    "argmax": lambda x: L.argmax(x, 3),
    "argmin": lambda x: L.argmin(x, -4),
    "layer_norm": lambda x: L.layer_norm(x, begin_norm_axis=3),
    "pad2d": lambda x: L.pad2d(x),
    "gather": lambda x: L.gather(x, L.fill_constant([1, 2], "int64", 0)),
    "spectral_norm": lambda x: L.spectral_norm(L.reshape(x, [24])),
    "expand_as": lambda x: L.expand_as(x, L.reshape(x, [3, 8])),
    "cross_entropy": lambda x: L.cross_entropy(x, L.cast(x, "int64")),
    "cos_sim": lambda x: L.cos_sim(x, L.reshape(x, [3, 8])),
    "sampling_id": lambda x: L.sampling_id(x),
    "uniform_random": lambda x: L.uniform_random([2, -3]),
    "fill_constant": lambda x: L.fill_constant([-2], "float32", 1.0),
}


@pytest.mark.parametrize("rows", [2, -1])
@pytest.mark.parametrize("name", LAYERS)
def test_refused_while_building(name: str, rows: int) -> None:
    with fresh():
        x = L.data("x", [rows, 3, 4], append_batch_size=False)
        with pytest.raises(ShapeError):
            LAYERS[name](x)
