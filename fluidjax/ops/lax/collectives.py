"""jax.shard_map, the collectives between the devices of its mesh, and sharding hints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax
from jax import lax
from jax.sharding import AxisType, PartitionSpec

from ...errors import FluidValueError, UnsupportedError
from ..control_interface import Call
from ..registry import Array, Attr, Ints
from .blocks import BLOCK, Function, declare_block_op, only_block
from .declare import lax_op, pairs


def _shard_map(call: Call, counts: Sequence[int]) -> Function:
    attrs = call.op.attrs
    body = only_block(call)
    run = jax.shard_map(
        lambda *values: tuple(body(*values)),
        mesh=_mesh(attrs["mesh_axes"], attrs["mesh_sizes"]),
        in_specs=tuple(map(_spec, attrs["in_specs"])),
        out_specs=tuple(map(_spec, attrs["out_specs"])),
        axis_names=set(attrs["manual_axes"]),
        check_vma=attrs.get("check_vma", True),
    )
    return lambda *values: list(run(*values))


def _mesh(axes: Sequence[str], sizes: Sequence[int]) -> Any:
    wanted = 1
    for size in sizes:
        wanted *= size
    if len(jax.devices()) < wanted:
        shape = ", ".join(f"{axis}: {size}" for axis, size in zip(axes, sizes, strict=True))
        raise UnsupportedError(
            f"op 'jax.shard_map' runs on {wanted} devices ({shape}), and this process has"
            f" {len(jax.devices())}; trace the function over a mesh of these, or give"
            " XLA_FLAGS=--xla_force_host_platform_device_count"
        )
    auto = (AxisType.Auto,) * len(sizes)
    return jax.make_mesh(tuple(sizes), tuple(axes), auto, devices=jax.devices()[:wanted])


def _spec(text: str) -> PartitionSpec:
    """``d,-,a+b,?`` says which axes of the mesh split each axis of an array; ? leaves it to the
    compiler.
    """
    words: dict[str, Any] = {"-": None, "?": PartitionSpec.UNCONSTRAINED}
    parts = [part for part in text.split(",") if part]
    return PartitionSpec(*(words.get(p, tuple(p.split("+"))) for p in parts))


declare_block_op(
    "shard_map",
    ins="Args*",
    outs="Out*",
    attrs=[
        *BLOCK,
        Attr("mesh_axes", "STRINGS"),
        Attr("mesh_sizes", "INTS"),
        Attr("in_specs", "STRINGS"),
        Attr("out_specs", "STRINGS"),
        Attr("manual_axes", "STRINGS"),
        Attr("check_vma", "BOOLEAN", True),
    ],
    doc="""Out = sub_block of each device's part of Args, on the first devices of this process as a mesh.

    in_specs, out_specs: of each array the axes of the mesh that split its axes, as ``d,-,a+b``; "" is whole everywhere.""",
    make=_shard_map,
)


def _reduction(kind: str) -> None:
    def run(X: list[Array], *, axes: list[str]):
        return list(getattr(lax, kind)(tuple(X), tuple(axes)))

    run.__doc__ = f"Out = jax.lax.{kind} over these axes of the mesh."
    lax_op(kind, outs="Out*", grad="X")(run)


for _kind in ("psum", "pmax", "pmin"):
    _reduction(_kind)


@lax_op("pvary", outs="Out*", grad="X")
def pvary(X: list[Array], *, axes: list[str]):
    """Out = X, marked as varying over the devices along these axes."""
    return [lax.pcast(x, tuple(axes), to="varying") for x in X]


@lax_op("all_gather", grad="X")
def all_gather(X: Array, *, axes: list[str], dimension: int = 0, tiled: bool = False):
    """Out = every device's X, along a new axis or concatenated."""
    return lax.all_gather(X, tuple(axes), axis=dimension, tiled=tiled)


@lax_op("reduce_scatter", grad="X")
def reduce_scatter(X: Array, *, axes: list[str], dimension: int = 0, tiled: bool = False):
    """Out = the device's own part, along an axis, of the sum of every device's X."""
    return lax.psum_scatter(X, tuple(axes), scatter_dimension=dimension, tiled=tiled)


@lax_op("all_to_all", grad="X")
def all_to_all(
    X: Array, *, axes: list[str], split_axis: int, concat_axis: int, tiled: bool = False
):
    """Out = this device's part of every device's X, concatenated."""
    return lax.all_to_all(X, tuple(axes), split_axis, concat_axis, tiled=tiled)


@lax_op("ppermute", grad="X")
def ppermute(X: Array, *, axes: list[str], perm: Ints):
    """Out = X of the device that sends here by perm, pairs (from, to); zeros if none does."""
    return lax.ppermute(X, tuple(axes), pairs(perm))


@lax_op("axis_index")
def axis_index(*, axes: list[str]):
    """Out (int32) = the device's index along these axes of the mesh."""
    return lax.axis_index(tuple(axes) if len(axes) > 1 else axes[0])


@lax_op("sharding_constraint", grad="X")
def sharding_constraint(X: Array, *, mesh_axes: list[str], spec: str):
    """Out = X, split over the mesh around the step (jax.set_mesh) as given by spec: ``d,-,a+b,?``.

    mesh_axes: those of the mesh at tracing. If the step's mesh has none of these, or within
    shard_map, Out is X alone.
    """
    mesh = jax.sharding.get_abstract_mesh()
    kinds = dict(zip(mesh.axis_names, mesh.axis_types or (), strict=True))
    split = [name for name in re.split("[,+]", spec) if name not in ("", "-", "?")] or mesh_axes
    missing = [name for name in split if name not in kinds]
    if len(missing) == len(split) or any(kinds.get(n) == AxisType.Manual for n in split):
        return X
    if missing:
        raise FluidValueError(
            f"op 'jax.sharding_constraint' splits an array over {', '.join(split)} ({spec}), but the"
            f" mesh around the step ({', '.join(kinds)}) has no {', '.join(missing)}: use a mesh"
            " with all of them, or with none"
        )
    explicit = any(kinds[name] == AxisType.Explicit for name in split)
    return (jax.sharding.reshard if explicit else lax.with_sharding_constraint)(X, _spec(spec))
