"""fluid.framework: programs, blocks, ops and variables, under the module name of Fluid's scripts; graph/ has them."""

from typing import TYPE_CHECKING, Any

from .base.absent import reporter
from .base.dtypes import VarType, enum_of
from .base.flags import get_flags, set_flags
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
from .ir.desc import EMPTY as EMPTY_VAR_NAME
from .ir.desc import BlockRef, VarDesc
from .ir.gradients import GRAD as GRAD_VAR_SUFFIX
from .runtime.place import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    cpu_places,
    cuda_pinned_places,
    cuda_places,
    is_compiled_with_cuda,
)


def in_dygraph_mode() -> bool:
    """False: there is no dynamic mode."""
    return False


def grad_var_name(var_name: str) -> str:
    """The name of a variable's gradient."""
    return var_name + GRAD_VAR_SUFFIX


def _get_var(name: str, program: Program | None = None) -> Variable:
    """The variable of a program's block 0 (default: of the main program). Raises FluidValueError if it has none of that name."""
    return as_program(program).global_block().var(name)


def _current_expected_place() -> None:
    """None, as in Paddle's static mode: the place is an Executor's."""


def convert_np_dtype_to_dtype_(np_dtype: Any) -> VarType:
    """Fluid's dtype for NumPy's, or for a dtype's name. Raises FluidTypeError where there is none."""
    return enum_of(np_dtype)


__all__ = [
    "EMPTY_VAR_NAME",
    "GRAD_VAR_SUFFIX",
    "Block",
    "BlockRef",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "NameScope",
    "OpRole",
    "Operator",
    "Parameter",
    "Program",
    "VarDesc",
    "Variable",
    "as_program",
    "convert_np_dtype_to_dtype_",
    "cpu_places",
    "cuda_pinned_places",
    "cuda_places",
    "default_main_program",
    "default_startup_program",
    "get_flags",
    "grad_var_name",
    "in_dygraph_mode",
    "is_compiled_with_cuda",
    "name_scope",
    "program_guard",
    "set_flags",
    "switch_main_program",
    "switch_startup_program",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.framework", __all__)
