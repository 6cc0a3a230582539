"""Fluid's dtype names and enum numbers, and NumPy's.

Inside fluidjax a dtype is its name (``"float32"``). Fluid's API uses ``VarType.FP32``, an int.
:func:`name_of` takes any of the forms; ``Variable.dtype`` returns a :class:`VarType`.
"""

from __future__ import annotations

import enum
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from ..errors import ArgumentError


class VarType(enum.IntEnum):
    """Numbers of Paddle's ``VarType.Type`` (framework.proto): element types and kinds of
    variable.
    """

    BOOL = 0
    INT16 = 1
    INT32 = 2
    INT64 = 3
    FP16 = 4
    FP32 = 5
    FP64 = 6
    LOD_TENSOR = 7
    SELECTED_ROWS = 8
    FEED_MINIBATCH = 9
    FETCH_LIST = 10
    STEP_SCOPES = 11
    LOD_RANK_TABLE = 12
    LOD_TENSOR_ARRAY = 13
    PLACE_LIST = 14
    READER = 15
    RAW = 17
    TUPLE = 18
    SIZE_T = 19
    UINT8 = 20
    INT8 = 21
    BF16 = 22
    COMPLEX64 = 23
    COMPLEX128 = 24

    def __str__(self) -> str:
        return f"VarType.{self.name}"

    __repr__ = __str__  # prints as Paddle's does, in lists too

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec else str(self)


_ENUM = {
    "bool": VarType.BOOL,
    "int16": VarType.INT16,
    "int32": VarType.INT32,
    "int64": VarType.INT64,
    "float16": VarType.FP16,
    "float32": VarType.FP32,
    "float64": VarType.FP64,
    "uint8": VarType.UINT8,
    "int8": VarType.INT8,
    "bfloat16": VarType.BF16,
    "complex64": VarType.COMPLEX64,
    "complex128": VarType.COMPLEX128,
}
_NAME = {v: k for k, v in _ENUM.items()}
# JAX's random keys
KEYS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}
# Only programs traced from JAX functions have these dtypes. Paddle has no numbers for them, so its
# files have none either.
JAX_ONLY = frozenset(
    """uint16 uint32 uint64 int2 uint2 int4 uint4 float4_e2m1fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn
    float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu""".split()
).union(KEYS)
NAMES = frozenset(_ENUM) | JAX_ONLY
FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
REAL_OF = {"complex64": "float32", "complex128": "float64"}  # the dtype of real and imaginary parts
COMPLEX_OF = {real: name for name, real in REAL_OF.items()}
KINDS = {v.name: v for v in VarType if v not in _NAME and v is not VarType.SIZE_T}


@cache
def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype of a dtype name; JAX's own dtype for random keys."""
    if name in KEYS:
        return _key_dtype(KEYS[name])
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def _key_dtype(impl: str) -> Any:
    import jax

    return jax.eval_shape(lambda: jax.random.key(0, impl=impl)).dtype


def name_of(dtype: Any) -> str:
    """Fluid's dtype name for a name, a VarType (or its number), or a NumPy or JAX dtype.

    Raises ArgumentError for anything that is not an element type, also for None (which NumPy takes
    as float64).
    """
    if isinstance(dtype, str) and dtype in _ENUM:
        return dtype
    if isinstance(dtype, int) and not isinstance(dtype, bool):
        if dtype in _NAME:
            return _NAME[VarType(dtype)]
        raise ArgumentError(
            f"{dtype} is not the number of an element dtype; float32 is {int(VarType.FP32)}"
        )
    try:
        name = None if dtype is None else np.dtype(dtype).name
    except (TypeError, ValueError):
        name = None
    if name not in _ENUM:
        raise ArgumentError(
            f"{dtype!r} is not a dtype that Fluid has; it has {', '.join(sorted(_ENUM))}"
        )
    return name


def enum_of(dtype: Any) -> VarType:
    """The VarType number of a dtype in any form."""
    return _ENUM[name_of(dtype)]


def is_float(name: str | None) -> bool:
    return name in FLOATS
