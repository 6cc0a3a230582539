"""Spatial transformers: affine_grid makes places in an image, grid_sampler reads it there."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError
from .concrete import integers, refuse_huge
from .infer import Spec
from .registry import Array, Ints, grad_of, op
from .traits import CHANNELS_FIRST, mixes, row_wise, sizes_from


def _spaced(count: int, dtype: Any) -> np.ndarray:
    """`count` numbers from -1 to 1 as 1.8.5 computes them: nan for a single one."""
    kind = np.dtype(dtype).type
    with np.errstate(divide="ignore", invalid="ignore"):
        return kind(-1) + np.arange(count, dtype=dtype) * (kind(2) / kind(count - 1))


def _places(op: str, shape: Any, dtype: Any) -> np.ndarray:
    """(x, y, 1) of every pixel, [H * W, 3]."""
    if len(shape) != 4 or min(shape[2:]) < 1:
        raise ShapeError(f"op '{op}' makes places for images [N, C, H, W] of at least one pixel, not {list(shape)}")
    height, width = shape[2:]
    refuse_huge(op, (*shape[:1], height, width, 2), dtype)
    y, x = np.meshgrid(_spaced(height, dtype), _spaced(width, dtype), indexing="ij")
    return np.stack([x, y, np.ones_like(x)], -1).reshape(-1, 3)


def _grid_spec(Theta: Spec, OutputShape: Spec | None, *, output_shape: Ints) -> Spec:
    if Theta.ndim != 3 or Theta.shape[1:] != (2, 3):
        raise ShapeError(f"op 'affine_grid' takes Theta [N, 2, 3], not {list(Theta.shape)}")
    if OutputShape is not None:
        return Spec((Theta.shape[0], -1, -1, 2), Theta.dtype)
    if len(output_shape) != 4:
        raise ShapeError(f"op 'affine_grid' takes an output_shape of four numbers, N, C, H, W, not {list(output_shape)}")
    return Spec((Theta.shape[0], *output_shape[2:], 2), Theta.dtype)


@op(outs="Output", infer=_grid_spec, rows=row_wise("Theta"), sizes=sizes_from("OutputShape"))
def affine_grid(Theta: Array, OutputShape: Array | None, *, output_shape: Ints = ()):
    """Output[n, h, w] = Theta[n] (x, y, 1): [N, H, W, 2] from Theta [N, 2, 3].

    x and y go from -1 to 1 over the W columns and H rows of output_shape (or OutputShape): N, C, H, W.
    """
    shape = integers("affine_grid", "OutputShape", OutputShape, None, output_shape)
    grid = jnp.einsum("pk,njk->npj", _places("affine_grid", shape, Theta.dtype), Theta, precision="highest")
    return grid.reshape(Theta.shape[0], *shape[2:], 2)


@grad_of("affine_grid", "OutputShape", nograd="OutputShape", sizes=sizes_from("OutputShape"))
def affine_grid_grad(OutputShape: Array | None, d_Output: Array, *, output_shape: Ints):
    """Theta@GRAD[n] = the sum over all pixels of Output@GRAD[n, h, w] (x, y, 1)^T."""
    shape = integers("affine_grid_grad", "OutputShape", OutputShape, None, output_shape)
    places = _places("affine_grid_grad", shape, d_Output.dtype)
    return jnp.einsum("npj,pk->njk", d_Output.reshape(d_Output.shape[0], -1, 2), places, precision="highest")


def corners(y: Any, x: Any) -> list[tuple[Any, Any, Any]]:
    """The four pixels around each place and their weights: (row, column, weight); rows and columns as floats, which may lie outside."""
    low_y, low_x = jnp.floor(y), jnp.floor(x)
    share_y, share_x = y - low_y, x - low_x
    return [
        (low_y + down, low_x + right, (share_y if down else 1 - share_y) * (share_x if right else 1 - share_x))
        for down in (0, 1) for right in (0, 1)
    ]  # fmt: skip


def _sampled_spec(X: Spec, Grid: Spec) -> Spec:
    fits = X.ndim == 4 and Grid.ndim == 4 and Grid.shape[3] in (2, -1)
    if not fits or any(a != b and min(a, b) >= 0 for a, b in zip((X.shape[0], *X.shape[2:]), Grid.shape[:3], strict=True)):
        raise ShapeError(
            f"op 'grid_sampler' takes X [N, C, H, W] and Grid [N, H, W, 2] of equal sizes, not {list(X.shape)} and {list(Grid.shape)}"
        )
    if X.dtype != Grid.dtype:
        raise ShapeError(f"op 'grid_sampler' takes X and Grid of one dtype, not {X.dtype} and {Grid.dtype}")
    return X


@op(outs="Output", grad="X Grid", infer=_sampled_spec, rows=mixes(), channels=CHANNELS_FIRST)
def grid_sampler(X: Array, Grid: Array):
    """Output[n, :, h, w] = X[n] at Grid[n, h, w] = (x, y), between its four pixels; 0 beyond X. All [N, C, H, W], Grid [N, H, W, 2].

    x = -1 is the middle of the first column, x = 1 that of the last; y likewise.
    """
    n, channels, height, width = X.shape
    kind = Grid.dtype
    x = (Grid[..., 0] + 1) * (np.asarray(0.5, kind) * np.asarray(width - 1, kind))
    y = (Grid[..., 1] + 1) * (np.asarray(0.5, kind) * np.asarray(height - 1, kind))
    image = jnp.arange(n, dtype=np.int32)[:, None, None]
    pixels = jnp.moveaxis(X, 1, -1).reshape(n * height * width, channels)
    out = jnp.zeros((n, height, width, channels), X.dtype)
    for row, column, weight in corners(y, x):
        there = (row >= 0) & (row <= height - 1) & (column >= 0) & (column <= width - 1)
        place = (image * height + jnp.where(there, row, 0).astype(np.int32)) * width + jnp.where(there, column, 0).astype(np.int32)
        value = jnp.where(there[..., None], pixels[place], 0)
        out = out + value * weight[..., None]
    return jnp.moveaxis(out, -1, 1)
