"""Every op type that fluidjax has, by family. Importing this package fills the registry.

A family is a module of this folder that declares ops with ``@op``; it needs to be named nowhere.
"""

from __future__ import annotations

import importlib
import pkgutil

from ..base.collector import paused

LAST = "grad"  # it ties ops of several families together
OPS_MODULES = (*sorted({m.name for m in pkgutil.iter_modules(__path__)} - {LAST}), LAST)

with paused():  # a third of the import was the collector, looking through what JAX has made
    for _name in OPS_MODULES:
        importlib.import_module(f"{__name__}.{_name}")
