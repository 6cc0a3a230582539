"""Variables that are fed, read from files, or come from readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base.absent import reporter
from ..base.dtypes import VarType
from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from . import readers as readers
from ._build import typed
from .missing import HINTS
from .readers import *  # noqa: F403


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

    append_batch_size: prepend an unknown dimension to `shape`, unless `shape` already has one (-1
    or None). stop_gradient: False lets gradients reach it. Raises FluidTypeError if name or shape
    is of another type.
    """
    helper = LayerHelper("data", name=name)
    typed(name, "name", (str, bytes), "data")
    typed(shape, "shape", (list, tuple), "data")
    known = [-1 if n is None else n for n in shape]
    if append_batch_size and all(n >= 0 for n in known):
        known = [-1, *known]
    return helper.create_global_variable(
        name=name,
        shape=known,
        dtype=dtype,
        type=type,
        stop_gradient=stop_gradient,
        lod_level=lod_level,
        is_data=True,
    )


@located
def load(out: Variable, file_path: str, load_as_fp16: bool | None = None) -> None:
    """Load `out` from a file, such as fluid.io.save_vars writes, in every run; load_as_fp16: as
    float16.

    In 1.8.5 the op that this appends lacks its output, so it fails when it runs.
    """
    helper = LayerHelper("load")
    attrs: dict[str, Any] = {"file_path": file_path}
    if load_as_fp16 is not None:
        attrs["load_as_fp16"] = load_as_fp16
    helper.append_op(type="load", inputs={}, outputs={"Out": out}, attrs=attrs)


__all__ = ["data", "load"]
__all__ += readers.__all__

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.layers.io", __all__, HINTS)
