"""fluid.framework: programs, blocks, ops and variables, under the module name of Fluid's scripts; graph/ has them."""

from .base.roles import OpRole
from .graph.block import Block
from .graph.name_scope import NameScope, name_scope
from .graph.operator import Operator
from .graph.program import (
    Program,
    as_program,
    default_main_program,
    default_startup_program,
    program_guard,
    switch_main_program,
    switch_startup_program,
)
from .graph.variable import Parameter, Variable
from .ir.desc import BlockRef, VarDesc
from .runtime.place import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    cpu_places,
    cuda_pinned_places,
    cuda_places,
    is_compiled_with_cuda,
)

__all__ = [
    "Block", "BlockRef", "CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "NameScope", "OpRole", "Operator", "Parameter",
    "Program", "VarDesc", "Variable", "as_program", "cpu_places", "cuda_pinned_places", "cuda_places",
    "default_main_program", "default_startup_program", "is_compiled_with_cuda", "name_scope", "program_guard",
    "switch_main_program", "switch_startup_program",
]  # fmt: skip
