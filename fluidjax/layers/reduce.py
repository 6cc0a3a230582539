"""Reductions over some or all dimensions, and orders: argmax, sort, top k."""

from __future__ import annotations

from typing import Any

from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import BOOL, FLOATS, HALF, INTS, append, typed, variable

_NUMBERS = (*FLOATS, *INTS)


def _reduction(
    kind: str, input: Variable, dtypes: tuple[str, ...], dim: Any, keep_dim: bool, name: str | None
) -> Variable:
    variable(input, "input", kind, dtypes)
    dims = [dim] if dim is not None and not isinstance(dim, list | tuple) else dim
    attrs = {"dim": dims or [0], "keep_dim": keep_dim, "reduce_all": not dims}
    return append(LayerHelper(kind, name=name), {"X": input}, {"Out": input.dtype}, attrs)


@located
def reduce_sum(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Sum over `dim`: an integer or a list of them, negative from the end; None: over everything,
    shape [1].

    keep_dim: reduced dimensions stay with size 1. input: float32, float64, int32, int64.
    """
    return _reduction("reduce_sum", input, _NUMBERS, dim, keep_dim, name)


@located
def reduce_mean(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Mean over `dim`: an integer or a list of them, negative from the end; None: over everything,
    shape [1].

    keep_dim: reduced dimensions stay with size 1. input: float32, float64, int32, int64.
    """
    return _reduction("reduce_mean", input, _NUMBERS, dim, keep_dim, name)


@located
def reduce_max(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Maximum over `dim`: an integer or a list of them, negative from the end; None: over
    everything, shape [1].

    keep_dim: reduced dimensions stay with size 1.
    """
    return _reduction("reduce_max", input, (), dim, keep_dim, name)


@located
def reduce_min(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Minimum over `dim`: an integer or a list of them, negative from the end; None: over
    everything, shape [1].

    keep_dim: reduced dimensions stay with size 1.
    """
    return _reduction("reduce_min", input, (), dim, keep_dim, name)


@located
def reduce_prod(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Product over `dim`: an integer or a list of them, negative from the end; None: over
    everything, shape [1].

    keep_dim: reduced dimensions stay with size 1.
    """
    return _reduction("reduce_prod", input, (), dim, keep_dim, name)


@located
def reduce_all(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Logical and over `dim`: an integer or a list of them, negative from the end; None: over
    everything, shape [1].

    keep_dim: reduced dimensions stay with size 1. input: bool.
    """
    return _reduction("reduce_all", input, BOOL, dim, keep_dim, name)


@located
def reduce_any(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Logical or over `dim`: an integer or a list of them, negative from the end; None: over
    everything, shape [1].

    keep_dim: reduced dimensions stay with size 1. input: bool.
    """
    return _reduction("reduce_any", input, BOOL, dim, keep_dim, name)


@located
def mean(x: Variable, name: str | None = None) -> Variable:
    """The mean of all elements: shape [1]. Raises FluidTypeError for integers."""
    variable(x, "x", "mean", HALF)
    return append(LayerHelper("mean", name=name), {"X": x}, {"Out": x.dtype})


@located
def logsumexp(
    x: Variable,
    dim: Any = None,
    keepdim: bool = False,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """log(sum(exp(x), dim)), as three ops without a shift by the maximum. out: a variable to write."""
    variable(x, "x", "logsumexp", FLOATS)
    total = reduce_sum(append(LayerHelper("exp"), {"X": x}, {"Out": x.dtype}), dim, keepdim)
    helper = LayerHelper("log", name=name)
    return append(helper, {"X": total}, {"Out": total.dtype if out is None else out})


@located
def argmax(x: Variable, axis: int = 0) -> Variable:
    """Index (int64) of the first maximum along `axis`, which is removed."""
    variable(x, "x", "argmax", (*FLOATS, "int16", *INTS, "uint8"))
    out = append(LayerHelper("arg_max"), {"X": x}, {"Out": "int64"}, {"axis": axis})
    out.stop_gradient = True
    return out


@located
def argmin(x: Variable, axis: int = 0) -> Variable:
    """Index (int64) of the first minimum along `axis`, which is removed."""
    variable(x, "x", "argmin", (*FLOATS, "int16", *INTS, "uint8"))
    out = append(LayerHelper("arg_min"), {"X": x}, {"Out": "int64"}, {"axis": axis})
    out.stop_gradient = True
    return out


@located
def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, Variable]:
    """The elements sorted along `axis`, and their original indices (int64)."""
    variable(input, "input", "argsort", (*FLOATS, "int16", *INTS, "uint8"))
    attrs = {"axis": axis, "descending": descending}
    outs = {"Out": input.dtype, "Indices": "int64"}
    return append(LayerHelper("argsort", name=name), {"X": input}, outs, attrs, stop="Out Indices")


@located
def topk(input: Variable, k: Any, name: str | None = None) -> tuple[Variable, Variable]:
    """The k largest elements of the last dimension, and their indices (int64). k: an integer or a
    variable of one.
    """
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


__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "logsumexp",
    "mean",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "topk",
]
