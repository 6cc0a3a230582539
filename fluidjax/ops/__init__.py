"""Every op type that fluidjax has, by family. Importing this package fills the registry.

A family is a module of this folder that declares ops with ``@op``; no list names it. The families
that most programs use are imported at once, the others at the first look-up of an op type that is
not registered yet (catalog.py). That halves the import time, and saves more without bytecode. JAX's
own op types (lax/) are imported when one is looked up by name.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

from .catalog import REGISTRY
from .common import COMMON, LAST

OPS_MODULES = (*sorted({m.name for m in pkgutil.iter_modules(__path__)} - {LAST, "lax"}), LAST)


def _import(names: Iterable[str]) -> None:
    for name in names:
        importlib.import_module(f"{__name__}.{name}")


_import(COMMON)
REGISTRY.later(lambda: _import(OPS_MODULES))
