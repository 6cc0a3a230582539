"""All op types by name."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import UnknownOpError, near
from .attributes import HINTS
from .control_interface import ControlOp
from .definition import OpDef
from .traits import Traits

REGISTRY: dict[str, OpDef] = {}


def lookup(kind: str) -> OpDef:
    """The OpDef of an op type. Raises UnknownOpError naming the nearest types there are."""
    try:
        return REGISTRY[kind]
    except KeyError:
        raise UnknownOpError(f"there is no op type {kind!r}{near(str(kind), REGISTRY)}") from None


def attr_type(kind: str, name: str) -> str | None:
    """Paddle's type of attribute `name` of op type `kind`; None where either is unknown."""
    found = REGISTRY.get(kind)
    return found.attr_type(name) if found else HINTS.get(name)


def register(definition: OpDef) -> OpDef:
    """Put an op type in the registry; a second one of the same name is an error."""
    if definition.type in REGISTRY:
        raise UnknownOpError(f"op type {definition.type!r} is declared twice")
    REGISTRY[definition.type] = definition
    return definition


def having(test: Callable[[Traits], bool]) -> tuple[str, ...]:
    """The op types whose traits pass a test."""
    return tuple(kind for kind, definition in REGISTRY.items() if test(definition.traits))


_NONE = Traits()


def traits(kind: str) -> Traits:
    """The traits of an op type; those of an op that says nothing where the type is unknown."""
    found = REGISTRY.get(kind)
    return found.traits if found else _NONE


_PLAIN = ControlOp()


def control(kind: str) -> ControlOp:
    """What an op type is as a control op; the same for all that are none, and for unknown ones."""
    found = REGISTRY.get(kind)
    return found.control if found else _PLAIN
