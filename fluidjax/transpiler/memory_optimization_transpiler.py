"""Fluid's module name for memory_optimize and release_memory; memory.py has them."""

from .memory import memory_optimize, release_memory

__all__ = ["memory_optimize", "release_memory"]
