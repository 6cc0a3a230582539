"""fluid.parallel_executor: ParallelExecutor under the module name of Fluid's scripts; it is in
compiler.py.
"""

from .compiler import BuildStrategy, ExecutionStrategy, ParallelExecutor

__all__ = ["BuildStrategy", "ExecutionStrategy", "ParallelExecutor"]
