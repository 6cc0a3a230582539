"""Fixed: a value that decides sizes, as a constant of a compiled step instead of an argument.

JAX compiles a function again for each new structure of its arguments. A Fixed is only structure: it
has no arrays, and its value takes part in comparisons. A jitted step thus caches one executable for
each value.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

MANY = 8  # number of elements to show


class Fixed:
    """An array as a constant of the step that is compiled for it. Two are equal if their bits,
    dtypes and shapes are.
    """

    __slots__ = ("_hash", "array", "form")

    def __init__(self, value: Any) -> None:
        self.array = np.array(value)  # a copy: the caller may fill theirs anew
        self.array.flags.writeable = False
        # everything that a compiled step is specialised to
        self.form = (self.array.dtype.str, self.array.shape, self.array.tobytes())
        self._hash = hash(self.form)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and self.form == other.form

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Fixed({shown(self.array)})"


jax.tree_util.register_pytree_node(Fixed, lambda value: ((), value), lambda value, _: value)


def shown(array: np.ndarray) -> str:
    """The numbers of an array for a message: all of a small array, the first of a large one."""
    if array.size <= MANY:
        return str(array.tolist())
    first = ", ".join(map(str, array.reshape(-1)[:MANY].tolist()))
    return f"[{first}, ...] of shape {list(array.shape)}"
