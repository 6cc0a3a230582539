"""DynamicRNN: a block that runs once for each time step of its sequences; longer sequences have
more steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import unique_name
from ..base.dtypes import VarType
from ..base.loc import located
from ..errors import EnforceNotMet, FluidTypeError, FluidValueError
from ..graph.block import Block
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import append, require, typed
from .compare import less_than
from .loops import While, array_read, array_write
from .rank_tables import array_to_lod_tensor, shrink_memory
from .tensor import fill_constant


class DynamicRNN:
    """A recurrence over the rows of sequences; every step runs the ops of a block::

        rnn = DynamicRNN()
        with rnn.block():
            word = rnn.step_input(sentences)            # row t of each sentence that has one
            prev = rnn.memory(shape=[size])
            hidden = fc([word, prev], size, act="tanh")
            rnn.update_memory(prev, hidden)
            rnn.output(hidden)
        out = rnn()                                     # sequences as sentences

    Within the block the sequences are sorted by descending length, and time t has only those longer
    than t. Methods that belong within ``with rnn.block()`` raise FluidValueError elsewhere.
    """

    BEFORE_RNN = 0
    IN_RNN = 1
    AFTER_RNN = 2

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("dynamic_rnn", name=name)
        self.status = DynamicRNN.BEFORE_RNN
        # these become variables at the first step_input, or memory
        self.lod_rank_table: Any = None
        self.max_seq_len: Any = None
        self.step_idx: Any = None
        self.zero_idx: Any = None
        self.mem_dict: dict[str, Variable] = {}
        self.output_array: list[Variable] = []
        self.outputs: list[Variable] = []
        self.cond = self.helper.create_variable_for_type_inference("bool")
        self.cond.stop_gradient = False
        self.while_op = While(self.cond)
        self.input_array: list[tuple[Variable, Any]] = []
        self.mem_link: list[tuple[Variable, Variable]] = []

    @located
    def step_input(self, x: Variable, level: int = 0) -> Variable:
        """Row t of each sequence of x that has one, at time t; sequence t, if x has a LoD level
        below `level`.

        The first input determines the lengths of the sequences; the others have the same LoD.
        """
        self._within("step_input")
        typed(x, "x", Variable, "DynamicRNN.step_input")
        outside = self._outside()
        if self.lod_rank_table is None:
            self._begin(outside, x, level)
        array = outside.create_var(
            name=unique_name.generate("dynamic_rnn_input_array"),
            type=VarType.LOD_TENSOR_ARRAY,
            dtype=x.dtype,
        )
        self.input_array.append((array, x.dtype))
        outside.append_op(
            type="lod_tensor_to_array",
            inputs={"X": x, "RankTable": self.lod_rank_table},
            outputs={"Out": array},
        )
        return array_read(array=array, i=self.step_idx)

    def _begin(self, outside: Block, x: Variable, level: int) -> None:
        """The table of the sequences, the number of steps, and the loop's first condition."""
        table = outside.create_var(
            name=unique_name.generate("lod_rank_table"), type=VarType.LOD_RANK_TABLE
        )
        table.stop_gradient = True
        outside.append_op(
            type="lod_rank_table", inputs={"X": x}, outputs={"Out": table}, attrs={"level": level}
        )
        self.lod_rank_table = table
        self.max_seq_len = outside.create_var(
            name=unique_name.generate("dynamic_rnn_max_seq_len"), dtype="int64"
        )
        self.max_seq_len.stop_gradient = False
        outside.append_op(
            type="max_sequence_len", inputs={"RankTable": table}, outputs={"Out": self.max_seq_len}
        )
        self.cond.stop_gradient = True
        ins = {"X": self.step_idx, "Y": self.max_seq_len}
        outside.append_op(
            type="less_than", inputs=ins, outputs={"Out": self.cond}, attrs={"force_cpu": True}
        )

    @located
    def static_input(self, x: Variable) -> Variable:
        """The sequences of x (its rows, if it has no LoD) that belong to the sequences of this
        time; x has as many as step_input's.
        """
        self._within("static_input")
        typed(x, "x", Variable, "DynamicRNN.static_input")
        if self.lod_rank_table is None:
            raise EnforceNotMet("static_input() must be called after step_input().")
        return shrink_memory(
            self._by_rank(x, "dynamic_rnn_static_input_reordered"),
            self.step_idx,
            self.lod_rank_table,
        )

    def _by_rank(self, x: Variable, name: str) -> Variable:
        """x in the order of the table."""
        outside = self._outside()
        made = outside.create_var(
            name=unique_name.generate(name), type=VarType.LOD_TENSOR, dtype=x.dtype
        )
        ins = {"X": [x], "RankTable": [self.lod_rank_table]}
        outside.append_op(type="reorder_lod_tensor_by_rank", inputs=ins, outputs={"Out": [made]})
        return made

    def block(self) -> DynamicRNNGuard:
        """A context: ops appended within are those of one step. After an exception no op runs them."""
        require(self.status == DynamicRNN.BEFORE_RNN, "rnn.block() can only be invoke once")
        return DynamicRNNGuard(self)

    def _begin_step(self) -> None:
        self.step_idx = fill_constant(shape=[1], dtype="int64", value=0, force_cpu=True)
        self.step_idx.stop_gradient = False
        self.status = DynamicRNN.IN_RNN

    def _end_step(self) -> None:
        require(
            self.lod_rank_table is not None,
            "a DynamicRNN has at least one step_input, which sets the number of steps",
        )
        step = self.step_idx
        append(LayerHelper("increment"), {"X": [step]}, {"Out": step}, {"step": 1.0})
        for new, array in self.mem_link:
            array_write(x=new, i=self.step_idx, array=array)
        less_than(x=self.step_idx, y=self.max_seq_len, force_cpu=True, cond=self.cond)

    def _complete(self) -> None:
        self.status = DynamicRNN.AFTER_RNN
        self.outputs += [
            array_to_lod_tensor(x=each, table=self.lod_rank_table) for each in self.output_array
        ]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs after the block: one variable, or a list of them."""
        require(
            self.status == DynamicRNN.AFTER_RNN,
            "Output of the dynamic RNN can only be visited outside the rnn block.",
        )
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs

    @located
    def memory(
        self, init: Variable | None = None, shape: Sequence[int] | None = None, value: float = 0.0, need_reorder: bool = False,
        dtype: Any = "float32",
    ) -> Variable:  # fmt: skip
        """A state: its value from update_memory at the previous time, for the sequences of this
        time; at first `init`.

        need_reorder: init has a row for each sequence, in the order of step_input's. Without init,
        it begins with `value`, [sequences, *shape] of `dtype`.
        """
        self._within("memory")
        self._make_zero()
        if init is None:
            return self._filled(shape, value, dtype)
        typed(init, "init", Variable, "DynamicRNN.memory")
        first = init
        if need_reorder is True:
            if self.lod_rank_table is None:
                raise FluidValueError(
                    "If set need_reorder to True, make sure step_input be invoked before"
                    " memory(init=init, need_reordered=True, ...)."
                )
            first = self._by_rank(init, "dynamic_rnn_mem_init_reordered")
        outside = self._outside()
        array = outside.create_var(
            name=unique_name.generate("dynamic_rnn_mem_array"),
            type=VarType.LOD_TENSOR_ARRAY,
            dtype=init.dtype,
        )
        outside.append_op(
            type="write_to_array", inputs={"X": first, "I": self.zero_idx}, outputs={"Out": array}
        )
        before = array_read(array=array, i=self.step_idx)
        if self.lod_rank_table is None:
            raise FluidValueError("step_input should be invoked before memory(init=...)")
        before = shrink_memory(x=before, i=self.step_idx, table=self.lod_rank_table)
        self.mem_dict[before.name] = array
        return before

    def _filled(self, shape: Sequence[int] | None, value: float, dtype: Any) -> Variable:
        """A memory that begins with a number."""
        if not self.input_array:
            raise FluidValueError(
                "step_input should be invoked before memory(shape=..., value=...)"
            )
        if shape is None:
            raise FluidTypeError(
                "DynamicRNN.memory takes init, or a shape without the number of sequences"
            )
        outside = self._outside()
        init = outside.create_var(name=unique_name.generate("mem_init"), dtype=dtype)
        array, kind = self.input_array[0]
        first = outside.create_var(name=unique_name.generate("in0"), dtype=kind)
        outside.append_op(
            type="read_from_array",
            inputs={"X": [array], "I": [self.zero_idx]},
            outputs={"Out": [first]},
        )
        attrs = {"shape": [-1, *shape], "value": float(value), "dtype": init.dtype}
        outside.append_op(
            type="fill_constant_batch_size_like",
            inputs={"Input": [first]},
            outputs={"Out": [init]},
            attrs=attrs,
        )
        return self.memory(init=init)

    @located
    def update_memory(self, ex_mem: Variable, new_mem: Variable) -> None:
        """Give a memory its value for the next time."""
        self._within("update_memory")
        typed(ex_mem, "ex_mem", Variable, "DynamicRNN.update_memory")
        typed(new_mem, "new_mem", Variable, "DynamicRNN.update_memory")
        array = self.mem_dict.get(ex_mem.name)
        if array is None:
            raise FluidValueError("Please invoke memory before update_memory")
        require(self.lod_rank_table is not None, "Please invoke step_input before update_memory")
        self.mem_link.append((new_mem, array))

    @located
    def output(self, *outputs: Variable) -> None:
        """Make these outputs: row t of each sequence is their value at time t."""
        self._within("output")
        outside = self._outside()
        for each in outputs:
            typed(each, "outputs", Variable, "DynamicRNN.output")
            name = unique_name.generate_with_ignorable_key(
                "_".join([self.helper.name, "output_array", each.name])
            )
            array = outside.create_var(name=name, type=VarType.LOD_TENSOR_ARRAY, dtype=each.dtype)
            array_write(x=each, i=self.step_idx, array=array)
            self.output_array.append(array)

    def _make_zero(self) -> None:
        if self.zero_idx is not None:
            return
        outside = self._outside()
        self.zero_idx = outside.create_var(name=unique_name.generate("zero_idx"), dtype="int64")
        attrs = {"shape": [1], "dtype": self.zero_idx.dtype, "value": 0.0, "force_cpu": True}
        outside.append_op(
            type="fill_constant", inputs={}, outputs={"Out": [self.zero_idx]}, attrs=attrs
        )

    def _outside(self) -> Block:
        """The block that contains this one."""
        program = self.helper.main_program
        return program.block(program.current_block().parent_idx)

    def _within(self, method: str) -> None:
        require(self.status == DynamicRNN.IN_RNN, f"{method} can only be invoked inside rnn block.")


class DynamicRNNGuard:
    """Appends to the block of a DynamicRNN between enter and exit."""

    def __init__(self, rnn: DynamicRNN) -> None:
        self.rnn = rnn

    def __enter__(self) -> None:
        self.rnn._begin_step()
        self._loop = self.rnn.while_op.block()
        self._loop.__enter__()

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if kind is not None:
            self._loop.__exit__(kind, *rest)
            return
        try:
            self.rnn._end_step()
        except BaseException as error:
            self._loop.__exit__(type(error), error, None)
            raise
        self._loop.__exit__(None, None, None)
        self.rnn._complete()


__all__ = ["DynamicRNN"]
