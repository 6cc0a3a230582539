"""Compares one name of Paddle with fluidjax's: there, different, or absent."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from types import ModuleType
from typing import Any, NamedTuple

from ..base.absent import MissingModule, MissingName
from ..base.stand_in import absent
from ..paddle import names
from . import recorded
from .recorded import Recorded

THERE, DIFFERENT, ABSENT = "there", "different", "absent"
# names that differ by design, or that nothing here could call
_SHARES = (
    "does nothing in 1.8.5; here variables share names, and one that has given its name away cannot"
    " be fetched any more"
)
_DELETES = (
    "does nothing in 1.8.5; here ops are added that delete variables when nothing reads them any"
    " more"
)
_TOLD = {
    **dict.fromkeys(
        ("paddle.fluid.memory_optimize", "paddle.fluid.transpiler.memory_optimize"), _SHARES
    ),
    **dict.fromkeys(
        ("paddle.fluid.release_memory", "paddle.fluid.transpiler.release_memory"), _DELETES
    ),
    "paddle.Tensor": (
        "is a value outside of programs, as 1.8.5's; what computes with it belongs to dynamic mode,"
        " and variables (paddle.static.Variable) have it"
    ),
    "paddle.fluid.optimizer.DGCMomentumOptimizer": (
        "cannot be made, nor in 1.8.5 without CUDA: it sends the greatest elements of gradients "
        "alone; use Momentum"
    ),
    "paddle.static.Executor": (
        "lacks split_program_by_device and start_heter_trainer, which serve trainers of parameter"
        " servers on several kinds of devices; there are none"
    ),
}
# methods of variables, optimizers and layers that are only for dynamic mode
_DYNAMIC = frozenset(
    "backward clear_gradient clear_gradients detach gradient numpy set_dict set_value state_dict".split()
)
# also methods of paddle.static.Variable; 2.6.2 refuses the first line in static mode, the second is
# for sparse tensors, the third for GPUs
_OF_VARIABLES = frozenset(
    "as_strided cauchy_ geometric_ normal_ unfold uniform_ "
    "indices to_dense values "
    "top_p_sampling".split()
)
# also methods of paddle.nn.Layer; 2.6.2 raises in static mode, except float16, which has no effect
# there
_OF_LAYERS = frozenset("astype bfloat16 float float16 to".split())


class Standing(NamedTuple):
    """status: THERE, DIFFERENT or ABSENT; reason: how it differs, or why it is absent and what to
    use instead.
    """

    status: str
    reason: str = ""


def standing(path: str, methods: bool = True) -> Standing:
    """The status of a dotted name of Paddle, such as "paddle.fluid.layers.fc".

    methods: whether a class that lacks methods counts as different.
    """
    try:
        ours = names.find(path)
    except (MissingName, MissingModule) as exc:
        return Standing(ABSENT, _reason(path, str(exc)))
    except AttributeError:
        return Standing(ABSENT)
    if reason := absent(ours):
        return Standing(ABSENT, _reason(path, reason))
    theirs = recorded.find(path)
    if path in _TOLD and methods:
        return Standing(DIFFERENT, _TOLD[path])
    reason = "; ".join(differences(theirs, ours, methods)) if theirs is not None else ""
    return Standing(DIFFERENT if reason else THERE, reason)


def _reason(path: str, sentence: str) -> str:
    """The sentence about a missing name, without the name at its beginning."""
    name = re.escape(path.split(".")[-1])
    reason = re.sub(
        rf"^fluidjax has no [\w.]+\b|^(fluid|paddle)\.([\w.]+\.)?{name}\b|^fluid(\.\w+)+(?=:)",
        "",
        sentence,
    )
    reason, *_ = reason.split("(did you mean")  # the name is one of Paddle's, not a typing error
    return reason.strip(" :,;").removeprefix("which ")


def differences(theirs: Recorded, ours: Any, methods: bool = True) -> Iterator[str]:
    """The differences between the arguments of our function or class and the recorded ones, and the
    methods that it lacks.
    """
    if theirs.kind in ("module", "value") or isinstance(ours, ModuleType) or not callable(ours):
        return
    passed = (
        _DYNAMIC
        | _of_every_layer(theirs)
        | (_OF_LAYERS if _OF_LAYERS <= set(theirs.methods) else frozenset())
    )
    passed |= _OF_VARIABLES if _OF_VARIABLES <= set(theirs.methods) else frozenset()
    lacking = (
        [m for m in theirs.methods if not hasattr(ours, m) and m not in passed]
        if methods and theirs.kind == "class"
        else []
    )
    if lacking:
        yield (
            f"lacks the methods {', '.join(lacking)}"
            if len(lacking) > 1
            else f"lacks the method {lacking[0]}"
        )
    mine = arguments(ours)
    if mine is not None and theirs.arguments is not None:
        yield from _of_arguments(theirs.arguments, mine)


def _of_every_layer(theirs: Recorded) -> frozenset[str]:
    """The methods that a class inherits from paddle.nn.Layer; only the row of Layer lists them."""
    layer = recorded.find("paddle.nn.Layer")
    inherits = layer is not None and layer != theirs and set(layer.methods) <= set(theirs.methods)
    return frozenset(layer.methods) - {"forward"} if layer is not None and inherits else frozenset()


def _of_arguments(
    theirs: tuple[tuple[str, str], ...], mine: list[tuple[str, str]]
) -> Iterator[str]:
    want = [(n, d) for n, d in theirs if not n.startswith("*")]
    have = dict(mine)
    open_end = any(n.startswith("**") for n, _ in mine)
    lacking = [] if open_end else [n for n, _ in want if n not in have]
    if lacking:
        yield f"takes no {', '.join(lacking)}"
    common = [n for n, _ in want if n in have]
    order = [n for n, _ in mine if not n.startswith("*")]
    if not lacking and order[: len(common)] != common and not (open_end and not order):
        yield (
            f"takes its arguments in the order {', '.join(order)}, not"
            f" {', '.join(n for n, _ in want)}"
        )
    needed = [n for n, d in mine if not d and not n.startswith("*") and n not in dict(want)]
    if needed:
        yield f"needs {', '.join(needed)} too"
    for name, default in want:
        if name in have and default and have[name] != default and not _same(have[name], default):
            yield f"{name} is {have[name] or 'required'} by default, not {default or 'required'}"


def _same(one: str, other: str) -> bool:
    """Whether two defaults are the same value, written differently."""
    try:
        return bool(one and other) and float(one) == float(other)
    except ValueError:
        return False


def arguments(thing: Any) -> list[tuple[str, str]] | None:
    """(name, default as text) of each argument; None if Python cannot tell."""
    try:
        found = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return None
    stars: dict[Any, str] = {
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    return [
        (stars.get(p.kind, "") + p.name, "" if p.default is p.empty else shown(p.default))
        for p in found
    ]


def shown(value: Any) -> str:
    """A default in the form of the recordings."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if inspect.isroutine(value) or inspect.isclass(value):
        return value.__name__
    text = repr(list(value) if isinstance(value, tuple) else value)
    return f"<{type(value).__name__}>" if " at 0x" in text else text
