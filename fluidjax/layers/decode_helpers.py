"""The input sources of a BasicDecoder: true inputs, the most likely ids, or sampled ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..base.dtypes import name_of
from ..base.loc import located
from ..graph.variable import Variable
from .activation import softmax
from .compare import equal, less_equal
from .decoders import Decoder
from .manip import slice, squeeze
from .pads import pad
from .random import sampling_id
from .reduce import argmax
from .tensor import cast, fill_constant, fill_constant_batch_size_like
from .utils import map_structure


class DecodeHelper:
    """Provides the inputs of each step; a subclass defines the three methods."""

    def initialize(self) -> Any:
        """The first inputs, and which samples are finished from the start (bool)."""

    def sample(self, time: Variable, outputs: Any, states: Any) -> Any:
        """The ids of a step, from its outputs."""

    def next_inputs(self, time: Variable, outputs: Any, states: Any, sample_ids: Variable) -> Any:
        """Which samples are finished, the next inputs, and the next states."""


class TrainingHelper(DecodeHelper):
    """The inputs are given: [N, T, ...] (time_major: [T, N, ...]), or a structure of such;
    sequence_length [N] gives their number.
    """

    def __init__(self, inputs: Any, sequence_length: Variable, time_major: bool = False) -> None:
        self.inputs = inputs
        self.sequence_length = sequence_length
        self.time_major = time_major
        self.inputs_ = map_structure(self._with_one_more, inputs)

    def _with_one_more(self, x: Variable) -> Variable:
        """x with zeros for one extra step, which the step after the last reads."""
        before = [0, 1] if self.time_major else [0, 0, 0, 1]
        return pad(x, paddings=before + [0] * (2 * len(x.shape) - len(before)))

    @located
    def initialize(self) -> tuple[Any, Variable]:
        zero = fill_constant(shape=[1], dtype=self.sequence_length.dtype, value=0)
        finished = equal(self.sequence_length, zero)
        return map_structure(lambda x: x[0] if self.time_major else x[:, 0], self.inputs), finished

    @located
    def sample(self, time: Variable, outputs: Any, states: Any) -> Variable:
        """The most likely ids, from outputs [N, vocabulary]."""
        return argmax(outputs, axis=-1)

    @located
    def next_inputs(
        self, time: Variable, outputs: Any, states: Any, sample_ids: Variable
    ) -> tuple[Variable, Any, Any]:
        time = time if name_of(time.dtype) == "int32" else cast(time, "int32")
        if self.sequence_length.dtype != time.dtype:
            self.sequence_length = cast(self.sequence_length, time.dtype)
        following = time + 1
        finished = less_equal(self.sequence_length, following)
        axes = [0 if self.time_major else 1]

        def row(x: Variable) -> Variable:
            return squeeze(slice(x, axes=axes, starts=[following], ends=[following + 1]), axes=axes)

        return finished, map_structure(row, self.inputs_), states


class GreedyEmbeddingHelper(DecodeHelper):
    """The inputs are the results of embedding_fn for the most likely ids; a sample ends with
    end_token. start_tokens [N], int64.
    """

    def __init__(
        self, embedding_fn: Callable[[Any], Any], start_tokens: Variable, end_token: int
    ) -> None:
        self.embedding_fn = embedding_fn
        self.start_tokens = start_tokens
        self.end_token = fill_constant(shape=[1], dtype="int64", value=end_token)

    @located
    def initialize(self) -> tuple[Any, Variable]:
        finished = fill_constant_batch_size_like(
            input=self.start_tokens, shape=[-1], dtype="bool", value=False, force_cpu=True
        )
        return self.embedding_fn(self.start_tokens), finished

    @located
    def sample(self, time: Variable, outputs: Any, states: Any) -> Variable:
        """The most likely ids, from outputs [N, vocabulary]."""
        return argmax(outputs, axis=-1)

    @located
    def next_inputs(
        self, time: Variable, outputs: Any, states: Any, sample_ids: Variable
    ) -> tuple[Variable, Any, Any]:
        finished = equal(sample_ids, self.end_token)
        return finished, self.embedding_fn(sample_ids), states


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Like GreedyEmbeddingHelper, but ids are sampled by the softmax of the outputs, divided by
    softmax_temperature if given.
    """

    def __init__(
        self,
        embedding_fn: Callable[[Any], Any],
        start_tokens: Variable,
        end_token: int,
        softmax_temperature: float | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding_fn, start_tokens, end_token)
        given = softmax_temperature is not None
        self.softmax_temperature = (
            fill_constant(shape=[1], dtype="float32", value=softmax_temperature) if given else None
        )
        self.seed = seed

    @located
    def sample(self, time: Variable, outputs: Any, states: Any) -> Variable:
        """Sampled ids, from outputs [N, vocabulary]."""
        logits = outputs if self.softmax_temperature is None else outputs / self.softmax_temperature
        probs = softmax(logits)
        probs.stop_gradient = True
        return sampling_id(probs, seed=self.seed or 0, dtype=self.start_tokens.dtype)


class BasicOutput(NamedTuple):
    """The outputs of a step of a BasicDecoder: the cell's outputs (after output_fn, if given), and
    the ids.
    """

    cell_outputs: Any
    sample_ids: Any


class BasicDecoder(Decoder):
    """A decoder from a cell and a helper for its inputs. output_fn: a function of the cell's
    outputs, such as an fc to ids.
    """

    OutputWrapper = BasicOutput

    def __init__(
        self, cell: Any, helper: DecodeHelper, output_fn: Callable[[Any], Any] | None = None
    ) -> None:
        self.cell = cell
        self.helper = helper
        self.output_fn = output_fn

    def initialize(self, initial_cell_states: Any) -> tuple[Any, Any, Any]:
        """The helper's first inputs, the cell's given states, and which samples are finished from
        the start.
        """
        inputs, finished = self.helper.initialize()
        return inputs, initial_cell_states, finished

    @located
    def step(
        self, time: Variable, inputs: Any, states: Any, **kwargs: Any
    ) -> tuple[Any, Any, Any, Any]:
        """One step: BasicOutput, the next states and inputs, and which samples are finished. kwargs
        are passed to the cell.
        """
        outputs, states = self.cell(inputs, states, **kwargs)
        if self.output_fn is not None:
            outputs = self.output_fn(outputs)
        ids = self.helper.sample(time=time, outputs=outputs, states=states)
        ids.stop_gradient = True
        finished, inputs, states = self.helper.next_inputs(
            time=time, outputs=outputs, states=states, sample_ids=ids
        )
        return self.OutputWrapper(outputs, ids), states, inputs, finished


__all__ = [
    "BasicDecoder", "DecodeHelper", "GreedyEmbeddingHelper", "SampleEmbeddingHelper", "TrainingHelper",
]  # fmt: skip
