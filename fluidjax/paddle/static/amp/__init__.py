"""paddle.static.amp: mixed precision under the names of Paddle 2."""

from __future__ import annotations

from typing import Any

from ....contrib.mixed_precision import AutoMixedPrecisionLists as AutoMixedPrecisionLists
from ....contrib.mixed_precision import decorate as _decorate
from ....errors import FluidValueError, UnsupportedError
from ....graph.name_scope import name_scope
from ...names import MissingName, sentence
from . import bf16 as bf16

CustomOpLists = AutoMixedPrecisionLists


def decorate(
    optimizer: Any, amp_lists: AutoMixedPrecisionLists | None = None, level: str = "O1", dtype: str = "float16",
    master_weight: bool | None = None, master_grad: bool = False, init_loss_scaling: float = 2.0**16, incr_every_n_steps: int = 2000,
    decr_every_n_nan_or_inf: int = 1, incr_ratio: float = 2.0, decr_ratio: float = 0.5, use_dynamic_loss_scaling: bool | None = None,
    use_amp_guard: bool = False, use_promote: bool = False, use_pure_fp16: bool = False, use_fp16_guard: bool | None = None,
    use_bf16: bool = False,
) -> Any:  # fmt: skip
    """An optimizer whose minimize trains in mixed precision; see
    fluid.contrib.mixed_precision.decorate.

    level: "O1", parameters and updates in float32 ("OD", which casts only products, is O1 with
    custom lists). dtype: "float16", with a scaled loss unless use_dynamic_loss_scaling is False, or
    "bfloat16" (use_bf16 in Paddle 2.0), without unless it is True. use_amp_guard, use_fp16_guard,
    use_promote: for O2, which was called use_pure_fp16.

    Raises UnsupportedError for O2 and master gradients, FluidValueError for other levels.
    """
    if level not in ("O1", "O2", "OD", "O0"):
        raise FluidValueError(f"decorate's level is 'O1', not {level!r}")
    dtype = "bfloat16" if use_bf16 else dtype
    if level != "O1" or use_pure_fp16 or master_weight or master_grad:
        raise UnsupportedError(
            "decorate: half-precision parameters with master copies (O2) are not supported; use"
            " level='O1'"
        )
    scaled = dtype == "float16" if use_dynamic_loss_scaling is None else use_dynamic_loss_scaling
    return _decorate(
        optimizer, amp_lists, init_loss_scaling if dtype == "float16" else 1.0, incr_every_n_steps, decr_every_n_nan_or_inf, incr_ratio,
        decr_ratio, scaled, dtype,
    )  # fmt: skip


def fp16_guard() -> Any:
    """A block whose ops are in the name scope ``__use_fp16__``. The scope marks ops for half
    precision in O2 and has no other effect.
    """
    return name_scope("__use_fp16__")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise MissingName(sentence("paddle.static.amp", name))


__all__ = ["AutoMixedPrecisionLists", "CustomOpLists", "bf16", "decorate", "fp16_guard"]
