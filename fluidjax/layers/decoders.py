"""Decoding a cell step by step: Decoder, dynamic_decode, and a beam search over arrays of one size
(no LoD).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..base.dtypes import VarType, name_of
from ..base.loc import located
from ..errors import FluidValueError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import typed
from .activation import log, softmax
from .compare import equal, less_equal
from .control_flow import increment
from .elementwise import (
    elementwise_add,
    elementwise_floordiv,
    elementwise_mod,
    elementwise_mul,
    logical_and,
    logical_not,
    logical_or,
)
from .index import gather_nd, gather_tree, shape
from .loops import While, array_read, array_write, tensor_array_to_tensor
from .manip import expand, reshape, stack, transpose, unsqueeze
from .reduce import reduce_all, topk
from .tensor import assign, cast, fill_constant, fill_constant_batch_size_like, range, zeros_like
from .utils import flatten, map_structure


class Decoder:
    """The interface for dynamic_decode; a subclass defines initialize and step, and finalize to
    revise the results.

    Inputs, states and outputs are a variable or nested lists, tuples and dicts of variables.
    """

    def initialize(self, inits: Any) -> tuple[Any, Any, Any]:
        """The first inputs and states, and which samples are finished from the start (bool)."""
        raise NotImplementedError

    def step(
        self, time: Variable, inputs: Any, states: Any, **kwargs: Any
    ) -> tuple[Any, Any, Any, Any]:
        """The outputs of step `time` (int64 [1]), the next states and inputs, and which samples are
        then finished.
        """
        raise NotImplementedError

    def finalize(
        self, outputs: Any, final_states: Any, sequence_lengths: Variable
    ) -> tuple[Any, Any]:
        """The results, from the outputs of all steps [T, N, ...] and the last states."""
        raise NotImplementedError


class BeamSearchOutput(NamedTuple):
    """The outputs of a step of a beam search, each [N, beam_size]."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class BeamSearchState(NamedTuple):
    """The states of a beam search: those of the cell [N, beam_size, ...], and three of [N,
    beam_size].
    """

    cell_states: Any
    log_probs: Any
    finished: Any
    lengths: Any


