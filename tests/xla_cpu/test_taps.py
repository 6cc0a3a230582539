"""Depthwise convolutions that are large enough to be made in a loop, beside JAX's own."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

from fluidjax.ops.convolution_geometry import Geometry
from fluidjax.xla_cpu import convolution_ways as ways


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("samples", "channels", "times"), [(1, 24, 1), (1, 15, 2), (3, 24, 1), (1, 19, 1)])  # fmt: skip
def test_taps_in_a_loop(samples: int, channels: int, times: int, stride: int) -> None:
    drawn = np.random.RandomState(0)
    x = drawn.standard_normal((samples, channels, 34, 30)).astype("float32")
    w = drawn.standard_normal((channels * times, 1, 5, 5)).astype("float32")
    geo = Geometry(x.shape, w.shape, (stride,) * 2, ((2, 2), (1, 3)), (1, 1), channels, False)
    assert geo.pixels * geo.w[0] * geo.window > ways.SMALL

    def taps(x: Any, w: Any) -> Any:
        return ways.taps_output(geo, x, w)

    kinds: Any = jax.make_jaxpr(taps)(x, w)
    assert ("scan" in str(kinds)) == (samples > 1 or channels != 19)
    want = lax.conv_general_dilated(
        x, w, (stride,) * 2, ((2, 2), (1, 3)), feature_group_count=channels
    )
    np.testing.assert_allclose(jax.jit(taps)(x, w), want, rtol=1e-4, atol=1e-4)


def test_channels_last_with_a_filter_of_numpy() -> None:
    drawn = np.random.RandomState(0)
    x = drawn.standard_normal((2, 9, 8, 5)).astype("float32")
    w = drawn.standard_normal((10, 1, 3, 3)).astype("float32")
    geo = Geometry(x.shape, w.shape, (1, 1), ((1, 1), (1, 1)), (1, 1), 5, True)
    want = lax.conv_general_dilated(
        x, w, (1, 1), ((1, 1), (1, 1)), dimension_numbers=("NHWC", "OIHW", "NHWC"), feature_group_count=5
    )  # fmt: skip
    np.testing.assert_allclose(ways.taps_output(geo, x, w), want, rtol=1e-4, atol=1e-5)
