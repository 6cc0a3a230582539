"""Checks feeds by name, dtype, shape and range before anything runs. A feed is never narrowed or
clipped.

As in Fluid, the variable says how strict the checks are (`need_check_feed`). A variable of
fluid.data takes only the declared shape and dtype. Other variables take any shape and any dtype of
numbers that no op could misread, unless an op relies on the declaration; the ops check these
values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from ..base.dtypes import KEYS, numpy_dtype
from ..errors import EnforceNotMet, FeedError, FetchError, NanInfError, UnsupportedError, near, note
from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc, VarDesc
from ..ir.text import op_called
from ..lod_tensor import LoDTensor, has_lod
from ..lower.checks import bounded_feeds
from ..lower.unlike import fits_within
from ..ops.fixed import Fixed

SHARED_BATCH = 32  # samples of a step of several processes whose feeds differ


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
        outside = (values < self.low) | (values >= self.high)
        bad = values[outside if self.also is None else outside & (values != self.also)]
        if bad.size:
            raise FeedError(
                f"feed {name!r} is the {self.what}, which expects {self.low} <= value <"
                f" {self.high}, but it holds {bad.ravel()[0]}"
            )


@dataclass(frozen=True)
class FeedRule:
    """The requirements on one fed variable.

    loose: other shapes and dtypes than the declared ones may be fed, because only ops check them.
    free: the ops that read it treat all kinds of numbers alike. traced: its sizes are those at
    which a JAX function was traced.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    ranges: tuple[Range, ...] = field(default=())
    lod_level: int = 0
    loose: bool = False
    free: bool = False
    traced: bool = False

    def __call__(self, value: Any) -> Any:
        """The value in the form that the step takes. Raises FeedError that says what is wrong with
        the value.
        """
        if isinstance(value, LoDTensor):
            return self._tensor(value)
        if not isinstance(value, np.ndarray | jax.Array):
            value = self._from_python(value)
        if value.dtype != self.dtype:
            value = self._of_another_dtype(value)
        shape = value.shape
        if shape != self.shape and not (self.loose or self.declares(shape) or self._begins(shape)):
            raise FeedError(f"{self._other(shape)}{self._hint(shape)}")
        if self.ranges and isinstance(value, np.ndarray):
            for r in self.ranges:
                r.check(self.name, value)
        return value

    def _of_another_dtype(self, value: Any) -> Any:
        """The value as ops take it: integers and floats of fewer bits become the declared dtype;
        those of more bits keep theirs.
        """
        got, want = np.dtype(value.dtype), self.dtype
        if not got.isnative:
            raise FeedError(
                f"feed {self.name!r} is {got.name} in the other order of bytes ({got.str}); convert"
                f" it with .astype({want.name!r})"
            )
        if not self.loose or got.kind not in "biuf":
            self._refuse_dtype(got, value)
        if fits_within(got, want):
            with jax.enable_x64(True):
                return value.astype(want)
        if not (self.free or got.kind in _TAKEN.get(want.kind, "")):
            self._refuse_dtype(got, value)
        return value

    def _tensor(self, tensor: LoDTensor) -> Any:
        """The checked array of a tensor; the tensor itself if it has a LoD that fits."""
        if not has_lod(tensor):
            return self(tensor.array())
        array = np.asarray(tensor.array())
        wrong = tensor.misfit()
        if wrong:
            raise FeedError(f"feed {self.name!r} has a LoD that does not fit its rows: {wrong}")
        taken = self(array)
        if taken is array:
            return tensor
        other = LoDTensor(taken)
        other.offsets, other.room = tensor.offsets, tensor.room
        return other

    def declares(self, shape: Sequence[int]) -> bool:
        """Whether a shape matches the declared one; a negative dimension matches any size."""
        return len(shape) == len(self.shape) and all(
            w < 0 or w == n for n, w in zip(shape, self.shape, strict=True)
        )

    def _begins(self, shape: Sequence[int]) -> bool:
        """Whether a shape is the beginning of the declared one, which Fluid leaves to the ops: labels
        [N] for [-1, 1].
        """
        return (
            0 < len(shape) < len(self.shape)
            and not self.traced
            and all(w < 0 or w == n for n, w in zip(shape, self.shape, strict=False))
        )

    def _other(self, shape: Sequence[int]) -> str:
        return (
            f"feed {self.name!r} has shape {list(shape)}, but the program declares"
            f" {list(self.shape)}"
        )

    def unlike(self, value: Any) -> str:
        """How a fed value differs from its declaration, in words; "" if it does not."""
        shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
        if isinstance(shape, tuple) and self.shape and not self.declares(shape):
            return self._other(shape)
        if isinstance(shape, tuple) and dtype is not None and dtype != self.dtype:
            return (
                f"feed {self.name!r} is {np.dtype(dtype).name}, but the program declares"
                f" {self.dtype} (.astype converts it)"
            )
        return ""

    def _hint(self, shape: tuple[int, ...]) -> str:
        want = self.shape
        if len(shape) == len(want) - 1 and want[-1] == 1:
            return "; add the last dimension, for instance x[:, None]"
        if len(shape) == len(want) - 1 and want[0] == -1:
            return "; is the batch dimension missing?"
        if self.traced and len(shape) == len(want):
            differ = [n != w and w >= 0 for n, w in zip(shape, want, strict=True)]
            sizes = ", ".join(repr(f"d{i}") if d else "None" for i, d in enumerate(differ))
            sizes += "," if len(want) == 1 else ""
            return (
                f": trace with dynamic={{{self.name!r}: ({sizes})}} for a program of any such size"
            )
        return " (-1: any size)"

    def refuse_parts(self, count: int) -> None:
        """Raises FeedError if a traced program depends on the size of the batch: on a part of a
        batch, means and other values that the function computed from the size would be wrong.
        """
        if self.traced and self.shape and self.shape[0] >= 0:
            sizes = ("b", *[None] * (len(self.shape) - 1))
            rest = f"or feed a list of {count} dicts, one for each device"
            if -1 in self.shape:
                raise FeedError(
                    f"feed {self.name!r} goes to {count} devices in parts of its first dimension,"
                    f" and the one that its program leaves open is {self.shape.index(-1)}: trace"
                    f" with the batch first, {rest}"
                )
            raise FeedError(
                f"feed {self.name!r} goes to {count} devices in parts, and its program was traced"
                f" at all {self.shape[0]} rows: trace with dynamic={{{self.name!r}: {sizes}}},"
                f" {rest}"
            )

    def _refuse_dtype(self, got: Any, values: Any = None) -> None:
        kind = np.dtype(got).kind
        if kind in "OUST" and values is not None:
            raise FeedError(
                f"feed {self.name!r} holds {_described(values)}, but the program declares"
                f" {self.dtype.name} {list(self.shape)}"
            )
        advice = f"convert it with .astype({self.dtype.name!r})"
        if self.dtype.name in KEYS:
            advice = f"jax.random.wrap_key_data(value, impl={KEYS[self.dtype.name]!r}) is one"
        raise FeedError(
            f"feed {self.name!r} is {np.dtype(got).name}, but the program declares"
            f" {self.dtype.name}; {advice}"
        )

    def _from_python(self, value: Any) -> np.ndarray:
        """Any other value as a NumPy array.

        A value with a dtype of its own (a torch tensor, a DataFrame, a list of arrays) keeps it,
        and is checked like an array. Numbers and lists of numbers have no dtype and take the
        declared one exactly: an integer that does not fit is refused. A number has the shape [1],
        as in Fluid.
        """
        if value is None:
            raise FeedError(
                f"feed {self.name!r} is None, but the program declares {self.dtype.name}"
                f" {list(self.shape)}"
            )
        plain = self._as_array(value)
        if _has_dtype(value) and plain.dtype.kind not in "OUST":
            return plain
        if not plain.ndim and (self.shape or self.loose):
            plain = plain.reshape(1)
        if plain.dtype == object and plain.ndim and all(isinstance(v, int) for v in plain.ravel()):
            raise FeedError(f"feed {self.name!r} holds integers that do not fit {self.dtype.name}")
        if self.dtype.kind in "iu" and plain.dtype.kind in "iub":
            info = np.iinfo(self.dtype)
            if plain.size and not (int(plain.min()) >= info.min and int(plain.max()) <= info.max):
                raise FeedError(
                    f"feed {self.name!r} holds integers that do not fit {self.dtype.name}"
                    f" ({info.min} to {info.max})"
                )
        elif plain.dtype.kind not in {"i": "", "u": "", "b": "b"}.get(self.dtype.kind, "iubf"):
            self._refuse_dtype(plain.dtype, plain)
        return plain.astype(self.dtype)

    def _as_array(self, value: Any) -> np.ndarray:
        """np.asarray, with a FeedError for a value that has no regular shape or cannot be read."""
        try:
            return np.asarray(value)
        except Exception as error:
            if isinstance(value, list | tuple):
                raise FeedError(
                    f"feed {self.name!r} is not an array of numbers: {type(value).__name__} with"
                    " rows of different lengths or kinds"
                ) from None
            kind = f"{type(value).__module__.split('.')[0]}.{type(value).__name__}"
            if not _has_dtype(value):
                raise FeedError(
                    f"feed {self.name!r} holds a {type(value).__name__}, but the program declares"
                    f" {self.dtype.name} {list(self.shape)}"
                ) from None
            why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise FeedError(
                f"feed {self.name!r} is a {kind} of {getattr(value, 'dtype', 'an odd dtype')},"
                f" which NumPy cannot read ({why}); convert it to {self.dtype.name} first, which"
                " the program declares"
            ) from error


