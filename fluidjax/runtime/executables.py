"""The executables of one step: jitted functions by what a call runs, and for which signatures each
is compiled and was called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .kind import Kind
from .nan_check import Finite


class Executables:
    """ready: of a signature that is compiled, the first fetch that has a LoD there. finite: what
    checked functions look at.
    """

    def __init__(self) -> None:
        self.ready: dict[Any, str | None] = {}
        self.finite: dict[Kind, Finite] = {}
        self._called: set[Any] = set()
        self._jitted: dict[Kind, Any] = {}

    def function(self, kind: Kind, make: Callable[[], Any]) -> Any:
        """The jitted function of a kind, made by the first who asks."""
        if kind not in self._jitted:
            self._jitted[kind] = make()
        return self._jitted[kind]

    def built(self, signature: Any, ragged: str | None) -> None:
        """A call of this signature is compiled. ragged: a fetch of it that has a LoD."""
        self.ready[signature] = ragged

    def called(self, signature: Any) -> None:
        """It was called, so that a further call runs in C."""
        self._called.add(signature)

    def was_called(self, signature: Any) -> bool:
        return signature in self._called

    def watches(self, kind: Kind, finite: Finite) -> Finite:
        """What a function that is being traced looks at."""
        self.finite[kind] = finite
        return finite

    def forget(self) -> None:
        """The state has other types: everything is compiled anew."""
        self._jitted.clear()
        self.ready.clear()
        self._called.clear()
