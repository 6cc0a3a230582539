"""Decides how far ragged feeds are padded: rows and lengths always, the number of sequences once it
varies, nothing if an op needs exact sizes. Predictions without sequences have their batch padded.

The number of sequences is the batch size, which mostly stays the same, and padding it costs time.
So a program's first two batch sizes are not padded (the second may be the rest of an epoch). From
the third on they are padded to a bucket.

A new bucket costs a compilation, so it must be used often enough. A batch that is a little smaller
than sizes that are compiled already is padded to them. After enough such batches it gets a bucket
of its own. A bucket that very many batches of a training were padded to is compiled once more, no
larger than the largest of them: sentences are often cut at a length, and a bucket may be half as
long again. A prediction must not wait for that.

A server predicts on batches of any size, and each size would be compiled. So batches are padded to
the sizes that you name, or to learnt sizes: the first two sizes are not padded, later ones are
padded to a known size that is at most twice as large, or else to a bucket.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import walk
from ..lod_tensor import LoDTensor, measured
from ..lower.step import Step
from ..ops.registry import lookup, traits
from ..ops.traits import Sequences
from .bucketing import SMALLEST, batched, bucket, bucketed, form_of

AS_THEY_ARE = 2  # numbers of sequences
# a batch is padded to sizes that are at most so many times those of its own bucket
ROOM = 2
PATIENCE = 32  # batches of a bucket that are padded to larger sizes before the bucket is compiled
OFTEN = 100  # batches that are padded to a bucket before it is compiled as large as they need
# A bucket is compiled once more only if that leaves out at least so much of one of its sizes. An
# LSTM that takes 200 steps instead of 256 is there an eighth sooner at step 1,000; a translation with
# 56 instead of 64 has not made up for its compilation at step 260.
SAVED = 0.15


def inner_levels(step: Step) -> frozenset[str]:
    """Feeds of several levels whose readers all allow empty sequences behind those of the lower
    levels (traits.Sequences).
    """
    found = {n for n, v in step.feeds.items() if v.lod_level > 1} - set(step.fetches)
    for _, op in walk.ops(step.desc) if found else ():
        rows = traits(op.type).rows
        takes = rows.inner if isinstance(rows, Sequences) else ()
        found -= {n for slot, names in op.inputs.items() if slot not in takes for n in names}
    return frozenset(found)


def goes_by_offsets(step: Step) -> bool:
    """Whether no op of the step depends on the bound of the longest sequence, so that no executable
    depends on it either.
    """
    return all(map(_by_offsets, {op.type for _, op in walk.ops(step.desc)}))


def _by_offsets(kind: str) -> bool:
    op = lookup(kind)
    if op.control.lower is not None:
        return False
    rows = op.traits.rows
    if op.forward is not None and not isinstance(rows, Sequences):
        rows = lookup(op.forward).traits.rows
    return not isinstance(rows, Sequences) or rows.by_offsets


class BatchSizes:
    """The sizes that a prediction's batch is padded up to: the named ones, or else learnt ones."""

    def __init__(self, named: tuple[int, ...]) -> None:
        self._named = named
        self._learnt: set[int] = set()

    def of(self, count: int) -> int:
        """The size for a batch of `count` rows; `count` if it exceeds all named sizes."""
        if self._named:
            return min((n for n in self._named if n >= count), default=count)
        # other threads may add sizes
        near = [n for n in list(self._learnt) if count <= n <= ROOM * count]
        found = (
            min(near) if near else count if len(self._learnt) < AS_THEY_ARE else _rounded_up(count)
        )
        self._learnt.add(found)
        return found


def _rounded_up(count: int) -> int:
    """The smallest of 1, 2, 3, 4, 6, 8, 12, ... that is at least `count`."""
    return count if count < 4 else bucket(2 * count) // 2


