"""paddle.utils: names of variables, and whether fluidjax runs here."""

from __future__ import annotations

from ... import unique_name as unique_name
from ...framework import require_version as require_version
from ...install_check import run_check as run_check

__all__ = ["require_version", "run_check", "unique_name"]
