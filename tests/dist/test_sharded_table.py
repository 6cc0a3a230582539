"""A table over four devices: lookups, updates, and what travels, against NumPy and the table on one
device.
"""

from __future__ import annotations

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec

from fluidjax.dist.spmd.sharded_table import Split, lookup, make, owned, update
from fluidjax.errors import FluidValueError, UnsupportedError
from fluidjax.ops.registry import lookup as op_of
from fluidjax.ops.selected import SelectedRows

AXIS, COUNT, WIDTH = "x", 4, 3
SHARDED, WHOLE = PartitionSpec(AXIS), PartitionSpec()
SPLITS = [Split(height, COUNT, dealt) for height in (4, 10, 13) for dealt in (False, True)]
splits = pytest.mark.parametrize("split", SPLITS, ids=str)
pytestmark = pytest.mark.skipif(jax.device_count() < COUNT, reason="needs four devices")


@pytest.fixture
def mesh():
    return Mesh(np.array(jax.devices()[:COUNT]), (AXIS,))


@pytest.fixture(autouse=True)
def _wide():
    with jax.enable_x64(True):
        yield


def whole(split, seed=0):
    return np.random.default_rng(seed).standard_normal((split.height, WIDTH)).astype("float32")


def sharded(table, split, mesh):
    return make(split, mesh, AXIS, WIDTH, "float32", lambda rows: table[rows])


def on_mesh(mesh, body, ins, outs):
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=ins, out_specs=outs))


@splits
def test_every_row_has_one_place(split):
    rows = np.arange(split.height)
    for device in range(COUNT):
        mine = split.rows_of(device)
        real = mine[mine < split.height]
        assert (split.owner(real) == device).all()
        np.testing.assert_array_equal(mine[split.place(real)], real)
    everywhere = np.concatenate([split.rows_of(k) for k in range(COUNT)])
    np.testing.assert_array_equal(np.sort(everywhere[everywhere < split.height]), rows)


@splits
def test_a_table_is_made_shard_by_shard(split, mesh):
    table, asked = whole(split), []
    array = make(
        split, mesh, AXIS, WIDTH, "float32", lambda rows: asked.append(len(rows)) or table[rows]
    )
    assert max(asked) <= split.each
    assert {s.data.shape for s in array.addressable_shards} == {(split.each, WIDTH)}
    np.testing.assert_array_equal(split.joined(array), table)


@splits
@pytest.mark.parametrize("padding_idx", [-1, 2])
def test_lookup_equals_numpy(split, padding_idx, mesh):
    table = whole(split)
    ids = np.random.default_rng(1).integers(0, split.height, (8, 3))
    run = on_mesh(
        mesh,
        lambda shard, i: lookup(shard, i, split, AXIS, padding_idx),
        (SHARDED, SHARDED),
        SHARDED,
    )
    want = np.where((ids == padding_idx)[..., None], 0, table[ids])
    np.testing.assert_array_equal(run(sharded(table, split, mesh), ids), want)


OPTIMIZERS = {
    "sgd": ((), {}),
    "adagrad": (("Moment",), {}),
    "momentum": (("Velocity",), {"mu": 0.9}),
    "adam": (("Moment1", "Moment2"), {}),
    "adam lazy": (("Moment1", "Moment2"), {"lazy_mode": True}),
}


@pytest.mark.first(6)
@splits
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_equal_those_of_the_whole_table(name, split, mesh):
    kind = name.split()[0]
    moments, attrs = OPTIMIZERS[name]
    tables = {n: np.abs(whole(split, i)) for i, n in enumerate(("Param", *moments))}
    alike = {"LearningRate": np.array([0.1], "float32")}
    if kind == "adam":
        alike.update({n: np.array([0.9], "float32") for n in ("Beta1Pow", "Beta2Pow")})
    rng = np.random.default_rng(2)
    ids, values = (
        rng.integers(0, split.height, 12),
        rng.standard_normal((12, WIDTH)).astype("float32"),
    )
    outs = [n + "Out" for n in tables]
    want = op_of(kind)({**tables, **alike, "Grad": SelectedRows(ids, values, split.height)}, attrs)

    def body(shards, ids, values):
        new = update(
            kind, {**shards, **alike}, attrs, SelectedRows(ids, values, split.height), split, AXIS
        )
        return [new[n] for n in outs]

    run = on_mesh(mesh, body, (SHARDED, SHARDED, SHARDED), SHARDED)
    got = run({n: sharded(t, split, mesh) for n, t in tables.items()}, ids, values)
    for n, array in zip(outs, got, strict=True):
        np.testing.assert_allclose(split.joined(array), want[n], rtol=2e-6, atol=1e-6, err_msg=n)


