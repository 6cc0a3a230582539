"""fluid.framework: programs, blocks, ops and variables, under the module name of Fluid's scripts;
they are in graph/.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any, NoReturn

from .base.absent import reporter
from .base.dtypes import VarType, enum_of
from .base.flags import get_flags, set_flags
from .base.roles import OpRole
from .core import kControlDepVarName, kTempVarName, kZeroVarSuffix
from .devices.place import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    cpu_places,
    cuda_pinned_places,
    cuda_places,
    is_compiled_with_cuda,
)
from .errors import FluidTypeError, FluidValueError, UnsupportedError
from .graph.block import Block
from .graph.device_guard import device_guard
from .graph.ir_graph import IrGraph
from .graph.ir_nodes import IrNode, IrOpNode, IrVarNode
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
from .ops.registry import REGISTRY, lookup

TEMP_VAR_NAME = kTempVarName()
ZERO_VAR_SUFFIX = kZeroVarSuffix()
CONTROL_DEP_VAR_PREFIX = kControlDepVarName()


def in_dygraph_mode() -> bool:
    """False: there is no dynamic mode."""
    return False


VERSIONS = "1.8.5", "2.0.0"  # the first and last Paddle whose names and behaviour are supported


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Check that some version from min_version to max_version is supported: 1.8.5 to 2.0.0.

    Versions are one to four numbers separated by dots. Raises FluidTypeError for anything but text,
    FluidValueError for text that is not a version, UnsupportedError if no version in the range is
    supported.
    """
    least = _version("min_version", min_version)
    most = None if max_version is None else _version("max_version", max_version)
    first, last = (_version("", v) for v in VERSIONS)
    if least > last or (most is not None and most < first):
        wanted = (
            f"{min_version} or later"
            if most is None
            else f"between {min_version} and {max_version}"
        )
        raise UnsupportedError(
            f"the script wants a Paddle {wanted}; the names here are those of {VERSIONS[0]} to"
            f" {VERSIONS[1]}"
        )


def _version(what: str, text: Any) -> tuple[int, ...]:
    if not isinstance(text, str):
        raise FluidTypeError(f"require_version's {what} is text such as '1.8.5', not {text!r}")
    if not re.fullmatch(r"\d+(\.\d+){0,3}", text):
        raise FluidValueError(
            f"require_version's {what} is one to four numbers with dots, such as '1.8.5', not"
            f" {text!r}"
        )
    numbers = [int(n) for n in text.split(".")]
    return (*numbers, *[0] * (4 - len(numbers)))


def load_op_library(lib_filename: str) -> NoReturn:
    """Not supported, because custom ops are functions over JAX here. Raises UnsupportedError."""
    raise UnsupportedError(
        f"load_op_library({lib_filename!r}): ops in C++ do not run here; declare the op as a Python"
        " function over jax.numpy with fluidjax.ops.registry.op, and its gradient with"
        " fluidjax.ops.registry.grad_of"
    )


class OpProtoHolder:
    """The declarations of op types as Paddle's OpProto messages:
    ``OpProtoHolder.instance().get_op_proto("mul").inputs``.
    """

    _only: OpProtoHolder | None = None

    @classmethod
    def instance(cls) -> OpProtoHolder:
        """The only instance."""
        cls._only = cls._only or cls()
        return cls._only

    def get_op_proto(self, type: str) -> Any:
        """The OpProto of an op type. Raises UnknownOpError (a ValueError) for an unknown type."""
        from .proto.declared import op_proto

        return op_proto(lookup(type))

    @staticmethod
    def generated_op_attr_names() -> set[str]:
        """The attributes that every op has."""
        return {"op_role", "op_role_var", "op_namescope", "op_callstack", "op_device"}


def get_all_op_protos() -> list[Any]:
    """The OpProto of every op type."""
    return [OpProtoHolder.instance().get_op_proto(kind) for kind in sorted(REGISTRY)]


def grad_var_name(var_name: str) -> str:
    """The name of a variable's gradient."""
    return var_name + GRAD_VAR_SUFFIX


def _get_var(name: str, program: Program | None = None) -> Variable:
    """The variable of a program's block 0 (default: of the main program). Raises FluidValueError if
    it has none of that name.
    """
    return as_program(program).global_block().var(name)


get_var = _get_var  # its name before 1.0


def dtype_is_floating(dtype: Any) -> bool:
    """Whether a dtype, or the dtype of a name, is float16, float32 or float64."""
    return enum_of(dtype) in (VarType.FP16, VarType.FP32, VarType.FP64)


def generate_control_dev_var_name() -> str:
    """A new name for a variable that only orders the ops of a graph."""
    return f"{CONTROL_DEP_VAR_PREFIX}@{random.random()}"


def _dygraph_tracer() -> None:
    """None: there is no dynamic mode."""


def _current_expected_place() -> None:
    """None, as in Paddle's static mode: the place is an Executor's."""


def convert_np_dtype_to_dtype_(np_dtype: Any) -> VarType:
    """Fluid's dtype for NumPy's, or for a dtype's name. Raises FluidTypeError if there is none."""
    return enum_of(np_dtype)


__all__ = [
    "EMPTY_VAR_NAME",
    "GRAD_VAR_SUFFIX",
    "Block",
    "BlockRef",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "IrGraph",
    "IrNode",
    "IrOpNode",
    "IrVarNode",
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
    "device_guard",
    "get_flags",
    "grad_var_name",
    "in_dygraph_mode",
    "is_compiled_with_cuda",
    "load_op_library",
    "name_scope",
    "program_guard",
    "require_version",
    "set_flags",
    "switch_main_program",
    "switch_startup_program",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.framework", __all__)
