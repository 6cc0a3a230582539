"""All op types by name."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import UnknownOpError, near
from .attributes import hint_type
from .control_interface import ControlOp
from .definition import OpDef
from .traits import Traits

JAX = "jax."


class Registry(dict[str, OpDef]):
    """Op types by name. The families that few programs use are imported when you look up a type
    that is not registered yet, or iterate.

    An iteration gives Paddle's and Fluid's types. JAX's own (``jax.add``, ops/lax/) are found by
    name only.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._rest: Callable[[], None] | None = None
        self._made: Callable[[str], OpDef | None] = lambda kind: None
        self._lax: dict[str, OpDef] = {}

    def made_by(self, make: Callable[[str], OpDef | None]) -> None:
        """`make` holds the op types that are made at their first look-up and not listed."""
        self._made = make

    def lax(self) -> dict[str, OpDef]:
        """JAX's op types, imported at the first look-up."""
        if not self._lax:
            with self._lock:
                importlib.import_module("fluidjax.ops.lax")
        return self._lax

    def __setitem__(self, kind: str, definition: OpDef) -> None:
        if kind.startswith(JAX):
            self._lax[kind] = definition
        else:
            super().__setitem__(kind, definition)

    def later(self, rest: Callable[[], None]) -> None:
        """`rest` imports the families that are not imported yet."""
        self._rest = rest

    def has(self, kind: str) -> bool:
        """Whether a type is there already."""
        return super().__contains__(kind) or kind in self._lax

    def complete(self) -> None:
        """Import all families."""
        with self._lock:  # other threads wait until all families are imported
            rest, self._rest = self._rest, None
            if rest is not None:
                rest()

    def __missing__(self, kind: str) -> OpDef:
        found = self.get(kind)
        if found is None:
            raise KeyError(kind)
        return found

    def __contains__(self, kind: object) -> bool:
        return self.get(kind) is not None

    def get(self, kind: Any, default: Any = None) -> Any:
        if (found := super().get(kind)) is not None:
            return found
        if isinstance(kind, str) and kind.startswith(JAX):
            found = self.lax().get(kind)
        else:
            self.complete()
            found = super().get(kind)
        if found is None and isinstance(kind, str):
            found = self._made(kind)
        return default if found is None else found

    def __iter__(self) -> Iterator[str]:
        self.complete()
        return super().__iter__()

    def __len__(self) -> int:
        self.complete()
        return super().__len__()

    def keys(self) -> Any:
        self.complete()
        return super().keys()

    def values(self) -> Any:
        self.complete()
        return super().values()

    def items(self) -> Any:
        self.complete()
        return super().items()


REGISTRY = Registry()


def lookup(kind: str) -> OpDef:
    """The OpDef of an op type. Raises UnknownOpError naming the nearest types there are."""
    try:
        return REGISTRY[kind]
    except KeyError:
        raise UnknownOpError(f"there is no op type {kind!r}{near(str(kind), REGISTRY)}") from None


def attr_type(kind: str, name: str) -> str | None:
    """Paddle's type of attribute `name` of op type `kind`; None if either is unknown."""
    found = REGISTRY.get(kind)
    return found.attr_type(name) if found else hint_type(name)


def register(definition: OpDef) -> OpDef:
    """Put an op type in the registry; a second one of the same name is an error."""
    if REGISTRY.has(definition.type):
        raise UnknownOpError(f"op type {definition.type!r} is declared twice")
    REGISTRY[definition.type] = definition
    return definition


def having(test: Callable[[Traits], bool]) -> tuple[str, ...]:
    """The op types whose traits pass a test."""
    return tuple(kind for kind, definition in REGISTRY.items() if test(definition.traits))


_NONE = Traits()


def traits(kind: str) -> Traits:
    """The traits of an op type; the default traits if the type is unknown."""
    found = REGISTRY.get(kind)
    return found.traits if found else _NONE


_PLAIN = ControlOp()


def control(kind: str) -> ControlOp:
    """The ControlOp of an op type; one shared value for all other types, and for unknown ones."""
    found = REGISTRY.get(kind)
    return found.control if found else _PLAIN
