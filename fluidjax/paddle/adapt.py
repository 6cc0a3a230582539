"""Functions with the arguments of Paddle 2.0 over layers with those of Fluid, out of tables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from .. import layers

Row = tuple[str, str, str]  # the layer, the new parameters, "layer's=new ..." where they differ


def signature_of(parameters: str) -> inspect.Signature:
    """The signature that ``"x, axis=-1, name=None"`` means."""
    scope: dict[str, Any] = {}
    exec(f"def f({parameters}): pass", scope)  # the texts are those of the tables in this package
    return inspect.signature(scope["f"])


def adapted(
    name: str, target: Callable[..., Any], parameters: str, renames: str = "", module: str = __name__
) -> Callable[..., Any]:
    """`target` under a name and with other parameters.

    renames: ``"dim=axis keep_dim=keepdim"``, the target's parameter before the new one. A new parameter that the target
    lacks (usually `name`) is dropped.
    """
    signature = signature_of(parameters)
    wanted = set(inspect.signature(target).parameters)
    new = {ours: theirs for theirs, ours in (pair.split("=") for pair in renames.split())}

    def function(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        values = {new.get(n, n): v for n, v in given.arguments.items()}
        return target(**{n: v for n, v in values.items() if n in wanted})

    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__signature__ = signature  # type: ignore[attr-defined]
    changed = ", ".join(f"{theirs} is {ours}" for ours, theirs in new.items())
    source = f"{target.__module__.removeprefix('fluidjax.').split('.')[0]}.{target.__name__}"
    function.__doc__ = f"{(target.__doc__ or name).strip()}\n\nThis is fluid's {source}" + (
        f", where {changed}." if changed else "."
    )
    return function


def table(rows: Mapping[str, Row], module: str) -> dict[str, Callable[..., Any]]:
    """The functions of a table of layers."""
    return {
        name: adapted(name, getattr(layers, target), parameters, renames, module)
        for name, (target, parameters, renames) in rows.items()
    }
