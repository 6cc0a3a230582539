"""Fluid's broadcasting of elementwise ops: Y's dimensions are laid along X's from `axis` on."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError


def align(x: Any, y: Any, axis: int) -> tuple[Any, Any]:
    """X and Y with ranks that NumPy's rules broadcast: Y gets trailing 1s so that its first
    dimension is X's `axis`.

    axis = -1 aligns the last dimensions. Trailing 1s of Y beyond X's rank are trimmed, as in
    Paddle. If X has fewer dimensions than Y, the roles are exchanged; but a traced scalar of shape
    [] keeps its shape beside a Y of Fluid's shape [1].
    """
    if not x.ndim and tuple(y.shape) == (1,):
        return x, y.reshape(*())
    if x.ndim < y.ndim:
        y, x = align(y, x, axis)
        return x, y
    if axis in (-1, x.ndim - y.ndim) or x.ndim == y.ndim:
        return x, y
    shape = list(y.shape)
    while len(shape) > 1 and shape[-1] == 1 and axis + len(shape) > x.ndim:
        shape.pop()
    if axis < 0 or axis + len(shape) > x.ndim:
        raise ShapeError(f"axis {axis} does not lay Y{list(y.shape)} along X{list(x.shape)}")
    return x, y.reshape(*shape, *[1] * (x.ndim - axis - len(shape)))


def same_shape(kind: str, **values: Any) -> None:
    """Raises ShapeError unless all of these have one shape. NumPy would repeat a size of 1 beside
    another, or a row beside a column, which is a mistake in a loss.
    """
    _same(kind, "one shape", {slot: v.shape for slot, v in values.items()}, values)


def same_rows(kind: str, **values: Any) -> None:
    """Raises ShapeError unless all of these have the same number of rows, their first size."""
    _same(kind, "as many rows", {slot: v.shape[:1] for slot, v in values.items()}, values)


def _same(kind: str, what: str, sizes: dict[str, Any], values: dict[str, Any]) -> None:
    first, *others = sizes.values()
    if any(other != first for other in others):
        given = " and ".join(f"{slot}{list(v.shape)}" for slot, v in values.items())
        raise ShapeError(f"op '{kind}' takes tensors of {what}, not {given}")
