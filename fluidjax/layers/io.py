"""Variables that are fed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base.absent import reporter
from ..base.dtypes import VarType
from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import typed
from .missing import HINTS


@located
def data(
    name: str,
    shape: Sequence[int | None],
    append_batch_size: bool = True,
    dtype: Any = "float32",
    lod_level: int = 0,
    type: Any = VarType.LOD_TENSOR,
    stop_gradient: bool = True,
) -> Variable:
    """A variable of the main program that is fed.

    append_batch_size: put an unknown dimension in front of `shape`, unless `shape` has one (-1 or None) already.
    stop_gradient: False lets gradients reach it. Raises FluidTypeError if name or shape is of another type.
    """
    helper = LayerHelper("data", name=name)
    typed(name, "name", (str, bytes), "data")
    typed(shape, "shape", (list, tuple), "data")
    known = [-1 if n is None else n for n in shape]
    if append_batch_size and all(n >= 0 for n in known):
        known = [-1, *known]
    return helper.create_global_variable(
        name=name, shape=known, dtype=dtype, type=type, stop_gradient=stop_gradient, lod_level=lod_level, is_data=True
    )


__all__ = ["data"]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.layers.io", __all__, HINTS)