def training(split, mesh):
    """A jitted step: fetch rows, go down the gradient of |rows - goal of the id|^2 / 2."""

    def body(shard, moment, ids, goals):
        rows = lookup(shard, ids, split, AXIS)
        loss, d_rows = jax.value_and_grad(lambda r: ((r - goals) ** 2).sum() / 2)(rows)
        slots = {"Param": shard, "Moment": moment, "LearningRate": jnp.full(1, 0.5, jnp.float32)}
        new = update("adagrad", slots, {}, SelectedRows(ids, d_rows, split.height), split, AXIS)
        return new["ParamOut"], new["MomentOut"], jax.lax.psum(loss, AXIS)

    stepped = jax.shard_map(
        body, mesh=mesh, in_specs=(SHARDED,) * 4, out_specs=(SHARDED, SHARDED, WHOLE)
    )
    return jax.jit(stepped, donate_argnums=(0, 1))


@pytest.mark.parametrize("dealt", [False, True])
def test_a_table_larger_than_the_share_of_a_device_trains(dealt, mesh):
    split = Split(1003, COUNT, dealt)
    zeros = partial(
        make, split, mesh, AXIS, WIDTH, "float32", lambda rows: np.zeros((len(rows), WIDTH))
    )
    table, moment, step = zeros(), zeros(), training(split, mesh)
    rng = np.random.default_rng(0)
    goal = rng.standard_normal((split.height, WIDTH)).astype("float32")
    touched = rng.choice(split.height, 40, replace=False)
    losses = []
    for _ in range(60):
        ids = rng.choice(touched, 32)
        table, moment, loss = step(table, moment, ids, goal[ids])
        losses.append(float(loss))
    assert {s.data.nbytes for s in table.addressable_shards} == {251 * WIDTH * 4}
    assert np.mean(losses[-5:]) < 0.02 * losses[0]
    result = split.joined(table)
    np.testing.assert_allclose(result[touched], goal[touched], atol=0.5)
    assert not np.delete(result, touched, axis=0).any()


@pytest.mark.slow
@pytest.mark.optimized
def test_what_travels_and_what_is_held_do_not_grow_with_the_table(mesh):
    def compiled(height):
        split = Split(height, COUNT)
        table = jax.ShapeDtypeStruct((COUNT * split.each, WIDTH), np.float32)
        ids, goals = (
            jax.ShapeDtypeStruct((32,), np.int64),
            jax.ShapeDtypeStruct((32, WIDTH), np.float32),
        )
        return training(split, mesh).lower(table, table, ids, goals).compile()

    small, large = compiled(4_000), compiled(400_000)
    assert large.memory_analysis().temp_size_in_bytes == small.memory_analysis().temp_size_in_bytes
    found = [
        re.findall(r"= (\S+) (all-gather|reduce-scatter|all-reduce|all-to-all)\(", c.as_text())
        for c in (small, large)
    ]
    assert found[0] == found[1]
    assert {kind for _, kind in found[0]} >= {"all-gather", "reduce-scatter"}


def test_gradients_that_do_not_fit_are_refused(mesh):
    split = Split(10, COUNT)
    grad = SelectedRows(np.zeros(2, "int64"), np.zeros((2, WIDTH), "float32"), 11)
    with pytest.raises(FluidValueError, match="11 rows, but 10"):
        owned(grad, split, AXIS)
    for kind in ("ftrl", "lamb"):
        with pytest.raises(UnsupportedError, match=f"'{kind}'.*adagrad"):
            update(kind, {}, {}, grad, split, AXIS)


def test_splits_that_do_not_fit_are_refused(mesh):
    with pytest.raises(FluidValueError, match="0 rows"):
        Split(0, 4)
    with pytest.raises(FluidValueError, match="split over 3 devices, but mesh axis 'x' has 4"):
        make(Split(10, 3), mesh, AXIS, WIDTH, "float32", lambda rows: np.zeros((len(rows), WIDTH)))
    with pytest.raises(FluidValueError, match="rows of width 3 are wanted"):
        make(Split(10, 4), mesh, AXIS, WIDTH, "float32", lambda rows: np.zeros((len(rows), 2)))


def test_rows_beyond_32_bits_have_a_place():
    """A hundred billion rows in runs, looked up where XLA looks: on NumPy's and on JAX's integers."""
    split = Split(10**11, 3, owners=(2, 0, 1, 2), starts=(0, 10**10, 4 * 10**10, 7 * 10**10))
    rows = np.array([5, 10**10 + 7, 7 * 10**10 - 1, 7 * 10**10 + 9])
    with jax.enable_x64(True):
        for given in (rows, jnp.asarray(rows)):
            assert np.asarray(split.owner(given)).tolist() == [2, 0, 1, 2]
            assert np.asarray(split.place(given)).tolist() == [5, 7, 3 * 10**10 - 1, 10**10 + 9]
