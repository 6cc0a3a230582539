"""Layers that are one function of paddle.nn.functional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .base import Layer


class FunctionLayer(Layer):
    """A layer of one function: the call provides the function's first arguments; the others are set
    when the layer is made, and are its attributes.
    """

    def __init__(self, function: Callable[..., Any], **arguments: Any) -> None:
        super().__init__()
        self._function, self._arguments = function, tuple(arguments)
        for name, value in arguments.items():
            setattr(self, name, value)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        return self._function(*inputs, **named, **{n: getattr(self, n) for n in self._arguments})
