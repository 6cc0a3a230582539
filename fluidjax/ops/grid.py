"""Spatial transformers: affine_grid makes positions in an image, grid_sampler reads the image
there.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import FluidValueError, ShapeError
from .broadcast import same_rows
from .concrete import are_numbers, integers, numbers_of, refuse_huge
from .infer import Spec
from .registry import Array, Ints, grad_of, op
from .traits import mixes, row_wise, sizes_from


def _spaced(count: int, dtype: Any, align_corners: bool) -> Array:
    """`count` numbers from -1 to 1 as in 1.8.5 (nan for a single one); without align_corners, the
    middles of `count` equal parts.
    """
    xp, kind = numbers_of([count]), np.dtype(dtype).type
    gaps, cells = (xp.asarray(n, dtype) for n in (count - 1, count))
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = kind(-1) + xp.arange(count, dtype=dtype) * (kind(2) / gaps)
        return ends if align_corners else ends * (gaps / cells)


def _places(op: str, shape: Any, dtype: Any, align_corners: bool) -> Array:
    """(x, y, 1) of every pixel, [H * W, 3]."""
    if len(shape) != 4 or (are_numbers(shape[2:]) and min(shape[2:]) < 1):
        raise ShapeError(
            f"op '{op}' makes places for images [N, C, H, W] of at least one pixel, not"
            f" {list(shape)}"
        )
    height, width = shape[2:]
    refuse_huge(op, (*shape[:1], height, width, 2), dtype)
    xp = numbers_of([height, width])
    y, x = xp.meshgrid(
        _spaced(height, dtype, align_corners), _spaced(width, dtype, align_corners), indexing="ij"
    )
    return xp.stack([x, y, xp.ones_like(x)], -1).reshape(-1, 3)


def _grid_spec(
    Theta: Spec, OutputShape: Spec | None, *, output_shape: Ints, align_corners: bool
) -> Spec:
    if Theta.ndim != 3 or Theta.shape[1:] != (2, 3):
        raise ShapeError(f"op 'affine_grid' takes Theta [N, 2, 3], not {list(Theta.shape)}")
    if OutputShape is not None:
        return Spec((Theta.shape[0], -1, -1, 2), Theta.dtype)
    if len(output_shape) != 4:
        raise ShapeError(
            "op 'affine_grid' takes an output_shape of four numbers, N, C, H, W, not"
            f" {list(output_shape)}"
        )
    return Spec((Theta.shape[0], *output_shape[2:], 2), Theta.dtype)


@op(outs="Output", infer=_grid_spec, rows=row_wise("Theta"), sizes=sizes_from("OutputShape"))
def affine_grid(
    Theta: Array, OutputShape: Array | None, *, output_shape: Ints = (), align_corners: bool = True
):
    """Output[n, h, w] = Theta[n] (x, y, 1): [N, H, W, 2] from Theta [N, 2, 3].

    x and y go from -1 to 1 over the W columns and H rows of output_shape (or OutputShape): N, C, H,
    W; over their middles without align_corners.
    """
    shape = integers("affine_grid", "OutputShape", OutputShape, None, output_shape)
    grid = jnp.einsum(
        "pk,njk->npj",
        _places("affine_grid", shape, Theta.dtype, align_corners),
        Theta,
        precision="highest",
    )
    return grid.reshape(Theta.shape[0], *shape[2:], 2)


@grad_of("affine_grid", "OutputShape", nograd="OutputShape", sizes=sizes_from("OutputShape"))
def affine_grid_grad(
    OutputShape: Array | None, d_Output: Array, *, output_shape: Ints, align_corners: bool
):
    """Theta@GRAD[n] = the sum over all pixels of Output@GRAD[n, h, w] (x, y, 1)^T."""
    shape = integers("affine_grid_grad", "OutputShape", OutputShape, None, output_shape)
    places = _places("affine_grid_grad", shape, d_Output.dtype, align_corners)
    return jnp.einsum(
        "npj,pk->njk", d_Output.reshape(d_Output.shape[0], -1, 2), places, precision="highest"
    )


def corners(y: Any, x: Any) -> list[tuple[Any, Any, Any]]:
    """The four pixels around each place and their weights: (row, column, weight); rows and columns
    as floats, which may lie outside.
    """
    low_y, low_x = jnp.floor(y), jnp.floor(x)
    share_y, share_x = y - low_y, x - low_x
    return [
        (low_y + down, low_x + right, (share_y if down else 1 - share_y) * (share_x if right else 1 - share_x))
        for down in (0, 1) for right in (0, 1)
    ]  # fmt: skip


def _sampled_spec(
    X: Spec, Grid: Spec, *, mode: str, padding_mode: str, align_corners: bool
) -> Spec:
    fits = X.ndim == 4 and Grid.ndim == 4 and Grid.shape[3] in (2, -1)
    if not fits or (X.shape[0] != Grid.shape[0] and min(X.shape[0], Grid.shape[0]) >= 0):
        raise ShapeError(
            "op 'grid_sampler' takes X [N, C, H, W] and Grid [N, H', W', 2] of one N, not"
            f" {list(X.shape)} and {list(Grid.shape)}"
        )
    if X.dtype != Grid.dtype:
        raise ShapeError(
            f"op 'grid_sampler' takes X and Grid of one dtype, not {X.dtype} and {Grid.dtype}"
        )
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border", "reflection"):
        raise FluidValueError(
            "op 'grid_sampler' has mode 'bilinear' or 'nearest' and padding_mode 'zeros', 'border'"
            f" or 'reflection', not {mode!r} and {padding_mode!r}"
        )
    return Spec((X.shape[0], X.shape[1], *Grid.shape[1:3]), X.dtype)


def _place(at: Any, size: int, padding_mode: str, align_corners: bool) -> Any:
    """Pixels along one axis from positions between -1 and 1."""
    kind: Any = at.dtype.type
    if not are_numbers((size,)):
        kind = partial(jnp.asarray, dtype=at.dtype)
    pixel = (
        (at + 1) * (kind(0.5) * kind(size - 1))
        if align_corners
        else ((at + 1) * kind(size) - 1) * kind(0.5)
    )
    if padding_mode == "reflection":
        shift = kind(0 if align_corners else 0.5)
        period: Any = kind(2 * (size - 1) if align_corners else 2 * size)
        far = jnp.abs(pixel + shift)
        # the clip gives the position if there is one cell
        period = period if are_numbers((size,)) else jnp.maximum(period, 1)
        nothing = isinstance(period, np.generic) and not period
        far = jnp.zeros_like(far) if nothing else far - jnp.floor(far / period) * period
        pixel = jnp.minimum(far, period - far) - shift
    return pixel if padding_mode == "zeros" else jnp.clip(pixel, 0, size - 1)


@op(outs="Output", grad="X Grid", infer=_sampled_spec, rows=mixes())
def grid_sampler(
    X: Array,
    Grid: Array,
    *,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = True,
):
    """Output[n, :, h, w] = X[n] at Grid[n, h, w] = (x, y), between its four pixels; 0 beyond X. X
    [N, C, H, W], Grid [N, H', W', 2].

    x = -1 is the middle of the first column, x = 1 that of the last; without align_corners, their
    outer edges. y likewise. mode nearest: the pixel that is nearest. padding_mode border: beyond X
    the pixel at its edge, reflection: X in a mirror there.
    """
    same_rows("grid_sampler", X=X, Grid=Grid)
    n, channels, height, width = X.shape
    x, y = (
        _place(Grid[..., i], size, padding_mode, align_corners)
        for i, size in ((0, width), (1, height))
    )
    image = jnp.arange(n, dtype=np.int32)[:, None, None]
    pixels = jnp.moveaxis(X, 1, -1).reshape(n * height * width, channels)
    out = jnp.zeros((*Grid.shape[:3], channels), X.dtype)
    near = [(jnp.round(y), jnp.round(x), jnp.ones((), X.dtype))]
    for row, column, weight in corners(y, x) if mode == "bilinear" else near:
        there = (row >= 0) & (row <= height - 1) & (column >= 0) & (column <= width - 1)
        place = (image * height + jnp.where(there, row, 0).astype(np.int32)) * width + jnp.where(
            there, column, 0
        ).astype(np.int32)
        value = jnp.where(there[..., None], pixels[place], 0)
        out = out + value * (weight[..., None] if weight.ndim else weight)
    return jnp.moveaxis(out, -1, 1)
