"""Ops that are linear in a weight: the axis of their output channels, and how to scale each channel
in the weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.desc import OpDesc
from .match import Link, Refused


@dataclass(frozen=True)
class Linear:
    """A linear op's slots. channel: axis of the output's channels, from (op, output rank); negative
    counts from the end.

    channels: their number, from (op, weight shape). scaled: the weight with channel c multiplied by
    s[c].
    """

    takes: str
    weight: str
    gives: str
    channel: Callable[[OpDesc, int], int]
    channels: Callable[[OpDesc, tuple[int, ...]], int]
    scaled: Callable[[OpDesc, np.ndarray, np.ndarray], np.ndarray]
    bias: str | None = None


def _image_axis(attr: str) -> Callable[[OpDesc, int], int]:
    return lambda op, rank: rank - 1 if op.attrs.get(attr, "NCHW") in ("NHWC", "NDHWC") else 1


def _scale_first(op: OpDesc, w: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Filter [out, in / groups, ...]."""
    return w * s.reshape(-1, *(1,) * (w.ndim - 1))


def _groups(op: OpDesc) -> int:
    return int(op.attrs.get("groups", 1)) or 1


def _scale_transposed(op: OpDesc, w: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Filter [in, out / groups, ...]: output channel g * (out / groups) + j comes from the inputs
    of group g.
    """
    g = _groups(op)
    parts = w.reshape(g, w.shape[0] // g, *w.shape[1:])
    return (parts * s.reshape(g, 1, -1, *(1,) * (w.ndim - 2))).reshape(w.shape)


def _mul_axis(op: OpDesc, rank: int) -> int:
    return int(op.attrs.get("x_num_col_dims", 1))


def _mul_channels(op: OpDesc, shape: tuple[int, ...]) -> int:
    if len(shape) - int(op.attrs.get("y_num_col_dims", 1)) != 1:
        raise Refused("its weight gives several output dimensions, so there is no one channel axis")
    return shape[-1]


def _scale_last(op: OpDesc, w: np.ndarray, s: np.ndarray) -> np.ndarray:
    return w * s


def _transposed(op: OpDesc) -> bool:
    return bool(op.attrs.get("transpose_Y", op.attrs.get("trans_y", False)))


def _matmul_channels(op: OpDesc, shape: tuple[int, ...]) -> int:
    if int(op.attrs.get("head_number", 1)) > 1:
        raise Refused(
            "its product is by heads, so a column of its weight stands for several channels; one"
            " head can be folded into"
        )
    if len(shape) != 2:
        raise Refused(f"its weight has {len(shape)} dimensions; a matrix can be folded into")
    return shape[0] if _transposed(op) else shape[1]


def _scale_matmul(op: OpDesc, w: np.ndarray, s: np.ndarray) -> np.ndarray:
    return w * s[:, None] if _transposed(op) else w * s


_CONV = Linear(
    "Input",
    "Filter",
    "Output",
    _image_axis("data_format"),
    lambda op, shape: shape[0],
    _scale_first,
    "Bias",
)
_CONV_TRANSPOSE = Linear(
    "Input",
    "Filter",
    "Output",
    _image_axis("data_format"),
    lambda op, shape: shape[1] * _groups(op),
    _scale_transposed,
    "Bias",
)
_MATMUL = Linear("X", "Y", "Out", lambda op, rank: rank - 1, _matmul_channels, _scale_matmul)

LINEAR: dict[str, Linear] = {
    "conv2d": _CONV,
    "depthwise_conv2d": _CONV,
    "conv3d": _CONV,
    "conv2d_transpose": _CONV_TRANSPOSE,
    "depthwise_conv2d_transpose": _CONV_TRANSPOSE,
    "conv3d_transpose": _CONV_TRANSPOSE,
    "mul": Linear("X", "Y", "Out", _mul_axis, _mul_channels, _scale_last),
    "matmul": _MATMUL,
    "matmul_v2": _MATMUL,
    "fc": Linear(
        "Input", "W", "Out", lambda op, rank: int(op.attrs.get("in_num_col_dims", 1)), lambda op, shape: shape[1], _scale_last, "Bias"
    ),
}  # fmt: skip

LINKS = {kind: Link(item.takes, item.gives) for kind, item in LINEAR.items()}


def refuse_extras(op: OpDesc) -> None:
    """Raises Refused if a linear op has a fused activation or a residual."""
    attrs: Any = op.attrs
    if (
        attrs.get("fuse_relu")
        or attrs.get("fuse_brelu")
        or attrs.get("fuse_activation")
        or attrs.get("activation_type")
    ):
        raise Refused(f"op '{op.type}' has an activation fused into it")
    if op.input("ResidualData"):
        raise Refused(f"op '{op.type}' adds a residual")
