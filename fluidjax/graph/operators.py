"""Operators of variables (``x + y``, ``2 * x``, ``x < y``, ``if x:``), as in Fluid; a base class of
Variable.

An operator appends an op to the current block and returns the variable of its output, ``tmp_k``. If
the other operand is a number, the op is a ``scale`` if possible (an int or a float, and + - * /).
Otherwise the number becomes a constant of the variable's dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .. import unique_name
from ..base.dtypes import INTEGERS, enum_of
from ..base.loc import user_line, warn
from ..errors import FluidTypeError, FluidValueError

V = TypeVar("V")  # Variable, which this module does not import

_COMPARE = ("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal")
_CONDITIONS = (*_COMPARE, "logical_and", "logical_or", "logical_xor", "logical_not", "isfinite", "is_empty", "reduce_all",
               "reduce_any", "allclose")  # fmt: skip

# a number -> the scale and bias with the same effect
Scaling = Callable[[float], tuple[float, float]]


class Operators(Generic[V]):
    """Arithmetic, comparison and the truth of a variable."""

    # NumPy then leaves `np.float32(2) * x` to the variable instead of reading it as an array
    __array_ufunc__ = None

    def __add__(self, other: Any) -> V:
        return _binary(self, "elementwise_add", other, lambda v: (1.0, v))

    def __radd__(self, other: Any) -> V:
        return _binary(self, "elementwise_add", other, lambda v: (1.0, v))

    def __sub__(self, other: Any) -> V:
        return _binary(self, "elementwise_sub", other, lambda v: (1.0, -v))

    def __rsub__(self, other: Any) -> V:
        return _binary(self, "elementwise_sub", other, lambda v: (-1.0, v), reverse=True)

    def __mul__(self, other: Any) -> V:
        return _binary(self, "elementwise_mul", other, lambda v: (v, 0.0))

    def __rmul__(self, other: Any) -> V:
        return _binary(self, "elementwise_mul", other, lambda v: (v, 0.0))

    def __truediv__(self, other: Any) -> V:
        return _binary(self, "elementwise_div", other, lambda v: (1.0 / v, 0.0))

    def __rtruediv__(self, other: Any) -> V:
        return _binary(self, "elementwise_div", other, reverse=True)

    def __pow__(self, other: Any) -> V:
        return _binary(self, "elementwise_pow", other)

    def __rpow__(self, other: Any) -> V:
        return _binary(self, "elementwise_pow", other, reverse=True)

    def __floordiv__(self, other: Any) -> V:
        return _binary(self, "elementwise_floordiv", other)

    def __mod__(self, other: Any) -> V:
        return _binary(self, "elementwise_mod", other)

    def __neg__(self) -> V:
        return _scaled(self, -1.0, 0.0)

    def __lt__(self, other: Any) -> V:
        return _binary(self, "less_than", other)

    def __le__(self, other: Any) -> V:
        return _binary(self, "less_equal", other)

    def __gt__(self, other: Any) -> V:
        return _binary(self, "greater_than", other)

    def __ge__(self, other: Any) -> V:
        return _binary(self, "greater_equal", other)

    def __eq__(self, other: Any) -> V:  # type: ignore[override]  # a variable, as all comparisons
        return _binary(self, "equal", other)

    def __ne__(self, other: Any) -> V:  # type: ignore[override]
        return _binary(self, "not_equal", other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        """True, as in Fluid, because scripts write ``if bias:`` for a variable that may be None.

        Warns if the variable is the result of a comparison, because ``if a > b:`` does not compare
        values.
        """
        _warn_of_condition(self)
        return True

    def astype(self, dtype: Any) -> V:
        """A ``cast`` of this variable to another dtype."""
        return _cast(self, dtype)

    def clone(self) -> V:
        """A copy of the value, through an ``assign`` op."""
        var: Any = self
        return _append(var, "assign", {"X": var}, var.dtype)


def is_variable(value: Any) -> bool:
    """Whether this is a variable."""
    return isinstance(value, Operators)


def _append(
    var: Any, kind: str, inputs: dict[str, Any], dtype: Any, attrs: dict[str, Any] | None = None
) -> Any:
    out = _temporary(var, dtype)
    var.block.program.current_block().append_op(
        type=kind, inputs=inputs, outputs={"Out": out}, attrs=attrs or {}
    )
    return out


def _temporary(var: Any, dtype: Any, stop_gradient: bool = False) -> Any:
    block = var.block.program.current_block()
    return block.create_var(
        name=block.new_name(lambda: unique_name.generate("tmp")),
        dtype=dtype,
        stop_gradient=stop_gradient,
    )


def _cast(var: Any, dtype: Any) -> Any:
    to = enum_of(dtype)
    return _append(var, "cast", {"X": var}, to, {"in_dtype": int(var.dtype), "out_dtype": int(to)})


def _scaled(var: Any, scale: float, bias: float) -> Any:
    return _append(var, "scale", {"X": var}, var.dtype, {"scale": scale, "bias": bias})


def _binary(
    var: Any, kind: str, other: Any, scaling: Scaling | None = None, reverse: bool = False
) -> Any:
    """The op `kind` of `var` and `other`, exchanged if `reverse`. scaling: how a number becomes a
    scale.

    Raises FluidTypeError or FluidValueError if `other` is neither a variable nor a number.
    """
    if not is_variable(other):
        value = _number(var, kind, other)
        divided = kind == "elementwise_div" and (var.desc.dtype in INTEGERS or value == 0)
        if scaling is not None and isinstance(other, int | float) and not divided:
            return _scaled(var, *scaling(value))
        second = _constant(var, value, var.shape if reverse else (1,))
    else:
        second = other
        if second.plain.dtype != var.plain.dtype:
            second = _cast(second, var.dtype)
    x, y = (second, var) if reverse else (var, second)
    # equal, but Fluid writes it so
    axis = 0 if y.desc.shape and y.desc.shape[0] == -1 else -1
    return _append(
        var, kind, {"X": x, "Y": y}, "bool" if kind in _COMPARE else var.dtype, {"axis": axis}
    )


def _number(var: Any, kind: str, value: Any) -> float:
    """`value` as the float that the op carries: a number, or an array of one, as in Fluid.

    Raises FluidTypeError or FluidValueError for anything else, FluidTypeError for a fraction with
    an integer variable.
    """
    wanted = f"{kind} of {var} takes a variable or a number, not "
    try:
        number = float(value.item() if getattr(value, "size", 0) == 1 else value)
    except TypeError:
        raise FluidTypeError(wanted + ("None" if value is None else type(value).__name__)) from None
    except ValueError:
        raise FluidValueError(f"{wanted}{value!r}") from None
    if var.desc.dtype in INTEGERS and math.isfinite(number) and number != int(number):
        raise FluidTypeError(
            f"{value} is not an integer, but variable {var.name!r} is {var.desc.dtype}; cast it "
            "first"
        )
    return number


def _constant(var: Any, value: float, shape: tuple[int, ...]) -> Any:
    """`value` as a tensor of the variable's dtype. If the shape has an unknown dimension, a fill op
    takes the batch size from the variable.
    """
    attrs: dict[str, Any] = {
        "dtype": int(var.dtype),
        "shape": list(shape),
        "value": float(value),
        "force_cpu": False,
    }
    out = _temporary(var, var.dtype, stop_gradient=True)
    block = var.block.program.current_block()
    if -1 not in shape:
        block.append_op(type="fill_constant", outputs={"Out": out}, attrs=attrs)
        return out
    at = shape.index(-1)
    # one dimension is the batch
    attrs["shape"] = [n if n != -1 or i == at else 1 for i, n in enumerate(shape)]
    attrs.update(input_dim_idx=at, output_dim_idx=at)
    block.append_op(
        type="fill_constant_batch_size_like",
        inputs={"Input": var},
        outputs={"Out": out},
        attrs=attrs,
    )
    return out


_warned: set[str] = set()


def _warn_of_condition(var: Any) -> None:
    """Warn, once for each line, if a comparison's result is used as a Python condition, which is
    always true.
    """
    if var.desc.dtype != "bool":
        return
    maker = next((op for op in reversed(var.block.ops) if var.name in op.output_arg_names), None)
    line = user_line() or ""
    if maker is None or maker.type not in _CONDITIONS or line in _warned:
        return
    _warned.add(line)
    warn(
        f"{var.name!r}, the result of {maker.type}, is used as a Python condition at {line}; while"
        " the program is built it has no value and counts as true (so does `in` a list of"
        " variables): choose by layers.cond or layers.Switch, or by multiplying with a cast of the"
        " comparison"
    )
