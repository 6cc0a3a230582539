"""append_backward and gradients: explicit gradient ops, in the order and under the names that Fluid
gives them.

The gradient of variable ``x`` is ``x@GRAD``. Where several ops contribute, each writes
``x@GRAD@RENAME@block0@k`` and a ``sum`` op adds them up before the first reader. A gradient that
nobody wants is ``@EMPTY@``, and ops that would only write such gradients are left out.
"""

from .draft import forward_name as forward_name
from .draft import grad_name as grad_name
from .parameters import append_backward as append_backward
from .targets import as_list as _as_list  # noqa: F401
from .targets import calc_gradient as calc_gradient
from .targets import gradients as gradients


def _append_grad_suffix_(name: str | bytes) -> str:
    """The name of a variable's gradient."""
    return grad_name(name.decode() if isinstance(name, bytes) else name)


def _strip_grad_suffix_(name: str | bytes) -> str:
    """The name of the variable whose gradient has this name; what is no gradient's name stays."""
    return forward_name(name.decode() if isinstance(name, bytes) else name)
