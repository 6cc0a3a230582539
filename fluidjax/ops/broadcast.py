"""Fluid's broadcasting of elementwise ops: Y's dimensions are laid along X's from `axis` on."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError


def align(x: Any, y: Any, axis: int) -> tuple[Any, Any]:
    """X and Y with ranks that NumPy's rules broadcast: Y gets trailing 1s so that its first
    dimension is X's `axis`.

    axis = -1 aligns the last dimensions. Trailing 1s of Y beyond X's rank are trimmed, as in
    Paddle. Where X has fewer dimensions than Y the roles are exchanged.
    """
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