def _has_dtype(value: Any) -> bool:
    """Whether a value has a dtype of its own: an array of another library, a frame, a list of
    arrays. NumPy scalars do not count.
    """
    while isinstance(value, list | tuple) and value:
        value = value[0]
    if isinstance(value, np.generic):
        return False
    return isinstance(value, np.ndarray | jax.Array) or hasattr(value, "__array__")


def _described(values: Any) -> str:
    """A description of an array that holds no numbers, for a message."""
    found = next(
        (
            v
            for v in np.asarray(values).ravel()
            if not isinstance(v, int | float | np.number | np.bool_)
        ),
        None,
    )
    if isinstance(found, str | bytes):
        return f"strings, such as {str(found)!r:.40}"
    if found is None:
        return (
            "Python objects (dtype object), though all are numbers; .astype makes an array of"
            " numbers of them"
        )
    return f"a {type(found).__name__}"


def uneven(rules: Mapping[str, FeedRule], feed: Any) -> str:
    """The number of samples of each feed, in words, if the numbers differ; else "". The number of
    samples is the size of a first dimension that the program leaves open.

    Different numbers may be intended, so this is reported only after a step has failed. A Fixed
    feed decides sizes and is not a batch.
    """
    if not isinstance(feed, Mapping):
        return ""
    open_ended = (
        n
        for n, r in rules.items()
        if r.shape and r.shape[0] == -1 and r.lod_level == 0 and n in feed
    )
    sizes = {
        n: shape[0]
        for n in open_ended
        if (shape := _shape(feed[n])) and not isinstance(feed[n], Fixed)
    }
    if len(set(sizes.values())) < 2:
        return ""
    return ", ".join(f"{n!r} has {size}" for n, size in sizes.items())


