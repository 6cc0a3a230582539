"""paddle.linalg: matrices and vectors of Paddle 2 on static variables."""

from __future__ import annotations

from . import matrices, norms
from .matrices import *  # noqa: F403
from .norms import *  # noqa: F403
from .products import corrcoef as corrcoef
from .products import cov as cov

__all__ = ["corrcoef", "cov"]
__all__ += matrices.__all__
__all__ += norms.__all__
