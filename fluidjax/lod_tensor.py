"""LoDTensor: an array on the host with Fluid's accessors and sequence offsets, and the tensor of a
scope variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .base.dtypes import VarType, enum_of
from .devices.place import CPUPlace, CUDAPlace, Place
from .errors import ArgumentError, EnforceNotMet, FluidTypeError, FluidValueError

Lod = tuple[tuple[int, ...], ...]
_ROW = list | tuple | np.ndarray | range


class Measured(NamedTuple):
    """The facts about a LoD that steps need: the offsets of each level as int32, the length of its
    longest sequence, and a key that equal LoDs share.
    """

    offsets: tuple[np.ndarray, ...]
    longest: tuple[int, ...]
    key: tuple[bytes, ...]


class LoDTensor:
    """A dense array whose rows may be cut into sequences, on one level or several.

    The LoD holds offsets: ``[[0, 2, 5]]`` is two sequences, of rows 0 to 1 and 2 to 4. With several
    levels the offsets of one level count the sequences of the next: ``[[0, 1, 2], [0, 2, 5]]``. As
    lengths: ``[[1, 1], [2, 3]]``.
    """

    # the rows and the longest sequence that a step pads it up to at least: those of earlier batches
    room = (0, 0)
    _fits: tuple[Lod, int] | None = None  # offsets that fit this number of rows
    _measured: tuple[Lod, Measured] | None = None  # offsets, and the result of `measured` for them

    offsets: Lod = ()

    def __init__(self, value: Any = None) -> None:
        self._array: Any = None if value is None else np.asarray(value)

    @classmethod
    def of(cls, array: Any) -> LoDTensor:
        """A tensor without a LoD that holds this array, on any device, without a copy."""
        tensor = cls.__new__(cls)
        tensor._array = array
        return tensor

    def set(self, array: Any, place: Any = None) -> None:
        """Hold a copy of `array`; the LoD does not change. `place` is ignored, because the executor
        moves data to the device. Raises EnforceNotMet for anything but numbers.
        """
        value = np.array(array)
        if value.dtype.kind in "OSUMm":
            raise EnforceNotMet(f"a tensor holds numbers, not an array of dtype {value.dtype}")
        self._write(value)

    def _read(self) -> Any:
        return self._array

    def _write(self, array: Any) -> None:
        self._array = array

    def array(self) -> Any:
        """The array that it holds, of NumPy or JAX, not copied. Raises FluidTypeError if there is
        none yet.
        """
        value = self._read()
        if value is None:
            raise FluidTypeError("the tensor holds no value yet")
        return value

    def shape(self) -> list[int]:
        """The array's shape; [0] without a value, as in Fluid."""
        return list(np.shape(self.array())) if self._is_initialized() else [0]

    def _get_dims(self) -> list[int]:
        """The shape, under the name that scripts of 1.x use."""
        return self.shape()

    def _set_dims(self, dims: Sequence[int]) -> None:
        """Hold zeros of this shape, until the next _alloc."""
        self._write(np.zeros(tuple(dims), np.float32))

    def _alloc_int(self, place: Any = None) -> None:
        """Hold int32 zeros of the shape that _set_dims set."""
        self._write(np.zeros(self.shape(), np.int32))

    def _alloc_float(self, place: Any = None) -> None:
        """Hold float32 zeros of the shape that _set_dims set."""
        self._write(np.zeros(self.shape(), np.float32))

    def _alloc_double(self, place: Any = None) -> None:
        """Hold float64 zeros of the shape that _set_dims set."""
        self._write(np.zeros(self.shape(), np.float64))

    def _share_data_with(self, other: LoDTensor) -> None:
        """Hold the array of another tensor; the LoD does not change."""
        self._write(other.array())

    def _is_initialized(self) -> bool:
        return self._read() is not None

    def _dtype(self) -> VarType:
        """The dtype as VarType.FP32 and so on. Raises FluidTypeError without a value, like all
        methods that read one.
        """
        return enum_of(self.array().dtype.name)

    def _place(self) -> Place:
        """The place of the array."""
        device = (
            next(iter(value.devices())) if isinstance(value := self.array(), jax.Array) else None
        )
        return CPUPlace() if device is None or device.platform == "cpu" else CUDAPlace(device.id)

    def _clear(self) -> None:
        """Drop the value."""
        self._write(None)

    def _get_float_element(self, index: int) -> float:
        """One element of a float32 tensor, by its index in the flattened array."""
        return float(self._elements("float32", index)[index])

    def _get_double_element(self, index: int) -> float:
        """One element of a float64 tensor, by its index in the flattened array."""
        return float(self._elements("float64", index)[index])

    def _set_float_element(self, index: int, value: float) -> None:
        """Change one element of a float32 tensor."""
        self._set_element("float32", index, value)

    def _set_double_element(self, index: int, value: float) -> None:
        """Change one element of a float64 tensor."""
        self._set_element("float64", index, value)

    def _elements(self, dtype: str, index: int) -> np.ndarray:
        """All elements, flattened. Raises EnforceNotMet for a tensor of another dtype, and for an
        index out of range.
        """
        array = np.asarray(self.array())
        if array.dtype != dtype:
            raise EnforceNotMet(
                f"the tensor holds {array.dtype.name}, and this is for {dtype}; use"
                " np.array(tensor) and set()"
            )
        if not 0 <= index < array.size:
            raise EnforceNotMet(
                f"the tensor has {array.size} elements, and there is none of number {index}"
            )
        return array.reshape(-1)

    def _set_element(self, dtype: str, index: int, value: float) -> None:
        elements = self._elements(dtype, index).copy()
        elements[index] = value
        self._write(elements.reshape(np.shape(self.array())))

    def __getitem__(self, index: Any) -> LoDTensor:
        """A slice of the rows, without a LoD. Raises IndexError for a row that is not there, which
        ends a loop over the tensor; an array of JAX would give its last row.
        """
        return LoDTensor.of(np.asarray(self.array())[index])

    def block_until_ready(self) -> LoDTensor:
        """Wait for the device that computes it, like jax.block_until_ready."""
        jax.block_until_ready(self.array())
        return self

    def lod(self) -> list[list[int]]:
        """The offsets of each level; [] without sequences."""
        return [list(level) for level in self.offsets]

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Set the offsets of each level. Raises EnforceNotMet for offsets that do not fit each
        other or the rows.
        """
        self._set_lod(lod_of(lod, "lod"), f"lod {_shown(lod)}")

    def recursive_sequence_lengths(self) -> list[list[int]]:
        """The lengths of the sequences of each level; [] without sequences."""
        return [[b - a for a, b in pairwise(level)] for level in self.offsets]

    def set_recursive_sequence_lengths(
        self, recursive_sequence_lengths: Sequence[Sequence[int]]
    ) -> None:
        """Set the LoD by lengths. Raises EnforceNotMet for lengths that do not fit each other or
        the rows.
        """
        lengths = lod_of(recursive_sequence_lengths, "recursive_sequence_lengths")
        offsets = tuple(tuple(accumulate(level, initial=0)) for level in lengths)
        self._set_lod(offsets, f"recursive_sequence_lengths {_shown(recursive_sequence_lengths)}")

    def _set_lod(self, lod: Lod, given: str) -> None:
        value = self._read()
        wrong = self._misfit(lod, None if value is None else _rows(value))
        if wrong:
            raise EnforceNotMet(f"{given} is not a LoD for this tensor: {wrong}")
        self.offsets = lod

    def _misfit(self, lod: Lod, rows: int | None) -> str | None:
        """As :func:`fault`; offsets that fitted the same number of rows before are not checked
        again.
        """
        if self._fits is not None and self._fits[0] is lod and self._fits[1] == rows:
            return None
        wrong = fault(lod, rows)
        if wrong is None and rows is not None:
            self._fits = lod, rows
        return wrong

    def misfit(self) -> str | None:
        """The fault of the LoD for these rows, in words; None if it fits, or if there is none."""
        return self._misfit(self.offsets, _rows(self.array()))

    def has_valid_recursive_sequence_lengths(self) -> bool:
        """Whether the LoD fits the rows; without a LoD or without rows it does."""
        return not self._is_initialized() or self.misfit() is None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """A copy; an empty array without a value, as in Fluid."""
        value = self._read()
        return (
            np.zeros(0, "float64" if dtype is None else dtype)
            if value is None
            else np.array(value, dtype=dtype)
        )

    def __repr__(self) -> str:
        value = self._read()
        lod = f", lod={self.lod()}" if self.offsets else ""
        return (
            "LoDTensor(empty)"
            if value is None
            else f"LoDTensor({value.dtype.name}{list(value.shape)}{lod})"
        )


class ScopeTensor(LoDTensor):
    """The tensor of a scope variable: it reads and writes the scope's value."""

    def __init__(self, var: Any) -> None:
        self._var = var

    def _read(self) -> Any:
        return self._var.value

    def _write(self, array: Any) -> None:
        self._var.value = array

    @property
    def offsets(self) -> Lod:
        return self._var.lod

    @offsets.setter
    def offsets(self, lod: Lod) -> None:
        self._var.lod = lod


