"""The optimizers that a strategy wraps around the user's, their order, and the refused
combinations.

Paddle 2 allows some of its meta optimizers to contain some others, takes the longest chain of them,
and silently omits the rest. Here the chain is the same, and combinations with omissions are
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .... import optimizer as fluid
from ....contrib.mixed_precision import AutoMixedPrecisionLists, decorate
from ....errors import FluidTypeError, FluidValueError, UnsupportedError
from ....graph.variable import Parameter
from ....optimizers.settings import settings
from ...optimizer import Adam, Lamb, Momentum
from .base.distributed_strategy import DistributedStrategy
from .half_allreduce import HalfAllReduce

# From the outermost to the innermost, with those that each may contain, directly or indirectly.
HOLDS = {
    "sharding": {"amp", "recompute", "lars", "lamb"},
    "fp16_allreduce": {"recompute", "lars", "lamb"},
    "gradient_merge": {"amp", "recompute", "lars", "lamb"},
    "localsgd": {"amp"},
    "adaptive_localsgd": {"amp"},
    "amp": {"recompute", "lars", "lamb"},
    "recompute": {"lars", "lamb"},
    "lars": set(),
    "lamb": set(),
}


_LOCAL = ("localsgd", "adaptive_localsgd")


def chain(strategy: DistributedStrategy, optimizer: Any, workers: int) -> tuple[str, ...]:
    """The active fields, the outermost first.

    localsgd, adaptive_localsgd and sharding do nothing for one worker, gradient_merge nothing for
    k_steps of 1. Raises UnsupportedError for unsupported and incompatible fields; FluidValueError,
    FluidTypeError for missing requirements of a field.
    """
    strategy.refuse_what_is_not_there()
    asked = [
        n for n in HOLDS if getattr(strategy, n) and (workers > 1 or n not in ("sharding", *_LOCAL))
    ]
    if strategy.gradient_merge_configs["k_steps"] <= 1 and "gradient_merge" in asked:
        asked.remove("gradient_merge")
    for at, outer in enumerate(asked):
        for inner in asked[at + 1 :]:
            if inner not in HOLDS[outer]:
                raise UnsupportedError(
                    f"DistributedStrategy.{outer} and DistributedStrategy.{inner} do not go"
                    " together; set one of them to False"
                )
    _check(strategy, optimizer, asked)
    return tuple(asked)


def _check(strategy: DistributedStrategy, optimizer: Any, asked: list[str]) -> None:
    needed: Mapping[str, tuple[tuple[type, ...], str]] = {
        "lars": ((fluid.MomentumOptimizer,), "Momentum"), "lamb": ((fluid.AdamOptimizer,), "Adam"),
        **dict.fromkeys(_LOCAL, ((fluid.MomentumOptimizer, fluid.SGDOptimizer), "SGD or Momentum")),
    }  # fmt: skip
    for name, (kinds, names) in needed.items():
        if name in asked and not isinstance(optimizer, kinds):
            raise FluidTypeError(
                f"DistributedStrategy.{name} is for {names}, not for {type(optimizer).__name__}"
            )
    if "recompute" in asked and not strategy.recompute_configs["checkpoints"]:
        raise FluidValueError(
            "DistributedStrategy.recompute needs recompute_configs = {'checkpoints': [variables]}"
        )
    for name in _LOCAL:
        configs = getattr(strategy, f"{name}_configs")
        if name in asked and min(configs.values()) < 1:
            raise FluidValueError(
                f"DistributedStrategy.{name}_configs has numbers from 1 on, not {configs}"
            )


def composed(
    optimizer: Any, strategy: DistributedStrategy, names: tuple[str, ...]
) -> tuple[Any, Any]:
    """The optimizer wrapped by those of a chain, and the inner one that updates: itself, or its
    replacement.
    """
    updates = outer = optimizer
    for name in reversed(names):
        if name in _INSTEAD:
            updates = outer = _INSTEAD[name](optimizer, strategy)
        elif name in _AROUND:
            outer = _AROUND[name](outer, strategy)
    return outer, updates


class _Lars(fluid.LarsMomentumOptimizer):
    """LarsMomentum with Paddle 2's epsilon, and parameters that do not decay."""

    def __init__(self, of: Any, configs: Mapping[str, Any]) -> None:
        self._epsilon, self._excluded = (
            float(configs["epsilon"]),
            tuple(configs["exclude_from_weight_decay"]),
        )
        given = settings(of)
        given.pop("use_nesterov")
        super().__init__(
            lars_coeff=configs["lars_coeff"],
            lars_weight_decay=configs["lars_weight_decay"],
            **given,
        )

    def op_attributes(self, param: Parameter) -> Mapping[str, Any]:
        attrs = dict(super().op_attributes(param))
        if any(part in param.name for part in self._excluded):
            attrs["lars_weight_decay"] = 0.0
        return {**attrs, "epsilon": self._epsilon} if self._epsilon else attrs


def _lars(optimizer: Any, strategy: DistributedStrategy) -> Any:
    if isinstance(optimizer, Momentum) and optimizer._own_decay is not None:
        raise UnsupportedError(
            "DistributedStrategy.lars decays by lars_configs['lars_weight_decay']; leave"
            " weight_decay out of Momentum"
        )
    return _Lars(optimizer, strategy.lars_configs)


def _lamb(optimizer: Any, strategy: DistributedStrategy) -> Any:
    """Lamb of the optimizer's kind: paddle.optimizer's or fluid's."""
    configs, given = strategy.lamb_configs, settings(optimizer)
    ends = tuple(configs["exclude_from_weight_decay"])
    given.pop("regularization")  # as in Paddle
    given["lamb_weight_decay"] = configs["lamb_weight_decay"]
    given["exclude_from_weight_decay_fn"] = (
        (lambda param: param.name.endswith(ends)) if ends else None
    )
    if isinstance(optimizer, Adam):
        return Lamb(parameters=given.pop("parameter_list"), **given)
    return fluid.LambOptimizer(**given)


def _recompute(optimizer: Any, strategy: DistributedStrategy) -> Any:
    made = fluid.RecomputeOptimizer(optimizer)
    made._set_checkpoints(list(strategy.recompute_configs["checkpoints"]))
    return made


def _amp(optimizer: Any, strategy: DistributedStrategy) -> Any:
    c = strategy.amp_configs
    black = set(c["custom_black_list"])
    lists = AutoMixedPrecisionLists(
        {*c["custom_white_list"], "matmul_v2"} - black, black, set(c["custom_black_varnames"])
    )
    return decorate(
        optimizer, lists, c["init_loss_scaling"], c["incr_every_n_steps"], c["decr_every_n_nan_or_inf"], c["incr_ratio"], c["decr_ratio"],
        c["use_dynamic_loss_scaling"],
    )  # fmt: skip


def _merge(optimizer: Any, strategy: DistributedStrategy) -> Any:
    return fluid.GradientMergeOptimizer(
        optimizer,
        strategy.gradient_merge_configs["k_steps"],
        strategy.gradient_merge_configs["avg"],
    )


_INSTEAD: dict[str, Callable[[Any, DistributedStrategy], Any]] = {"lars": _lars, "lamb": _lamb}
_AROUND: dict[str, Callable[[Any, DistributedStrategy], Any]] = {
    "recompute": _recompute, "amp": _amp, "gradient_merge": _merge,
    "fp16_allreduce": lambda optimizer, strategy: HalfAllReduce(optimizer),
}  # fmt: skip

__all__ = ["HOLDS", "chain", "composed"]
