"""Layers that contain others: Sequential, LayerList, LayerDict, ParameterList."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ....errors import FluidTypeError
from .base import Layer


class Sequential(Layer):
    """Layers in sequence, given as arguments, as (name, layer) pairs, or as one list."""

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        every = layers[0] if len(layers) == 1 and isinstance(layers[0], list) else layers
        for at, layer in enumerate(every):
            name, layer = layer if isinstance(layer, tuple) else (str(at), layer)
            self.add_sublayer(name, layer)

    def __getitem__(self, name: Any) -> Any:
        if isinstance(name, slice):
            return Sequential(*list(self._sub_layers.values())[name])
        return (
            self._sub_layers[name]
            if isinstance(name, str)
            else list(self._sub_layers.values())[name]
        )

    def __setitem__(self, name: Any, layer: Layer) -> None:
        self.add_sublayer(
            str(name) if isinstance(name, str) else list(self._sub_layers)[name], layer
        )

    def __delitem__(self, name: Any) -> None:
        del self._sub_layers[name if isinstance(name, str) else list(self._sub_layers)[name]]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def forward(self, input: Any) -> Any:
        for layer in self._sub_layers.values():
            input = layer(input)
        return input


class _Numbered(Layer):
    """The base of lists; the attributes of `held` are numbered."""

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
        """Append one; returns this list."""
        self._add(str(len(self)), value)
        return self


class LayerList(_Numbered):
    """A list of layers as sublayers; it has no forward."""

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
        """Append a layer; returns this list."""
        return super().append(sublayer)

    def insert(self, index: int, sublayer: Layer) -> None:
        """Insert a layer before the one at `index`."""
        values = self._values()
        values.insert(index, sublayer)
        self._set(values)

    def extend(self, sublayers: Iterable[Layer]) -> LayerList:
        """Append layers; returns this list."""
        for layer in sublayers:
            self.append(layer)
        return self


class ParameterList(_Numbered):
    """A list of parameters of this layer; it has no forward."""

    held = "_parameters"

    def __init__(self, parameters: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._set(parameters or ())

    def _of(self, values: list[Any]) -> ParameterList:
        return ParameterList(values)

    def append(self, parameter: Any) -> ParameterList:
        """Append a parameter; returns this list. Raises FluidTypeError for anything else."""
        if parameter is None:
            raise FluidTypeError("a ParameterList holds parameters, not None")
        return super().append(parameter)


class LayerDict(Layer):
    """Sublayers by name, from a dict or pairs; it has no forward. Raises FluidTypeError for
    anything else.
    """

    def __init__(self, sublayers: Any = None) -> None:
        super().__init__()
        if sublayers is not None:
            self.update(sublayers)

    def __getitem__(self, key: str) -> Layer:
        return self._sub_layers[key]

    def __setitem__(self, key: str, sublayer: Layer) -> None:
        self.add_sublayer(key, sublayer)

    def __delitem__(self, key: str) -> None:
        del self._sub_layers[key]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sub_layers)

    def __contains__(self, key: str) -> bool:
        return key in self._sub_layers

    def clear(self) -> None:
        """Remove all layers."""
        self._sub_layers.clear()

    def pop(self, key: str) -> Layer:
        """Remove a layer, and return it."""
        return self._sub_layers.pop(key)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._sub_layers.keys()

    def items(self) -> Iterable[tuple[str, Layer]]:
        """(name, layer), in insertion order."""
        return self._sub_layers.items()

    def values(self) -> Iterable[Layer]:
        """The layers."""
        return self._sub_layers.values()

    def update(self, sublayers: Any) -> None:
        """Add layers from a dict, another LayerDict or (name, layer) pairs; one with an existing
        name replaces the old one.
        """
        pairs = sublayers.items() if isinstance(sublayers, Mapping | LayerDict) else sublayers
        if not isinstance(pairs, Iterable):
            raise FluidTypeError(
                f"a LayerDict takes a dict or (name, layer) pairs, not {sublayers!r}"
            )
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise FluidTypeError(f"a LayerDict takes (name, layer) pairs, not {pair!r}")
            self.add_sublayer(*pair)


__all__ = ["LayerDict", "LayerList", "ParameterList", "Sequential"]
