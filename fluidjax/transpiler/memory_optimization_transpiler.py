"""Fluid's module name for memory_optimize and release_memory, which are in memory.py."""

from .memory import memory_optimize, release_memory

__all__ = ["memory_optimize", "release_memory"]
