"""Scope: variables by name, with their values.

While programs run, the values live in a bank (bank.py): donated device arrays, small ones packed together. A look-up
reads them there; a write from outside goes there too, or dissolves the bank if it does not fit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import FluidTypeError
from ..lod_tensor import Lod, LoDTensor, ScopeTensor
from ..ops.selected import SelectedRows
from .placement import PerRank
from .shard_layout import ShardedValue

if TYPE_CHECKING:
    from .state_buffers import StateBuffers


class ScopeVar:
    """One variable of a scope. `value` is None until something is stored; `lod` are the offsets that a user set with it."""

    __slots__ = ("_bank", "_value", "lod", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._value: Any = None
        self._bank: StateBuffers | None = None
        self.lod: Lod = ()

    @property
    def value(self) -> Any:
        """The array (NumPy or JAX), or None. Where the ranks of a data-parallel program have their own, that of the first."""
        if self._bank is not None:
            return self._bank.read(self.name)
        if isinstance(self._value, ShardedValue):
            return self._value.whole()
        return np.asarray(self._value[0]) if isinstance(self._value, PerRank) else self._value

    @value.setter
    def value(self, array: Any) -> None:
        if self._bank is not None and not self._bank.write(self.name, array):
            self._bank.dissolve()
        if self._bank is None:
            self._value = array

    def get_tensor(self) -> LoDTensor:
        """The value as a tensor. Raises FluidTypeError if it is sparse rows."""
        if self._sparse():
            raise FluidTypeError(f"variable {self.name!r} holds sparse rows (SELECTED_ROWS); use get_selected_rows() instead")
        return ScopeTensor(self)

    def get_selected_rows(self) -> SelectedRows:
        """The value as sparse rows. Raises FluidTypeError if it is something else."""
        if not self._sparse():
            raise FluidTypeError(f"variable {self.name!r} holds no sparse rows (SELECTED_ROWS); use get_tensor() instead")
        return self.value.on_host()

    def _sparse(self) -> bool:
        return self._bank is None and isinstance(self._value, SelectedRows)

    def set(self, value: Any, place: Any = None) -> None:
        self.get_tensor().set(value, place)


class Scope:
    """Variables by name; a child scope sees its ancestors' (Fluid's core.Scope)."""

    def __init__(self, parent: Scope | None = None) -> None:
        self._vars: dict[str, ScopeVar] = {}
        self._parent = parent
        self._kids: list[Scope] = []
        self._bank: StateBuffers | None = None

    def var(self, name: str) -> ScopeVar:
        """The variable of this very scope, made if it is not there."""
        if not isinstance(name, str):
            raise FluidTypeError(f"a scope finds variables by name (a string), not by {type(name).__name__}")
        if name not in self._vars:
            self._vars[name] = ScopeVar(name)
        return self._vars[name]

    def find_var(self, name: str) -> ScopeVar | None:
        """The variable here or in the nearest ancestor, or None."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope._vars:
                return scope._vars[name]
            scope = scope._parent
        return None

    def new_scope(self) -> Scope:
        kid = Scope(self)
        self._kids.append(kid)
        return kid

    def drop_kids(self) -> None:
        self._kids.clear()

    def erase(self, names: list[str]) -> None:
        """Forget variables of this scope."""
        if self._bank is not None:
            self._bank.dissolve()
        for name in names:
            self._vars.pop(name, None)

    def local_var_names(self) -> list[str]:
        return list(self._vars)

    def get(self, name: str) -> np.ndarray:
        """A copy of a variable's value as a NumPy array; of sparse rows, the table. Raises KeyError for a name without value."""
        var = self.find_var(name)
        value = None if var is None else var.value
        if value is None:
            raise KeyError(name)
        return np.array(value.table() if isinstance(value, SelectedRows) else value)


_global = Scope()
_current = _global


def global_scope() -> Scope:
    """The scope that Executor.run uses by default."""
    return _current


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Make `scope` the default within the block."""
    global _current
    if not isinstance(scope, Scope):
        raise FluidTypeError(f"scope_guard takes a Scope, not {type(scope).__name__}")
    old, _current = _current, scope
    try:
        yield
    finally:
        _current = old
