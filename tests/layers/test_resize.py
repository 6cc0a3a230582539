"""Resizing layers with sizes that are known only when a step is traced."""

from __future__ import annotations

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import ShapeError


def run(build, shape=(1, 2, 3, 4), **feed):
    main = fluid.Program()
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    with fluid.program_guard(main, fluid.Program()), fluid.scope_guard(fluid.Scope()):
        out = build(fluid.data("x", [None, shape[1], None, None]))
        return x, fluid.Executor().run(main, feed={"x": x, **feed}, fetch_list=[out])[0]


def doubled(x):
    size = fluid.layers.slice(fluid.layers.shape(x), axes=[0], starts=[2], ends=[4])
    return fluid.layers.scale(size, 2.0)


@pytest.mark.parametrize("shape", [(1, 2, 3, 4), (2, 1, 5, 2)])
@pytest.mark.parametrize("slot", ["out_shape", "actual_shape"])
def test_a_size_computed_from_a_shape(shape, slot):
    def build(x):
        given = {"out_shape": [1, 1], slot: doubled(x)}
        return fluid.layers.resize_nearest(x, align_corners=False, **given)

    x, out = run(build, shape)
    np.testing.assert_array_equal(out, x.repeat(2, 2).repeat(2, 3))


def test_sizes_one_by_one():
    def build(x):
        height = fluid.layers.slice(doubled(x), axes=[0], starts=[0], ends=[1])
        return fluid.layers.resize_nearest(x, [height, 4], align_corners=False)

    x, out = run(build)
    np.testing.assert_array_equal(out, x.repeat(2, 2))


def test_a_size_that_is_drawn_cuts_the_step():
    sizes = []

    def build(x):
        sizes.append(fluid.layers.randint(2, 5, [2], dtype="int32"))
        return fluid.layers.image_resize(x, sizes[0])

    _, out = run(build)
    assert all(2 <= n < 5 for n in out.shape[2:])


@pytest.mark.parametrize("size", [[4], [4, 0]])
def test_a_size_that_does_not_fit_is_refused(size):
    def build(x):
        return fluid.layers.image_resize(x, fluid.layers.assign(np.array(size, "int32")))

    with pytest.raises(
        ShapeError, match=r"bilinear_interp resizes 2 axes, each to a positive size, not to \[4"
    ):
        run(build)


def test_short_side_must_be_known():
    with pytest.raises(fluid.errors.FluidValueError, match="must know H and W"):
        run(lambda x: fluid.layers.image_resize_short(x, 4))
