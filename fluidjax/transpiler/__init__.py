"""Fluid's transpilers: in-place names over frozen programs and the functional passes."""

from __future__ import annotations

from . import details as details
from .apply import apply_passes as apply_passes
from .config import DistributeTranspilerConfig as DistributeTranspilerConfig
from .distribute_transpiler import DistributeTranspiler as DistributeTranspiler
from .geo_sgd_transpiler import GeoSgdTranspiler as GeoSgdTranspiler
from .inference import InferenceTranspiler as InferenceTranspiler
from .memory import memory_optimize as memory_optimize
from .memory import release_memory as release_memory
from .ps_dispatcher import HashName as HashName
from .ps_dispatcher import PSDispatcher as PSDispatcher
from .ps_dispatcher import RoundRobin as RoundRobin
from .ps_dispatcher import SizeBalanced as SizeBalanced
from .sharding import shard_optimizer as shard_optimizer
from .slicing import slice_variable as slice_variable
