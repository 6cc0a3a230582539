"""Fluid's transpilers: in-place names over frozen programs and the functional passes."""

from __future__ import annotations

from .apply import apply_passes as apply_passes
from .config import DistributeTranspilerConfig as DistributeTranspilerConfig
from .dispatcher import HashName as HashName
from .dispatcher import PSDispatcher as PSDispatcher
from .dispatcher import RoundRobin as RoundRobin
from .dispatcher import SizeBalanced as SizeBalanced
from .distribute import DistributeTranspiler as DistributeTranspiler
from .distribute import GeoSgdTranspiler as GeoSgdTranspiler
from .inference import InferenceTranspiler as InferenceTranspiler
from .memory import memory_optimize as memory_optimize
from .memory import release_memory as release_memory
from .sharding import shard_optimizer as shard_optimizer
from .slicing import slice_variable as slice_variable
