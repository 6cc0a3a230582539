"""settings: an optimizer's constructor arguments, for code that makes another one from it."""

from __future__ import annotations

from typing import Any

from .base import Optimizer

_OF_ALL = ("learning_rate", "parameter_list", "grad_clip", "name")
_OF_SOME = ("momentum", "use_nesterov", "beta1", "beta2", "epsilon")


def settings(optimizer: Optimizer) -> dict[str, Any]:
    """learning_rate, parameter_list, regularization, grad_clip, name, and those of momentum,
    use_nesterov, beta1, beta2, epsilon that the optimizer has.
    """
    found = {name: getattr(optimizer, f"_{name}") for name in _OF_ALL}
    some = {
        name: getattr(optimizer, f"_{name}") for name in _OF_SOME if hasattr(optimizer, f"_{name}")
    }
    return {**found, "regularization": optimizer.regularization, **some}


__all__ = ["settings"]
