"""Reductions over some or all dimensions, and orders: argmax, sort, top k."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..layer_helper import LayerHelper
from ..variable import Variable
from ._build import BOOL, FLOATS, HALF, INTS, append, named, typed, variable

_NUMBERS = (*FLOATS, *INTS)
_TABLE: dict[str, tuple[str, tuple[str, ...]]] = {
    "reduce_sum": ("Sum", _NUMBERS), "reduce_mean": ("Mean", _NUMBERS), "reduce_max": ("Maximum", ()),
    "reduce_min": ("Minimum", ()), "reduce_prod": ("Product", ()), "reduce_all": ("Logical and", BOOL),
    "reduce_any": ("Logical or", BOOL),
}  # fmt: skip


def _reduction(kind: str, what: str, dtypes: tuple[str, ...]) -> Callable[..., Variable]:
    def layer(input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None) -> Variable:
        variable(input, "input", kind, dtypes)
        dims = [dim] if dim is not None and not isinstance(dim, list | tuple) else dim
        attrs = {"dim": dims or [0], "keep_dim": keep_dim, "reduce_all": not dims or len(dims) == input.ndim}
        return append(LayerHelper(kind, name=name), {"X": input}, {"Out": input.dtype}, attrs)

    doc = (
        f"{what} over `dim`: an integer or a list of them, negative from the end; None: over everything, shape [1].\n\n"
        "keep_dim: reduced dimensions stay with size 1."
    )
    layer.__module__ = __name__
    return named(
        layer,
        kind,
        doc + (f" input: {', '.join(dtypes)}." if dtypes else ""),
        "input, dim=None, keep_dim=False, name=None",
    )


for _kind, _row in _TABLE.items():
    globals()[_kind] = _reduction(_kind, *_row)


def mean(x: Variable, name: str | None = None) -> Variable:
    """The mean of all elements: shape [1]. Raises FluidTypeError for integers."""
    variable(x, "x", "mean", HALF)
    return append(LayerHelper("mean", name=name), {"X": x}, {"Out": x.dtype})


def logsumexp(
    x: Variable, dim: Any = None, keepdim: bool = False, out: Variable | None = None, name: str | None = None
) -> Variable:
    """log(sum(exp(x), dim)), as three ops without a shift by the maximum. out: a variable to write."""
    variable(x, "x", "logsumexp", FLOATS)
    total = globals()["reduce_sum"](append(LayerHelper("exp"), {"X": x}, {"Out": x.dtype}), dim, keepdim)
    helper = LayerHelper("log", name=name)
    return append(helper, {"X": total}, {"Out": total.dtype if out is None else out})


def argmax(x: Variable, axis: int = 0) -> Variable:
    """Index (int64) of the first maximum along `axis`, which is removed."""
    variable(x, "x", "argmax", (*FLOATS, "int16", *INTS, "uint8"))
    out = append(LayerHelper("arg_max"), {"X": x}, {"Out": "int64"}, {"axis": axis})
    out.stop_gradient = True
    return out


def argmin(x: Variable, axis: int = 0) -> Variable:
    """Index (int64) of the first minimum along `axis`, which is removed."""
    variable(x, "x", "argmin", (*FLOATS, "int16", *INTS, "uint8"))
    out = append(LayerHelper("arg_min"), {"X": x}, {"Out": "int64"}, {"axis": axis})
    out.stop_gradient = True
    return out


def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, Variable]:
    """The elements sorted along `axis`, and where they came from (int64)."""
    variable(input, "input", "argsort", (*FLOATS, "int16", *INTS, "uint8"))
    attrs = {"axis": axis, "descending": descending}
    outs = {"Out": input.dtype, "Indices": "int64"}
    return append(LayerHelper("argsort", name=name), {"X": input}, outs, attrs, stop="Out Indices")


def topk(input: Variable, k: Any, name: str | None = None) -> tuple[Variable, Variable]:
    """The k largest elements of the last dimension, and their indices (int64). k: an integer or a variable of one."""
    typed(input, "input", Variable, "topk")
    inputs, attrs = {"X": [input]}, {}
    if isinstance(k, Variable):
        inputs["K"] = [k]
    else:
        attrs["k"] = k
    helper = LayerHelper("top_k", name=name)
    values, indices = append(helper, inputs, {"Out": input.dtype, "Indices": "int64"}, attrs)
    values.stop_gradient = indices.stop_gradient = True
    return values, indices


__all__ = [*_TABLE, "argmax", "argmin", "argsort", "logsumexp", "mean", "topk"]
