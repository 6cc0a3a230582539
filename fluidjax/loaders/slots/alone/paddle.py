"""``import paddle`` within a dataset's pipe command: imports only data_generator, without JAX, and
all of fluidjax at the first use of anything else.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

_PACKAGE = Path(__file__).resolve().parents[3]
_AT_ONCE = {
    "paddle.fluid": None,
    "paddle.fluid.incubate": None,
    "paddle.fluid.incubate.data_generator": _PACKAGE / "incubate" / "data_generator.py",
}


class _Light(ModuleType):
    """A package that contains only the path to data_generator."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        _all()
        return getattr(importlib.import_module(self.__name__), name)


class _Finder(Loader):
    """Finds the modules of data_generator directly; any other name imports all of fluidjax."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in _AT_ONCE:
            place = _AT_ONCE[name]
            return (
                ModuleSpec(name, self, is_package=True)
                if place is None
                else spec_from_file_location(name, place)
            )
        return _all().find_spec(name, path, target) if name.startswith("paddle.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Light(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing, because there is nothing to run."""


def _all() -> Any:
    """Replace paddle by fluidjax, and return the finder of its modules."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
        sys.path.append(str(_PACKAGE.parent))
        begun = [name for name in sys.modules if name.split(".")[0] == "paddle"]
        importlib.import_module("fluidjax.paddle").install()
        for name in begun:  # imports below these modules, which are in progress, look for them
            importlib.import_module(name)
    return sys.meta_path[0]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    _all()
    return getattr(importlib.import_module("paddle"), name)


_finder: Any = _Finder()
__path__: list[str] = []
if __name__ == "paddle":
    sys.meta_path.insert(0, _finder)
    sys.path.append(str(_PACKAGE / "cli" / "beside"))  # six, if it is not installed
