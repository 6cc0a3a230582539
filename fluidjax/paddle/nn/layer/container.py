"""Layers that hold others: Sequential, LayerList, ParameterList."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ....errors import FluidTypeError
from .base import Layer


class Sequential(Layer):
    """Layers one after the other, given as arguments, as (name, layer) pairs, or as one list."""

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        every = layers[0] if len(layers) == 1 and isinstance(layers[0], list) else layers
        for at, layer in enumerate(every):
            name, layer = layer if isinstance(layer, tuple) else (str(at), layer)
            self.add_sublayer(name, layer)

    def __getitem__(self, name: Any) -> Any:
        if isinstance(name, slice):
            return Sequential(*list(self._sub_layers.values())[name])
        return self._sub_layers[name] if isinstance(name, str) else list(self._sub_layers.values())[name]

    def __setitem__(self, name: Any, layer: Layer) -> None:
        self.add_sublayer(str(name) if isinstance(name, str) else list(self._sub_layers)[name], layer)

    def __delitem__(self, name: Any) -> None:
        del self._sub_layers[name if isinstance(name, str) else list(self._sub_layers)[name]]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def forward(self, input: Any) -> Any:
        for layer in self._sub_layers.values():
            input = layer(input)
        return input


class _Numbered(Layer):
    """What lists have in common; the attributes of `held` are numbered."""

    held = ""

    def _values(self) -> list[Any]:
        return list(vars(self)[self.held].values())

    def _set(self, values: Iterable[Any]) -> None:
        held = vars(self)[self.held]
        held.clear()
        for at, value in enumerate(values):
            self._add(str(at), value)

    def _add(self, name: str, value: Any) -> None:
        (self.add_sublayer if self.held == "_sub_layers" else self.add_parameter)(name, value)

    def _of(self, values: list[Any]) -> Any:
        """A list of the same kind."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(vars(self)[self.held])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values())

    def __getitem__(self, at: Any) -> Any:
        return self._of(self._values()[at]) if isinstance(at, slice) else self._values()[at]

    def __setitem__(self, at: int, value: Any) -> None:
        self._add(list(vars(self)[self.held])[at], value)

    def append(self, value: Any) -> Any:
        """Add one at the end; returns this list."""
        self._add(str(len(self)), value)
        return self


class LayerList(_Numbered):
    """A list of layers, whose parameters are this one's; it has no forward."""

    held = "_sub_layers"

    def __init__(self, sublayers: Iterable[Layer] | None = None) -> None:
        super().__init__()
        self._set(sublayers or ())

    def _of(self, values: list[Any]) -> LayerList:
        return LayerList(values)

    def __delitem__(self, at: Any) -> None:
        values = self._values()
        del values[at]
        self._set(values)

    def append(self, sublayer: Layer) -> LayerList:
        """Add a layer at the end; returns this list."""
        return super().append(sublayer)

    def insert(self, index: int, sublayer: Layer) -> None:
        """Put a layer before the one at `index`."""
        values = self._values()
        values.insert(index, sublayer)
        self._set(values)

    def extend(self, sublayers: Iterable[Layer]) -> LayerList:
        """Add layers at the end; returns this list."""
        for layer in sublayers:
            self.append(layer)
        return self


class ParameterList(_Numbered):
    """A list of parameters, which are this layer's; it has no forward."""

    held = "_parameters"

    def __init__(self, parameters: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._set(parameters or ())

    def _of(self, values: list[Any]) -> ParameterList:
        return ParameterList(values)

    def append(self, parameter: Any) -> ParameterList:
        """Add a parameter at the end; returns this list. Raises FluidTypeError for anything else."""
        if parameter is None:
            raise FluidTypeError("a ParameterList holds parameters, not None")
        return super().append(parameter)


__all__ = ["LayerList", "ParameterList", "Sequential"]
