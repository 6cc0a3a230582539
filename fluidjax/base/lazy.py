"""Names of a package whose modules are imported when they are first used, so that a first program
waits for less.

The package binds them under ``if TYPE_CHECKING``, for editors and type checkers, and otherwise has

    __getattr__, __dir__ = on_demand(__name__, {"io": "load save", "local.job": "LocalJob"})
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn


def on_demand(
    package: str, modules: Mapping[str, str], otherwise: Callable[[str], NoReturn] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's ``__getattr__`` and ``__dir__``.

    modules: module below the package -> the names that are taken from it; the module itself is a
    name too. otherwise: what answers for all other names; default AttributeError.
    """
    later = {name: module for module, names in modules.items() for name in names.split()}
    later |= {module: module for module in modules if "." not in module}

    def find(name: str) -> Any:
        if name in later:
            module = importlib.import_module(f"{package}.{later[name]}")
            value = module if later[name] == name else getattr(module, name)
            setattr(sys.modules[package], name, value)  # from now on it is found without asking
            return value
        if otherwise is not None:
            otherwise(name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *later})

    return find, names
