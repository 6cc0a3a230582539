"""Reports which of Paddle's names fluidjax supports: for a script (compat_report), and for all
names (docs/compatibility.md).
"""

from __future__ import annotations

from .report import CompatReport as CompatReport
from .report import Use as Use
from .report import compat_report as compat_report

__all__ = ["CompatReport", "Use", "compat_report"]
