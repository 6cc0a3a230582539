"""The layer classes of paddle.nn, in static mode."""

from __future__ import annotations

from . import (
    activation,
    base,
    common,
    container,
    conv,
    loss,
    margin,
    norm,
    pooling,
    rnn,
    transformer,
    windows,
)
from .activation import *  # noqa: F403
from .base import *  # noqa: F403
from .common import *  # noqa: F403
from .container import *  # noqa: F403
from .conv import *  # noqa: F403
from .loss import *  # noqa: F403
from .margin import *  # noqa: F403
from .norm import *  # noqa: F403
from .pooling import *  # noqa: F403
from .rnn import *  # noqa: F403
from .transformer import *  # noqa: F403
from .windows import *  # noqa: F403

__all__: list[str] = []
__all__ += activation.__all__
__all__ += base.__all__
__all__ += common.__all__
__all__ += container.__all__
__all__ += conv.__all__
__all__ += loss.__all__
__all__ += margin.__all__
__all__ += norm.__all__
__all__ += pooling.__all__
__all__ += rnn.__all__
__all__ += transformer.__all__
__all__ += windows.__all__