def _shape(value: Any) -> Any:
    """The shape of an array (an attribute) or of a tensor (a method); () if the value has none."""
    shape = getattr(value, "shape", ())
    return shape() if callable(shape) else shape


def _uneven(rules: Mapping[str, FeedRule], feed: Any) -> str:
    found = uneven(rules, feed)
    return (
        found
        and f"the feeds have different numbers of samples, and an op needs equal ones: {found}"
    )


def _undeclared(rules: Mapping[str, FeedRule], feed: Any) -> str:
    """The difference between a feed and its variable's declaration, in words; "" if there is
    none.
    """
    for name, value in feed.items() if isinstance(feed, Mapping) else ():
        difference = rules[name].unlike(value) if name in rules else ""
        if difference:
            return f"{difference}, and an op needs what is declared"
    return ""


def explained(error: Exception, rules: Mapping[str, FeedRule], feed: Any) -> Exception:
    """`error`, or a better one in its place: a FeedError if a step failed on feeds of other shapes
    or dtypes than declared or with different numbers of samples; an EnforceNotMet if XLA ran out of
    memory.
    """
    if isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error):
        first = str(error).splitlines()[0].partition("RESOURCE_EXHAUSTED: ")[2]
        spent = EnforceNotMet(
            f"the step needs more memory than there is ({first}); feed less, or set"
            " BuildStrategy.memory_budget"
        )
        spent.__cause__ = error
        return spent
    cause = _undeclared(rules, feed) or _uneven(rules, feed)
    notes = getattr(error, "__notes__", [])
    itself = isinstance(error, FeedError | FetchError | UnsupportedError | NanInfError)
    itself = itself or (isinstance(error, EnforceNotMet) and error.of_values)
    if not cause or itself or not any(n.startswith("in op: ") for n in notes):
        return error
    first = next(iter(str(error).strip().splitlines()), type(error).__name__)
    better = FeedError(f"{cause} ({first[:300]})")
    for text in notes:
        if text.startswith("in op: "):  # others are JAX's, of its own frames
            note(better, text)
    better.__cause__ = error
    return better


# the 32-bit dtypes that JAX uses for 64-bit ones unless jax_enable_x64 is set
NARROWED = {"int64": "int32", "uint64": "uint32", "float64": "float32"}


