"""fluid.transpiler.details: the tools of Paddle's transpilers that scripts call."""

from typing import TYPE_CHECKING

from ...base.absent import reporter
from .program_utils import block_to_code as block_to_code
from .program_utils import delete_ops as delete_ops
from .program_utils import find_op_by_input_arg as find_op_by_input_arg
from .program_utils import find_op_by_output_arg as find_op_by_output_arg
from .program_utils import op_to_code as op_to_code
from .program_utils import program_to_code as program_to_code
from .program_utils import variable_to_code as variable_to_code

HINTS = dict.fromkeys(
    "UnionFind VarDistributed VarStruct VarsDistributed get_indent_space string_types"
    " wait_server_ready".split(),
    "is a part of Paddle's own transpiler",
)
__all__ = [
    "block_to_code", "delete_ops", "find_op_by_input_arg", "find_op_by_output_arg", "op_to_code", "program_to_code",
    "variable_to_code",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.transpiler.details", __all__, HINTS)