@dataclass
class _Bucket:
    """waited: its batches that were padded to larger sizes; PATIENCE once it is compiled. used: the
    batches that were padded to it. needed: the largest of their sizes. cut: the sizes that it is
    compiled for once more.
    """

    waited: int = 0
    used: int = 0
    needed: tuple[int, ...] = ()
    cut: tuple[int, ...] | None = None

    def sizes(self, own: tuple[int, ...], needed: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes for a batch that needs these and is padded to this bucket, `own`."""
        cut = self.cut  # other threads may make one too, of other sizes
        if cut is None:
            self.used += 1
            self.needed = tuple(map(max, self.needed or needed, needed))
            if self.used < OFTEN:
                return own
            self.cut = cut = _cut(own, self.needed)
        return cut if all(map(int.__le__, needed, cut)) else own


def _cut(own: tuple[int, ...], needed: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of a bucket as large as needed; its own if that saves too little."""
    found = tuple(
        min(b, max(math.ceil(n / SMALLEST), 1) * SMALLEST) for n, b in zip(needed, own, strict=True)
    )
    saves = any(a <= (1 - SAVED) * b for a, b in zip(found, own, strict=True))
    return found if saves else own


class Padding:
    """The padding of one program's ragged feeds, by their forms (which of them share which LoD)."""

    def __init__(
        self,
        batches: frozenset[str],
        inner: frozenset[str] = frozenset(),
        by_offsets: bool = False,
        sizes: tuple[int, ...] | None = None,
        cuts: bool = False,
    ) -> None:
        """batches: feeds without a LoD whose first dimension may be of any size. inner: see
        inner_levels. by_offsets: see goes_by_offsets. sizes: the sizes that batches without
        sequences are padded up to; () for learnt sizes, None for no padding. cuts: whether buckets
        that are used often are cut to what their batches need.
        """
        self._batch_sizes = None if sizes is None else BatchSizes(sizes)
        self.batches, self.inner, self.by_offsets, self._cuts = batches, inner, by_offsets, cuts
        self._exact: set[Any] = set()  # forms with an op that must see no padding
        # forms with an op that must know the number of sequences
        self._counted: set[Any] = set()
        self._counts: dict[Any, dict[tuple[int, ...], None]] = {}
        self._buckets: dict[Any, dict[tuple[int, ...], _Bucket]] = {}  # by form and sizes

    @staticmethod
    def ragged(values: Mapping[str, Any]) -> bool:
        """Whether some of the values have sequences."""
        return any(isinstance(v, LoDTensor) for v in values.values())

    def packed(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values with LoDTensors in the form that a step takes."""
        form = form_of(values)
        if not form:
            return self._batched(values)
        if form in self._exact:
            return bucketed(values, exact=True)
        fill = None if form in self._counted or not self._vary(form, values) else self.batches
        return bucketed(
            values,
            fill=fill,
            inner=self.inner,
            by_offsets=self.by_offsets,
            rooms=self._rooms(form, values),
        )

    def _batched(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values of a prediction with the batch padded up to a size."""
        if self._batch_sizes is None or () in self._exact:
            return values
        names = [n for n, v in values.items() if n in self.batches and isinstance(v, np.ndarray)]
        counts = {values[n].shape[0] for n in names}
        if len(counts) != 1 or not self.batches <= {*names}:
            return values
        (count,) = counts
        return batched(values, names, self._batch_sizes.of(count)) if count else values

    def _rooms(self, form: Any, values: Mapping[str, Any]) -> Mapping[str, tuple[int, int]]:
        """The rows and the longest sequence that each LoDTensor is padded up to; {} if one has
        several levels.
        """
        ragged = {n: measured(v) for n, v in values.items() if isinstance(v, LoDTensor)}
        if any(len(found.longest) != 1 for found in ragged.values()):
            return {}
        rows = [int(found.offsets[0][-1]) for found in ragged.values()]
        longest = rows if self.by_offsets else [found.longest[0] for found in ragged.values()]
        needed = tuple(n for pair in zip(rows, longest, strict=True) for n in pair)
        own, buckets = tuple(map(bucket, needed)), self._buckets.setdefault(form, {})
        at = buckets.setdefault(own, _Bucket())
        if at.waited < PATIENCE:
            # other threads may add sizes
            fits = [
                sizes
                for sizes, there in list(buckets.items())
                if there.waited >= PATIENCE
                and all(a <= b <= ROOM * a for a, b in zip(own, sizes, strict=True))
            ]
            at.waited = at.waited + 1 if fits else PATIENCE
            own = min(fits, default=own)
            at = buckets[own]
        sizes = at.sizes(own, needed) if self._cuts else own
        return dict(zip(ragged, zip(sizes[::2], sizes[1::2], strict=True), strict=True))

    def _vary(self, form: Any, values: Mapping[str, Any]) -> bool:
        counts = self._counts.setdefault(form, {})
        if len(counts) <= AS_THEY_ARE:
            counts[
                tuple(
                    len(measured(v).offsets[0]) for v in values.values() if isinstance(v, LoDTensor)
                )
            ] = None
        return len(counts) > AS_THEY_ARE

    def less(self, values: Mapping[str, Any]) -> bool | None:
        """Pad such feeds less, because an op refused padded values. Returns True if nothing is
        padded now, False if less is, None if nothing was padded before.
        """
        form = form_of(values)
        if form in self._exact or not (form or self._batch_sizes):
            return None
        if form not in self._counted and len(self._counts.get(form, ())) > AS_THEY_ARE:
            self._counted.add(form)
            return False
        self._exact.add(form)
        return True
