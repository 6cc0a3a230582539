"""fluid.parallel_executor: ParallelExecutor under the module name of Fluid's scripts; compiler.py
has it.
"""

from .compiler import BuildStrategy, ExecutionStrategy, ParallelExecutor

__all__ = ["BuildStrategy", "ExecutionStrategy", "ParallelExecutor"]
