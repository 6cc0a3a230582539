"""The memory report: what a program needs while it runs, before it runs. ``Program.memory_report`` is its entry."""

from ..graph import program
from .report import MemoryReport as MemoryReport
from .report import memory_report as memory_report


def install() -> None:
    """Let ``Program.memory_report`` find the function (programs are of a lower level and cannot import it)."""
    program.memory_reporter = memory_report
