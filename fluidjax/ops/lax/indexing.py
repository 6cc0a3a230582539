"""Reading and writing parts of an array at indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jax import lax

from ..registry import Array, Ints, Scalar, Sizes
from .declare import lax_op, scalar


@lax_op("dynamic_slice", grad="X Starts", nograd="Starts")
def dynamic_slice(X: Array, Starts: list[Array], *, slice_sizes: Sizes):
    """Out = the slice of X at Starts with these sizes; starts are clamped so that it lies within X."""
    return lax.dynamic_slice(X, Starts, tuple(slice_sizes))


@lax_op("dynamic_update_slice", grad="X Update Starts", nograd="Starts")
def dynamic_update_slice(X: Array, Update: Array, Starts: list[Array]):
    """Out = X with Update written at Starts."""
    return lax.dynamic_update_slice(X, Update, Starts)


@lax_op("gather", grad="X Indices", nograd="Indices", heavy=True)
def gather(
    X: Array,
    Indices: Array,
    *,
    offset_dims: Ints = (),
    collapsed_slice_dims: Ints = (),
    start_index_map: Ints = (),
    operand_batching_dims: Ints = (),
    start_indices_batching_dims: Ints = (),
    slice_sizes: Sizes,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str = "CLIP",
    fill: Scalar = None,
):
    """Out = slices of X at Indices; the attributes are those of jax.lax.gather."""
    numbers = lax.GatherDimensionNumbers(
        tuple(offset_dims),
        tuple(collapsed_slice_dims),
        tuple(start_index_map),
        tuple(operand_batching_dims),
        tuple(start_indices_batching_dims),
    )
    value = None if fill is None else scalar(fill, X).item()
    return lax.gather(
        X,
        Indices,
        numbers,
        tuple(slice_sizes),
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        mode=lax.GatherScatterMode[mode],
        fill_value=value,
    )


SCATTER = """update_window_dims inserted_window_dims scatter_dims_to_operand_dims operand_batching_dims
    scatter_indices_batching_dims""".split()


def scatter_numbers(attrs: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The dimension numbers and the options of a scatter, from its attributes."""
    numbers = lax.ScatterDimensionNumbers(*(tuple(attrs.get(name, ())) for name in SCATTER))
    options = {name: attrs.get(name, False) for name in ("unique_indices", "indices_are_sorted")}
    return numbers, {**options, "mode": lax.GatherScatterMode[attrs.get("mode", "CLIP")]}


def _declare_scatter(name: str, function: Any, grad: bool) -> None:
    def run(
        X: Array,
        Indices: Array,
        Updates: Array,
        *,
        update_window_dims: Ints = (),
        inserted_window_dims: Ints = (),
        scatter_dims_to_operand_dims: Ints = (),
        operand_batching_dims: Ints = (),
        scatter_indices_batching_dims: Ints = (),
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        mode: str = "CLIP",
    ):
        numbers, options = scatter_numbers(locals())
        return function(X, Indices, Updates, numbers, **options)

    run.__doc__ = (
        "Out = X with Updates combined into it at Indices; the attributes are those of"
        f" jax.lax.{name}."
    )
    lax_op(name, grad="X Indices Updates" if grad else None, nograd="Indices", heavy=True)(run)


for _name in ("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"):
    _declare_scatter(_name, getattr(lax, _name), True)