def narrowed(value: Any, rule: FeedRule) -> bool:
    """Whether a value is a JAX array with 32 bits in place of the declared 64, which is JAX's
    default.
    """
    return (
        isinstance(value, np.ndarray | jax.Array)
        and NARROWED.get(rule.dtype.name) == value.dtype.name
    )


# kind of a declared dtype -> kinds that ops also take
_TAKEN = {"f": "iuf", "i": "iu", "u": "iu"}
_FREE = frozenset({"cast", "shape"})  # ops that treat all kinds of numbers in the same way


def rule_for(
    var: VarDesc, ranges: tuple[Range, ...] = (), readers: Iterable[OpDesc] | None = None
) -> FeedRule:
    """The rule of a variable. readers: the ops that read it, if known. Raises FeedError for a kind
    that cannot be fed.
    """
    if var.kind not in walk.FEEDABLE_KINDS or var.dtype is None:
        raise FeedError(f"variable {var.name!r} of kind {var.kind} cannot be fed")
    loose = not (var.need_check_feed or var.persistable) or var.shape is None
    ops = None if readers is None else list(readers)
    return FeedRule(
        var.name,
        numpy_dtype(var.dtype),
        var.shape or (),
        ranges,
        var.lod_level,
        loose,
        free=loose and ops is not None and all(op.type in _FREE for op in ops),
        traced=bool(ops) and all(op.type.startswith("jax.") for op in ops or ()),
    )


def unknown_feed(name: Any, desc: ProgramDesc) -> FeedError:
    """The message that the program has no variable of this name. Raises FeedError if the name is
    not a string.
    """
    if not isinstance(name, str):
        hint = f"; use {name.name!r}" if hasattr(name, "name") else ""
        raise FeedError(
            f"the keys of a feed are the names of variables, not {type(name).__name__}{hint}"
        )
    data = [v.name for v in desc.blocks[0].vars.values() if v.is_data]
    hint = near(name, data) or (f"; it takes {', '.join(map(repr, data))}" if data else "")
    return FeedError(
        f"feed {name!r}: var {name} not in this block: the program has no such variable{hint}"
    )


def overwritten(error: FeedError, name: str, desc: ProgramDesc) -> FeedError:
    """`error` about a fed variable, with a note if the program also writes the variable, as a loop
    writes its carried variables.
    """
    writer = next(
        (op for _, op in reversed([*walk.ops(desc)]) if name in op.writes and not op.blocks), None
    )
    if writer is None:
        return error
    return type(error)(
        f"{error}; the program writes {name!r} too, last by {op_called(writer)}, and what is declared"
        " is what that gives"
    )


def ranges(desc: ProgramDesc, ops: tuple[OpDesc, ...]) -> dict[str, tuple[Range, ...]]:
    """Data variable -> the ranges that its readers expect, also readers behind reshapes and similar
    ops.
    """
    found: dict[str, dict[Range, None]] = {}
    for op, bounds, fed, _ in bounded_feeds(desc, ops):
        high, also = bounds.high(op, desc.find_var)
        if high > 0:
            found.setdefault(fed, {})[Range(0, high, also, f"{bounds.what} of {op_called(op)}")] = (
                None
            )
    return {name: tuple(r) for name, r in found.items()}


def variable_bounds(desc: ProgramDesc, ops: tuple[OpDesc, ...]) -> tuple[tuple[str, str, str], ...]:
    """(data variable, the variable that holds the bound of its integers, a description of them),
    for bounds that are fed too, such as one_hot's depth.
    """
    every = (
        (op, bounds, fed, source, bounds.variable(op))
        for op, bounds, fed, source in bounded_feeds(desc, ops)
    )
    return tuple(
        (fed, source.get(n, n), f"{bounds.what} of {op_called(op)}")
        for op, bounds, fed, source, n in every
        if n
    )


def fixed(value: Any) -> Any:
    """A fed value as a constant of the compilation; a ragged value does not change."""
    if isinstance(value, LoDTensor):
        return value
    return Fixed(value)


def batch_of(feed: Any) -> int:
    """The number of samples of a feed: the first dimension of its largest value."""
    feeds = feed if isinstance(feed, tuple) else (feed,)
    return sum(
        max((shape[0] for v in one.values() if (shape := _fed_shape(v))), default=1)
        for one in feeds
    )


def _fed_shape(value: Any) -> tuple[int, ...]:
    """The shape of an array, or of the rows of a LoDTensor."""
    return value.array().shape if isinstance(value, LoDTensor) else getattr(value, "shape", ())
