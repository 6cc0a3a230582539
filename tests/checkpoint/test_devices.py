"""Checkpoints of programs on several devices, restored on as many, on fewer, and on one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import fluidjax as fluid
from fluidjax.errors import FluidValueError

from .model import Job


@pytest.mark.first(1)
@pytest.mark.parametrize("reduce", [False, True], ids=["alike", "pieces"])
def test_four_devices_go_on_bit_for_bit(tmp_path: Path, reduce: bool) -> None:
    whole = Job(devices=4, reduce=reduce, normed=True)
    whole.train(6, str(tmp_path), save_at=[3])
    again = Job(devices=4, reduce=reduce, normed=True)
    again.load(str(tmp_path))
    again.train(6)
    assert again.losses == whole.losses[3:]
    assert again.state() == whole.state()


@pytest.mark.first(1)
@pytest.mark.parametrize("reduce", [False, True], ids=["alike", "pieces"])
def test_from_four_devices_to_two_to_one(tmp_path: Path, reduce: bool) -> None:
    four = Job(devices=4, reduce=reduce, normed=True)
    four.train(3)
    four.save(str(tmp_path), 3)
    two = Job(devices=2, reduce=reduce, normed=True)
    two.train(1)  # something is there before
    two.load(str(tmp_path))
    assert two.state() == four.state()
    two.train(5, str(tmp_path), save_at=[5])
    one = Job(normed=True)
    assert one.load(str(tmp_path)).step == 5
    assert one.state() == two.state()
    one.train(7)
    assert np.isfinite(np.frombuffer(bytes.fromhex(one.losses[-1]), "float32")).all()


def test_what_each_device_has_of_its_own_comes_back(tmp_path: Path) -> None:
    job = Job(devices=4, normed=True)
    job.train(2)
    (name,) = [
        v.name
        for v in fluid.io.get_program_persistable_vars(job.main)
        if v.name.startswith("batch_norm_0.w_1")
    ]
    var = job.scope.find_var(name)
    means = np.array(var.storage.per_rank())
    assert means.shape == (4, 16) and len({row.tobytes() for row in means}) == 4
    job.save(str(tmp_path))
    job.train(4)
    job.load(str(tmp_path))
    job.train(5)
    other = Job(devices=4, normed=True)
    other.load(str(tmp_path))
    assert np.array_equal(other.scope.find_var(name).storage.per_rank(), means)
    plain = Job(normed=True)
    plain.load(str(tmp_path))
    assert np.array_equal(plain.scope.find_var(name).value, means[0])


def written(path: Path) -> Any:
    """What orbax says of the arrays of checkpoint 0."""
    handlers = {"state": ocp.PyTreeCheckpointHandler()}
    with ocp.CheckpointManager(
        path, options=ocp.CheckpointManagerOptions(create=False), item_handlers=handlers
    ) as manager:
        return manager.item_metadata(0)["state"].tree


def test_pieces_are_saved_as_pieces(tmp_path: Path) -> None:
    """No device ever holds the whole state: what is written are the devices' shards, each once."""
    job = Job(devices=4, reduce=True, width=512)
    job.train(2)
    job.save(str(tmp_path), asynchronous=False)
    stored = written(tmp_path)["pieces"]
    moment = stored["fc_0.w_0_moment1_0"]
    assert moment.shape == (4, 8 * 512 // 4) and moment.storage.chunk_shape == (1, 8 * 512 // 4)


def sharded(devices: int) -> Any:
    return NamedSharding(Mesh(np.array(jax.devices()[:devices]), ("d",)), P("d"))


def test_arrays_of_a_mesh_go_to_another(tmp_path: Path) -> None:
    program, exe = fluid.Program(), fluid.Executor(fluid.CPUPlace())
    table = np.arange(64, dtype="float32").reshape(16, 4)
    program.global_block().create_var(
        name="table", shape=[16, 4], dtype="float32", persistable=True
    )
    scope = fluid.Scope()
    scope.var("table").value = jax.device_put(table, sharded(4))
    fluid.io.save_checkpoint(exe, tmp_path, program, scope=scope, asynchronous=False)
    assert written(tmp_path)["alike"]["table"].storage.chunk_shape == (4, 4)

    there = fluid.Scope()  # the array that is there says how it should lie
    there.var("table").value = jax.device_put(np.zeros_like(table), sharded(2))
    fluid.io.load_checkpoint(exe, tmp_path, program, scope=there)
    asked = fluid.Scope()
    fluid.io.load_checkpoint(exe, tmp_path, program, scope=asked, shardings={"table": sharded(2)})
    for value in (there.find_var("table").value, asked.find_var("table").value):
        assert value.sharding == sharded(2) and np.array_equal(value, table)
        assert [s.data.shape for s in value.addressable_shards] == [(8, 4), (8, 4)]

    host = fluid.Scope()
    fluid.io.load_checkpoint(exe, tmp_path, program, scope=host)
    assert type(host.find_var("table").value) is np.ndarray and np.array_equal(
        host.get("table"), table
    )
    with pytest.raises(
        FluidValueError, match="shardings names 'tabel', which the checkpoint does not hold"
    ):
        fluid.io.load_checkpoint(
            exe, tmp_path, program, scope=host, shardings={"tabel": sharded(2)}
        )
    with pytest.raises(FluidValueError, match=r"should be a jax\.sharding\.Sharding"):
        fluid.io.load_checkpoint(exe, tmp_path, program, scope=host, shardings={"table": 2})


def test_small_values_are_stored_side_by_side(tmp_path: Path) -> None:
    """One array for each dtype, whatever their shapes; each is loaded as it asks to be."""
    program, exe, scope = fluid.Program(), fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    values = {
        "matrix": np.arange(32, dtype="float32").reshape(8, 4),
        "number": np.float32(7).reshape(()),
        "count": np.arange(3, dtype="int64") + 2**40,
        "flags": np.array([True, False]),
        "large": np.arange(1 << 21, dtype="float32"),
        "empty": np.zeros((0, 3), "float32"),
    }
    for name, value in values.items():
        program.global_block().create_var(
            name=name, shape=value.shape, dtype=value.dtype.name, persistable=True
        )
        scope.var(name).value = jax.device_put(value) if name == "matrix" else value
    fluid.io.save_checkpoint(exe, tmp_path, program, scope=scope, asynchronous=False)
    stored = written(tmp_path)
    assert {n: a.shape for n, a in stored["pieces"].items()} == {
        "small values, float32": (33,),
        "small values, int64": (3,),
        "small values, bool": (2,),
    }
    assert list(stored["alike"]) == ["large"]

    there = fluid.Scope()
    shardings = {"matrix": sharded(4), "large": sharded(2)}
    fluid.io.load_checkpoint(exe, tmp_path, program, scope=there, shardings=shardings)
    for name, value in values.items():
        found = there.find_var(name).value
        assert found.dtype == value.dtype and found.shape == value.shape
        assert np.array_equal(found, value)
        assert not isinstance(found, jax.Array) or found.sharding == shardings[name]
    assert isinstance(there.find_var("matrix").value, jax.Array)
