"""Methods of Paddle 2's variables that are not functions of `paddle`: values in a scope, sizes,
devices, arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import layers
from ..base.dtypes import VarType
from ..errors import FluidTypeError, FluidValueError, UnsupportedError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..layers._build import append
from ..layers.loops import array_length, array_write
from ..state.scope import Scope, global_scope

if TYPE_CHECKING:
    _Self = Variable
else:
    _Self = object  # Variable itself gets these methods
_BYTES = {VarType.BOOL: 1, VarType.UINT8: 1, VarType.INT8: 1, VarType.INT16: 2, VarType.FP16: 2, VarType.BF16: 2, VarType.INT32: 4,
          VarType.FP32: 4, VarType.INT64: 8, VarType.FP64: 8, VarType.COMPLEX64: 8, VarType.COMPLEX128: 16}  # fmt: skip


def create_tensor(dtype: Any, name: str | None = None, persistable: bool = False) -> Variable:
    """A new variable of a dtype, not written yet."""
    return layers.create_tensor(dtype, name, persistable)


class OwnMethods(_Self):
    """Methods of variables that have no function in `paddle`."""

    create_tensor = create_tensor

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    ndimension = dim

    def element_size(self) -> int:
        """The number of bytes of an element."""
        return _BYTES[self.dtype]

    def size(self) -> Variable:
        """The number of elements when the program runs: int64 [1]."""
        return layers.size(self)

    def attr(self, name: str) -> Any:
        """An attribute of the variable. Raises FluidValueError: variables of static programs have
        none.
        """
        raise FluidValueError(
            f"variable {self.name!r} has no attribute {name!r}; ops have attributes (op.attr(name))"
        )

    def item(self) -> Variable:
        """The variable itself, if it is a vector. Raises FluidTypeError otherwise."""
        if self.ndim > 1:
            raise FluidTypeError(
                f"item takes a variable with one dimension at most, but {self.name!r} has shape"
                f" {list(self.shape)}"
            )
        return self

    def detach(self) -> Variable:
        """The same values in a new variable without gradient."""
        return append(LayerHelper("share_data"), {"X": self}, {"Out": self.dtype}, stop="Out")

    def cpu(self) -> Variable:
        """The same values without gradient, marked as on a CPU. The executor's place decides where
        a program runs.
        """
        return append(
            LayerHelper("memcpy"),
            {"X": self},
            {"Out": self.dtype},
            {"dst_place_type": 0},
            stop="Out",
        )

    def cuda(self, device_id: int | None = None, blocking: bool = True) -> Variable:
        """The same values without gradient, marked as on a GPU. The executor's place decides where
        a program runs.
        """
        return append(
            LayerHelper("memcpy"),
            {"X": self},
            {"Out": self.dtype},
            {"dst_place_type": 1},
            stop="Out",
        )

    def place(self) -> None:
        """None: a variable of a program has no device."""

    def sigmoid(self, name: str | None = None) -> Variable:
        """1 / (1 + exp(-x))."""
        return layers.sigmoid(self, name)

    sigmoid_ = sigmoid

    def exponential_(self, lam: float = 1.0, name: str | None = None) -> Variable:
        """Random numbers of the exponential distribution with mean 1 / lam, of the variable's
        shape.

        Raises FluidValueError unless lam > 0.
        """
        if not lam > 0:
            raise FluidValueError(f"exponential_'s lam is above 0, not {lam}")
        shape = list(self.shape) if -1 not in self.shape else layers.shape(self)
        drawn = layers.uniform_random(shape, self.dtype, 0.0, 1.0)  # below 1
        return layers.scale(layers.log(layers.scale(drawn, -1.0, 1.0)), -1.0 / lam)

    def append(self, var: Variable) -> None:
        """Append a variable to an array (layers.create_array). Raises FluidTypeError for other
        variables.
        """
        if self.type != VarType.LOD_TENSOR_ARRAY:
            raise FluidTypeError(
                f"append takes an array of variables (layers.create_array), and {self.name!r} is of"
                f" kind {self.desc.kind}"
            )
        array_write(var, array_length(self), self)

    def pop(self, *args: Any) -> Any:
        """Not supported: arrays of static programs only grow. Raises UnsupportedError."""
        raise UnsupportedError(
            f"array {self.name!r} cannot lose elements; read one by layers.array_read"
        )

    def register_hook(self, hook: Any) -> Any:
        """Not supported: a program's gradients are ops. Raises UnsupportedError."""
        raise UnsupportedError(
            f"variable {self.name!r} takes no hook; compute with it through layers.py_func(...,"
            " backward_func=hook)"
        )

    def get_value(self, scope: Scope | None = None) -> Any:
        """The variable's tensor in a scope (default the global one). Raises FluidValueError if it
        has none.
        """
        return _held(self, scope).get_tensor()

    def set_value(self, value: Any, scope: Scope | None = None) -> None:
        """Set the variable's value in a scope (default the global one) to an array or a tensor of
        its shape.

        Raises FluidTypeError for anything else, FluidValueError if the scope has no such variable,
        or for another shape.
        """
        if not hasattr(value, "__array__"):
            raise FluidTypeError(
                f"set_value takes an array or a tensor, not {type(value).__name__}"
            )
        tensor = _held(self, scope).get_tensor()
        array = np.asarray(value)
        if list(array.shape) != list(tensor.shape()):
            kept = list(tensor.shape())
            raise FluidValueError(
                f"variable {self.name!r} has shape {kept} in this scope, but its new value"
                f" {list(array.shape)}"
            )
        tensor.set(array, None)


def _held(var: Variable, scope: Scope | None) -> Any:
    if scope is not None and not isinstance(scope, Scope):
        raise FluidTypeError(f"scope is a fluid.Scope or None, not {type(scope).__name__}")
    found = (scope or global_scope()).find_var(var.name)
    if found is None or found.get_tensor() is None:
        raise FluidValueError(
            f"variable {var.name!r} has no value in this scope; run the startup program"
        )
    return found
