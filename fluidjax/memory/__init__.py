"""The memory report: the memory that a program needs, computed before it runs.
``Program.memory_report`` is its entry.
"""

from .report import MemoryReport as MemoryReport
from .report import memory_report as memory_report
