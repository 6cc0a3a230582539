"""Program and related names, under the module name that scripts import; they are in graph/."""

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

__all__ = [
    "Block", "BlockRef", "NameScope", "OpRole", "Operator", "Parameter", "Program", "VarDesc", "Variable",
    "as_program", "default_main_program", "default_startup_program", "name_scope", "program_guard",
    "switch_main_program", "switch_startup_program",
]  # fmt: skip
