"""Scope: variables by name, with their values.

Where a value is, only its Storage knows (storage.py): the scope holds it, or the arrays between the steps of a program do
(state_buffers.py). A look-up reads it there, and a write from outside goes there too, or takes the value back first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import FluidTypeError
from ..lod_tensor import Lod, LoDTensor, ScopeTensor
from ..ops.selected import SelectedRows
from .storage import Held, Storage


class ScopeVar:
    """One variable of a scope. `value` is None until something is stored; `lod` are the offsets that a user set with it."""

    __slots__ = ("lod", "name", "storage")

    def __init__(self, name: str) -> None:
        self.name = name
        self.storage: Storage = Held()
        self.lod: Lod = ()

    @property
    def value(self) -> Any:
        """The array (NumPy or JAX), or None. Where the ranks of a data-parallel program have their own, that of the first."""
        return self.storage.read()

    @value.setter
    def value(self, array: Any) -> None:
        if not self.storage.write(array):
            self.storage.release()
            self.storage = Held(array)

    @property
    def sparse(self) -> bool:
        """Whether the value is sparse rows (SELECTED_ROWS)."""
        return isinstance(self.storage, Held) and isinstance(self.storage.value, SelectedRows)

    def get_tensor(self) -> LoDTensor:
        """The value as a tensor. Raises FluidTypeError if it is sparse rows."""
        if self.sparse:
            raise FluidTypeError(f"variable {self.name!r} holds sparse rows (SELECTED_ROWS); use get_selected_rows() instead")
        return ScopeTensor(self)

    def get_selected_rows(self) -> SelectedRows:
        """The value as sparse rows. Raises FluidTypeError if it is something else."""
        if not self.sparse:
            raise FluidTypeError(f"variable {self.name!r} holds no sparse rows (SELECTED_ROWS); use get_tensor() instead")
        return self.value.on_host()

    def set(self, value: Any, place: Any = None) -> None:
        self.get_tensor().set(value, place)


class Scope:
    """Variables by name; a child scope sees its ancestors' (Fluid's core.Scope)."""

    def __init__(self, parent: Scope | None = None) -> None:
        self._vars: dict[str, ScopeVar] = {}
        self.parent = parent
        self._kids: list[Scope] = []

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
            scope = scope.parent
        return None

    def new_scope(self) -> Scope:
        kid = Scope(self)
        self._kids.append(kid)
        return kid

    def drop_kids(self) -> None:
        self._kids.clear()

    def erase(self, names: list[str]) -> None:
        """Forget variables of this scope."""
        for name in names:
            if name in self._vars:
                self._vars[name].storage.release()  # what shares arrays with it goes on
                del self._vars[name]

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
