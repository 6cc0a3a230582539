"""The gradient of a maximum arrives whole, in code that computes the same input twice and rounds it
otherwise each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers

from ..nets import fresh

SEGMENTS = (0, 0, 1, 1, 1, 2)
SENT = {"Src_index": (5, 4, 3, 2, 1, 0, 0), "Dst_index": (0, 3, 0, 2, 1, 5, 4)}


def _segments(kind: str, slots: dict[str, Any], count: str, **attrs: Any) -> Any:
    """An op of Paddle 2 that puts rows together, of which Fluid has no function. slots: variables
    and numbers.
    """
    block = fluid.default_main_program().global_block()
    ins = {
        n: [layers.assign(np.array(v, np.int64)) if isinstance(v, tuple) else v]
        for n, v in slots.items()
    }
    outs = {slot: [block.create_var(name=f"{kind}.{slot}")] for slot in ("Out", count)}
    block.append_op(type=kind, inputs=ins, outputs=outs, attrs=attrs)
    return outs["Out"][0]


MAXIMA: dict[str, Callable[[Any], Any]] = {
    "windows side by side": lambda x: layers.pool2d(x, 2, "max", 2),
    "overlapping windows": lambda x: layers.pool2d(x, 3, "max", 2, 1),
    "windows that reach beyond the edge": lambda x: layers.pool2d(x, 5, "max", 5, ceil_mode=True),
    "large windows": lambda x: layers.pool2d(x, 8, "max", 8),
    "maxout": lambda x: layers.maxout(x, 3),
    "reduce_max": lambda x: layers.reduce_max(x, dim=[2, 3]),
    "reduce_min": lambda x: layers.reduce_min(x, dim=[2]),
    "sequence_pool": lambda x: layers.sequence_pool(
        layers.lod_reset(x, target_lod=[0, 2, 5, 6]), "max"
    ),
    "segment_pool": lambda x: _segments(
        "segment_pool", {"X": x, "SegmentIds": SEGMENTS}, "SummedIds", pooltype="MIN"
    ),
    "graph_send_recv": lambda x: _segments(
        "graph_send_recv", {"X": x, **SENT}, "Dst_count", reduce_op="MAX"
    ),
}


@pytest.mark.first(4)
@pytest.mark.optimized
@pytest.mark.parametrize("name", MAXIMA)
def test_every_maximum_has_its_gradient(name: str) -> None:
    """Of a product and a sum, which may be rounded at once in one loop and one after the other in
    the next.
    """
    with fresh() as (main, startup):
        x = fluid.data("x", [6, 9, 16, 16])
        by, more = (
            layers.create_parameter(
                [9], "float32", default_initializer=fluid.initializer.Uniform(0.5, 1.5)
            )
            for _ in range(2)
        )
        value = layers.elementwise_add(layers.elementwise_mul(x, by, axis=1), more, axis=1)
        out = MAXIMA[name](value)
        grads: list[Any] = fluid.gradients(layers.reduce_sum(out), [value, by, more])
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    feed = {"x": np.random.default_rng(0).random((6, 9, 16, 16), np.float32)}
    d_value, _, d_more, maxima = exe.run(main, feed=feed, fetch_list=[*grads, out], scope=scope)
    assert d_value.sum() == d_more.sum() == maxima.size
