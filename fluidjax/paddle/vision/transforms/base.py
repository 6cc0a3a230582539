"""The base of transforms, and their composition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....errors import FluidValueError, UnsupportedError


class BaseTransform:
    """A transform of an image, or of a tuple of an image and related data.

    keys: the kinds of the parts of a tuple, "image" or names for which a subclass has a method
    _apply_name; parts beyond the keys stay. A subclass defines _apply_image, and _get_params for
    random parameters shared by all parts (in self.params). Raises FluidValueError for keys that are
    not a list, UnsupportedError for a key without its method.
    """

    def __init__(self, keys: Sequence[str] | None = None) -> None:
        self.keys = ("image",) if keys is None else keys
        if isinstance(self.keys, str) or not isinstance(self.keys, Sequence):
            raise FluidValueError(f"keys is a list of names, not {keys!r}")
        for key in self.keys:
            if self._apply(key) is None:
                raise UnsupportedError(f"{type(self).__name__} has no method _apply_{key}")
        self.params: Any = None

    def _apply(self, key: str) -> Callable[[Any], Any] | None:
        return getattr(self, f"_apply_{key}", None)

    def _get_params(self, inputs: tuple[Any, ...]) -> Any:
        """The random parameters for all parts of one call."""

    def _apply_image(self, image: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no _apply_image")

    def __call__(self, inputs: Any) -> Any:
        parts = inputs if isinstance(inputs, tuple) else (inputs,)
        self.params = self._get_params(parts)
        made = [self._applied(key, part) for key, part in zip(self.keys, parts, strict=False)]
        made += parts[len(self.keys) :]
        return made[0] if len(made) == 1 else tuple(made)

    def _applied(self, key: str, part: Any) -> Any:
        apply = self._apply(key)
        assert apply is not None
        return apply(part)


class Compose:
    """Transforms in sequence."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, data: Any) -> Any:
        for transform in self.transforms:
            data = transform(data)
        return data

    def __repr__(self) -> str:
        return "Compose(\n" + "".join(f"    {t}\n" for t in self.transforms) + ")"


__all__ = ["BaseTransform", "Compose"]
