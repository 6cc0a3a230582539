"""Ops of object detection: boxes, regions of interest and proposals. The modules of this folder are
found automatically.
"""

from __future__ import annotations

import importlib
import pkgutil

for _module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_module}")
