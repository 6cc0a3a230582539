"""The reason of an op's error in the op's own terms; JAX and NumPy describe the arrays that a
function makes from its inputs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..errors import FluidError, ShapeError

_SHAPE = r"[\[(]([\d, ]*)[\])]"
_DIFFER = "sizes that must be equal are not: [{0}] and [{1}]"
_FEW = "an input has fewer dimensions, or an attribute fewer entries, than the op takes"
_UNEQUAL = (
    "there are not as many of one thing as of another (dimensions, variables of a slot or entries"
    " of an attribute)"
)
_LACKS = "an input that these attributes need is not given"
_ZERO = "a size or an attribute of 0 divides"
# the raised text, and its meaning; {0}, {1}: the groups in brackets
_WORDS = [
    (rf"got incompatible shapes for broadcasting: {_SHAPE}, {_SHAPE}", _DIFFER),
    (rf"Incompatible shapes for broadcasting: shapes=\[{_SHAPE}, {_SHAPE}\]", _DIFFER),
    (rf"Incompatible shapes for broadcasting: shapes=\[{_SHAPE}, {_SHAPE}, {_SHAPE}\]", _DIFFER + " and [{2}]"),
    (rf"Incompatible shapes for broadcasting: {_SHAPE} and requested shape {_SHAPE}", _DIFFER),
    (rf"Incompatible types for broadcasting: input type=\w+{_SHAPE} and requested type=\w+{_SHAPE}", _DIFFER),
    (rf"operands could not be broadcast together with (?:remapped )?shapes.*?{_SHAPE}.*?{_SHAPE}", _DIFFER),
    (rf"could not broadcast input array from shape {_SHAPE} into shape {_SHAPE}", _DIFFER),
    (rf"reshape array of shape {_SHAPE} .*because the product of specified axis sizes \((-?\d+)\)",
     "the elements of [{0}] cannot be divided into {1} parts"),
    (rf"reshape array of shape {_SHAPE} .*into shape {_SHAPE}", "[{0}] does not have as many elements as [{1}], which are needed"),
    (r"reshape array of size (\d+) into shape \(([\d, ]*)\)", "{0} elements are not as many as [{1}] has, which are needed"),
    (rf"contracting dimensions to have the same shape, got {_SHAPE} and {_SHAPE}",
     "a matrix product takes as many columns of one as rows of the other, not {0} and {1}"),
    (rf"batch dimensions to have the same shape, got {_SHAPE} and {_SHAPE}", _DIFFER),
    (rf"differ in dimensions other than the one being concatenated: .* for shapes {_SHAPE}, {_SHAPE}",
     "what is joined differs in other dimensions too: [{0}] and [{1}]"),
    (r"axis (-?\d+) is out of bounds for array of dimension (\d+)", "axis {0} is not one of {1} dimensions"),
    (r"not enough values to unpack \(expected (?:at least )?(\d+), got (\d+)\)", "{1} dimensions or entries are given for {0}"),
    (r"too many values to unpack \(expected (\d+)", "more dimensions or entries are given than {0}"),
    (r"must be at least (\d)D|must be >= (\d) dimension", "an input has fewer than {0} dimensions"),
    (r"incompatible types: .* from dtype=(\w+) to dtype=(\w+)", "the dtypes of its inputs differ: {0} and {1}"),
    (r"(?:tuple|list)(?: assignment)? index out of range|Too many indices|too many indices for array|from empty list", _FEW),
    (r"arguments to dynamic_slice must be scalars|list\.pop\(x\)|missing \d required positional", _FEW),
    (r"(?:min|max)\(\) (?:iterable argument|arg) is (?:an )?empty|need at least one array|Need at least one array|must be non-empty", _FEW),
    (r"zip\(\) argument|inhomogeneous|length of padding_config|must have equal length|mismatched lengths", _UNEQUAL),
    (r"same number of dimensions; (\d+) vs\. (\d+)", "its inputs have {0} and {1} dimensions"),
    (rf"Cannot broadcast to shape with fewer dimensions: arr_shape={_SHAPE} shape={_SHAPE}", _DIFFER),
    (r"does not accept dtype (\w+)", "it is {0} where floats are needed"),
    (r"carry input and carry output must have equal types", "the dtypes or sizes of its inputs do not fit one another"),
    (r"could not convert string to float: ('.*')", "{0} is not a number"),
    (r"'NoneType' object|NoneType", _LACKS),
    (r"division by zero|modulo by zero|range\(\) arg 3 must not be zero|step cannot be zero", _ZERO),
    (r"Indexer must have integer or boolean type, got indexer with type (\w+)", "it is {0} where integers are needed"),
    (r"Index type must be an integer|indices must have an integer type|only integer|used as indices", "integers are needed"),
    (r"must be of integer type|expects? integer", "integers are needed"),
    (r"dtypes?,? got (\w+), (\w+)|same dtypes?, got (\w+) and (\w+)", "the dtypes of its inputs differ: {0} and {1}"),
    (r"cannot convert float (?:NaN|infinity) to integer", "an attribute is nan or infinite"),
    (r"duplicate value in 'axis': \(([\d, -]*)\)|repeated axis", "an axis is named twice"),
    (r"nonnegative|negative dimensions|Dimension size after padding|greater than or equal to 0", "a size would be negative"),
    (r"limit_indices must be|start_indices must be|slice .* must be", "the slice is not within the input"),
]  # fmt: skip


def reason(exc: BaseException) -> str:
    """Why an op rejects its inputs: a FluidError's own sentence, or the meaning of a library's
    exception.
    """
    text = next(iter(str(exc).strip().splitlines()), "") or type(exc).__name__
    if isinstance(exc, FluidError):
        return text
    for pattern, words in _WORDS:
        found = re.search(pattern, text)
        if found is not None:
            groups = [g.rstrip(", ") for g in found.groups() if g is not None]
            return words.format(*groups)
    if isinstance(exc, KeyError):
        return f"{text} is not one of the values that it knows"
    return text


def refusal(kind: str, inputs: Mapping[str, Any], exc: BaseException) -> ShapeError:
    """The error of an op that cannot take these inputs (some have shapes and dtypes)."""
    given = ", ".join(
        f"{slot}{shown(value)}" for slot, value in inputs.items() if value is not None
    )
    traced = (
        "; a traced program keeps the sizes that its function was traced with, but for those that"
        " dynamic= left open"
        if kind.startswith("jax.")
        else ""
    )
    return ShapeError(
        f"op '{kind}' cannot take {given or 'these attributes'}: {reason(exc)}{traced}"
    )


def shown(value: Any) -> str:
    """The shape and the dtype of a value that has them."""
    if isinstance(value, list | tuple):
        return "(" + ", ".join(map(shown, value)) + ")"
    return f"{list(value.shape)}:{value.dtype}" if hasattr(value, "shape") else ""
