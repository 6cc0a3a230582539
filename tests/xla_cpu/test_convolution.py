"""Convolutions: every way gives what XLA's own convolution gives, and the way is chosen by shapes
and platform.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluidjax.ops import convolution
from fluidjax.ops.convolution import NATIVE, XLA
from fluidjax.ops.convolution_geometry import Geometry
from fluidjax.ops.target import Target
from fluidjax.xla_cpu import convolution_ways
from fluidjax.xla_cpu.convolution import convolve, way

NO_PADS = ((0, 0), (0, 0))
COLUMNS = (
    convolution_ways.columns_output, convolution_ways.columns_input_gradient, convolution_ways.columns_filter_gradient,
)  # fmt: skip
TUNED = Target(convolve)


def output(geo: Geometry, x: Any, w: Any) -> Any:
    return convolution.output(geo, x, w, TUNED)


def input_gradient(geo: Geometry, w: Any, dy: Any) -> Any:
    return convolution.input_gradient(geo, w, dy, TUNED)


def filter_gradient(geo: Geometry, x: Any, dy: Any) -> Any:
    return convolution.filter_gradient(geo, x, dy, TUNED)


def geometry(
    x: Any,
    w: Any,
    strides: Any = (1, 1),
    pads: Any = NO_PADS,
    dilations: Any = (1, 1),
    last: bool = False,
) -> Geometry:
    """x is given as [N, C, ...]; `last` moves its channels behind."""
    groups = x[1] // w[1]
    return Geometry((x[0], *x[2:], x[1]) if last else x, w, strides, pads, dilations, groups, last)


SMALL = {
    "groups, strides, dilations, uneven padding": ((2, 6, 7, 6), (8, 3, 3, 2), (2, 1), ((1, 2), (0, 1)), (1, 2)),
    "a stride beyond the filter": ((2, 4, 5, 8), (6, 4, 2, 2), (3, 2), ((0, 0), (1, 0))),
    "depthwise": ((2, 4, 5, 6), (4, 1, 3, 3), (1, 1), ((1, 1), (2, 0))),
    "depthwise, padding beyond the filter": ((1, 3, 5, 4), (3, 1, 2, 2), (1, 1), ((3, 1), (2, 0))),
    "depthwise, several outputs a channel, strides": ((2, 2, 5, 6), (4, 1, 3, 3), (2, 3), ((1, 1), (2, 0)), (2, 1)),
    "grey, strides, dilations, uneven padding": ((2, 1, 6, 7), (3, 1, 3, 2), (2, 1), ((1, 0), (0, 2)), (1, 2)),
    "1x1": ((2, 3, 5, 4), (4, 3, 1, 1)),
    "1x1, strides": ((2, 3, 5, 4), (4, 3, 1, 1), (2, 3)),
    "strides, dilations, uneven padding": ((2, 3, 9, 8), (4, 3, 3, 2), (2, 3), ((0, 2), (3, 0)), (1, 2)),
    "three axes": ((2, 4, 2, 3, 3), (4, 2, 2, 1, 2), (1, 2, 1), ((1, 0), (0, 0), (0, 1)), (1, 1, 1)),
}  # fmt: skip


def arrays(geo: Geometry, dtype: str = "float64") -> tuple[Any, Any, Any]:
    """(x, w), (w, dy), (x, dy): the arguments of the three directions."""
    rng = np.random.default_rng(0)
    x, w, dy = (rng.standard_normal(shape).astype(dtype) for shape in (geo.x, geo.w, geo.y))
    return (x, w), (w, dy), (x, dy)


@pytest.mark.first(8)
@pytest.mark.parametrize("large", (10**9, 8), ids=("whole", "piecewise"))
@pytest.mark.parametrize("last", (False, True), ids=("NCHW", "NHWC"))
@pytest.mark.parametrize("name", SMALL)
def test_columns_and_the_chosen_way_equal_xla(
    name: str, last: bool, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution_ways, "LARGE", large)
    monkeypatch.setattr(convolution_ways, "SMALL", 0 if large < 10**9 else 10**9)
    geo = geometry(*SMALL[name], last=last)

    def every(args: Any) -> Any:
        chosen = (output, input_gradient, filter_gradient)
        if large < 10**9:  # the rest is the same as before
            return [[f(geo, *a) for f, a in zip(fs, args, strict=True)] for fs in (XLA, COLUMNS)]
        pulled = jax.vjp(partial(output, geo), *args[0])[1](args[1][1])
        return [
            *(
                [f(geo, *a) for f, a in zip(fs, args, strict=True)]
                for fs in (XLA, COLUMNS, chosen, NATIVE)
            ),
            [None, *pulled],
        ]

    with jax.enable_x64(True):
        wanted, *found = jax.jit(every)(arrays(geo))
    for results in found:
        for want, got in zip(wanted, results, strict=True):
            if got is not None:
                np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


TABLE = [
    ("columns", geometry((2, 256, 16, 16), (256, 8, 3, 3), pads=((1, 1),) * 2)),
    ("columns", geometry((2, 512, 2, 2), (512, 512, 3, 3), pads=((1, 1),) * 2)),
    ("columns", geometry((32, 512, 4, 4), (512, 512, 3, 3), pads=((1, 1),) * 2)),
    ("xla", geometry((64, 512, 4, 4), (512, 512, 3, 3), pads=((1, 1),) * 2)),
    ("columns", geometry((2, 224, 17, 17), (256, 224, 7, 1), pads=((3, 3), (0, 0)))),
    ("xla", geometry((8, 256, 8, 8), (256, 256, 3, 3), pads=((1, 1),) * 2)),
    ("xla", geometry((32, 64, 32, 32), (64, 64, 3, 3), pads=((1, 1),) * 2)),
    ("xla", geometry((8, 64, 56, 56), (64, 64, 1, 1), pads=((1, 1),) * 2)),
    ("taps", geometry((8, 32, 112, 112), (32, 1, 3, 3), pads=((1, 1),) * 2)),
    ("columns", geometry((1, 2, 19, 19), (2, 1, 9, 9))),
    ("samples", geometry((8, 256, 56, 56), (64, 256, 1, 1))),
    ("columns", geometry((2, 512, 4, 4), (1024, 512, 1, 1))),
    ("columns", geometry((8, 512, 7, 7), (2048, 512, 1, 1))),
    ("last", geometry((8, 256, 56, 56), (64, 256, 1, 1), last=True)),
    ("xla", geometry((8, 256, 56, 56), (512, 256, 1, 1), (2, 2))),
    ("grey", geometry((64, 1, 28, 28), (6, 1, 5, 5))),
    ("grey", geometry((64, 1, 28, 28), (6, 1, 5, 5), last=True)),
    ("xla", geometry((64, 1, 28, 28), (32, 1, 5, 5))),
]


@pytest.mark.parametrize(("wanted", "geo"), TABLE)
def test_the_way_follows_from_the_shapes(wanted: str, geo: Geometry) -> None:
    assert way(geo) == wanted


@pytest.mark.parametrize("geo", [geo for wanted, geo in TABLE if wanted not in ("xla", "last")])
def test_a_gpu_gets_the_convolution_itself(geo: Geometry) -> None:
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in (geo.x, geo.w)]
    lowered = {
        p: jax.jit(partial(output, geo)).trace(*shapes).lower(lowering_platforms=(p,)).as_text()
        for p in ("cuda", "cpu")
    }
    assert "stablehlo.convolution" in lowered["cuda"] and "dot_general" not in lowered["cuda"]
    assert "stablehlo.convolution" not in lowered["cpu"]


@pytest.mark.parametrize("dtype", ("bfloat16", "float16"))
def test_sums_of_short_floats_are_float32(dtype: str) -> None:
    geo = geometry((2, 64, 2, 2), (4, 32, 3, 3), pads=((1, 1),) * 2)
    args = arrays(geo, dtype)
    for function, given in zip((output, input_gradient, filter_gradient), args, strict=True):
        got = function(geo, *given)
        assert got.dtype == dtype
        exact = function(geo, *(a.astype("float32") for a in given))
        np.testing.assert_array_equal(got, exact.astype(dtype))


@pytest.mark.parametrize("large", (10**9, 8), ids=("whole", "piecewise"))
def test_an_infinity_stays_in_its_group_and_sample(
    large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution_ways, "LARGE", large)
    geo = geometry((2, 4, 4, 4), (4, 2, 3, 3), pads=((1, 1),) * 2)
    (x, w), (_, dy), _ = arrays(geo, "float32")
    x[0, 0, 0, 0] = dy[0, 0, 3, 3] = np.inf
    y, d_x, d_w = output(geo, x, w), input_gradient(geo, w, dy), filter_gradient(geo, x, dy)
    bad = ~np.isfinite(y)
    assert bad[0, :2, :2, :2].all() and bad.sum() == 8
    bad = ~np.isfinite(d_x)
    assert bad[0, :2, 2:, 2:].all() and bad.sum() == 8
    assert np.isfinite(d_w[2:]).all() and not np.isfinite(d_w[0]).any()


def test_a_batch_of_convolutions() -> None:
    geo = geometry((2, 4, 3, 3), (4, 2, 2, 2))
    (x, w), _, _ = arrays(geo, "float32")
    many = np.stack([x, 2 * x, x - 1])
    got = jax.vmap(partial(output, geo), (0, None))(many, w)
    for one, each in zip(many, got, strict=True):
        np.testing.assert_allclose(each, output(geo, one, w), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "geo",
    [
        geometry((4, 2, 2, 4), (1, 2, 3, 2), strides=(2, 2), pads=((0, 1), (1, 1))),
        geometry((4, 2, 4, 4), (1, 2, 3, 2), strides=(1, 2), pads=((0, 0), (1, 1))),
        geometry((4, 2, 4, 3), (1, 2, 2, 2), strides=(2, 2), pads=((1, 1), (0, 0)), last=True),
    ],
)
def test_small_images_under_a_filter_of_two_cells(geo: Geometry) -> None:
    """XLA:CPU ends the process over the gradient of these as JAX writes it down."""
    draw = np.random.default_rng(0)
    w, dy = (draw.standard_normal(s).astype("float32") for s in (geo.w, geo.y))
    got = jax.jit(partial(input_gradient, geo))(w, dy)
    x = draw.standard_normal(geo.x).astype("float32")
    whole = np.pad(
        x, [(0, 0), *geo.pads, (0, 0)] if geo.last else [(0, 0), (0, 0), *geo.pads]
    )  # conv(x, w) by its definition
    if geo.last:
        whole = np.moveaxis(whole, -1, 1)
    y = np.zeros((geo.x[0], geo.w[0], *geo.outs))
    for i, j in np.ndindex(*geo.outs):
        rows, columns = (
            slice(at * s, at * s + k)
            for at, s, k in zip((i, j), geo.strides, geo.w[2:], strict=True)
        )
        y[:, :, i, j] = np.einsum("nchw,ochw->no", whole[:, :, rows, columns], w)
    y = np.moveaxis(y, 1, -1) if geo.last else y
    np.testing.assert_allclose(np.sum(got * x), np.sum(dy * y), rtol=1e-4)
