"""What scripts reach for as ``fluid.core``: places, scopes, enums, errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base.absent import reporter
from .base.dtypes import VarType
from .base.roles import OpRole
from .errors import EnforceNotMet as EnforceNotMet
from .lod_tensor import LoDTensor as LoDTensor
from .runtime.place import CPUPlace as CPUPlace
from .runtime.place import CUDAPinnedPlace as CUDAPinnedPlace
from .runtime.place import CUDAPlace as CUDAPlace
from .runtime.place import gpus
from .runtime.place import is_compiled_with_cuda as is_compiled_with_cuda
from .runtime.scope import Scope as Scope


class EOFException(Exception):
    """A reader has no more batches."""


class VarDesc:
    """Paddle's name space for variable types: ``core.VarDesc.VarType.FP32``."""

    VarType = VarType


class op_proto_and_checker_maker:
    """Paddle's name space for op roles."""

    OpRole = OpRole

    @staticmethod
    def kOpRoleAttrName() -> str:
        return "op_role"

    @staticmethod
    def kOpRoleVarAttrName() -> str:
        return "op_role_var"


def get_cuda_device_count() -> int:
    """How many GPUs JAX sees."""
    return len(gpus())


def grad_var_suffix() -> str:
    """What a gradient's name ends in."""
    return "@GRAD"


def empty_var_name() -> str:
    """The name that means no variable."""
    return "@EMPTY@"

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.core", dir())
