"""fluidjax: PaddlePaddle Fluid's static-graph programs on JAX. ``import fluidjax as fluid`` ports a script."""

from . import ops as ops  # first: fills the op registry
from . import program as framework
from . import variable_ops
from .variable_ops import install as _install

_install()
