"""16-bit parameters with a float32 copy that is updated instead: multi_precision of Paddle 2's
optimizers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import unique_name
from ...errors import FluidTypeError
from ...graph.block import Block
from ...graph.operator import Operator
from ...graph.program import default_startup_program
from ...graph.variable import Parameter, Variable
from ...optimizers.state import persistable

_SMALL = ("float16", "bfloat16")


class MultiPrecision:
    """A base of optimizers whose ops take MasterParam. The copy of ``w`` is ``w_fp32_master_0``;
    accumulators are named after it.
    """

    _opti_name_list: list[str]

    def __init__(self, multi_precision: bool = False, **options: Any) -> None:
        if not isinstance(multi_precision, bool):
            raise FluidTypeError(
                f"{type(self).__name__}'s multi_precision is True or False, not {multi_precision!r}"
            )
        self._multi_precision = multi_precision
        self._masters: dict[str, Variable] = {}
        super().__init__(**options)

    def _master(self, param: Parameter) -> Any:
        """The copy of a 16-bit parameter, made at first use; any other parameter itself."""
        if not self._multi_precision or param.desc.dtype not in _SMALL:
            return param
        if param.name not in self._masters:
            made = persistable(
                unique_name.generate(f"{param.name}_fp32_master"), param.shape, "float32", 0.0
            )
            start = default_startup_program().global_block()
            attrs = {"in_dtype": int(param.dtype), "out_dtype": int(made.dtype)}
            start.append_op(
                type="cast", inputs={"X": param.name}, outputs={"Out": made.name}, attrs=attrs
            )
            self._masters[param.name] = made
            self._opti_name_list.append(made.name)
        return self._masters[param.name]

    def _add_accumulator(self, name: str, param: Parameter, *args: Any, **options: Any) -> Variable:
        return super()._add_accumulator(name, self._master(param), *args, **options)  # type: ignore[misc]

    def _get_accumulator(self, name: str, param: Parameter) -> Variable:
        return super()._get_accumulator(name, self._master(param))  # type: ignore[misc]

    def _append_optimize_op(
        self, block: Block, param_and_grad: tuple[Parameter, Variable]
    ) -> Operator:
        param, _ = param_and_grad
        master = self._master(param)
        self._besides: dict[str, Variable] = {} if master is param else {"MasterParam": master}
        return super()._append_optimize_op(block, param_and_grad)  # type: ignore[misc]

    def _also_updated(self) -> Mapping[str, Variable]:
        return self._besides

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        """The op's attributes, and whether it updates a copy."""
        return {**super().op_attributes(param), "multi_precision": param.name in self._masters}  # type: ignore[misc]


__all__ = ["MultiPrecision"]
