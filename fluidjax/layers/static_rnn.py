"""StaticRNN: a block that runs once for each row of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import unique_name
from ..base.dtypes import VarType
from ..base.loc import located
from ..errors import FluidValueError
from ..graph.block import Block
from ..graph.variable import Variable
from ..ir.desc import EMPTY
from ..layer_helper import LayerHelper
from ._build import append, require, typed


@dataclass
class Memory:
    """A state of a StaticRNN: its initial value, its name before a step, and the variable with its
    value after one.
    """

    init: Variable
    before: Variable
    after: Variable | None = None


class StaticRNN:
    """A recurrence over the first dimension of its inputs; every step runs the ops of a block::

        rnn = StaticRNN()
        with rnn.step():
            word = rnn.step_input(x)                      # x [T, N, D]: word [N, D]
            prev = rnn.memory(init=h0)
            hidden = fc([word, prev], size, act="relu")
            rnn.update_memory(prev, hidden)
            rnn.step_output(hidden)
        out = rnn()                                       # [T, N, size]

    It runs as one lax.scan for any T. Methods that belong within ``with rnn.step()`` raise
    FluidValueError elsewhere.
    """

    BEFORE_RNN_BLOCK = 0
    IN_RNN_BLOCK = 1
    AFTER_RNN_BLOCK = 2

    def __init__(self, name: str | None = None) -> None:
        typed(name, "name", (str, type(None)), "StaticRNN")
        self.helper = LayerHelper("static_rnn", name=name)
        self.memories: dict[str, Memory] = {}
        self.inputs: list[Variable] = []
        self.outputs: list[Variable] = []
        self.status = StaticRNN.BEFORE_RNN_BLOCK
        self.seq_len: int | None = None

    def step(self) -> StaticRNNGuard:
        """A context: ops appended within are those of one step."""
        return StaticRNNGuard(self)

    @located
    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        batch_ref: Variable | None = None,
        init_value: float = 0.0,
        init_batch_dim_idx: int = 0,
        ref_batch_dim_idx: int = 1,
    ) -> Variable:
        """A state: its value from update_memory in the previous step; `init` in the first step.

        Without init, it begins with init_value in `shape`, whose dimension init_batch_dim_idx is
        dimension ref_batch_dim_idx of batch_ref.
        """
        self._within("memory")
        typed(init, "init", (Variable, type(None)), "StaticRNN.memory")
        typed(shape, "shape", (list, tuple, type(None)), "StaticRNN.memory")
        typed(batch_ref, "batch_ref", (Variable, type(None)), "StaticRNN.memory")
        if init is None:
            if shape is None or batch_ref is None:
                raise FluidValueError("if init is None, memory at least need shape and batch_ref")
            init = self._filled(shape, batch_ref, init_value, init_batch_dim_idx, ref_batch_dim_idx)
        name = unique_name.generate_with_ignorable_key("@".join([self.helper.name, "mem"]))
        before = self.helper.create_variable(name=name, dtype=init.dtype, shape=init.shape)
        self.memories[before.name] = Memory(init, before)
        return before

    def _filled(
        self, shape: Sequence[int], ref: Variable, value: float, dim: int, ref_dim: int
    ) -> Variable:
        """The initial value of a memory without init, made outside of the block."""
        outside = self._outside()
        name = unique_name.generate_with_ignorable_key("@".join([self.helper.name, "memory_boot"]))
        boot = outside.create_var(name=name, shape=list(shape), dtype=ref.dtype, persistable=False)
        attrs = {
            "value": float(value),
            "shape": list(boot.shape),
            "dtype": boot.dtype,
            "input_dim_idx": ref_dim,
            "output_dim_idx": dim,
        }
        outside.append_op(
            type="fill_constant_batch_size_like",
            inputs={"Input": [ref]},
            outputs={"Out": [boot]},
            attrs=attrs,
        )
        return boot

    @located
    def step_input(self, x: Variable) -> Variable:
        """Row t of x, in step t. All inputs have as many rows."""
        self._within("step_input")
        typed(x, "x", Variable, "StaticRNN.step_input")
        if self.seq_len is None:
            self.seq_len = x.shape[0]
        else:
            require(x.shape[0] in (-1, self.seq_len), "Static RNN only take fix seq_len input")
        row = self.helper.create_variable(
            name=x.name, dtype=x.dtype, shape=list(x.shape[1:]), type=x.type
        )
        self.inputs.append(row)
        return row

    @located
    def step_output(self, o: Variable) -> None:
        """Make o an output: row t of it is o in step t."""
        self._within("step_output")
        typed(o, "o", Variable, "StaticRNN.step_output")
        made = append(
            self.helper, {"X": [o]}, {"Out": o.dtype}, {"dtype": o.dtype}, kind="rnn_memory_helper"
        )
        length = -1 if self.seq_len is None else self.seq_len
        self.outputs.append(
            self._outside().create_var(
                name=made.name, shape=[length, *made.shape], dtype=made.dtype
            )
        )

    def output(self, *outputs: Variable) -> None:
        """step_output of each."""
        for each in outputs:
            self.step_output(each)

    @located
    def update_memory(self, mem: Variable, var: Variable) -> None:
        """Give a memory its value for the next step."""
        typed(mem, "mem", Variable, "StaticRNN.update_memory")
        typed(var, "var", Variable, "StaticRNN.update_memory")
        require(
            mem.name in self.memories,
            f"update_memory's mem is what memory() gave, not {mem.name!r}",
        )
        self.memories[mem.name].after = var

    def __call__(self) -> Any:
        """The outputs after the block: one variable, or a list of them."""
        require(
            self.status == StaticRNN.AFTER_RNN_BLOCK,
            "RNN output can only be retrieved after rnn block",
        )
        require(bool(self.outputs), "RNN has no output")
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs

    def _within(self, method: str) -> None:
        require(self.status == StaticRNN.IN_RNN_BLOCK, f"You must invoke {method} in rnn block")

    def _outside(self) -> Block:
        """The block that contains this one."""
        program = self.helper.main_program
        return program.block(program.current_block().parent_idx)

    def _complete(self) -> None:
        """Append the recurrent op to the block outside."""
        inside, outside = self.helper.main_program.current_block(), self._outside()
        parameters = self._parameters(inside)
        scope = outside.create_var(type=VarType.STEP_SCOPES)
        after = []
        for memory in self.memories.values():
            if memory.after is None:
                raise FluidValueError(f"{memory.init.name} should be updated in every step.")
            kind = {"dtype": memory.after.dtype}
            after.append(
                append(
                    self.helper,
                    {"X": [memory.after]},
                    {"Out": memory.after.dtype},
                    kind,
                    kind="rnn_memory_helper",
                )
            )
        outside.append_op(
            type="recurrent",
            inputs={
                "inputs": [v.name for v in self.inputs],
                "initial_states": [m.init for m in self.memories.values()],
                "parameters": parameters,
            },
            outputs={"outputs": self.outputs, "step_scopes": [scope]},
            attrs={
                "has_states": bool(self.memories),
                "ex_states": [m.before.name for m in self.memories.values()],
                "states": [v.name for v in after],
                "sub_block": inside,
            },
        )

    def _parameters(self, inside: Block) -> list[str]:
        """The outer variables that the block reads, besides its inputs."""
        own = (
            {n for op in inside.ops for n in op.desc.writes}
            | {v.name for v in self.inputs}
            | set(self.memories)
        )
        reads = dict.fromkeys(n for op in inside.ops for n in op.desc.reads if n != EMPTY)
        return [n for n in reads if n not in own]


class StaticRNNGuard:
    """Appends to the block of a StaticRNN between enter and exit; after an exception no op runs it."""

    def __init__(self, rnn: StaticRNN) -> None:
        self.rnn = rnn

    def __enter__(self) -> None:
        self.rnn.status = StaticRNN.IN_RNN_BLOCK
        self.rnn.helper.main_program._create_block()

    def __exit__(self, kind: Any, *_: Any) -> None:
        program = self.rnn.helper.main_program
        try:
            if kind is None:
                self.rnn.status = StaticRNN.AFTER_RNN_BLOCK
                self.rnn._complete()
        finally:
            program._rollback()


__all__ = ["StaticRNN"]
