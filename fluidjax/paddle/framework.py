"""paddle.framework: global state of a script, and fluid.core."""

from __future__ import annotations

from .. import core as core
from ..devices.place import CPUPlace as CPUPlace
from ..devices.place import CUDAPinnedPlace as CUDAPinnedPlace
from ..devices.place import CUDAPlace as CUDAPlace
from ..layers.tensor import create_parameter as create_parameter
from ..param_attr import ParamAttr as ParamAttr
from .state import get_default_dtype as get_default_dtype
from .state import grad as grad
from .state import load as load
from .state import no_grad as no_grad
from .state import save as save
from .state import set_default_dtype as set_default_dtype

__all__ = [
    "CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "ParamAttr", "core", "create_parameter", "get_default_dtype", "grad", "load",
    "no_grad", "save", "set_default_dtype",
]  # fmt: skip
