"""Attributes of ops: the annotations that declare them, Paddle's types, and values in the form that
descs store.
"""

from __future__ import annotations

import inspect
import math
import numbers
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..ir.desc import BlockRef, Long

Array = jax.Array | np.ndarray
Ints = list[int]
Floats = list[float]
Strs = list[str]
Bools = list[bool]
Longs = typing.NewType("Longs", list)
Int64 = typing.NewType("Int64", int)
Float64 = typing.NewType("Float64", float)
Float64s = typing.NewType("Float64s", list)
Scalars = typing.NewType("Scalars", list)  # each a truth value, an integer or a float64
Scalar = typing.NewType("Scalar", object)  # one of these, or None
Sizes = typing.NewType("Sizes", list)  # ints; where some are open, texts of all (ir/dims.py)
Size = typing.NewType("Size", int)  # one of these
ATTR_TYPES: dict[Any, str] = {
    int: "INT", float: "FLOAT", str: "STRING", bool: "BOOLEAN", Ints: "INTS", Floats: "FLOATS", Strs: "STRINGS",
    Bools: "BOOLEANS", Int64: "LONG", Longs: "LONGS", BlockRef: "BLOCK", list[BlockRef]: "BLOCKS",
    Float64: "FLOAT64", Float64s: "FLOAT64S", Scalars: "SCALARS",
    Scalar: "SCALAR or NONE", Sizes: "SIZES", Size: "SIZE",
}  # fmt: skip
REQUIRED = inspect.Parameter.empty

# Attributes that every op may have: Paddle's bookkeeping, and hints to kernels that do not exist
# here.
HINTS: Mapping[str, str] = {
    "op_role": "INT", "op_role_var": "STRINGS", "op_namescope": "STRING", "op_callstack": "STRINGS",
    "op_device": "STRING", "use_mkldnn": "BOOLEAN", "use_cudnn": "BOOLEAN", "use_quantizer": "BOOLEAN",
    "mkldnn_data_type": "STRING", "is_mkldnn": "BOOLEAN", "exhaustive_search": "BOOLEAN", "workspace_size_MB": "INT",
    "fuse_relu_before_depthwise_conv": "BOOLEAN", "x_data_format": "STRING", "y_data_format": "STRING",
    "force_fp32_output": "BOOLEAN", "scale_x": "FLOAT", "scale_y": "FLOATS", "scale_out": "FLOAT",
    "use_addto": "BOOLEAN", "fuse_with_relu": "BOOLEAN", "fuse_residual_connection": "BOOLEAN",
    "fuse_brelu": "BOOLEAN", "fuse_brelu_threshold": "FLOAT", "fuse_relu": "BOOLEAN", "fuse_activation": "STRING",
    "fuse_alpha": "FLOAT", "fuse_beta": "FLOAT", "Scale_in": "FLOAT", "Scale_out": "FLOAT",
    "Scale_in_eltwise": "FLOAT", "Scale_weights": "FLOATS", "with_quant_attr": "BOOLEAN", "name": "STRING",
    "@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@": "BOOLEAN", "place_type": "INT", "Scale_x": "FLOAT", "Scale_y": "FLOAT",
    "quantization_type": "STRING", "skip_quant": "BOOLEAN", "activation_bits": "INT", "out_threshold": "FLOAT",
    "quantize_weight_bits": "INT", "out_min": "FLOAT", "out_max": "FLOAT",
}  # fmt: skip
# The same for attributes named after a variable, by suffix: what quantisation without training has
# measured.
_ENDS = {"_quant_scale": "FLOATS", ".min": "FLOAT or FLOATS", ".max": "FLOAT or FLOATS"}


def hint_type(name: str) -> str | None:
    """The type of an attribute that every op may have; None for others."""
    return HINTS.get(name) or next(
        (kind for end, kind in _ENDS.items() if name.endswith(end)), None
    )


@dataclass(frozen=True, slots=True)
class Attr:
    """An attribute: Paddle's type name (INT, FLOATS, ...) and default; REQUIRED if there is none."""

    name: str
    type: str
    default: Any = REQUIRED


def parameters(fn: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of a function's positional and keyword-only parameters, ten times as fast as
    inspect.signature.
    """
    code = fn.__code__
    positional, both = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    return code.co_varnames[:positional], code.co_varnames[positional:both]


def converted(type_name: str, value: Any) -> Any:
    """A value as one of Paddle's attribute types: frozen, floats rounded to float32 as Paddle
    stores them.

    Raises TypeError, ValueError or OverflowError for a value of another type.
    """
    return _CONVERT[type_name](value)


def _int(value: Any) -> int:
    if isinstance(value, float | np.floating | str):
        raise TypeError
    return value if type(value) is int else int(value)


def _bool(value: Any) -> bool:
    # any other object with a truth value was meant for another parameter
    if not isinstance(value, numbers.Number | np.bool_):
        raise TypeError
    return bool(value)


def _float(value: Any) -> float:
    if isinstance(value, str):
        raise TypeError
    with np.errstate(over="ignore"):
        return _one_nan(float(np.float32(value)))


def _float64(value: Any) -> float:
    if isinstance(value, str):
        raise TypeError
    return _one_nan(float(value))


def _one_nan(value: float) -> float:
    """The number; nan as the one object by which descs that hold it compare equal."""
    return math.nan if math.isnan(value) else value


def _scalar(value: Any) -> bool | int | float:
    """The number as a Python bool, int or float."""
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, bool | int | float):
        raise TypeError
    return _one_nan(value) if isinstance(value, float) else value


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _block(value: Any) -> BlockRef:
    return value if isinstance(value, BlockRef) else BlockRef(value.idx)


def _many(convert: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def run(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str | Mapping):
            raise TypeError
        return tuple(convert(v) for v in (value if np.iterable(value) else [value]))

    return run


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "INT": _int, "FLOAT": _float, "STRING": _str, "BOOLEAN": _bool, "LONG": lambda v: Long(_int(v)), "BLOCK": _block,
    "INTS": _many(_int), "FLOATS": _many(_float), "STRINGS": _many(_str), "BOOLEANS": _many(_bool),
    "LONGS": _many(lambda v: Long(_int(v))), "BLOCKS": _many(_block), "FLOAT64": _float64, "FLOAT64S": _many(_float64),
    "FLOAT or FLOATS": lambda v: _many(_float)(v) if np.iterable(v) else _float(v),
    "SCALAR": _scalar, "SCALAR or NONE": lambda v: None if v is None else _scalar(v), "SCALARS": _many(_scalar),
    "SIZE": lambda v: v if isinstance(v, str) else _int(v),
    "SIZES": lambda v: _many(_str)(v) if any(isinstance(n, str) for n in v) else _many(_int)(v),
}  # fmt: skip
