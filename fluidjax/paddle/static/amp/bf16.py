"""paddle.static.amp.bf16: mixed precision in bfloat16."""

from __future__ import annotations

from typing import Any

from ....contrib.mixed_precision import AutoMixedPrecisionLists as AutoMixedPrecisionListsBF16
from ....contrib.mixed_precision import decorate
from ....errors import UnsupportedError
from ....graph.name_scope import name_scope
from ...names import MissingName, sentence


def decorate_bf16(
    optimizer: Any,
    amp_lists: AutoMixedPrecisionListsBF16 | None = None,
    use_pure_bf16: bool = False,
    use_bf16_guard: bool | None = None,
) -> Any:
    """An optimizer whose minimize trains in bfloat16 for the ops in the lists; the loss is not
    scaled.

    use_bf16_guard: ignored without use_pure_bf16, which raises UnsupportedError.
    """
    if use_pure_bf16:
        raise UnsupportedError(
            "decorate_bf16: bfloat16 parameters with master copies are not supported; leave"
            " use_pure_bf16 False"
        )
    return decorate(
        optimizer,
        amp_lists,
        init_loss_scaling=1.0,
        use_dynamic_loss_scaling=False,
        dtype="bfloat16",
    )


def bf16_guard() -> Any:
    """A block whose ops are in the name scope ``__use_bf16__``. The scope marks ops for pure
    bfloat16 and has no other effect.
    """
    return name_scope("__use_bf16__")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise MissingName(sentence("paddle.static.amp.bf16", name))


__all__ = ["AutoMixedPrecisionListsBF16", "bf16_guard", "decorate_bf16"]
