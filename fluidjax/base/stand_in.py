"""Stand-ins for unsupported modules that scripts import without needing them: the import works, and
a call raises an error.
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
    """Stands in for a name of an unsupported module. You can derive classes from it; a call of it
    or of such a class raises UnsupportedError.
    """

    fluid_absent = ""  # the error's sentence

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(cls.fluid_absent)

    @staticmethod
    def of(path: str, reason: str) -> type[StandIn]:
        """The stand-in for a path such as "fluid.dygraph.Layer". reason: the error's sentence."""
        module, _, name = path.rpartition(".")
        return type(
            name,
            (StandIn,),
            {"fluid_absent": f"{path}: {reason}", "__module__": module, "__doc__": reason},
        )


def absent(thing: Any) -> str | None:
    """The sentence of a stand-in; None for anything else."""
    found: str | None = getattr(thing, "__dict__", {}).get("fluid_absent")
    return found


def decorator(path: str, reason: str) -> Callable[..., Any]:
    """A stand-in for a decorator, which modules call during import. The decorated function raises
    the error when it is called. Without a function, the decorator raises it at once.
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
    """Give the calling module its names, and make the modules below it; called during import.

    name: the module's name; below: module below it ("": itself) -> its names; reason: the error's
    sentence; shown: the word for "fluidjax" in messages. decorators: names that modules call during
    import; there: names that work.
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
    """A module's ``__getattr__``: makes the stand-in for a name at its first use."""

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
