"""Control ops: ops that hold blocks or act outside of a step, one per file; no list names the
files.

A file declares slots, attributes and traits, how the op is lowered, what it carries, how its
gradient is written and whether ranks may differ in it (``ControlOp`` in ../control_interface.py).
"""

from __future__ import annotations

import importlib
import pkgutil

for _module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_module}")
