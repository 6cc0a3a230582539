"""Modules whose subject is not there, but that scripts import beside what they need: they import,
and what is called says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..errors import UnsupportedError
from .absent import MissingName


class StandIn:
    """What a name of such a module stands for. Classes can be derived from it; to call it, or them,
    raises UnsupportedError.
    """

    fluid_absent = ""  # the sentence

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(cls.fluid_absent)

    @staticmethod
    def of(path: str, reason: str) -> type[StandIn]:
        """What stands in for "fluid.dygraph.Layer". reason: the sentence about its subject."""
        module, _, name = path.rpartition(".")
        return type(
            name,
            (StandIn,),
            {"fluid_absent": f"{path}: {reason}", "__module__": module, "__doc__": reason},
        )


def absent(thing: Any) -> str | None:
    """The sentence of what stands in for something; None for anything else."""
    found: str | None = getattr(thing, "__dict__", {}).get("fluid_absent")
    return found


def decorator(path: str, reason: str) -> Callable[..., Any]:
    """What stands in for a decorator, which modules call as they are imported: the function that it
    is given, when that is called, says that the subject is not there. Given no function, it says so
    at once.
    """
    stand_in = StandIn.of(path, reason)

    def decorate(function: Any = None, *args: Any, **kwargs: Any) -> Any:
        return stand_in if callable(function) else stand_in(*args, **kwargs)

    decorate.__doc__ = reason
    decorate.fluid_absent = stand_in.fluid_absent  # type: ignore[attr-defined]
    return decorate


def fill(
    name: str,
    below: Mapping[str, str],
    reason: str,
    shown: str = "fluid",
    decorators: Iterable[str] = (),
    there: Mapping[str, Any] | None = None,
) -> None:
    """Give a module, which calls this while it is imported, its names, and make the modules below
    it.

    name: the module's; below: module below it ("": itself) -> its names; reason: the sentence about
    the subject; shown: what stands for "fluidjax" in messages. decorators: names that are called
    where modules are imported; there: names that work.
    """
    for part, names in below.items():
        full = f"{name}.{part}" if part else name
        path = full.replace("fluidjax", shown, 1).lstrip(".")
        module: Any = ModuleType(full, f"{path}: {reason}") if part else sys.modules[name]
        module.fluid_absent = f"{path}: {reason}"
        module.__all__ = names.split()
        module.__dir__ = lambda names=module.__all__: list(names)
        module.__getattr__ = _getter(module, path, reason, frozenset(decorators), there or {})
        if part:
            module.__spec__, module.__path__ = ModuleSpec(full, None, is_package=True), []
            sys.modules[full] = module
            parent, _, last = full.rpartition(".")
            setattr(sys.modules[parent], last, module)


def _getter(
    module: Any, path: str, reason: str, decorators: frozenset[str], there: Mapping[str, Any]
) -> Callable[[str], Any]:
    """A module's ``__getattr__``: makes what stands in for a name when it is first asked for."""

    def get(name: str) -> Any:
        if name not in module.__all__:
            raise (
                AttributeError(name)
                if name.startswith("__")
                else MissingName(f"{path}.{name}: {reason}")
            )
        full = f"{path}.{name}"
        value = there.get(name) or (
            decorator(full, reason) if name in decorators else StandIn.of(full, reason)
        )
        setattr(module, name, value)
        return value

    return get
