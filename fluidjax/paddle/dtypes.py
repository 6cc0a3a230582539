"""paddle.float32, paddle.int64, ...: the dtypes as values, and their ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.dtypes import REAL_OF, VarType, name_of
from ..errors import FluidTypeError

dtype = VarType
uint8 = VarType.UINT8
int8 = VarType.INT8
int16 = VarType.INT16
int32 = VarType.INT32
int64 = VarType.INT64
float16 = VarType.FP16
bfloat16 = VarType.BF16
float32 = VarType.FP32
float64 = VarType.FP64
bool = VarType.BOOL
complex64 = VarType.COMPLEX64
complex128 = VarType.COMPLEX128

_BFLOAT16 = {
    "eps": 2.0**-7,
    "min": -3.3895313892515355e38,
    "max": 3.3895313892515355e38,
    "tiny": 2.0**-126,
    "resolution": 0.01,
}


class iinfo:
    """min, max, bits and dtype of the integers of a dtype. Raises FluidTypeError for another dtype."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = name_of(dtype)
        if not self.dtype.startswith(("int", "uint")):
            raise FluidTypeError(f"iinfo takes a dtype of integers, not {self.dtype}")
        found = np.iinfo(self.dtype)
        self.min, self.max, self.bits = int(found.min), int(found.max), found.bits


class finfo:
    """min, max, eps, tiny (smallest_normal), resolution, bits and dtype of the numbers of a dtype;
    for complex ones, of their parts.

    Raises FluidTypeError for integers and bool.
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = REAL_OF.get(name_of(dtype), name_of(dtype))
        if not self.dtype.startswith(("float", "bfloat")):
            raise FluidTypeError(f"finfo takes a dtype of floating point numbers, not {self.dtype}")
        if self.dtype == "bfloat16":
            values = {**_BFLOAT16, "bits": 16}
        else:
            found = np.finfo(self.dtype)
            values = {
                name: float(getattr(found, name))
                for name in ("eps", "min", "max", "tiny", "resolution")
            }
            values["bits"] = found.bits
        self.eps, self.min, self.max = values["eps"], values["min"], values["max"]
        self.tiny = self.smallest_normal = values["tiny"]
        self.resolution, self.bits = values["resolution"], int(values["bits"])


__all__ = [
    "bfloat16",
    "bool",
    "complex64",
    "complex128",
    "dtype",
    "finfo",
    "float16",
    "float32",
    "float64",
    "iinfo",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
]  # fmt: skip
