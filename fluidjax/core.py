"""Names that scripts use as ``fluid.core``: places, scopes, enums, errors."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .base.absent import reporter
from .base.flags import DEFAULTS, get_flags, set_flags
from .base.roles import OpRole
from .base.stand_in import StandIn
from .devices.place import CPUPlace as CPUPlace
from .devices.place import CUDAPinnedPlace as CUDAPinnedPlace
from .devices.place import CUDAPlace as CUDAPlace
from .devices.place import Place as _Place
from .devices.place import XPUPlace as XPUPlace
from .devices.place import as_place, gpus
from .devices.place import is_compiled_with_cuda as is_compiled_with_cuda
from .devices.place import is_compiled_with_xpu as is_compiled_with_xpu
from .devices.place import synchronize as _cuda_synchronize  # noqa: F401
from .errors import EnforceNotMet as EnforceNotMet
from .errors import FluidTypeError, FluidValueError, UnknownOpError
from .graph.core_graph import Graph as Graph
from .graph.core_graph import Node as Node
from .graph.described import OpDesc as OpDesc
from .graph.described import VarDesc as _VarDesc
from .graph.program import Program
from .ir.desc import ProgramDesc as _ProgramDesc
from .lod_tensor import LoDTensor as LoDTensor
from .lod_tensor import LoDTensorArray as LoDTensorArray
from .ops.registry import OpDef, lookup
from .profiling.ranges import nvprof_nvtx_pop as nvprof_nvtx_pop
from .profiling.ranges import nvprof_nvtx_push as nvprof_nvtx_push
from .state.scope import Scope as Scope
from .state.selected_rows import SelectedRows as SelectedRows

DenseTensor = LoDTensor
_Scope = Scope  # its name in 1.8.5
PREDICTORS = frozenset(
    "AnalysisConfig AnalysisPredictor NativeConfig NativePaddlePredictor PaddleBuf PaddleDType"
    " PaddlePredictor PaddleTensor ZeroCopyTensor create_paddle_predictor".split()
)
# no value is an instance of these
DYNAMIC = frozenset(("BackwardStrategy", "Layer", "Tracer", "VarBase"))
# looks up a name of PREDICTORS; the package sets it, because it is of a higher level
predictor_names: list[Callable[[str], Any]] = []


class EOFException(Exception):
    """A reader has no more batches. names: the variables that it feeds."""

    names: tuple[str, ...] = ()


class VarDesc(_VarDesc):
    """A variable's description; also Paddle's name space for variable types:
    ``core.VarDesc.VarType.FP32``.
    """


class ProgramDesc(_ProgramDesc):
    """``ProgramDesc()`` is the description of an empty program, ``ProgramDesc(data)`` the one that
    serialize_to_string wrote, ``ProgramDesc(desc)`` the value itself.

    Raises ParseError for bytes that hold none, FluidTypeError for anything else.
    """

    def __new__(cls, source: bytes | _ProgramDesc = _ProgramDesc()) -> _ProgramDesc:  # type: ignore[misc]  # noqa: B008
        if isinstance(source, bytes):
            return Program.parse_from_string(source).desc
        if not isinstance(source, _ProgramDesc):
            raise FluidTypeError(
                f"ProgramDesc takes bytes, a program's desc or nothing, not {type(source).__name__}"
            )
        return source


class AttrType(enum.StrEnum):
    """The types of an op's attributes, as ``op.attr_type(name)`` returns them."""

    INT = "INT"
    FLOAT = "FLOAT"
    STRING = "STRING"
    INTS = "INTS"
    FLOATS = "FLOATS"
    STRINGS = "STRINGS"
    BOOL = "BOOLEAN"
    BOOLS = "BOOLEANS"
    BLOCK = "BLOCK"
    BLOCKS = "BLOCKS"
    LONG = "LONG"
    LONGS = "LONGS"


class op_proto_and_checker_maker:
    """Paddle's name space for op roles."""

    OpRole = OpRole

    @staticmethod
    def kOpRoleAttrName() -> str:
        return "op_role"

    @staticmethod
    def kOpRoleVarAttrName() -> str:
        return "op_role_var"

    @staticmethod
    def kOpNameScopeAttrName() -> str:
        return "op_namescope"

    @staticmethod
    def kOpDeviceAttrName() -> str:
        return "op_device"


