"""The memory report: what a program needs while it runs, before it runs. ``Program.memory_report`` is its entry."""

from ..graph.program import Program
from .report import MemoryReport as MemoryReport
from .report import memory_report as memory_report


def install() -> None:
    """Give programs the method memory_report (they are of a lower level and cannot import it)."""
    setattr(Program, "memory_report", memory_report)  # noqa: B010 - mypy knows no such attribute
