"""contrib's shuffle_batch: the order follows from a seed that goes on from step to step; padding
stays behind.
"""

from __future__ import annotations

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FluidTypeError

ROWS = np.arange(12, dtype="float32").reshape(6, 2)


def steps(seed: object, feeds: list[object]) -> list[list[np.ndarray]]:
    main, startup = fluid.Program(), fluid.Program()
    with (
        fluid.program_guard(main, startup),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        x = fluid.data("x", [None, 2], lod_level=1)
        x.stop_gradient = False
        out = fluid.contrib.layers.shuffle_batch(x, seed)
        (slope,) = fluid.gradients([fluid.layers.reduce_sum(fluid.layers.square(out))], [x])
        op = next(op for op in main.global_block().ops if op.type == "shuffle_batch")
        fetched = [out, op.output("ShuffleIdx")[0], op.output("SeedOut")[0], slope]
        exe = fluid.Executor()
        exe.run(startup)
        return [
            [
                np.array(v)
                for v in exe.run(main, feed={"x": fed}, fetch_list=fetched, return_numpy=False)
            ]
            for fed in feeds
        ]


def test_rows_move_and_gradients_move_back() -> None:
    """The same of a padded batch of sequences and of an exact one; what 1.8.5 does but for the draw
    itself.
    """
    ragged = fluid.create_lod_tensor(ROWS, [[2, 4]], fluid.CPUPlace())
    padded, plain = steps(3, [ragged] * 2), steps(3, [ROWS] * 2)
    for (out, order, seed, slope), other in zip(padded, plain, strict=True):
        assert sorted(order.tolist()) == list(range(6)) and order.dtype == np.int64
        np.testing.assert_array_equal(out, ROWS[order])
        np.testing.assert_array_equal(slope, 2 * ROWS)
        assert seed.shape == (1,) and seed[0] != 3
        for mine, its in zip((out, order, seed, slope), other, strict=True):
            np.testing.assert_array_equal(mine, its)
    assert padded[0][1].tolist() != padded[1][1].tolist()


def test_a_seed_is_a_number_or_a_variable() -> None:
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        pytest.raises(FluidTypeError, match="an int, a Variable or None"),
    ):
        fluid.contrib.layers.shuffle_batch(fluid.data("x", [None, 2]), "3")
