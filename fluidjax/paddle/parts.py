"""paddle.real, paddle.imag, paddle.conj; paddle.histogram and paddle.unique: parts of complex
numbers, and counts of values.
"""

from __future__ import annotations

from typing import Any

from .. import layers
from ..base.dtypes import REAL_OF, VarType
from ..errors import FluidTypeError, UnsupportedError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..layers._build import INTS, append, dtype_in, require, variable


def _of_complex(kind: str, x: Variable, name: str | None) -> Variable:
    dtype = variable(x, "x", kind, REAL_OF).desc.dtype
    return append(LayerHelper(kind, name=name), {"X": x}, {"Out": REAL_OF[str(dtype)]})


def real(x: Variable, name: str | None = None) -> Variable:
    """The real part of complex numbers: float32 of complex64, float64 of complex128. Raises
    FluidTypeError for other dtypes.
    """
    return _of_complex("real", x, name)


def imag(x: Variable, name: str | None = None) -> Variable:
    """The imaginary part of complex numbers: float32 of complex64, float64 of complex128. Raises
    FluidTypeError for other dtypes.
    """
    return _of_complex("imag", x, name)


def conj(x: Variable, name: str | None = None) -> Variable:
    """Re(x) - i Im(x), element by element; a real x is unchanged."""
    return append(LayerHelper("conj", name=name), {"X": variable(x, "x", "conj")}, {"Out": x.dtype})


def histogram(
    input: Variable, bins: int = 100, min: float = 0, max: float = 0, name: str | None = None
) -> Variable:
    """The number of elements in each of `bins` equal parts of [min, max]: int64 [bins]; elements
    outside do not count.

    If min = max, the range is from the least to the greatest element. input: float32, float64,
    int32, int64. Raises FluidValueError for bins below 1, or a min above max.
    """
    variable(input, "input", "histogram", ("float32", "float64", *INTS))
    require(bins >= 1, f"histogram has at least one bin, not {bins}")
    require(min <= max, f"histogram goes from min to max; {min} is above {max}")
    attrs = {"bins": bins, "min": min, "max": max}
    return append(
        LayerHelper("histogram", name=name), {"X": input}, {"Out": "int64"}, attrs, stop="Out"
    )


def unique(
    x: Variable, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None,
    dtype: Any = "int64", name: str | None = None,
) -> Any:  # fmt: skip
    """The elements of x, each once, in ascending order; on request also vectors of `dtype` (int32
    or int64).

    return_index: the first index of each in x flattened. return_inverse: the position of each
    element of x among them. return_counts: the count of each. Raises UnsupportedError for an axis
    if x has more than one dimension.
    """
    kind = dtype_in(dtype, "dtype", "unique", INTS)
    if axis is not None and variable(x, "x", "unique").ndim != 1:
        raise UnsupportedError(
            f"unique along axis {axis} of {x.name!r} {list(x.shape)} is not supported; it takes all"
            " elements, or a vector"
        )
    if x.desc.dtype == "bool":
        raise FluidTypeError(f"unique takes numbers, but {x.name!r} is bool")
    ordered, order = layers.argsort(layers.reshape(x, [-1]), 0)
    helper = LayerHelper("unique_consecutive", name=name)
    attrs = {"return_inverse": True, "return_counts": True, "axis": [], "dtype": int(VarType.INT64)}
    outs = {"Out": x.dtype, "Index": "int64", "Counts": "int64"}
    values, index, counts = append(helper, {"X": ordered}, outs, attrs, stop="Index Counts")
    found = [values]
    if return_index:
        found.append(layers.cast(layers.gather(order, _begins(index)), kind))
    if return_inverse:
        found.append(layers.cast(layers.scatter(order, order, index), kind))
    if return_counts:
        found.append(layers.cast(counts, kind))
    return found[0] if len(found) == 1 else tuple(found)


def _begins(index: Variable) -> Variable:
    """The indices where the numbers of a sorted vector change, including the first: [n]."""
    one = layers.fill_constant([1], "int64", -1)
    before = layers.concat([one, layers.slice(index, [0], [0], [-1])])
    return layers.reshape(layers.where(layers.not_equal(index, before)), [-1])


__all__ = ["conj", "histogram", "imag", "real", "unique"]
