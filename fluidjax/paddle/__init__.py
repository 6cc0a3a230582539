"""Paddle's names over fluidjax: ``install()``, then ``import paddle`` in a script finds this
package.

``paddle.fluid`` is fluidjax itself; ``paddle``, ``paddle.static``, ``paddle.nn`` and
``paddle.optimizer`` have the names of Paddle 2.0 that static programs need.
"""

from __future__ import annotations

import builtins
import importlib
import numbers
from typing import Any, NoReturn

from .. import dataset as dataset
from .. import reader as reader
from ..base.flags import get_flags as get_flags
from ..base.flags import set_flags as set_flags
from ..devices.place import CPUPlace as CPUPlace
from ..devices.place import CUDAPinnedPlace as CUDAPinnedPlace
from ..devices.place import CUDAPlace as CUDAPlace
from ..devices.place import is_compiled_with_cuda as is_compiled_with_cuda
from ..errors import FluidTypeError, UnsupportedError
from ..graph.program import default_main_program, default_startup_program
from ..layers.tensor import create_parameter as create_parameter
from ..loaders.decorators import batch as batch
from ..lod_tensor import LoDTensor as Tensor
from ..param_attr import ParamAttr as ParamAttr
from . import (
    arrange,
    counts,
    creation,
    device,
    dtypes,
    inplace,
    io,
    jit,
    methods,
    metric,
    names,
    nn,
    optimizer,
    parts,
    pointwise,
    regularizer,
    signal,
    stacks,
    stat,
    state,
    static,
    tensor,
    version,
)
from . import linalg as linalg
from .arrange import *  # noqa: F403
from .counts import *  # noqa: F403
from .creation import *  # noqa: F403
from .dtypes import *  # noqa: F403
from .hapi import Model as Model
from .hapi import flops as flops
from .hapi import summary as summary
from .inplace import *  # noqa: F403
from .names import install as install
from .names import uninstall as uninstall
from .norms import cholesky as cholesky
from .norms import inv as inv
from .norms import inverse as inverse
from .norms import mv as mv
from .norms import norm as norm
from .parallel import DataParallel as DataParallel
from .parts import *  # noqa: F403
from .pointwise import *  # noqa: F403
from .products import cdist as cdist
from .products import einsum as einsum
from .products import inner as inner
from .products import outer as outer
from .products import renorm as renorm
from .products import tensordot as tensordot
from .stacks import *  # noqa: F403
from .stat import *  # noqa: F403
from .state import *  # noqa: F403
from .tensor import *  # noqa: F403

methods.attach()
__version__ = version.full_version


def enable_static() -> None:
    """Does nothing: all programs are static."""


def disable_static(place: Any = None) -> NoReturn:
    """Not supported. Raises UnsupportedError."""
    raise UnsupportedError(
        "paddle.disable_static: dynamic mode is not supported; build static programs, or write JAX"
    )


def in_dynamic_mode() -> builtins.bool:
    """False: there is no dynamic mode."""
    return False


def seed(seed: int) -> None:
    """Set the random seed of the default main and startup programs. Raises FluidTypeError unless it
    is an integer.
    """
    if not isinstance(seed, numbers.Integral):
        raise FluidTypeError(f"paddle.seed takes an integer, not {seed!r}")
    default_main_program().random_seed = default_startup_program().random_seed = int(seed)


def __getattr__(name: str) -> Any:
    if name == "fluid":
        import fluidjax

        return fluidjax
    if name in ("compat", "distributed", "framework", "inference", "utils", "vision"):
        return importlib.import_module("." + name, __name__)
    if name.startswith("__"):
        raise AttributeError(name)
    raise names.MissingName(names.sentence("paddle", name))


__all__ = [
    "CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "DataParallel", "Model", "ParamAttr", "Tensor", "batch", "cdist",
    "cholesky", "create_parameter", "dataset", "device", "disable_static", "einsum", "enable_static", "flops",
    "get_flags", "in_dynamic_mode", "inner", "install", "inv", "inverse", "io", "is_compiled_with_cuda", "jit",
    "metric", "mv", "nn", "norm", "optimizer", "outer", "reader", "regularizer", "renorm", "seed", "set_flags",
    "signal", "static", "summary", "tensordot", "uninstall",
]  # fmt: skip
__all__ += arrange.__all__
__all__ += counts.__all__
__all__ += creation.__all__
__all__ += dtypes.__all__
__all__ += inplace.__all__
__all__ += parts.__all__
__all__ += pointwise.__all__
__all__ += stacks.__all__
__all__ += stat.__all__
__all__ += state.__all__
__all__ += tensor.__all__