class Shape(tuple[int, ...]):
    """An array's shape that can also be called, like a tensor's."""

    def __call__(self) -> list[int]:
        return list(self)


class ArrayTensor(np.lib.mixins.NDArrayOperatorsMixin, LoDTensor):
    """A LoDTensor without sequences that also works as its array: loaders and DataFeeder return
    these, and py_func gets them.

    ``x.shape`` is the array's, ``x.shape()`` the tensor's. Arithmetic and unknown attributes are
    the array's; JAX takes it as the array.
    """

    @property
    def shape(self) -> Shape:
        return Shape(np.shape(self.array()))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.array(), name)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's function on the arrays; JAX's function if another operand is JAX's, which may be
        traced.
        """
        others = any(isinstance(v, jax.Array) for v in inputs)
        values = [v.array() if isinstance(v, ArrayTensor) else v for v in inputs]
        if others and method == "__call__":
            return getattr(jnp, ufunc.__name__)(*values, **kwargs)
        if "out" in kwargs:
            kwargs["out"] = tuple(
                v.array() if isinstance(v, ArrayTensor) else v for v in kwargs["out"]
            )
        return getattr(ufunc, method)(
            *(np.asarray(v) if isinstance(v, jax.Array) else v for v in values), **kwargs
        )

    def __jax_array__(self) -> Any:
        return jnp.asarray(self.array())

    def __getitem__(self, index: Any) -> Any:
        part = np.asarray(self.array())[index]
        return ArrayTensor.of(part) if np.ndim(part) else part

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array()[index] = value

    def __len__(self) -> int:
        return len(self.array())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array())

    def __bool__(self) -> bool:
        return bool(self.array())

    def __int__(self) -> int:
        return int(self.array())

    def __float__(self) -> float:
        return float(self.array())

    def __index__(self) -> int:
        return self.array().__index__()

    def __format__(self, spec: str) -> str:
        return format(self.array(), spec)


# A function that JAX traces gets the array itself.
jax.tree_util.register_pytree_node(
    ArrayTensor, lambda tensor: ((tensor.array(),), None), lambda _, arrays: arrays[0]
)


def bare(value: Any) -> Any:
    """The array of a tensor without sequences; any other value unchanged."""
    return value.array() if isinstance(value, LoDTensor) and not has_lod(value) else value


def bare_feed(feed: Any) -> Any:
    """A feed with the arrays of tensors that work as arrays; other values unchanged."""
    if type(feed) is not dict or ArrayTensor not in map(type, feed.values()):
        return feed
    return {n: bare(v) if type(v) is ArrayTensor else v for n, v in feed.items()}


def as_tensor(value: Any) -> LoDTensor:
    """An array as a tensor that works as an array too; a tensor unchanged."""
    return value if isinstance(value, LoDTensor) else ArrayTensor.of(value)


class FittingTensor(LoDTensor):
    """A LoDTensor that holds this array without a copy, with a LoD that is known to fit; its tuples
    are made at the first access.
    """

    def __init__(self, array: np.ndarray, found: Measured) -> None:
        self._array, self._count = array, len(array)
        self.found: Measured | None = found
        self._lod: Lod | None = None

    @property
    def offsets(self) -> Lod:
        if self._lod is None:
            assert self.found is not None
            self._lod = tuple(tuple(level.tolist()) for level in self.found.offsets)
        return self._lod

    @offsets.setter
    def offsets(self, lod: Lod) -> None:
        self.found, self._lod = None, lod

    def misfit(self) -> str | None:
        known = self.found is not None and _rows(self._array) == self._count
        return None if known else super().misfit()


def measured(tensor: LoDTensor) -> Measured:
    """The facts about its LoD that steps need; cached for the same offsets."""
    if isinstance(tensor, FittingTensor) and tensor.found is not None:
        return tensor.found
    lod = tensor.offsets
    if tensor._measured is None or tensor._measured[0] is not lod:
        offsets = tuple(np.array(level, np.int32) for level in lod)
        longest = tuple(int(np.diff(level).max(initial=0)) for level in offsets)
        tensor._measured = (
            lod,
            Measured(offsets, longest, tuple(level.tobytes() for level in offsets)),
        )
    return tensor._measured[1]


def has_lod(tensor: LoDTensor) -> bool:
    """Whether its rows form sequences."""
    return (isinstance(tensor, FittingTensor) and tensor.found is not None) or bool(tensor.offsets)


def _rows(array: Any) -> int:
    shape = np.shape(array)
    return shape[0] if shape else 0


def _shown(levels: Any) -> str:
    text = str(levels)
    return text if len(text) <= 80 else text[:77] + "..."


def lod_of(levels: Any, what: str) -> Lod:
    """Levels of non-negative integers, as tuples. Raises FluidTypeError for anything else."""
    ok = isinstance(levels, _ROW) and all(isinstance(level, _ROW) for level in levels)
    if not ok or not all(map(_counts, levels)):
        raise FluidTypeError(
            f"{what} is a list of lists of integers from 0, a list for each level, not"
            f" {_shown(levels)}"
        )
    return tuple(tuple(map(int, level)) for level in levels)


def _counts(level: Any) -> bool:
    """Whether all are integers from 0."""
    known = all(issubclass(kind, int | np.integer) for kind in set(map(type, level)))
    return known and (len(level) == 0 or min(level) >= 0)


def fault(lod: Lod, rows: int | None) -> str | None:
    """The fault of offsets, in words; None if they are valid. rows: None if there is no array
    yet.
    """
    for i, level in enumerate(lod):
        if len(level) < 2:
            return f"level {i} has no sequences"
        if level[0] != 0 or list(level) != sorted(level):
            return f"the offsets of level {i} do not rise from 0"
        below = len(lod[i + 1]) - 1 if i + 1 < len(lod) else rows
        if below is not None and level[-1] != below:
            unit = "sequences below it" if i + 1 < len(lod) else "rows"
            return f"level {i} ends at {level[-1]}, but there are {below} {unit}"
    return None


class LoDTensorArray(list[LoDTensor]):
    """A list of LoDTensors; append adds the tensors themselves."""

    def append(self, tensor: LoDTensor) -> None:
        """Add a tensor at the end. Raises FluidTypeError for anything else, EnforceNotMet for a
        tensor without a value.
        """
        if not isinstance(tensor, LoDTensor):
            raise FluidTypeError(f"a LoDTensorArray holds LoDTensors, not {type(tensor).__name__}")
        if not tensor._is_initialized():
            raise EnforceNotMet(
                "the tensor holds no memory, so it cannot be appended; call set() first"
            )
        super().append(tensor)


def create_lod_tensor(
    data: Any, recursive_seq_lens: Sequence[Sequence[int]], place: Any = None
) -> LoDTensor:
    """A LoDTensor of `data` with sequences of these lengths, level by level: ``[[2, 3]]``.

    data: an array or LoDTensor of packed rows; or a list with a list for each sequence, whose items
    then are rows of shape [..., 1]. place: accepted as in Fluid.

    Raises EnforceNotMet for lengths that do not fit, FluidValueError if the lists of `data` have
    other lengths, FluidTypeError for data of another type.
    """
    if isinstance(data, LoDTensor):
        data = data.array()
    if isinstance(data, list):
        data = _packed(data, recursive_seq_lens)
    if not isinstance(data, np.ndarray):
        raise FluidTypeError(
            f"data should be either a LoDTensor, a Numpy array or a list, not {type(data).__name__}"
        )
    tensor = LoDTensor()
    tensor.set(data, place)
    tensor.set_recursive_sequence_lengths(recursive_seq_lens)
    return tensor


def _packed(data: list[Any], lengths: Any) -> np.ndarray:
    if not all(isinstance(seq, list | tuple | np.ndarray) for seq in data):
        raise FluidTypeError("data, if it is a list, has a list for each sequence")
    found = [len(seq) for seq in data]
    if [found] != [list(level) for level in lod_of(lengths, "recursive_seq_lens")]:
        raise ArgumentError(
            f"data and recursive_seq_lens do not match: the lists of data are {_shown([found])}"
            f" long, not {_shown(lengths)}; give a list for each sequence, or all rows as one array"
        )
    try:
        rows = np.array([row for seq in data for row in seq])
    except ValueError:
        rows = np.empty(0, object)
    if rows.dtype == object:
        raise FluidValueError("data has rows of different shapes or kinds")
    return rows.reshape(*rows.shape, 1)


def create_random_int_lodtensor(
    recursive_seq_lens: Sequence[Sequence[int]],
    base_shape: list[int],
    place: Any,
    low: int,
    high: int,
) -> LoDTensor:
    """A LoDTensor of random int64 in [low, high], with sequences of these lengths and rows of shape
    `base_shape`.

    Raises FluidTypeError for a base_shape that is not a list, and the errors of create_lod_tensor.
    """
    if not isinstance(base_shape, list):
        raise ArgumentError(f"base_shape is a list, not {type(base_shape).__name__}")
    levels = lod_of(recursive_seq_lens, "recursive_seq_lens")
    if not levels:
        raise FluidValueError(
            "recursive_seq_lens has no level; give the lengths of the sequences, such as [[2, 3]]"
        )
    data = np.random.randint(low, high + 1, (sum(levels[-1]), *base_shape), np.int64)
    return create_lod_tensor(data, recursive_seq_lens, place)
