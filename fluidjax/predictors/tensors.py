"""The tensors that a predictor takes and gives: by name, with their bytes, shape, dtype and LoD."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import FluidTypeError, FluidValueError
from ..lod_tensor import LoDTensor


class PaddleDType(enum.IntEnum):
    """Dtypes of a predictor's tensors."""

    FLOAT32 = 0
    INT64 = 1
    INT32 = 2
    UINT8 = 3
    INT8 = 4
    FLOAT16 = 5
    BOOL = 6
    FLOAT64 = 7

    def __str__(self) -> str:
        return f"PaddleDType.{self.name}"

    __repr__ = __str__

    @property
    def numpy(self) -> np.dtype:
        return np.dtype(self.name.lower())


def _dtype_of(array: np.ndarray) -> PaddleDType:
    try:
        return PaddleDType[array.dtype.name.upper()]
    except KeyError:
        raise FluidTypeError(f"a predictor's tensor has no dtype {array.dtype}") from None


# the dtypes of 1.8.5, which casts anything else to one of them
_GIVEN = ("float32", "int64", "int32")


def _given(what: str, array: Any) -> np.ndarray:
    if not isinstance(array, np.ndarray) or array.dtype.name not in _GIVEN:
        kind = (
            f"an array of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
        )
        raise FluidTypeError(f"{what} takes a NumPy array of {', '.join(_GIVEN)}, not {kind}")
    return np.ascontiguousarray(array)


class PaddleBuf:
    """Bytes. data: the number of zero bytes, an array of float32, int64 or int32, or a list of
    numbers, which become float32.

    Raises FluidTypeError for anything else.
    """

    def __init__(self, data: Any = 0) -> None:
        self._bytes = b""
        if isinstance(data, int):
            self.resize(data)
        else:
            self.reset(data)

    def reset(self, data: Any) -> None:
        """Hold other data."""
        numbers = isinstance(data, list | tuple)
        self._bytes = (
            np.array(data, np.float32) if numbers else _given("PaddleBuf", data)
        ).tobytes()

    def resize(self, length: int) -> None:
        """Hold so many zero bytes."""
        self._bytes = bytes(length)

    def length(self) -> int:
        """The number of bytes."""
        return len(self._bytes)

    def empty(self) -> bool:
        return not self._bytes

    def float_data(self) -> list[float]:
        """The bytes as float32 numbers."""
        return self.array(PaddleDType.FLOAT32).tolist()

    def int32_data(self) -> list[int]:
        return self.array(PaddleDType.INT32).tolist()

    def int64_data(self) -> list[int]:
        return self.array(PaddleDType.INT64).tolist()

    def tolist(self, dtype: str) -> list[Any]:
        """The bytes as numbers of "float32", "int32" or "int64". Raises FluidValueError for another
        name.
        """
        if dtype not in _GIVEN:
            raise FluidValueError(f"PaddleBuf.tolist takes {', '.join(_GIVEN)}, not {dtype!r}")
        return self.array(PaddleDType[dtype.upper()]).tolist()

    def array(self, dtype: PaddleDType) -> np.ndarray:
        """The bytes as an array of one dimension. Raises FluidValueError unless they are a whole
        number of elements.
        """
        size = dtype.numpy.itemsize
        if len(self._bytes) % size:
            raise FluidValueError(
                f"a PaddleBuf of {len(self._bytes)} bytes holds no whole number of {dtype}"
            )
        return np.frombuffer(self._bytes, dtype.numpy)

    @classmethod
    def holding(cls, array: np.ndarray) -> PaddleBuf:
        """A PaddleBuf with an array's bytes, of any dtype."""
        made = cls()
        made._bytes = np.ascontiguousarray(array).tobytes()
        return made


