"""Fluid's transpilers: in-place names over the functional passes."""

from __future__ import annotations

from .apply import apply_passes as apply_passes
from .inference import InferenceTranspiler as InferenceTranspiler
from .memory import memory_optimize as memory_optimize
from .memory import release_memory as release_memory
