"""Operator: Fluid's mutable handle on one op of a block."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..base.roles import OpRole
from ..ir import text
from ..ir.desc import FrozenMap, OpDesc, OpType
from ..ops.registry import attr_type, canonical, lookup

if TYPE_CHECKING:
    from .block import Block


# what every op of Fluid has: an op's description leaves them out where they say nothing
_OF_EVERY_OP: dict[str, Any] = {"op_device": "", "op_namescope": "/", "op_role_var": ()}


class Operator:
    """A handle on one op of a block."""

    __slots__ = ("block", "desc")

    def __init__(self, block: Block, desc: OpDesc) -> None:
        self.block = block
        self.desc = desc if type(desc.type) is OpType else replace(desc, type=OpType(desc.type))

    @property
    def type(self) -> str:
        return self.desc.type

    @property
    def input_names(self) -> list[str]:
        return self.desc.input_names()

    @property
    def output_names(self) -> list[str]:
        return self.desc.output_names()

    @property
    def input_arg_names(self) -> list[str]:
        """The names of all inputs, slot after slot in the order of the slots' names, as in Paddle."""
        return self.desc.input_arg_names()

    @property
    def output_arg_names(self) -> list[str]:
        """The names of all outputs, likewise."""
        return self.desc.output_arg_names()

    @property
    def attr_names(self) -> list[str]:
        return sorted({*self.desc.attr_names(), *_OF_EVERY_OP})

    @property
    def idx(self) -> int:
        """Position among the ops of the block."""
        return next(i for i, op in enumerate(self.block.ops) if op is self)

    def input(self, name: str) -> list[str]:
        return list(self.desc.inputs.get(name, ()))

    def output(self, name: str) -> list[str]:
        return list(self.desc.outputs.get(name, ()))

    def has_attr(self, name: str) -> bool:
        return name in _OF_EVERY_OP or self.desc.has_attr(name)

    def attr(self, name: str) -> Any:
        """An attribute's value (lists as lists). Every op has ``op_namescope``, which is ``/``
        outside of name scopes, ``op_device`` and ``op_role_var``, empty unless they were set.
        Raises FluidValueError naming the nearest there is.
        """
        if name in _OF_EVERY_OP and not self.desc.has_attr(name):
            value = _OF_EVERY_OP[name]
            return list(value) if isinstance(value, tuple) else value
        return self.desc.attr(name)

    def all_attrs(self) -> dict[str, Any]:
        return {n: self.attr(n) for n in self.attr_names}

    def attr_type(self, name: str) -> str | None:
        return attr_type(self.type, name)

    def _is_optimize_op(self) -> bool:
        """Whether it belongs to an update of parameters."""
        return bool(self.attr("op_role") & OpRole.Optimize)

    def _block_attr_id(self, name: str) -> int:
        return self.desc.attrs[name].idx

    def _blocks_attr_ids(self, name: str) -> list[int]:
        return [ref.idx for ref in self.desc.attrs[name]]

    def _block_attr(self, name: str) -> Block:
        return self.block.program.block(self._block_attr_id(name))

    def change(self, **changes: Any) -> None:
        self.desc = replace(self.desc, **changes)
        self.block.program.touch()

    def _set_attr(self, name: str, val: Any) -> None:
        self.change(
            attrs=FrozenMap({**self.desc.attrs, name: canonical(lookup(self.type), name, val)})
        )

    def _remove_attr(self, name: str) -> None:
        self.change(attrs=self.desc.attrs.without(name))

    def _rename_input(self, old_name: str, new_name: str) -> None:
        self.change(inputs=_renamed(self.desc.inputs, old_name, new_name))

    def _rename_output(self, old_name: str, new_name: str) -> None:
        self.change(outputs=_renamed(self.desc.outputs, old_name, new_name))

    def to_string(self, throw_on_error: bool = False) -> str:
        return str(self)

    def __str__(self) -> str:
        return text.op_text(self.desc)

    __repr__ = __str__


def _renamed(slots: FrozenMap, old: str, new: str) -> FrozenMap:
    return FrozenMap(
        {s: tuple(new if n == old else n for n in names) for s, names in slots.items()}
    )
