"""QuantizeTranspiler: quantisation by rewriting programs in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import FluidValueError
from ...graph.block import Block
from ...graph.operator import Operator
from ...graph.program import Program, as_program, default_startup_program, program_guard
from ...layers import autoincreased_step_counter
from ...ops.quantize import steps
from ...state.scope import Scope, global_scope
from ..slim.quantization.freeze import over, quantised
from ..slim.quantization.held import read, write
from ..slim.quantization.tables import checked_choice, original
from ..slim.quantization.transform import ACTIVATIONS
from .rewriting import Quantisers, beside, rename_input

__all__ = ["QuantizeTranspiler"]

KINDS = ("conv2d", "depthwise_conv2d", "mul")


class QuantizeTranspiler:
    """Rewrites convolutions and mul to read inputs rounded to integers of few bits.

    weight_bits, activation_bits: of an integer with its sign. activation_quantize_type: the scale
    of data: abs_max (per step), range_abs_max (the greatest of window_size steps),
    moving_average_abs_max (by moving_rate). weight_quantize_type: the same for weights;
    freeze_program supports only abs_max.

    Raises FluidValueError for another type.
    """

    def __init__(
        self,
        weight_bits: int = 8,
        activation_bits: int = 8,
        activation_quantize_type: str = "abs_max",
        weight_quantize_type: str = "abs_max",
        window_size: int = 10000,
        moving_rate: float = 0.9,
    ) -> None:
        self.weight_bits, self.activation_bits = weight_bits, activation_bits
        self.weight_quantize_type = checked_choice(
            "weight_quantize_type", weight_quantize_type, ACTIVATIONS
        )
        self.activation_quantize_type = checked_choice(
            "activation_quantize_type", activation_quantize_type, ACTIVATIONS
        )
        self.window_size, self.moving_rate = window_size, moving_rate

    def training_transpile(
        self, program: Program | None = None, startup_program: Program | None = None
    ) -> None:
        """Rewrite a program, before or after minimize; the startup program sets the state of the
        new ops.

        Gradient ops read the inputs of their forward ops. Raises FluidValueError for a gradient op
        whose forward op is missing.
        """
        program = as_program(program)
        startup = default_startup_program() if startup_program is None else startup_program
        parameters = {p.name for p in program.global_block().iter_parameters()}
        with program_guard(program, startup):
            ranges = "range_abs_max" in (self.weight_quantize_type, self.activation_quantize_type)
            ops = Quantisers(
                self.window_size, self.moving_rate, autoincreased_step_counter() if ranges else None
            )
            for block in program.blocks:
                restored: dict[str, str] = {}
                for op in list(block.ops):
                    if op.type in KINDS:
                        self._forward(ops, block, op, restored, parameters)
                    elif op.type.removesuffix("_grad") in KINDS:
                        _backward(op, restored)

    def _forward(
        self,
        ops: Quantisers,
        block: Block,
        op: Operator,
        restored: dict[str, str],
        parameters: set[str],
    ) -> None:
        at = op.idx
        for name in op.input_arg_names:
            if name not in restored:
                weight = name in parameters
                kind = self.weight_quantize_type if weight else self.activation_quantize_type
                bits = self.weight_bits if weight else self.activation_bits
                restored[name] = ops.restored(block, at, block.var(name), kind, bits).name
            rename_input(op, name, restored[name])

    def freeze_program(
        self, program: Program | None, place: Any, scope: Scope | None = None
    ) -> None:
        """Convert a transpiled test program for inference: weights become integers, and values are
        restored to floats after the op that reads them.

        Raises FluidValueError for weights that the scope lacks, and unless their scales use
        abs_max.
        """
        program, scope = as_program(program), scope or global_scope()
        kept = {v.name for v in program.list_vars() if v.persistable}
        for block in program.blocks:
            _Freeze(self, block, kept, scope, place).run()
        _remove_unused(program)

    def convert_to_int8(
        self, program: Program | None, place: Any, scope: Scope | None = None
    ) -> None:
        """Convert the weights of a frozen program to int8, in new variables (``fc_0.w_0.int8``)."""
        program, scope = as_program(program), scope or global_scope()
        made: dict[str, str] = {}
        for block in program.blocks:
            for op in [op for op in block.ops if op.type in KINDS]:
                for name in op.input_arg_names:
                    var = block.var(name)
                    if not var.persistable:
                        continue
                    if name not in made:
                        made[name] = f"{name}.int8"
                        program.global_block().create_parameter(
                            name=made[name], type=var.type, dtype="int8", shape=var.shape
                        )
                        write(scope, place, made[name], read(scope, name).astype(np.int8))
                    rename_input(op, name, made[name])
        _remove_unused(program)


def _backward(op: Operator, restored: dict[str, str]) -> None:
    names = [n for n in op.input_arg_names if n in restored]
    if not names:
        raise FluidValueError(
            f"op {op.type} reads nothing that is quantised; its forward op is not in this block"
        )
    for name in names:
        rename_input(op, name, restored[name])


class _Freeze:
    """The conversion of one block for inference."""

    def __init__(
        self, options: QuantizeTranspiler, block: Block, kept: set[str], scope: Scope, place: Any
    ) -> None:
        self.options, self.block, self.kept, self.scope, self.place = (
            options,
            block,
            kept,
            scope,
            place,
        )
        self.came: dict[str, str] = {}  # the output of a removed op: its input
        self.scales: dict[str, Any] = {}  # the scale: a number for weights, a variable for data
        self.after: dict[str, str] = {}  # an op's output: the restored variable

    def run(self) -> None:
        for op in list(self.block.ops):
            for name in [n for n in op.input_arg_names if n in self.after]:
                rename_input(op, name, self.after[name])
            if op.type in {f"fake_quantize_{way}" for way in ACTIVATIONS}:
                self._quantise(op)
            elif op.type == "fake_dequantize_max_abs":
                self._remove(op)
            elif op.type in KINDS:
                self._restore_after(op)

    def _quantise(self, op: Operator) -> None:
        (name,), (scale,) = op.input("X"), op.output("OutScale")
        if name not in self.kept:
            self.scales[name] = self.block.var(scale)
            return
        if self.options.weight_quantize_type != "abs_max":
            raise FluidValueError(
                "freeze_program takes weights whose weight_quantize_type is 'abs_max'"
            )
        weight = read(self.scope, name)
        self.scales[name] = np.abs(weight).max()
        self._remove(op)
        write(
            self.scope,
            self.place,
            name,
            quantised(weight, self.scales[name], self.options.weight_bits),
        )

    def _remove(self, op: Operator) -> None:
        (x,), (out,) = op.input("X"), op.output("Out")
        self.came[out] = self.came.get(x, x)
        self.block._remove_op(op.idx)

    def _restore_after(self, op: Operator) -> None:
        scale, max_range, options = None, None, self.options
        for name in op.input_arg_names:
            if name in self.came:
                rename_input(op, name, self.came[name])
            first = original(name)
            if first not in self.scales:
                raise FluidValueError(
                    f"op {op.type} reads {name!r}, which nothing quantises; call training_transpile"
                    " first"
                )
            if first in self.kept:
                both = steps(options.weight_bits) * steps(options.activation_bits)
                max_range = over(both, self.scales[first])
            else:
                scale = self.scales[first]
        if scale is None or max_range is None:
            raise FluidValueError(
                f"op {op.type} reads {', '.join(op.input_arg_names)}; what is frozen reads data and"
                " a weight"
            )
        out = self.block.var(op.output_arg_names[0])
        restored = beside(self.block, out, "dequantized")
        self.block._insert_op(
            op.idx + 1, type="fake_dequantize_max_abs", attrs={"max_range": max_range}, inputs={"X": out, "Scale": scale},
            outputs={"Out": restored},
        )  # fmt: skip
        self.after[out.name] = restored.name


def _remove_unused(program: Program) -> None:
    """Remove the variables that no op of their block reads or writes."""
    for block in program.blocks:
        used = {n for op in block.ops for n in (*op.input_arg_names, *op.output_arg_names)}
        for name in [n for n in block.vars if n not in used]:
            block._remove_var(name)
