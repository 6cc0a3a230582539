"""paddle.nn.functional: the functions of paddle.nn's layers, on static variables with given
parameters.
"""

from __future__ import annotations

from . import activation, attention, common, conv, loss, margin, norm, pool, vision, windows
from .activation import *  # noqa: F403
from .attention import *  # noqa: F403
from .common import *  # noqa: F403
from .conv import *  # noqa: F403
from .loss import *  # noqa: F403
from .margin import *  # noqa: F403
from .norm import *  # noqa: F403
from .pool import *  # noqa: F403
from .vision import *  # noqa: F403
from .windows import *  # noqa: F403

__all__: list[str] = []
__all__ += activation.__all__
__all__ += attention.__all__
__all__ += common.__all__
__all__ += conv.__all__
__all__ += loss.__all__
__all__ += margin.__all__
__all__ += norm.__all__
__all__ += pool.__all__
__all__ += vision.__all__
__all__ += windows.__all__
