"""QuantizeTranspiler's rewrite of a training program: ops that quantise and restore, before those
that read.
"""

from __future__ import annotations

from typing import Any

from ... import unique_name
from ...graph.block import Block
from ...graph.described import roles_renamed
from ...graph.operator import Operator
from ...graph.variable import Variable
from ...initializer import Constant
from ...layer_helper import LayerHelper
from ...ops.quantize import steps
from ...param_attr import ParamAttr


def rename_input(op: Operator, old: str, new: str) -> None:
    """Make an op read another variable, also in its attribute op_role_var, as in Paddle."""
    op._rename_input(old, new)
    op.change(attrs=roles_renamed(op.desc.attrs, old, new))


def beside(block: Block, var: Variable, ending: str) -> Variable:
    """A new variable like another one."""
    return block.create_var(
        name=f"{var.name}.{ending}", type=var.type, shape=var.shape, dtype=var.dtype
    )


class Quantisers:
    """Puts ops that quantise into blocks. step: the counter of steps of range_abs_max."""

    def __init__(self, window_size: int, moving_rate: float, step: Variable | None) -> None:
        self.helper = LayerHelper("QuantizeTranspiler")
        self.window_size, self.moving_rate, self.step = window_size, moving_rate, step

    def restored(self, block: Block, at: int, var: Variable, kind: str, bits: int) -> Variable:
        """var rounded to integers of this many bits, computed by two ops from position `at` on."""
        out = beside(block, var, "quantized")
        ways = {
            "abs_max": self._now,
            "range_abs_max": self._range,
            "moving_average_abs_max": self._moving,
        }
        scale, op = ways[kind](block, var, out, bits)
        block._insert_op(at, type=f"fake_quantize_{kind}", **op)
        dequantised = beside(block, out, "dequantized")
        block._insert_op(
            at + 1, type="fake_dequantize_max_abs", attrs={"max_range": float(steps(bits))}, inputs={"X": out, "Scale": scale},
            outputs={"Out": dequantised},
        )  # fmt: skip
        return dequantised

    def _now(
        self, block: Block, var: Variable, out: Variable, bits: int
    ) -> tuple[Variable, dict[str, Any]]:
        scale = beside(block, var, "scale")
        return scale, {
            "attrs": {"bit_length": bits},
            "inputs": {"X": var},
            "outputs": {"Out": out, "OutScale": scale},
        }

    def _range(
        self, block: Block, var: Variable, out: Variable, bits: int
    ) -> tuple[Variable, dict[str, Any]]:
        scale = self._scale(var)
        scales = self._kept("scales", var, self.window_size, 0.0)
        return scale, {
            "attrs": {"window_size": self.window_size, "bit_length": bits, "is_test": False},
            "inputs": {"X": var, "InScale": scale, "Iter": self.step},
            "outputs": {"Out": out, "OutScale": scale, "OutScales": scales},
        }

    def _moving(
        self, block: Block, var: Variable, out: Variable, bits: int
    ) -> tuple[Variable, dict[str, Any]]:
        state, accum = self._kept("state", var, 1, 1.0), self._kept("accum", var, 1, 1.0)
        scale = self._scale(var)
        return scale, {
            "attrs": {"bit_length": bits, "moving_rate": self.moving_rate, "is_test": False},
            "inputs": {"X": var, "InScale": scale, "InState": state, "InAccum": accum},
            "outputs": {"Out": out, "OutScale": scale, "OutState": state, "OutAccum": accum},
        }

    def _scale(self, var: Variable) -> Variable:
        attr = ParamAttr(name=f"{var.name}.scale", initializer=Constant(0.001), trainable=False)
        scale = self.helper.create_parameter(attr=attr, shape=[1], dtype=var.dtype)
        scale.stop_gradient = True
        return scale

    def _kept(self, name: str, var: Variable, size: int, value: float) -> Variable:
        kept = self.helper.create_global_variable(
            name=unique_name.generate(name), persistable=True, dtype=var.dtype, shape=[size]
        )
        self.helper.set_variable_initializer(kept, initializer=Constant(value=value))
        return kept