class Place:
    """A place that set_place chooses later; an Executor uses the chosen place."""

    def __init__(self) -> None:
        self.chosen: _Place | None = None

    def set_place(self, place: _Place) -> None:
        """Choose the place. Raises FluidTypeError for anything but a place."""
        if place is None:
            raise FluidTypeError("set_place takes CPUPlace() or CUDAPlace(id), not None")
        self.chosen = as_place(place)

    def is_cpu_place(self) -> bool:
        return self.chosen is not None and self.chosen.is_cpu_place()

    def is_gpu_place(self) -> bool:
        return self.chosen is not None and self.chosen.is_gpu_place()

    def _equals(self, other: Any) -> bool:
        """Whether the other place, directly or within a core.Place, is the same."""
        return self.chosen == getattr(other, "chosen", other)

    def device(self) -> Any:
        """The JAX device. Raises FluidValueError before set_place."""
        if self.chosen is None:
            raise FluidValueError("this Place has no device yet; call set_place first")
        return self.chosen.device()


def is_compiled_with_mkldnn() -> bool:
    """False: XLA chooses the kernels, and FLAGS_use_mkldnn has no effect."""
    return False


def save_op_version_info(desc: _ProgramDesc) -> None:
    """Does nothing, because programs are written in 1.8.5's format, whose ops have no versions.
    Raises FluidTypeError for anything but a desc.
    """
    if not isinstance(desc, _ProgramDesc):
        raise FluidTypeError(
            f"save_op_version_info takes a program's desc, not {type(desc).__name__}"
        )


save_op_compatible_info = save_op_version_info


def get_cuda_device_count() -> int:
    """The number of GPUs that JAX sees."""
    return len(gpus())


def grad_var_suffix() -> str:
    """The suffix of a gradient's name."""
    return "@GRAD"


def empty_var_name() -> str:
    """The name that stands for no variable."""
    return "@EMPTY@"


kGradVarSuffix, kEmptyVarName = grad_var_suffix, empty_var_name


def kTempVarName() -> str:
    """A part of the names of Paddle's temporary variables."""
    return "@TEMP@"


def kZeroVarSuffix() -> str:
    """The suffix of the name of a gradient of zeros."""
    return "@ZERO"


def kControlDepVarName() -> str:
    """The prefix of the names of variables that only order the ops of a graph."""
    return "__control_var"


def _set_eager_deletion_mode(threshold: float, fraction: float, fast_mode: bool) -> None:
    """Does nothing, because XLA reuses the memory of a step."""


def has_grad_op_maker(op_type: str) -> bool:
    """True: every op type has a function that makes its gradient ops, even if there are none.
    Raises EnforceNotMet for an unknown type.
    """
    return _declared(op_type) is not None


def has_non_empty_grad_op_maker(op_type: str) -> bool:
    """Whether an op type has gradient ops. Raises EnforceNotMet for an unknown one."""
    return _declared(op_type).has_grad


def _declared(op_type: str) -> OpDef:
    try:
        return lookup(op_type)
    except UnknownOpError as exc:
        raise EnforceNotMet(str(exc)) from None


class _Globals:
    """The flags by name, as ``core.globals()`` gives them."""

    def __getitem__(self, name: str) -> Any:
        return get_flags(name)[name]

    get = __getitem__

    def __setitem__(self, name: str, value: Any) -> None:
        set_flags({name: value})

    def __contains__(self, name: object) -> bool:
        return name in DEFAULTS

    is_public = __contains__

    def keys(self) -> list[str]:
        """The names of all flags."""
        return list(DEFAULTS)


def globals() -> _Globals:
    """The flags by name: ``core.globals()["FLAGS_check_nan_inf"]``; reading and setting work as
    get_flags and set_flags.
    """
    return _Globals()


if not TYPE_CHECKING:
    _report = reporter("fluid.core", dir())

    def __getattr__(name):
        """Imports predictors at their first use; returns dynamic mode's stand-ins; raises errors
        for other missing names.
        """
        if name in DYNAMIC:
            return StandIn.of(
                f"fluid.core.{name}", "dynamic mode is not supported; build static programs"
            )
        return predictor_names[0](name) if name in PREDICTORS else _report(name)
