"""paddle.jit, which makes functions of dynamic mode static, is not supported: it can be imported,
and calls raise errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.stand_in import fill

NAMES = (
    "TracedLayer TranslatedLayer enable_to_static ignore_module load marker not_to_static save"
    " set_code_level set_verbosity to_static"
)


def not_to_static(func: Callable[..., Any] | None = None) -> Any:
    """The function unchanged: nothing makes it static."""
    return func if func is not None else lambda given: given


fill(
    __name__,
    {"": NAMES},
    "functions and layers are static already; build a program, save it by"
    " paddle.static.save_inference_model, load it by paddle.static.load_inference_model",
    shown="",
    decorators=("to_static",),
    there={"not_to_static": not_to_static},
)
