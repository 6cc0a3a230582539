"""Checks of what is fed: by name, dtype, shape and range, before anything runs. A feed is never narrowed or clipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from ..base.dtypes import numpy_dtype
from ..errors import FeedError, near
from ..ir.desc import OpDesc, ProgramDesc, VarDesc
from ..lod_tensor import LoDTensor, fault
from ..ops.registry import traits


@dataclass(frozen=True)
class Range:
    """Integers that an op accepts: low <= value < high, or exactly `also` (an ignore_index)."""

    low: int
    high: int
    also: int | None
    what: str  # "label of op 'cross_entropy2' (train.py:12)"

    def check(self, name: str, values: np.ndarray) -> None:
        """Raises FeedError naming the first value that does not fit."""
        if values.size == 0:
            return
        if int(values.min()) >= self.low and int(values.max()) < self.high:
            return
        bad = values[((values < self.low) | (values >= self.high)) & (values != (self.low if self.also is None else self.also))]
        if self.also is None:
            bad = values[(values < self.low) | (values >= self.high)]
        if bad.size:
            raise FeedError(
                f"feed {name!r} is the {self.what}, which expects {self.low} <= value < {self.high}, but it holds {bad.ravel()[0]}"
            )


@dataclass(frozen=True)
class FeedRule:
    """What one fed variable must look like."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    ranges: tuple[Range, ...] = field(default=())
    lod_level: int = 0

    def __call__(self, value: Any) -> Any:
        """The value as the step takes it. Raises FeedError saying what is wrong with it."""
        if isinstance(value, LoDTensor):
            return self._tensor(value)
        if not isinstance(value, np.ndarray | jax.Array):
            value = self._from_python(value)
        if value.dtype != self.dtype:
            self._refuse_dtype(value.dtype)
        shape, want = value.shape, self.shape
        if shape != want and (len(shape) != len(want) or any(w not in (-1, s) for s, w in zip(shape, want, strict=True))):
            raise FeedError(f"feed {self.name!r} has shape {list(shape)}, but the program declares {list(want)}{self._hint(shape)}")
        if self.ranges and isinstance(value, np.ndarray):
            for r in self.ranges:
                r.check(self.name, value)
        return value

    def _tensor(self, tensor: LoDTensor) -> Any:
        """The array of a tensor, checked; or the tensor itself, if it has a LoD that fits."""
        if not tensor._lod:
            return self(tensor._value())
        array = np.asarray(tensor._value())
        wrong = fault(tensor._lod, array.shape[0] if array.ndim else 0)
        if wrong:
            raise FeedError(f"feed {self.name!r} has a LoD that does not fit its rows: {wrong}")
        self(array)
        return tensor

    def _hint(self, shape: tuple[int, ...]) -> str:
        want = self.shape
        if len(shape) == len(want) - 1 and want[-1] == 1:
            return "; add the last dimension, for instance x[:, None]"
        if len(shape) == len(want) - 1 and want[0] == -1:
            return "; is the batch dimension missing?"
        return " (-1: any size)"

    def _refuse_dtype(self, got: Any) -> None:
        raise FeedError(
            f"feed {self.name!r} is {np.dtype(got).name}, but the program declares {self.dtype.name}; convert it with "
            f".astype({self.dtype.name!r})"
        )

    def _from_python(self, value: Any) -> np.ndarray:
        """Numbers and lists, exactly: an integer that does not fit the dtype is refused."""
        if value is None:
            raise FeedError(f"feed {self.name!r} is None, but the program declares {self.dtype.name} {list(self.shape)}")
        try:
            plain = np.asarray(value)
        except (ValueError, OverflowError):
            plain = np.asarray(None)
        if plain.dtype == object and plain.ndim and all(isinstance(v, int) for v in plain.ravel()):
            raise FeedError(f"feed {self.name!r} holds integers that do not fit {self.dtype.name}")
        if plain.dtype == object:
            raise FeedError(f"feed {self.name!r} is no array of numbers: {type(value).__name__} with rows of different lengths or kinds")
        if self.dtype.kind in "iu":
            if plain.dtype.kind not in "iub":
                self._refuse_dtype(plain.dtype)
            info = np.iinfo(self.dtype)
            if plain.size and not (int(plain.min()) >= info.min and int(plain.max()) <= info.max):
                raise FeedError(f"feed {self.name!r} holds integers that do not fit {self.dtype.name} ({info.min} to {info.max})")
        elif self.dtype == np.bool_ and plain.dtype != np.bool_:
            self._refuse_dtype(plain.dtype)
        elif plain.dtype.kind not in "iubf":
            self._refuse_dtype(plain.dtype)
        return plain.astype(self.dtype)


def rule_for(var: VarDesc, ranges: tuple[Range, ...] = ()) -> FeedRule:
    """The rule of a variable. Raises FeedError for a kind that cannot be fed."""
    if var.shape is None or var.dtype is None:
        raise FeedError(f"variable {var.name!r} of kind {var.kind} cannot be fed")
    return FeedRule(var.name, numpy_dtype(var.dtype), var.shape, ranges, var.lod_level)


def unknown_feed(name: Any, desc: ProgramDesc) -> FeedError:
    if not isinstance(name, str):
        hint = f"; use {name.name!r}" if hasattr(name, "name") else ""
        return FeedError(f"the keys of a feed are the names of variables, not {type(name).__name__}{hint}")
    data = [v.name for v in desc.blocks[0].vars.values() if v.is_data]
    hint = near(name, data) or (f"; it takes {', '.join(map(repr, data))}" if data else "")
    return FeedError(f"feed {name!r}: var {name} not in this block: the program has no such variable{hint}")


def _where(op: OpDesc) -> str:
    return f"op '{op.type}'" + (f" ({op.loc})" if op.loc else "")


def ranges(desc: ProgramDesc, ops: tuple[OpDesc, ...]) -> dict[str, tuple[Range, ...]]:
    """Data variable -> the ranges that its readers expect; reshapes and the like are looked through."""
    comes_from: dict[str, str] = {}
    found: dict[str, dict[Range, None]] = {}
    for op in ops:
        what = traits(op.type)
        if what.carries:
            source = op.input(what.carries)[0]
            comes_from[op.output("Out")[0]] = comes_from.get(source, source)
        if what.bounds is None:
            continue
        high, also = what.bounds.high(op, desc.find_var)
        for name in op.input(what.bounds.slot):
            fed = comes_from.get(name, name)
            var = desc.find_var(fed)
            if high > 0 and var is not None and var.is_data and var.dtype in ("int32", "int64", "int16", "int8", "uint8"):
                found.setdefault(fed, {})[Range(0, high, also, f"{what.bounds.what} of {_where(op)}")] = None
    return {name: tuple(r) for name, r in found.items()}


def declared(shape: Sequence[int] | None, there: Sequence[int]) -> bool:
    """Whether a value's shape is what the program declares; -1 may be any size."""
    return shape is None or (len(shape) == len(there) and all(d in (-1, s) for d, s in zip(shape, there, strict=True)))
