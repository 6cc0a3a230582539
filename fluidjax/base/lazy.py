"""Imports a package's modules when their names are first used, so that a first program starts
sooner.

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

    modules: module below the package -> the names that come from it; the module itself is also a
    name. otherwise: called for all other names; by default AttributeError is raised.
    """
    later = {name: module for module, names in modules.items() for name in names.split()}
    later |= {module: module for module in modules if "." not in module}

    def find(name: str) -> Any:
        if name in later:
            module = importlib.import_module(f"{package}.{later[name]}")
            value = module if later[name] == name else getattr(module, name)
            setattr(sys.modules[package], name, value)  # later look-ups do not call __getattr__
            return value
        if otherwise is not None:
            otherwise(name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *later})

    return find, names
