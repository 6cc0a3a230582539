"""Scope: variables by name, with their values.

Only a variable's Storage knows where its value is (storage.py): in the scope, or in the arrays
between the steps of a program (buffers.py). A look-up reads it there. A write from outside goes
there too, or takes the value back first. Both may come from any thread (turns.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from ..base.within import InForce
from ..errors import FluidTypeError
from ..lod_tensor import Lod, LoDTensor, LoDTensorArray, ScopeTensor
from ..ops.selected import SelectedRows
from ..ops.tensor_array import is_array
from .selected_rows import SelectedRows as HostRows
from .storage import Held, Storage, lasting
from .turns import NOBODY, Turn, looking

T = TypeVar("T")
# how often a variable of any scope was set other than by a step; borrowers compare it
CHANGES = [0]


class ScopeVar:
    """One variable of a scope. `value` is None until something is stored; `lod` are the offsets
    that a user set with it.
    """

    __slots__ = ("_storage", "lod", "name", "turn")

    def __init__(self, name: str) -> None:
        self.name = name
        self._storage: Storage = Held()
        self.turn: Turn = NOBODY  # who else may change the value now
        self.lod: Lod = ()

    @property
    def storage(self) -> Storage:
        """The storage of the value. A caller that reads or moves the value holds the variable's
        turn.
        """
        return self._storage

    @storage.setter
    def storage(self, storage: Storage) -> None:
        self._storage = storage
        CHANGES[0] += 1

    @property
    def empty(self) -> bool:
        """Whether nothing is stored."""
        return self._storage.empty

    @property
    def value(self) -> Any:
        """The value between two steps, as an array on the host that later steps do not change, or
        None.

        If the ranks of a data-parallel program have values of their own, this is the first rank's.
        """
        return (
            None if self._storage.empty else looking([self], lambda: lasting(self._storage.read()))
        )

    @value.setter
    def value(self, array: Any) -> None:
        def write() -> None:
            if not self._storage.write(array):
                self._storage.release()
                self.storage = Held(array)
            CHANGES[0] += 1

        looking([self], write, changing=True)

    @property
    def sparse(self) -> bool:
        """Whether the value is sparse rows (SELECTED_ROWS)."""
        return isinstance(self.storage, Held) and isinstance(
            self.storage.value, SelectedRows | HostRows
        )

    def get_tensor(self) -> LoDTensor:
        """The value as a tensor. Raises FluidTypeError if it is sparse rows."""
        if self.sparse:
            raise FluidTypeError(
                f"variable {self.name!r} holds sparse rows (SELECTED_ROWS); use get_selected_rows()"
                " instead"
            )
        if isinstance(self.storage, Held) and isinstance(self.storage.value, LoDTensorArray):
            raise FluidTypeError(
                f"variable {self.name!r} holds a LoDTensorArray; use get_lod_tensor_array() instead"
            )
        return ScopeTensor(self)

    def get_selected_rows(self) -> HostRows:
        """The value as sparse rows, which you may change. A variable without a value gets empty
        ones. Raises FluidTypeError if the value is something else.
        """

        def find() -> HostRows:
            if not (self.empty or self.sparse):
                raise FluidTypeError(
                    f"variable {self.name!r} holds no sparse rows (SELECTED_ROWS); use get_tensor()"
                    " instead"
                )
            value = self._storage.value if isinstance(self._storage, Held) else None
            if not isinstance(value, HostRows):
                value = HostRows() if value is None else HostRows.of(value)
                self.storage = Held(value)
            return value

        return looking([self], find, changing=True)

    def store(self, value: Any, lod: Lod) -> None:
        """Store a value, and the offsets of its sequences."""
        self.value, self.lod = value, lod

    def get_lod_tensor_array(self) -> LoDTensorArray:
        """The value as a LoDTensorArray. A variable without a value gets an empty one. If a program
        wrote the array, this is a copy.

        Raises FluidTypeError if the value is something else.
        """
        if self.value is None:
            self.value = LoDTensorArray()
        if is_array(value := self.value):
            from ..feeds.fetching import shown  # that module reads scopes

            return LoDTensorArray(shown(value, return_numpy=False))
        if not isinstance(value, LoDTensorArray):
            raise FluidTypeError(
                f"variable {self.name!r} holds no LoDTensorArray; use get_tensor() instead"
            )
        return value

    def set(self, value: Any, place: Any = None) -> None:
        self.get_tensor().set(value, place)

    def set_int(self, value: int) -> None:
        """Hold one integer."""
        self.value = np.int32(value)

    def set_float(self, value: float) -> None:
        """Hold one float."""
        self.value = np.float32(value)

    def get_int(self) -> int:
        """The integer that set_int stored. Raises FluidTypeError if the variable holds anything
        else.
        """
        return int(self._number("i", "integer"))

    def get_float(self) -> float:
        """The float that set_float stored. Raises FluidTypeError if the variable holds anything
        else.
        """
        return float(self._number("f", "float"))

    def is_int(self) -> bool:
        """Whether set_int was called last."""
        return self._is_number("i")

    def is_float(self) -> bool:
        """Whether set_float was called last."""
        return self._is_number("f")

    def _is_number(self, kind: str) -> bool:
        value = self.value
        return isinstance(value, np.generic | np.ndarray) and (value.shape, value.dtype.kind) == (
            (),
            kind,
        )

    def _number(self, kind: str, what: str) -> Any:
        if not self._is_number(kind):
            raise FluidTypeError(f"variable {self.name!r} holds no {what}")
        return self.value


class Scope:
    """Variables by name; a child scope sees its ancestors' (Fluid's core.Scope)."""

    def __init__(self, parent: Scope | None = None) -> None:
        self._vars: dict[str, ScopeVar] = {}
        self.parent = parent
        self._kids: list[Scope] = []
        # compiled step -> the buffers of its state in this scope
        self.bound: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def var(self, name: str) -> ScopeVar:
        """The variable of this scope (not of its ancestors), created if it does not exist."""
        if not isinstance(name, str):
            raise _no_name(name)
        var = self._vars.get(name)
        if var is None:
            var = self._vars.setdefault(name, ScopeVar(name))
            CHANGES[0] += 1  # it may hide an ancestor's
        return var

    def find_var(self, name: str) -> ScopeVar | None:
        """The variable here or in the nearest ancestor, or None."""
        if not isinstance(name, str):
            raise _no_name(name)
        scope: Scope | None = self
        while scope is not None:
            var = scope._vars.get(name)
            if var is not None:
                return var
            scope = scope.parent
        return None

    def persistable(self, name: str) -> ScopeVar:
        """The variable in which a program keeps a value: found as by find_var, else created in the
        outermost scope, as in Fluid.
        """
        found = self.find_var(name)
        if found is not None:
            return found
        outermost = self
        while outermost.parent is not None:
            outermost = outermost.parent
        return outermost.var(name)

    def new_scope(self) -> Scope:
        kid = Scope(self)
        self._kids.append(kid)
        return kid

    def drop_kids(self) -> None:
        self._kids.clear()

    def erase(self, names: list[str]) -> None:
        """Forget variables of this scope."""

        def forget() -> None:
            for name in names:
                var = self._vars.pop(name, None)
                if var is not None:
                    var.storage.release()  # variables that share buffers with it stay usable

        looking(
            [v for name in names if (v := self._vars.get(name)) is not None], forget, changing=True
        )
        CHANGES[0] += 1

    def local_var_names(self) -> list[str]:
        return list(self._vars)

    def between_steps(
        self, names: Iterable[str], work: Callable[[], T], changing: bool = False
    ) -> T:
        """Call `work` while no step of any thread changes these variables, and return its result.
        Names that do not exist are ignored.

        changing: `work` changes the variables itself.
        """
        return looking(
            [v for name in names if (v := self.find_var(name)) is not None], work, changing
        )

    def put(self, values: Mapping[str, Any]) -> None:
        """Store values by name, all between the same two steps. Each goes to the nearest scope that
        has the name, else to this one.
        """

        def store() -> None:
            for name, value in values.items():
                self.persistable(name).value = value

        self.between_steps(values, store, changing=True)

    def get(self, name: str) -> np.ndarray:
        """A copy of a variable's value as a NumPy array; for sparse rows, the whole table. Raises
        KeyError for a name without a value.
        """
        var = self.find_var(name)
        value = None if var is None else var.value
        if value is None:
            raise KeyError(name)
        return np.array(value.table() if isinstance(value, SelectedRows) else value)


def _no_name(name: Any) -> FluidTypeError:
    return FluidTypeError(
        f"a scope finds variables by name (a string), not by {type(name).__name__}"
    )


_current = InForce("scope", Scope())


def global_scope() -> Scope:
    """The scope that Executor.run uses by default."""
    return _current.get()


def chosen(scope: Scope | None) -> Scope:
    """The given scope, by default the one in force. Raises FluidTypeError for anything but a
    Scope.
    """
    if scope is None:
        return global_scope()
    if not isinstance(scope, Scope):
        raise FluidTypeError(
            f"scope is a fluid.Scope, such as fluid.global_scope(), not {type(scope).__name__}"
        )
    return scope


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Make `scope` the default within the block, in this thread."""
    if not isinstance(scope, Scope):
        raise FluidTypeError(f"scope_guard takes a Scope, not {type(scope).__name__}")
    with _current.within(scope):
        yield
