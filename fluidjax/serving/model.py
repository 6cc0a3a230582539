"""A loaded model for many callers: its inputs and outputs, and runs of several requests at once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ..base.dtypes import name_of, numpy_dtype
from ..errors import FluidValueError, UnsupportedError
from ..executor import Executor
from ..feeds.apart import mixes_rows
from ..lod_tensor import LoDTensor
from ..lower.step import Step
from ..predictors import AnalysisConfig, create_paddle_predictor
from .protocol import DATATYPES, Tensor
from .refused import Refused

Values = dict[str, Any]
KINDS = 1_000  # kinds of requests for which it is remembered whether they may run together


class Model:
    """A saved model that any number of threads may run.

    sizes: rows of several requests run together, padded up to one of these; if empty every request
    runs by itself. most: the number of executables to keep.
    """

    def __init__(self, config: AnalysisConfig, sizes: tuple[int, ...], most: int) -> None:
        config = AnalysisConfig(config)
        if sizes:
            config.set_batch_sizes(sizes)
        config.set_max_executables(most)
        predictor = create_paddle_predictor(config)
        self.sizes = config.batch_sizes() or ()
        self._program, self._scope = predictor.program(), predictor.scope()
        self.inputs = tuple(self._tensor(n) for n in predictor.get_input_names())
        self.outputs = tuple(self._tensor(n) for n in predictor.get_output_names())
        self._names = [t.name for t in self.outputs]
        self._step = Step(self._program.desc, tuple(self._names))
        self._exe, self._mixing = Executor(config.place()), dict[Hashable, str]()

    def _tensor(self, name: str) -> Tensor:
        var = self._program.global_block().var(name)
        dtype = numpy_dtype(name_of(var.dtype))
        if dtype.name not in DATATYPES:
            raise UnsupportedError(f"{name!r} is of {dtype.name}, which JSON requests do not have")
        return Tensor(name, dtype, tuple(var.shape), var.lod_level)

    # -- which requests run together

    def kind(self, feed: Mapping[str, Any]) -> Hashable | None:
        """The key that requests share if they may run together, provided that the model allows it;
        None if this request must run by itself in any model.
        """
        if not self.sizes or any(isinstance(v, LoDTensor) or not v.ndim for v in feed.values()):
            return None
        if len({v.shape[0] for v in feed.values()}) != 1 or not self.rows(feed):
            return None
        return tuple((n, v.shape[1:]) for n, v in sorted(feed.items()))

    def apart(self, kind: Hashable | None, feed: Mapping[str, Any]) -> bool:
        """Whether requests of this kind may run together."""
        if kind is None:
            return False
        found = self._mixing.get(kind)
        if found is None:
            if len(self._mixing) >= KINDS:
                self._mixing.clear()
            found = self._mixing[kind] = self.mixes(feed)
        return not found

    def mixes(self, feed: Mapping[str, Any]) -> str:
        """Why requests of these sizes run by themselves; "" if they may run together."""
        arrays = {n: np.asarray(self._scope.get(n)) for n in self._step.reads}
        state = {n: jax.ShapeDtypeStruct(v.shape, v.dtype) for n, v in arrays.items()}
        return mixes_rows(self._step, state, feed)

    @staticmethod
    def rows(feed: Mapping[str, Any]) -> int:
        """The number of rows of the first input."""
        shapes = (v.shape() if isinstance(v, LoDTensor) else v.shape for v in feed.values())
        return next((int(s[0]) for s in shapes if s), 0)

    # -- runs

    def run(self, feeds: Sequence[Mapping[str, Any]]) -> list[Values]:
        """The outputs for each of these feeds. Several feeds are of one kind, and run together.

        Raises FluidError for feeds that the model does not take, Refused if there is not enough
        memory.
        """
        first = feeds[0]
        largest = self.sizes[-1] if self.sizes else 0
        counts = [self.rows(f) for f in feeds]
        alone = counts[0] <= largest or not self.apart(self.kind(first), first)
        if len(feeds) == 1 and alone:
            return [self._once(first)]
        joined = {n: np.concatenate([f[n] for f in feeds]) for n in first}
        parts = [
            self._once({n: v[at : at + largest] for n, v in joined.items()})
            for at in range(0, sum(counts), largest)
        ]
        whole = {n: np.concatenate([p[n] for p in parts]) for n in self._names}
        ends = np.cumsum(counts).tolist()
        return [
            {n: v[end - count : end] for n, v in whole.items()}
            for end, count in zip(ends, counts, strict=True)
        ]

    def _once(self, feed: Mapping[str, Any]) -> Values:
        try:
            found = self._exe.run(
                self._program, dict(feed), self._names, scope=self._scope, return_numpy=False
            )
            values = [v if isinstance(v, LoDTensor) and v.lod() else np.asarray(v) for v in found]
        except (MemoryError, jax.errors.JaxRuntimeError) as error:
            if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
                raise Refused(413, "memory does not suffice for inputs of these sizes") from None
            raise
        return dict(zip(self._names, values, strict=True))

    @property
    def compiled(self) -> int:
        """The number of executables compiled so far."""
        return len(self._exe.compilations(self._program))

    def warm_up(self, shapes: Mapping[str, Sequence[int]]) -> list[int]:
        """Run on zeros for each batch size, or once if the batch is not open; returns the sizes.

        shapes: of inputs that leave more than the batch open. Raises FluidValueError if the shape
        of such an input is missing.
        """
        sizes = list(self.sizes) if any(t.shape[:1] == (-1,) for t in self.inputs) else []
        for size in sizes or [1]:
            self.run([{t.name: _zeros(t, size, shapes.get(t.name)) for t in self.inputs}])
        return sizes


def _zeros(tensor: Tensor, size: int, shape: Sequence[int] | None) -> Any:
    given = list(tensor.shape if shape is None else shape)
    if given and tensor.shape[0] == -1:
        given[0] = size
    if len(given) != len(tensor.shape) or any(
        n < 0 or d not in (n, -1) for n, d in zip(given, tensor.shape, strict=True)
    ):
        raise FluidValueError(
            f"input {tensor.name!r} is of shape {list(tensor.shape)}; give all its sizes to warm up"
            f" (--shape {tensor.name}=...)"
        )
    zeros = np.zeros(given, tensor.dtype)
    if not tensor.levels:
        return zeros
    made = LoDTensor(zeros)
    made.set_recursive_sequence_lengths([[1] * given[0]] * tensor.levels)
    return made
