"""Decoders over a StateCell: TrainingDecoder runs along the true sequences, BeamSearchDecoder runs
a search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ... import unique_name
from ...base.absent import reporter
from ...base.dtypes import VarType
from ...base.loc import located
from ...errors import FluidTypeError, FluidValueError
from ...graph.block import Block
from ...graph.variable import Variable
from ...layer_helper import LayerHelper
from ...layers.activation import log
from ...layers.branches import Switch
from ...layers.compare import less_than
from ...layers.control_flow import increment, is_empty
from ...layers.decoding import beam_search, beam_search_decode
from ...layers.dynamic_rnn import DynamicRNN
from ...layers.elementwise import elementwise_add
from ...layers.loops import While, array_read, array_write
from ...layers.manip import reshape
from ...layers.nn_dense import embedding, fc
from ...layers.reduce import topk
from ...layers.sequence import lod_reset, sequence_expand
from ...layers.tensor import fill_constant, zeros
from .states import Holder, InArray, InitState, InMemory, StateCell

_BEFORE, _WITHIN, _AFTER = range(3)


class TrainingDecoder:
    """A StateCell along given sequences: ops appended within ``with decoder.block()`` run for each
    of their rows.

    Calling the decoder afterwards returns the variables named by output(), as sequences.
    """

    BEFORE_DECODER, IN_DECODER, AFTER_DECODER = _BEFORE, _WITHIN, _AFTER

    def __init__(self, state_cell: StateCell, name: str | None = None) -> None:
        self._helper = LayerHelper("training_decoder", name=name)
        self._status = _BEFORE
        self.dynamic_rnn = DynamicRNN()
        self._state_cell = state_cell
        state_cell.enter_decoder(self)

    def hold(self, init: InitState) -> Holder:
        return InMemory(self.dynamic_rnn, init)

    @contextmanager
    def block(self) -> Iterator[None]:
        """The ops of a step; once."""
        if self._status != _BEFORE:
            raise FluidValueError("a TrainingDecoder has one block, and it was entered before")
        self._status = _WITHIN
        with self.dynamic_rnn.block():
            yield
        self._status = _AFTER
        self._state_cell.leave_decoder(self)

    @property
    def state_cell(self) -> StateCell:
        self._within("state_cell")
        return self._state_cell

    @located
    def step_input(self, x: Variable) -> Variable:
        """A row of each sequence of x."""
        self._within("step_input")
        return self.dynamic_rnn.step_input(x)

    @located
    def static_input(self, x: Variable) -> Variable:
        """All of x, for the sequences with a step at this time."""
        self._within("static_input")
        return self.dynamic_rnn.static_input(x)

    @located
    def output(self, *outputs: Variable) -> None:
        """Set the decoder's outputs of each step."""
        self._within("output")
        self.dynamic_rnn.output(*outputs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._status != _AFTER:
            raise FluidValueError(
                "a TrainingDecoder has its outputs after its block, not within or before it"
            )
        return self.dynamic_rnn(*args, **kwargs)

    def _within(self, method: str) -> None:
        if self._status != _WITHIN:
            raise FluidValueError(
                f"{method} should be invoked inside block of TrainingDecoder object."
            )


class BeamSearchDecoder:
    """A beam search with a StateCell: decode() appends it, and a call of the decoder returns the
    sentences and their scores.

    init_ids, init_scores [N, 1] with a LoD of two levels. target_dict_dim: the number of words,
    word_dim: the width of their embeddings (sparse_emb: with sparse gradients). input_var_dict:
    inputs of the cell that do not change; the missing one gets the embedding of the last word.
    topk_size: candidates of each sentence, max_len: steps, end_id: the end.
    """

    BEFORE_BEAM_SEARCH_DECODER, IN_BEAM_SEARCH_DECODER, AFTER_BEAM_SEARCH_DECODER = (
        _BEFORE,
        _WITHIN,
        _AFTER,
    )

    def __init__(
        self,
        state_cell: StateCell,
        init_ids: Variable,
        init_scores: Variable,
        target_dict_dim: int,
        word_dim: int,
        input_var_dict: Mapping[str, Variable] | None = None,
        topk_size: int = 50,
        sparse_emb: bool = True,
        max_len: int = 100,
        beam_size: int = 1,
        end_id: int = 1,
        name: str | None = None,
    ) -> None:
        self._helper = LayerHelper("beam_search_decoder", name=name)
        self._counter = zeros(shape=[1], dtype="int64")
        self._counter.stop_gradient = True
        self._max_len = fill_constant(shape=[1], dtype="int64", value=max_len)
        self._cond = less_than(
            x=self._counter, y=fill_constant(shape=[1], dtype="int64", value=max_len)
        )
        self._while_op = While(self._cond)
        self._state_cell = state_cell
        state_cell.enter_decoder(self)
        self._status = _BEFORE
        self._zero_idx = fill_constant(shape=[1], value=0, dtype="int64", force_cpu=True)
        self._arrays: dict[str, Variable] = {}
        self._updates: list[tuple[Variable, Variable]] = []
        self._ids_array: Variable | None = None
        self._scores_array: Variable | None = None
        self._beam_size, self._end_id, self._topk_size = beam_size, end_id, topk_size
        self._init_ids, self._init_scores = init_ids, init_scores
        self._words, self._word_dim, self._sparse = target_dict_dim, word_dim, sparse_emb
        self._inputs = dict(input_var_dict or {})

    def hold(self, init: InitState) -> Holder:
        return InArray(self._around(), init)

    @contextmanager
    def block(self) -> Iterator[None]:
        """The ops of a step; once. Arrays named by update_array are written after them while the
        search continues.
        """
        if self._status != _BEFORE:
            raise FluidValueError("a BeamSearchDecoder has one block, and it was entered before")
        self._status = _WITHIN
        with self._while_op.block():
            yield
            with Switch() as switch, switch.case(self._cond):
                increment(x=self._counter, value=1.0, in_place=True)
                for value, array in self._updates:
                    array_write(x=value, i=self._counter, array=array)
                less_than(x=self._counter, y=self._max_len, cond=self._cond)
        self._status = _AFTER
        self._state_cell.leave_decoder(self)

    @property
    def state_cell(self) -> StateCell:
        self._within("state_cell")
        return self._state_cell

    def early_stop(self) -> None:
        """End the search."""
        fill_constant(shape=[1], value=0, dtype="bool", force_cpu=True, out=self._cond)

    @located
    def decode(self) -> None:
        """Append the search: embeddings of the last words, a step of the cell, a softmax over all
        words, and the selection of the best.
        """
        with self.block():
            ids = self.read_array(init=self._init_ids, is_ids=True)
            scores = self.read_array(init=self._init_scores, is_scores=True)
            size = [self._words, self._word_dim]
            word = embedding(input=ids, size=size, dtype="float32", is_sparse=self._sparse)
            read, given = self._given(scores)
            cell = self.state_cell
            for state in cell.state_names:
                cell.set_state(state, sequence_expand(cell.get_state(state), scores))
            given.update({n: word for n in cell.inputs if n not in given})
            cell.compute_state(inputs=given)
            new_ids, new_scores = self._best(cell.out_state(), ids, scores)
            with Switch() as switch:
                with switch.case(is_empty(new_ids)):
                    self.early_stop()
                with switch.default():
                    cell.update_states()
                    self.update_array(ids, new_ids)
                    self.update_array(scores, new_scores)
                    for name, variable in read.items():
                        self.update_array(variable, given[name])

    def _given(self, scores: Variable) -> tuple[dict[str, Variable], dict[str, Variable]]:
        """The inputs that do not change: as read, and repeated for the candidates."""
        read: dict[str, Variable] = {}
        given: dict[str, Variable] = {}
        for name, init in self._inputs.items():
            if name not in self.state_cell.inputs:
                raise FluidValueError(f"Variable {name} not found in StateCell!\n")
            read[name] = self.read_array(init=init)
            given[name] = sequence_expand(read[name], scores)
        return read, given

    def _best(self, state: Variable, ids: Variable, scores: Variable) -> tuple[Variable, Variable]:
        """The words that extend the sentences, and the sentences' scores."""
        shares = fc(input=lod_reset(x=state, y=scores), size=self._words, act="softmax")
        best, at = topk(shares, k=self._topk_size)
        total = elementwise_add(x=log(x=best), y=reshape(scores, shape=[-1]), axis=0)
        # 1.8.5 uses 1 whatever end_id is
        found = beam_search(ids, scores, at, total, self._beam_size, end_id=1, level=0)
        return found[0], found[1]

    @located
    def read_array(self, init: Variable, is_ids: bool = False, is_scores: bool = False) -> Variable:
        """The value from update_array in the previous step; `init` in the first."""
        self._within("read_array")
        if is_ids and is_scores:
            raise FluidValueError(
                "read_array reads the ids or the scores: is_ids and is_scores do not hold together"
            )
        if not isinstance(init, Variable):
            raise FluidTypeError("read_array begins with a variable, init")
        around = self._around()
        name = unique_name.generate("beam_search_decoder_array")
        array = around.create_var(name=name, type=VarType.LOD_TENSOR_ARRAY, dtype=init.dtype)
        around.append_op(
            type="write_to_array", inputs={"X": init, "I": self._zero_idx}, outputs={"Out": array}
        )
        if is_ids:
            self._ids_array = array
        elif is_scores:
            self._scores_array = array
        value = array_read(array=array, i=self._counter)
        self._arrays[value.name] = array
        return value

    def update_array(self, array: Variable, value: Variable) -> None:
        """Make the next step read `value` in place of `array`."""
        self._within("update_array")
        for what, given in (("array", array), ("value", value)):
            if not isinstance(given, Variable):
                raise FluidTypeError(
                    f"The input argument `{what}` of update_array must be a Variable."
                )
        found = self._arrays.get(array.name)
        if found is None:
            raise FluidValueError(
                "update_array takes what read_array returned, and this was not read from an array"
            )
        self._updates.append((value, found))

    def __call__(self) -> tuple[Variable, Variable]:
        if self._status != _AFTER or self._ids_array is None or self._scores_array is None:
            raise FluidValueError(
                "a BeamSearchDecoder has its outputs after its block, not within or before it"
            )
        return beam_search_decode(
            ids=self._ids_array,
            scores=self._scores_array,
            beam_size=self._beam_size,
            end_id=self._end_id,
        )

    def _around(self) -> Block:
        """The block that contains the loop."""
        program = self._helper.main_program
        parent = program.current_block().parent_idx
        if parent < 0:
            raise FluidValueError(f"Invalid block with index {parent}.")
        return program.block(parent)

    def _within(self, method: str) -> None:
        if self._status != _WITHIN:
            raise FluidValueError(
                f"{method} should be invoked inside block of BeamSearchDecoder object."
            )


__all__ = ["BeamSearchDecoder", "InitState", "StateCell", "TrainingDecoder"]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib.decoder.beam_search_decoder", __all__)
