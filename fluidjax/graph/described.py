"""core.VarDesc and core.OpDesc: descs that change in place, as the nodes of a graph hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..base.dtypes import VarType as _VarType
from ..base.dtypes import enum_of, name_of
from ..errors import FluidTypeError, FluidValueError
from ..ir import desc as ir
from ..ops.registry import canonical, lookup


class VarDesc:
    """A variable's description. ``VarDesc.VarType`` has the numbers of dtypes and of kinds."""

    VarType = _VarType

    def __init__(self, name: str) -> None:
        self.value = ir.VarDesc(_text(name), kind="LOD_TENSOR")

    @classmethod
    def of(cls, value: ir.VarDesc) -> VarDesc:
        """A description that begins with this value."""
        made = cls(value.name)
        made.value = value
        return made

    def name(self) -> str:
        return self.value.name

    def set_name(self, name: str) -> None:
        self.value = replace(self.value, name=_text(name))

    def shape(self) -> list[int]:
        return list(self.value.shape or ())

    def set_shape(self, shape: Sequence[int]) -> None:
        self.value = replace(self.value, shape=tuple(int(n) for n in shape))

    def dtype(self) -> _VarType:
        """Raises FluidValueError for a variable without one."""
        if self.value.dtype is None:
            raise FluidValueError(
                f"variable {self.value.name!r} of kind {self.value.kind} has no dtype"
            )
        return enum_of(self.value.dtype)

    def set_dtype(self, dtype: Any) -> None:
        self.value = replace(self.value, dtype=name_of(dtype))

    def type(self) -> _VarType:
        return _VarType[self.value.kind]

    def set_type(self, kind: Any) -> None:
        self.value = replace(self.value, kind=_VarType(kind).name)

    def lod_level(self) -> int:
        return self.value.lod_level

    def set_lod_level(self, level: int) -> None:
        self.value = replace(self.value, lod_level=int(level))

    def persistable(self) -> bool:
        return self.value.persistable

    def set_persistable(self, persistable: bool) -> None:
        self.value = replace(self.value, persistable=bool(persistable))


class OpDesc:
    """An op's description. Attributes that its type does not have are notes, which steps ignore."""

    def __init__(self) -> None:
        self.value = ir.OpDesc(0, "", attrs=ir.FrozenMap({"op_role": 0}))

    @classmethod
    def of(cls, value: ir.OpDesc) -> OpDesc:
        """A description that begins with this value."""
        made = cls()
        made.value = value
        return made

    def type(self) -> str:
        return self.value.type

    def set_type(self, kind: str) -> None:
        self.value = replace(self.value, type=_text(kind))

    def input(self, slot: str) -> list[str]:
        return list(self.value.input(slot))

    def output(self, slot: str) -> list[str]:
        return list(self.value.output(slot))

    def input_names(self) -> list[str]:
        return self.value.input_names()

    def output_names(self) -> list[str]:
        return self.value.output_names()

    def input_arg_names(self) -> list[str]:
        """The names of all inputs, slot by slot in the order of the slots' names."""
        return self.value.input_arg_names()

    def output_arg_names(self) -> list[str]:
        """The names of all outputs, likewise."""
        return self.value.output_arg_names()

    def set_input(self, slot: str, names: Iterable[str]) -> None:
        self.value = replace(self.value, inputs=self.value.inputs.set(**{slot: tuple(names)}))

    def set_output(self, slot: str, names: Iterable[str]) -> None:
        self.value = replace(self.value, outputs=self.value.outputs.set(**{slot: tuple(names)}))

    def _rename_input(self, old: str, new: str) -> None:
        self.value = replace(
            self.value,
            inputs=_renamed(self.value.inputs, old, new),
            attrs=roles_renamed(self.value.attrs, old, new),
        )

    def _rename_output(self, old: str, new: str) -> None:
        self.value = replace(
            self.value,
            outputs=_renamed(self.value.outputs, old, new),
            attrs=roles_renamed(self.value.attrs, old, new),
        )

    def attr_names(self) -> list[str]:
        return self.value.attr_names()

    def has_attr(self, name: str) -> bool:
        return self.value.has_attr(name)

    def attr(self, name: str) -> Any:
        """An attribute's value, lists as lists. Raises FluidValueError if the op has no such
        attribute.
        """
        return self.value.attr(name)

    def _set_attr(self, name: str, value: Any) -> None:
        """Raises FluidTypeError for a value that does not have the attribute's type, or that no
        attribute can hold.
        """
        self.value = replace(
            self.value,
            attrs=ir.FrozenMap({**self.value.attrs, name: attribute(self.type(), name, value)}),
        )

    def remove_attr(self, name: str) -> None:
        self.value = replace(self.value, attrs=self.value.attrs.without(name))


def attribute(kind: str, name: str, value: Any) -> Any:
    """A value in the form that descs hold: in the type that the op declares, else unchanged, with
    floats rounded to float32.
    """
    definition = lookup(kind) if kind else None
    if definition is not None and definition.attr_type(name) is not None:
        return canonical(definition, name, value)
    if isinstance(value, list | tuple):
        return tuple(_plain(name, v) for v in value)
    return _plain(name, value)


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(np.float32(value))
    if isinstance(value, bool | int | str | ir.BlockRef):
        return value
    raise FluidTypeError(
        f"attribute {name!r} is a number, a bool, text or a list of these, not"
        f" {type(value).__name__}"
    )


def _renamed(slots: ir.FrozenMap, old: str, new: str) -> ir.FrozenMap:
    return ir.FrozenMap(
        {s: tuple(new if n == old else n for n in names) for s, names in slots.items()}
    )


def roles_renamed(attrs: ir.FrozenMap, old: str, new: str) -> ir.FrozenMap:
    """Attributes in which pairs of parameter and gradient use the variable's new name, as in
    Paddle.
    """
    pairs = attrs.get("op_role_var", ())
    return (
        attrs.set(op_role_var=tuple(new if n == old else n for n in pairs))
        if old in pairs
        else attrs
    )


def _text(name: Any) -> str:
    if isinstance(name, bytes):
        return name.decode()
    if not isinstance(name, str):
        raise FluidTypeError(f"a name is text, not {type(name).__name__}")
    return name
