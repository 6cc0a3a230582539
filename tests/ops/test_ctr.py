"""What 1.8.5 has for the GPU alone, and what draws: rank_attention row by row, tdm_sampler by what
it draws.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FluidError, UnsupportedError
from fluidjax.ops.registry import lookup

from .samples import ctr, tdm


def run(sample: Any, key: int = 0) -> dict[str, np.ndarray]:
    definition = lookup(sample.op)
    with jax.enable_x64(True):
        out = definition(
            sample.inputs, {**definition.defaults, **sample.attrs}, jax.random.key(key)
        )
    return {slot: np.asarray(v) for slot, v in out.items()}


@pytest.mark.parametrize("ranks", [2, 3])
def test_rank_attention_row_by_row(ranks: int) -> None:
    sample = next(
        s for s in ctr.SAMPLES if s.op == "rank_attention" and s.attrs["MaxRank"] == ranks
    )
    x, offset, param = (sample.inputs[s] for s in ("X", "RankOffset", "RankParam"))
    want = np.zeros((len(x), param.shape[1]), "float32")
    for i, (own, *others) in enumerate(offset):
        for other, row in zip(others[::2], others[1::2], strict=True):
            if own and other:
                begin = ((own - 1) * ranks + other - 1) * x.shape[1]
                want[i] += x[row] @ param[begin : begin + x.shape[1]]
    np.testing.assert_allclose(run(sample)["Out"], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("positive", [True, False])
def test_tdm_sampler_draws_other_nodes_of_the_layer(positive: bool) -> None:
    """Never the node on the way, none twice, each as often as any other; zeros where the way has
    ended.
    """
    sample = next(
        s
        for s in tdm.SAMPLES
        if s.op == "tdm_sampler" and s.note and s.attrs["output_positive"] == positive
    )
    ways, item = np.array(tdm.WAYS), sample.inputs["X"][:, 0]
    width = [n + positive for n in sample.attrs["neg_samples_num_list"]]
    seen = np.zeros(6, int)
    for key in range(12):
        out = np.split(run(sample, key)["Out"], np.cumsum(width)[:-1], axis=1)
        for layer, nodes in enumerate(({1, 2}, {3, 4, 5})):
            for row, own in zip(out[layer], ways[item, layer], strict=True):
                drawn = row[positive:]
                if own:
                    assert not positive or row[0] == own
                    assert set(drawn) <= nodes - {own} and len(set(drawn)) == len(drawn)
                    seen[drawn] += 1
                else:
                    assert not row.any()
    assert (seen[3:] > 0).all()


def test_tdm_sampler_refuses_more_negatives_than_there_are_nodes() -> None:
    op, inputs = lookup("tdm_sampler"), tdm.SAMPLES[4].inputs
    attrs = {**op.defaults, "neg_samples_num_list": (2, 1), "layer_offset_lod": (0, 2, 5)}
    with (
        jax.enable_x64(True),
        pytest.raises(FluidError, match="fewer negatives of a layer than it has nodes"),
    ):
        op(inputs, attrs, jax.random.key(0))


def test_hash_gives_ids_below_its_bound() -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        out = fluid.layers.hash(fluid.data("x", [-1, 2], "int64"), 7, num_hash=3)
    (found,) = fluid.Executor().run(
        main, feed={"x": np.arange(40).reshape(20, 2)}, fetch_list=[out]
    )
    assert found.shape == (20, 3, 1) and set(found.reshape(-1)) == set(range(7))


def test_hashed_grams_say_what_they_do_not_do() -> None:
    """A gradient, whose op in 1.8.5 changes the weight by itself; lists that are asked."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [None, 1], "int32", lod_level=1)

        def hashed(use_filter: bool) -> fluid.Variable:
            return fluid.contrib.layers.search_pyramid_hash(
                x, 8, 37, 3, 4, 0.5, 1, use_filter, 10, 12, 3, 0.1
            )

        with pytest.raises(UnsupportedError, match="Bloom filters"):
            hashed(True)
        x.stop_gradient = False
        with pytest.raises(UnsupportedError, match="change W by itself"):
            fluid.gradients(hashed(False), x)


@pytest.mark.parametrize("columns", [1, 4])
def test_hashed_grams_take_as_many_ids_as_there_are_rows(columns: int) -> None:
    """Of ids [5, 4] those that stand in [5, 1] in order; 1.8.5 gave what is compared."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [None, columns], "int32", lod_level=1)
        out = fluid.contrib.layers.search_pyramid_hash(
            x, 16, 100, 4, 4, 0.5, 0, False, 4, 4, 1, 1.0, fluid.ParamAttr(name="W")
        )
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        weight = np.arange(104, dtype="float32").reshape(104, 1)
        fluid.global_scope().find_var("W").get_tensor().set(weight, fluid.CPUPlace())
        ids = (np.arange(5 * columns, dtype="int32") * 7 % 13).reshape(5, columns)
        feed = {"x": fluid.create_lod_tensor(ids, [[2, 3]], fluid.CPUPlace())}
        (got,) = exe.run(feed=feed, fetch_list=[out], return_numpy=False)
    assert out.shape == (-1, 16) and got.lod() == [[0, 1, 4]]
    rows = np.array(got)
    assert rows[0, :3].tolist() == [40.0, 40.5, 41.0] and rows[-1, :8:3].tolist() == [41.5, 43, 18]