class BeamSearchDecoder(Decoder):
    """A beam search with a cell: each of N samples keeps its beam_size best sentences.

    start_token, end_token: ids. embedding_fn: makes the cell's inputs from ids [N, beam_size];
    output_fn: makes scores of all ids [N, beam_size, vocabulary] from its outputs. The cell gets
    samples and beams as one dimension. A finished sentence stays, with its score. finalize reads
    the sentences [T, N, beam_size] along their parents (gather_tree).
    """

    OutputWrapper = BeamSearchOutput
    StateWrapper = BeamSearchState

    def __init__(
        self,
        cell: Any,
        start_token: int,
        end_token: int,
        beam_size: int,
        embedding_fn: Callable[[Any], Any] | None = None,
        output_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        if not isinstance(beam_size, int) or beam_size < 1:
            raise FluidValueError(
                f"BeamSearchDecoder's beam_size is an int, 1 or more, not {beam_size!r}"
            )
        self.cell = cell
        self.embedding_fn = embedding_fn
        self.output_fn = output_fn
        self.start_token = start_token
        self.end_token = end_token
        self.beam_size = beam_size

    @staticmethod
    @located
    def tile_beam_merge_with_batch(x: Variable, beam_size: int) -> Variable:
        """[N * beam_size, ...] from x [N, ...]: each sample repeated beam_size times."""
        x = _tiled(x, beam_size, "BeamSearchDecoder.tile_beam_merge_with_batch")
        x = transpose(x, [*_numbers(2, len(x.shape)), 0, 1])
        x = reshape(x, shape=[0] * (len(x.shape) - 2) + [-1])
        return transpose(x, [len(x.shape) - 1, *_numbers(0, len(x.shape) - 1)])

    def _split_batch_beams(self, x: Variable) -> Variable:
        """[N, beam_size, ...] from [N * beam_size, ...]."""
        typed(x, "x", Variable, "BeamSearchDecoder._split_batch_beams")
        return reshape(x, shape=[-1, self.beam_size, *x.shape[1:]])

    def _merge_batch_beams(self, x: Variable) -> Variable:
        """[N * beam_size, ...] from [N, beam_size, ...]."""
        typed(x, "x", Variable, "BeamSearchDecoder._merge_batch_beams")
        return reshape(x, shape=[-1, *x.shape[2:]])

    def _expand_to_beam_size(self, x: Variable) -> Variable:
        """[N, beam_size, ...] from [N, ...]."""
        return _tiled(x, self.beam_size, "BeamSearchDecoder._expand_to_beam_size")

    def _mask_probs(self, probs: Variable, finished: Variable) -> Variable:
        """The log probabilities of all ids; for finished sentences, 0 for the end token and -1e9
        for others.
        """
        ended = cast(finished, dtype=probs.dtype)
        only_end = elementwise_mul(
            expand(unsqueeze(ended, [2]), [1, 1, self.vocab_size]), self.noend_mask_tensor, axis=-1
        )
        return only_end - elementwise_mul(probs, ended - 1, axis=0)

    def _gather(self, x: Variable, indices: Variable, batch_size: Variable) -> Variable:
        """x[n, indices[n, k]] for each sample n, [N, beam_size, ...]."""
        if batch_size.dtype != indices.dtype:
            batch_size = cast(batch_size, indices.dtype)
        batch_size.stop_gradient = True
        sample = expand(
            unsqueeze(range(0, batch_size, 1, dtype=indices.dtype), [1]), [1, self.beam_size]
        )
        places = stack([sample, indices], axis=2)
        places.stop_gradient = True
        return gather_nd(x, places)

    @located
    def initialize(self, initial_cell_states: Any) -> tuple[Any, BeamSearchState, Variable]:
        """The start tokens (after embedding_fn, if given), the states with the cell's repeated, and
        which sentences are finished.
        """
        self.kinf = 1e9
        state = flatten(initial_cell_states)[0]
        self.batch_size = shape(state)[0]
        self.start_token_tensor = fill_constant(shape=[1], dtype="int64", value=self.start_token)
        self.end_token_tensor = fill_constant(shape=[1], dtype="int64", value=self.end_token)
        cell_states = map_structure(self._expand_to_beam_size, initial_cell_states)
        starts = expand(
            unsqueeze(expand(self.start_token_tensor, [self.batch_size]), [1]), [1, self.beam_size]
        )
        first = np.array([[0.0] + [-self.kinf] * (self.beam_size - 1)], dtype="float32")
        log_probs = expand(assign(first), [self.batch_size, 1])
        finished = fill_constant_batch_size_like(
            input=state, shape=[-1, self.beam_size], dtype="bool", value=False, force_cpu=True
        )
        lengths = zeros_like(starts)
        inputs = self.embedding_fn(starts) if self.embedding_fn else starts
        return inputs, self.StateWrapper(cell_states, log_probs, finished, lengths), finished

    def _beam_search_step(
        self, time: Variable, logits: Variable, next_cell_states: Any, beam_state: Any
    ) -> tuple[Any, Any]:
        """The best of all extensions of a sample's sentences, and the states of the extended
        sentences.
        """
        self._name_vocabulary(logits.shape[-1])
        scores = self._mask_probs(log(softmax(logits)), beam_state.finished)
        log_probs = elementwise_add(x=scores, y=beam_state.log_probs, axis=0)
        best, at = topk(
            input=reshape(log_probs, [-1, self.beam_size * self.vocab_size]), k=self.beam_size
        )
        beams = elementwise_floordiv(at, self.vocab_size_tensor)
        tokens = elementwise_mod(at, self.vocab_size_tensor)
        flat = reshape(log_probs, [-1, self.beam_size * self.vocab_size])
        new_probs = self._gather(flat, at, self.batch_size)
        new_states = map_structure(
            lambda x: self._gather(x, beams, self.batch_size), next_cell_states
        )
        finished = self._gather(beam_state.finished, beams, self.batch_size)
        lengths = self._gather(beam_state.lengths, beams, self.batch_size)
        lengths = lengths + cast(logical_not(finished), beam_state.lengths.dtype)
        finished = logical_or(finished, equal(tokens, self.end_token_tensor))
        return self.OutputWrapper(best, tokens, beams), self.StateWrapper(
            new_states, new_probs, finished, lengths
        )

    def _name_vocabulary(self, size: int) -> None:
        """Set the values that depend on the number of ids."""
        if not 0 <= self.end_token < size:
            raise FluidValueError(
                f"BeamSearchDecoder's end_token is an id from 0 to {size - 1}, not {self.end_token}"
            )
        self.vocab_size = size
        self.vocab_size_tensor = fill_constant(shape=[1], dtype="int64", value=size)
        ended = [-self.kinf] * size
        ended[self.end_token] = 0
        self.noend_mask_tensor = assign(np.array(ended, "float32"))

    @located
    def step(
        self, time: Variable, inputs: Any, states: Any, **kwargs: Any
    ) -> tuple[Any, Any, Any, Any]:
        """One step: BeamSearchOutput, BeamSearchState, the next inputs, and which sentences ended.
        kwargs are passed to the cell.
        """
        inputs = map_structure(self._merge_batch_beams, inputs)
        cell_states = map_structure(self._merge_batch_beams, states.cell_states)
        outputs, next_states = self.cell(inputs, cell_states, **kwargs)
        outputs = map_structure(self._split_batch_beams, outputs)
        next_states = map_structure(self._split_batch_beams, next_states)
        if self.output_fn is not None:
            outputs = self.output_fn(outputs)
        found, state = self._beam_search_step(time, outputs, next_states, states)
        found.predicted_ids.stop_gradient = True
        following = (
            self.embedding_fn(found.predicted_ids) if self.embedding_fn else found.predicted_ids
        )
        return found, state, following, state.finished

    @located
    def finalize(
        self, outputs: Any, final_states: Any, sequence_lengths: Variable
    ) -> tuple[Variable, Any]:
        """The sentences of all beams, [T, N, beam_size], and the last states."""
        return gather_tree(outputs.predicted_ids, outputs.parent_ids), final_states


def _tiled(x: Variable, times: int, layer: str) -> Variable:
    """[N, times, ...] from x [N, ...]."""
    typed(x, "x", Variable, layer)
    x = unsqueeze(x, [1])
    return expand(x, [1, times, *[1] * (len(x.shape) - 2)])


def _numbers(first: int, end: int) -> list[int]:
    return [int(n) for n in np.arange(first, end)]


@located
def dynamic_decode(
    decoder: Decoder,
    inits: Any = None,
    max_step_num: int | None = None,
    output_time_major: bool = False,
    impute_finished: bool = False,
    is_test: bool = False,
    return_length: bool = False,
    **kwargs: Any,
) -> tuple[Any, ...]:
    """Run a decoder until all samples are finished: (outputs [N, T, ...], last states), and the
    lengths if return_length.

    inits: the argument of the decoder's initialize. max_step_num: the number of the last possible
    step, from 0. output_time_major: outputs are [T, N, ...]. impute_finished: a finished sample
    keeps its states. is_test: no gradient is needed, so states are passed on without arrays. kwargs
    are passed to the decoder's step.
    """
    inputs, states, finished = decoder.initialize(inits)
    finished.stop_gradient = True
    time = fill_constant(shape=[1], dtype="int64", value=0)
    going = logical_not(reduce_all(finished))
    last = (
        None
        if max_step_num is None
        else fill_constant(shape=[1], dtype="int64", value=max_step_num)
    )
    loop = While(going, is_test=is_test)
    lengths = cast(zeros_like(finished), "int64")
    lengths.stop_gradient = True
    handed = _Direct(inputs, states) if is_test else _InArrays(inputs, states, time)
    with loop.block():
        inputs, states = handed.read()
        outputs, next_states, next_inputs, next_finished = decoder.step(
            time, inputs, states, **kwargs
        )
        next_finished = logical_or(next_finished, finished)
        next_lengths = elementwise_add(lengths, cast(logical_not(finished), lengths.dtype))
        if impute_finished:
            next_states = map_structure(
                lambda old, new: _kept(old, new, finished), states, next_states
            )
        arrays = map_structure(lambda x: _array_around(x.dtype), outputs)
        map_structure(lambda x, array: array_write(x, i=time, array=array), outputs, arrays)
        increment(x=time, value=1.0, in_place=True)
        handed.write(next_inputs, next_states)
        assign(next_finished, finished)
        assign(next_lengths, lengths)
        if last is None:
            logical_not(reduce_all(finished), going)
        else:
            logical_and(logical_not(reduce_all(finished)), less_equal(time, last), going)
    results = map_structure(
        lambda array: tensor_array_to_tensor(array, axis=0, use_stack=True)[0], arrays
    )
    return _results(decoder, results, handed.last(), lengths, output_time_major, return_length)


def _results(
    decoder: Decoder,
    outputs: Any,
    states: Any,
    lengths: Variable,
    time_major: bool,
    return_length: bool,
) -> tuple[Any, ...]:
    with contextlib.suppress(NotImplementedError):  # finalize is optional
        outputs, states = decoder.finalize(outputs, states, lengths)
    if not time_major:
        outputs = map_structure(lambda x: transpose(x, [1, 0, *_numbers(2, len(x.shape))]), outputs)
    return (outputs, states, lengths) if return_length else (outputs, states)


class _Direct:
    """Inputs and states that every step overwrites."""

    def __init__(self, inputs: Any, states: Any) -> None:
        self.inputs, self.states = inputs, states

    def read(self) -> tuple[Any, Any]:
        return self.inputs, self.states

    def write(self, inputs: Any, states: Any) -> None:
        map_structure(assign, inputs, self.inputs)
        map_structure(assign, states, self.states)

    def last(self) -> Any:
        return self.states


class _InArrays:
    """Inputs and states of all steps, so that gradients can flow back through them."""

    def __init__(self, inputs: Any, states: Any, time: Variable) -> None:
        self.time = time
        self.inputs = map_structure(lambda x: array_write(x, time), inputs)
        self.states = map_structure(lambda x: array_write(x, time), states)

    def read(self) -> tuple[Any, Any]:
        inputs = map_structure(lambda array: array_read(array, self.time), self.inputs)
        return inputs, map_structure(lambda array: array_read(array, self.time), self.states)

    def write(self, inputs: Any, states: Any) -> None:
        map_structure(
            lambda x, array: array_write(x, i=self.time, array=array), inputs, self.inputs
        )
        map_structure(
            lambda x, array: array_write(x, i=self.time, array=array), states, self.states
        )

    def last(self) -> Any:
        return map_structure(lambda array: array_read(array, self.time), self.states)


def _array_around(dtype: Any) -> Variable:
    """An array in the block around the current one."""
    helper = LayerHelper("array")
    program = helper.main_program
    around = program.block(program.current_block().parent_idx)
    return around.create_var(name=f"{helper.name}.out", type=VarType.LOD_TENSOR_ARRAY, dtype=dtype)


def _kept(old: Variable, new: Variable, finished: Variable) -> Variable:
    """The old state of finished samples, the new one of others."""
    dtype = old.dtype
    truth = name_of(dtype) == "bool"
    if truth:
        old, new = cast(old, dtype="float32"), cast(new, dtype="float32")
    mask = finished
    if mask.dtype != old.dtype:
        mask = cast(mask, dtype=old.dtype)
        mask.stop_gradient = True
    found = elementwise_mul(old, mask, axis=0) - elementwise_mul(new, mask - 1, axis=0)
    return cast(found, dtype=dtype) if truth else found


__all__ = ["BeamSearchDecoder", "Decoder", "dynamic_decode"]
