"""Layers that are one function of paddle.nn.functional."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .base import Layer


class FunctionLayer(Layer):
    """A layer of one function: `class ELU(FunctionLayer, function=F.elu)`.

    The first `inputs` arguments of the function are given with each call. The others are given when
    the layer is made, with the function's defaults, and are attributes of the layer.
    """

    def __init_subclass__(
        cls, function: Callable[..., Any] | None = None, inputs: int = 1, **others: Any
    ) -> None:
        super().__init_subclass__(**others)
        if function is None:  # a class of somebody's own below one of ours
            return
        parameters = list(inspect.signature(function).parameters.values())
        kept = [p.name for p in parameters[inputs:] if p.name != "name"]

        def __init__(self: Layer, *args: Any, **kwargs: Any) -> None:
            given = made.bind(self, *args, **kwargs)
            given.apply_defaults()
            Layer.__init__(self)
            for name in kept:
                setattr(self, name, given.arguments[name])

        def forward(self: Layer, *args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs, **{name: getattr(self, name) for name in kept})

        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        made = inspect.Signature([itself, *parameters[inputs:]])
        called = inspect.Signature([itself, *parameters[:inputs]])
        for method, signature in ((__init__, made), (forward, called)):
            vars(method)["__signature__"] = signature
            setattr(cls, method.__name__, method)
