"""fp16_allreduce: gradients are exchanged between the workers in half precision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .... import unique_name
from ....base.dtypes import VarType
from ....base.roles import OpRole
from ....graph.program import Program
from ....graph.variable import Parameter, Variable


class HalfAllReduce:
    """The wrapped optimizer, with gradients cast to float16 for the sum over the workers, and back
    for the update.
    """

    def __init__(self, optimizer: Any) -> None:
        self._inner = optimizer

    def minimize(
        self, loss: Variable, startup_program: Program | None = None, parameter_list: Sequence[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """The wrapped optimizer's updates, after casts."""
        pairs = self._inner.backward(loss, startup_program, parameter_list, no_grad_set)
        chosen = [
            (p, g)
            for p, g in pairs
            if g is not None and g.dtype == VarType.FP32 and g.type != VarType.SELECTED_ROWS
        ]
        halves = {p.name: _half(p, g) for p, g in chosen}
        back = {p.name: _back(p, halves[p.name]) for p, _ in chosen}
        return (
            self._inner.apply_optimize(
                loss, startup_program, [(p, back.get(p.name, g)) for p, g in pairs]
            ),
            pairs,
        )


def _half(param: Parameter, grad: Variable) -> Variable:
    """The gradient in float16, which is summed."""
    block = grad.block
    for op in block.ops:
        named = list(op.desc.attrs.get("op_role_var", ()))
        if param.name in named[::2]:
            at = 2 * named[::2].index(param.name)
            op._set_attr("op_role_var", named[:at] + named[at + 2 :])
    attrs = {
        "op_role": int(OpRole.Backward),
        "op_role_var": [param.name, name := unique_name.generate(grad.name + ".cast_fp16")],
    }
    return _cast(grad, name, VarType.FP16, attrs)


def _back(param: Parameter, half: Variable) -> Variable:
    """The sum in float32 again."""
    with half.block.program._optimized_guard([param, half]):
        return _cast(half, unique_name.generate(half.name + ".cast_fp32"), VarType.FP32, {})


def _cast(x: Variable, name: str, dtype: VarType, attrs: dict[str, Any]) -> Variable:
    out = x.block.create_var(
        name=name, dtype=dtype, shape=x.shape, persistable=False, stop_gradient=True
    )
    kinds = {"in_dtype": int(x.dtype), "out_dtype": int(dtype)}
    x.block.append_op(type="cast", inputs={"X": x}, outputs={"Out": out}, attrs={**kinds, **attrs})
    return out


__all__ = ["HalfAllReduce"]
