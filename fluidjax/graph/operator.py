"""Operator: Fluid's mutable handle on one op of a block."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..base.loc import user_line, warn
from ..base.roles import OpRole
from ..errors import EnforceNotMet, near
from ..ir import text
from ..ir.desc import OF_EVERY_OP, FrozenMap, OpDesc, OpType
from ..ops.registry import REGISTRY, attr_type, lookup
from .described import attribute

if TYPE_CHECKING:
    from .block import Block


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
        """The names of all inputs, slot by slot in the order of the slots' names, as in Paddle."""
        return self.desc.input_arg_names()

    @property
    def output_arg_names(self) -> list[str]:
        """The names of all outputs, likewise."""
        return self.desc.output_arg_names()

    @property
    def attr_names(self) -> list[str]:
        return sorted({*self.desc.attr_names(), *OF_EVERY_OP})

    @property
    def idx(self) -> int:
        """The op's position in the block."""
        return next(i for i, op in enumerate(self.block.ops) if op is self)

    def input(self, name: str) -> list[str]:
        """The names in a slot, [] if it is empty. Raises EnforceNotMet for a slot that the op type
        does not have.
        """
        return self._slot("input", self.desc.inputs, name)

    def output(self, name: str) -> list[str]:
        """The names in an output slot, as `input`."""
        return self._slot("output", self.desc.outputs, name)

    def _slot(self, side: str, slots: FrozenMap, name: str) -> list[str]:
        if name not in slots and (known := REGISTRY.get(self.type)) is not None:
            declared = [s.name for s in getattr(known, f"{side}s")]
            if name not in declared:
                raise EnforceNotMet(
                    f"op '{self.type}' has no {side} slot {name!r}{near(name, declared)}"
                )
        return list(slots.get(name, ()))

    def has_attr(self, name: str) -> bool:
        return self.desc.has_attr(name)

    def attr(self, name: str) -> Any:
        """An attribute's value, as OpDesc.attr gives it."""
        return self.desc.attr(name)

    def all_attrs(self) -> dict[str, Any]:
        return {n: self.attr(n) for n in self.attr_names}

    def attr_type(self, name: str) -> str | None:
        return attr_type(self.type, name)

    def _is_optimize_op(self) -> bool:
        """Whether the op belongs to an update of parameters."""
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
        """Set an attribute. An attribute that the op type does not have is kept with the op but has
        no effect; a warning says so.
        """
        value = attribute(self.type, name, val)
        if attr_type(self.type, name) is None:
            known = list(lookup(self.type).attrs)
            warn(
                f"op '{self.type}' has no attribute {name!r}{near(name, known)}; it is kept as a"
                f" note, which changes nothing (at {user_line()})"
            )
        self.change(attrs=self.desc.attrs.set(**{name: value}))

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
