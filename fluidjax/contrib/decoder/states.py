"""The states of a decoder's step: their initial values, and their storage in a training decoder and
a beam search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ... import unique_name
from ...base.dtypes import VarType
from ...base.loc import located
from ...errors import FluidTypeError, FluidValueError
from ...graph.block import Block
from ...graph.variable import Variable
from ...layer_helper import LayerHelper
from ...layers.control_flow import increment
from ...layers.loops import array_read, array_write
from ...layers.tensor import fill_constant_batch_size_like


class InitState:
    """A state's value before the first step: `init`, or `value` in `shape` for as many samples as
    init_boot has.

    need_reorder: a training decoder sorts it by the lengths of the sequences. Raises
    FluidValueError if neither is given.
    """

    def __init__(
        self,
        init: Variable | None = None,
        shape: Any = None,
        value: float = 0.0,
        init_boot: Variable | None = None,
        need_reorder: bool = False,
        dtype: Any = "float32",
    ) -> None:
        if init is None and init_boot is None:
            raise FluidValueError(
                "an InitState takes init, or init_boot, whose batch a constant state has"
            )
        self.value: Variable
        if init is not None:
            self.value = init
        elif init_boot is not None:
            self.value = fill_constant_batch_size_like(
                init_boot, value=value, shape=shape, dtype=dtype
            )
        self.need_reorder = need_reorder


class Holder(Protocol):
    """A decoder's storage for a state between steps."""

    def get_state(self) -> Variable: ...
    def update_state(self, state: Variable) -> None: ...


class Decodes(Protocol):
    """The interface of a decoder for its StateCell."""

    def hold(self, init: InitState) -> Holder:
        """Storage for a state."""


class InMemory:
    """A state in a memory of a DynamicRNN."""

    def __init__(self, rnn: Any, init: InitState) -> None:
        self._rnn, self._memory = rnn, rnn.memory(init=init.value, need_reorder=init.need_reorder)

    def get_state(self) -> Variable:
        return self._memory

    def update_state(self, state: Variable) -> None:
        self._rnn.update_memory(self._memory, state)


class InArray:
    """A state in an array outside of a loop, with a separate counter."""

    def __init__(self, block: Block, init: InitState) -> None:
        name = unique_name.generate("array_state_array")
        self._array = block.create_var(
            name=name, type=VarType.LOD_TENSOR_ARRAY, dtype=init.value.dtype
        )
        name = unique_name.generate("array_state_counter")
        self._counter = block.create_var(name=name, type=VarType.LOD_TENSOR, dtype="int64")
        attrs = {"shape": [1], "dtype": self._counter.dtype, "value": 0.0, "force_cpu": True}
        block.append_op(
            type="fill_constant", inputs={}, outputs={"Out": [self._counter]}, attrs=attrs
        )
        self._counter.stop_gradient = True
        block.append_op(
            type="write_to_array",
            inputs={"X": init.value, "I": self._counter},
            outputs={"Out": self._array},
        )

    def get_state(self) -> Variable:
        return array_read(array=self._array, i=self._counter)

    def update_state(self, state: Variable) -> None:
        increment(x=self._counter, value=1, in_place=True)
        array_write(state, array=self._array, i=self._counter)


class StateCell:
    """One step of a decoder: its inputs and states by name, and a function that computes the next
    states::

        cell = StateCell(inputs={"x": None}, states={"h": InitState(init=context)}, out_state="h")

        @cell.state_updater
        def updater(cell):
            cell.set_state("h", fc([cell.get_input("x"), cell.get_state("h")], size, act="tanh"))

    Raises FluidValueError for states that are not InitStates, and for an out_state that is not one
    of them.
    """

    def __init__(
        self,
        inputs: Mapping[str, Any],
        states: Mapping[str, InitState],
        out_state: str,
        name: str | None = None,
    ) -> None:
        self._helper = LayerHelper("state_cell", name=name)
        if not all(isinstance(state, InitState) for state in states.values()):
            raise FluidValueError("each state of a StateCell is an InitState")
        if out_state not in states:
            raise FluidValueError("out_state of a StateCell is the name of one of its states")
        self.inputs, self._out_state = inputs, out_state
        self._states: dict[str, Any] = dict(states)
        self.state_names = list(states)
        self._decoder: Decodes | None = None
        self._holders: dict[str, Holder] = {}
        self._updater: Callable[[StateCell], Any] | None = None

    def enter_decoder(self, decoder: Decodes) -> None:
        """Enter a decoder. Raises FluidValueError while another decoder uses the cell."""
        if self._decoder is not None:
            raise FluidValueError("a StateCell serves one decoder, and it is in one already")
        self._decoder, self._holders = decoder, {}

    def leave_decoder(self, decoder: Decodes) -> None:
        """Leave the decoder."""
        if self._decoder is not decoder:
            raise FluidValueError("a decoder left a StateCell that was not in it")
        self._decoder = None

    def _switch(self) -> None:
        """Make the decoder store the states, and read them."""
        if self._decoder is None or self._holders:
            return
        for name in self.state_names:
            init = self._states[name]
            if not isinstance(init, InitState):
                raise FluidValueError(
                    f"state {name!r} of a StateCell has been computed already, outside of a decoder"
                )
            self._holders[name] = self._decoder.hold(init)
            self._states[name] = self._holders[name].get_state()

    @located
    def get_state(self, state_name: str) -> Variable:
        """The current value of a state."""
        self._switch()
        if state_name not in self._states:
            raise FluidValueError(
                f"Unknown state {state_name}. It is one of {', '.join(self.state_names)}"
            )
        return self._states[state_name]

    def get_input(self, input_name: str) -> Variable:
        """An input of the step."""
        if self.inputs.get(input_name) is None:
            raise FluidValueError(f"Invalid input {input_name}.")
        return self.inputs[input_name]

    def set_state(self, state_name: str, state_value: Variable) -> None:
        """A state after the step."""
        self._states[state_name] = state_value

    def state_updater(self, updater: Callable[[StateCell], Any]) -> Callable[[StateCell], Any]:
        """Declare the function that computes the states of a step from a cell."""
        self._updater = updater

        def decorated(state_cell: StateCell) -> None:
            if state_cell is self:
                raise FluidTypeError("a state updater takes the StateCell that it belongs to")
            updater(state_cell)

        return decorated

    @located
    def compute_state(self, inputs: Mapping[str, Variable]) -> None:
        """The states of a step, from these inputs by name."""
        self._switch()
        unknown = [n for n in inputs if n not in self.inputs]
        if unknown:
            raise FluidValueError(
                f"Unknown input {unknown[0]}. Please make sure {unknown[0]} in input place holder."
            )
        if self._updater is None:
            raise FluidValueError(
                "a StateCell computes its states by a function that state_updater declares, but"
                " none is"
            )
        self.inputs = {**self.inputs, **inputs}
        self._updater(self)

    @located
    def update_states(self) -> None:
        """Make the decoder store the states for the next step."""
        self._switch()
        for name, holder in self._holders.items():
            holder.update_state(self._states[name])

    def out_state(self) -> Variable:
        """The state that is the output."""
        return self._states[self._out_state]