class PaddleTensor:
    """A tensor that a predictor takes or gives: name, shape, dtype, data (a PaddleBuf), lod
    (offsets).

    data: an array of float32, int64 or int32; None: an empty tensor, whose parts are set one by
    one. Raises FluidTypeError for other data.
    """

    def __init__(
        self,
        data: np.ndarray | None = None,
        name: str = "",
        lod: Sequence[Sequence[int]] = (),
        copy: bool = True,
    ) -> None:
        self.name = name
        self.lod: list[list[int]] = [list(level) for level in lod]
        array = np.zeros(0, np.float32) if data is None else _given("PaddleTensor", data)
        self.shape: list[int] = [] if data is None else list(array.shape)
        self.dtype = _dtype_of(array)
        self.data = PaddleBuf.holding(array)

    def as_ndarray(self) -> np.ndarray:
        """The values. Raises FluidValueError if the number of bytes does not fit the shape."""
        wanted = int(np.prod(self.shape)) * self.dtype.numpy.itemsize
        if self.data.length() != wanted:
            raise FluidValueError(
                f"tensor {self.name!r} of shape {list(self.shape)} and {self.dtype} has {wanted}"
                f" bytes, but its data {self.data.length()} (a PaddleBuf of a list holds float32;"
                " give it an array)"
            )
        return self.data.array(self.dtype).reshape(self.shape).copy()

    @classmethod
    def of(cls, name: str, array: np.ndarray, lod: list[list[int]]) -> PaddleTensor:
        """A tensor that holds a result."""
        made = cls(name=name, lod=lod)
        made.shape, made.dtype, made.data = (
            list(array.shape),
            _dtype_of(array),
            PaddleBuf.holding(array),
        )
        return made


def fed(array: np.ndarray, lod: Sequence[Sequence[int]]) -> Any:
    """A value for an executor: a LoDTensor if there is a LoD."""
    if not lod:
        return array
    tensor = LoDTensor(array)
    tensor.set_lod([list(level) for level in lod])
    return tensor


class ZeroCopyTensor:
    """An input or an output of a predictor that keeps its value from run to run. Only these methods
    copy data.
    """

    def __init__(self, name: str, is_input: bool) -> None:
        self.name, self._is_input = name, is_input
        self._array: np.ndarray | None = None
        self._lod: list[list[int]] = []
        self._shape: list[int] | None = None

    def copy_from_cpu(self, array: np.ndarray) -> None:
        """Set an input's value and shape. Raises FluidTypeError for dtypes other than float32,
        int64, int32; and for outputs.
        """
        if not self._is_input:
            raise FluidTypeError(
                f"{self.name!r} is an output of the predictor, which only a run gives values"
            )
        self._array, self._shape = _given(f"copy_from_cpu of {self.name!r}", array).copy(), None

    def reshape(self, shape: Sequence[int]) -> None:
        """Declare the shape of the next value; the current value is reshaped if it has as many
        elements.
        """
        self._shape = [int(n) for n in shape]
        if self._array is not None:
            fits = int(np.prod(self._shape)) == self._array.size
            self._array = self._array.reshape(self._shape) if fits else None

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """The offsets of the sequences."""
        self._lod = [list(level) for level in lod]

    def lod(self) -> list[list[int]]:
        return [list(level) for level in self._lod]

    def shape(self) -> list[int]:
        return list(self._array.shape) if self._array is not None else list(self._shape or [])

    def type(self) -> PaddleDType:
        return _dtype_of(self._held())

    def copy_to_cpu(self) -> np.ndarray:
        """A copy of the value. Raises FluidValueError before there is one."""
        return self._held().copy()

    def value(self) -> Any:
        """The value for an executor. Raises FluidValueError before there is a value."""
        return fed(self._held(), self._lod)

    def take(self, array: np.ndarray, lod: list[list[int]]) -> None:
        """Hold the result of a run."""
        self._array, self._lod = array, lod

    def _held(self) -> np.ndarray:
        if self._array is None:
            does = (
                "copy_from_cpu gives it one"
                if self._is_input
                else "a run of the predictor gives it one"
            )
            raise FluidValueError(f"the tensor {self.name!r} has no value yet; {does}")
        return self._array
