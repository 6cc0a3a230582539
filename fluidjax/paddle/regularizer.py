"""paddle.regularizer: L1Decay and L2Decay with Paddle 2.0's argument."""

from __future__ import annotations

from .. import regularizer


class L1Decay(regularizer.L1Decay):
    """Adds ``coeff * sign(param)`` to the gradient."""

    def __init__(self, coeff: float = 0.0) -> None:
        super().__init__(coeff)


class L2Decay(regularizer.L2Decay):
    """Adds ``coeff * param`` to the gradient."""

    def __init__(self, coeff: float = 0.0) -> None:
        super().__init__(coeff)


__all__ = ["L1Decay", "L2Decay"]
