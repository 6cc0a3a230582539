"""Initializers: each appends to the startup program the op that fills one parameter.

Calling one as ``initializer(var, block)`` puts its op first in `block`, so startup programs list
parameters in reverse order, as in Fluid. A float16 variable is filled in float32 and cast. A seed
of 0 means the program's random_seed.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from . import unique_name
from .base.absent import reporter
from .base.loc import located
from .base.within import InForce
from .errors import ArgumentError, FluidTypeError
from .graph.block import Block
from .graph.operator import Operator
from .graph.program import default_main_program
from .graph.variable import Variable

_FLOATS = ("float16", "float32", "float64")


class Initializer:
    """Base of the initializers: subclasses define the op."""

    # Fluid's name for the float32 variable that a float16 one is cast from
    half_name: ClassVar[str] = "init"
    floats_only: ClassVar[bool] = False
    first: ClassVar[bool] = True  # put the op before the existing ones

    def __call__(self, var: Variable, block: Block) -> Operator:
        """Append the op that fills `var` to `block`, and return it.

        Raises FluidTypeError if `var` is not a variable, `block` is not a block, or the op cannot
        fill the dtype.
        """
        if not isinstance(var, Variable) or not isinstance(block, Block):
            raise FluidTypeError(
                f"an initializer takes a Variable and a Block, not {type(var).__name__} and"
                f" {type(block).__name__}"
            )
        if self.floats_only and var.plain.dtype not in _FLOATS:
            raise FluidTypeError(
                f"{type(self).__name__} fills float16, float32 or float64, but {var.name!r} is"
                f" {var.plain.dtype}"
            )
        out = var
        if var.plain.dtype == "float16":
            name = unique_name.generate(f"{self.half_name}.{var.name}.tmp")
            out = block.create_var(name=name, shape=var.shape, dtype="float32", persistable=False)
        kind, attrs = self.op(out, block.program.random_seed)
        append = block._prepend_op if self.first else block.append_op
        op = append(type=kind, outputs={"Out": out}, attrs=attrs)
        if out is not var:
            attrs = {"in_dtype": int(out.dtype), "out_dtype": int(var.dtype)}
            block.append_op(type="cast", inputs={"X": out}, outputs={"Out": var}, attrs=attrs)
        return op

    def forward(self, var: Variable, block: Block | None = None) -> Operator:
        """The implementation of a call. block: default the default main program's first."""
        return self(var, default_main_program().global_block() if block is None else block)

    def op(self, var: Variable, seed: int) -> tuple[str, dict[str, Any]]:
        """The op type and attributes that fill `var`; `seed` is the program's."""
        raise NotImplementedError(f"{type(self).__name__} does not say which op it writes")


def _require(ok: bool, text: str) -> None:
    if not ok:
        raise ArgumentError(text)


def _fans(shape: tuple[int, ...]) -> tuple[float, float]:
    """The inputs and outputs of one unit: a matrix is [in, out], a filter [out, in, *window]."""
    if len(shape) < 2:
        n = shape[0] if shape else 1
        return n, n
    window = math.prod(shape[2:])
    return (shape[0], shape[1]) if len(shape) == 2 else (shape[1] * window, shape[0] * window)


def _random(kind: str, var: Variable, seed: int, **attrs: Any) -> tuple[str, dict[str, Any]]:
    return kind, {"shape": var.shape, "dtype": int(var.dtype), "seed": seed, **attrs}


class ConstantInitializer(Initializer):
    """Every element is `value`. force_cpu: kept as the op's attribute; XLA places the value."""

    half_name = "constant_init"

    @located
    def __init__(self, value: float = 0.0, force_cpu: bool = False) -> None:
        _require(value is not None, "Constant needs a value")
        self._value = value
        self._force_cpu = force_cpu

    def op(self, var: Variable, seed: int) -> tuple[str, dict[str, Any]]:
        attrs = {"shape": var.shape, "dtype": int(var.dtype), "value": float(self._value)}
        return "fill_constant", {**attrs, "force_cpu": self._force_cpu or force_init_on_cpu()}


class UniformInitializer(Initializer):
    """Uniform on [low, high); with diag_num > 0, diag_val at the first diag_num places (i, i) of
    blocks diag_step apart.
    """

    half_name = "uniform_random"
    floats_only = True

    @located
    def __init__(
        self,
        low: float = -1.0,
        high: float = 1.0,
        seed: int = 0,
        diag_num: int = 0,
        diag_step: int = 0,
        diag_val: float = 1.0,
    ) -> None:
        _require(
            None not in (low, high, seed, diag_num, diag_step, diag_val),
            "Uniform's arguments are numbers, none is None",
        )
        _require(high >= low, f"Uniform's high ({high}) is below its low ({low})")
        _require(
            (diag_num > 0) == (diag_step > 0),
            "Uniform's diag_num and diag_step are both positive or both 0",
        )
        self._low, self._high, self._seed = low, high, seed
        self._diag = {"diag_num": diag_num, "diag_step": diag_step, "diag_val": diag_val}

    def op(self, var: Variable, seed: int) -> tuple[str, dict[str, Any]]:
        return _random(
            "uniform_random", var, self._seed or seed, min=self._low, max=self._high, **self._diag
        )


class NormalInitializer(Initializer):
    """Normal with mean `loc` and standard deviation `scale`."""

    half_name = "gaussian_random"
    floats_only = True
    kind = "gaussian_random"

    @located
    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> None:
        _require(
            None not in (loc, scale, seed),
            f"{type(self).__name__}'s loc, scale and seed are numbers, none is None",
        )
        self._mean, self._std_dev, self._seed = loc, scale, seed

    def op(self, var: Variable, seed: int) -> tuple[str, dict[str, Any]]:
        return _random(self.kind, var, self._seed or seed, mean=self._mean, std=self._std_dev)


class TruncatedNormalInitializer(NormalInitializer):
    """Normal with mean `loc` and deviation `scale`, sampled again until within two deviations."""

    half_name = kind = "truncated_gaussian_random"
    floats_only = False


class _FanScaled(Initializer):
    """Uniform on +-sqrt(6 / n) or normal of deviation sqrt(2 / n), n from the fans: see the
    subclasses.
    """

    @located
    def __init__(self, uniform: bool, seed: int) -> None:
        _require(
            uniform is not None and seed is not None,
            f"{type(self).__name__}'s uniform and seed are not None",
        )
        self._uniform, self._seed = uniform, seed

    def total(self, fan_in: float, fan_out: float) -> float:
        raise NotImplementedError

    def op(self, var: Variable, seed: int) -> tuple[str, dict[str, Any]]:
        n = float(self.total(*_fans(var.shape)))
        seed = self._seed or seed
        if self._uniform:
            limit = math.sqrt(6.0 / n)
            return _random("uniform_random", var, seed, min=-limit, max=limit)
        return _random("gaussian_random", var, seed, mean=0.0, std=math.sqrt(2.0 / n))


class XavierInitializer(_FanScaled):
    """Glorot's: n = fan_in + fan_out, so that signals keep their variance both ways. The fans
    default to the shape's.
    """

    half_name = "xavier_init"
    floats_only = True

    @located
    def __init__(
        self,
        uniform: bool = True,
        fan_in: float | None = None,
        fan_out: float | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(uniform, seed)
        self._fan_in, self._fan_out = fan_in, fan_out

    def total(self, fan_in: float, fan_out: float) -> float:
        return (fan_in if self._fan_in is None else self._fan_in) + (
            fan_out if self._fan_out is None else self._fan_out
        )


class MSRAInitializer(_FanScaled):
    """He's, for relu networks: n = fan_in, which defaults to the shape's."""

    half_name = "masra_init"  # so spelled in Fluid

    @located
    def __init__(self, uniform: bool = True, fan_in: float | None = None, seed: int = 0) -> None:
        super().__init__(uniform, seed)
        self._fan_in = fan_in

    def total(self, fan_in: float, fan_out: float) -> float:
        return fan_in if self._fan_in is None else self._fan_in


class _ValueInitializer(Initializer):
    """An assign_value op that carries the numbers."""

    def values(self, var: Variable) -> np.ndarray:
        raise NotImplementedError

    def op(self, var: Variable, seed: int) -> tuple[str, dict[str, Any]]:
        slot = {"float32": "fp32_values", "int32": "int32_values"}.get(str(var.desc.dtype), "")
        _require(
            slot != "",
            f"{type(self).__name__} fills float32, float16 or int32, but {var.name!r} is"
            f" {var.plain.dtype}",
        )
        value = self.values(var)
        return "assign_value", {
            "dtype": int(var.dtype),
            "shape": list(value.shape),
            slot: value.astype(str(var.desc.dtype)).ravel().tolist(),
        }


class BilinearInitializer(_ValueInitializer):
    """Weights with which conv2d_transpose interpolates: w[y, x] = (1 - |x / f - c|) (1 - |y / f -
    c|), f = ceil(size / 2).

    Raises FluidValueError unless the shape is [out, in, size, size] with at most 2**20 elements.
    """

    half_name = "bilinear_init"
    first = False

    def values(self, var: Variable) -> np.ndarray:
        shape = var.shape
        _require(
            len(shape) == 4 and shape[2] == shape[3],
            f"Bilinear needs a shape [out, in, size, size], not {list(shape)}",
        )
        count, size = math.prod(shape), shape[3]
        _require(
            count <= 2**20, f"Bilinear fills at most {2**20} elements, {var.name!r} has {count}"
        )
        f = math.ceil(size / 2)
        c = (2 * f - 1 - f % 2) / (2.0 * f)
        i = np.arange(count, dtype=np.float64)
        # y is not rounded down, here as in Fluid: rows differ slightly along x
        x, y = i % size, i / size % size
        return ((1 - abs(x / f - c)) * (1 - abs(y / f - c))).reshape(shape).astype(np.float32)


class NumpyArrayInitializer(_ValueInitializer):
    """The parameter is a copy of a NumPy array (float32 or int32 parameters; float16 through
    float32).
    """

    half_name = "numpy_array_init"

    @located
    def __init__(self, value: np.ndarray) -> None:
        if not isinstance(value, np.ndarray):
            raise ArgumentError(
                f"NumpyArrayInitializer takes a numpy.ndarray, not {type(value).__name__}"
            )
        _require(
            value.size <= 2**30,
            f"NumpyArrayInitializer takes at most {2**30} elements, not {value.size}",
        )
        self._value = value

    def values(self, var: Variable) -> np.ndarray:
        _require(
            self._value.shape == var.shape,
            f"NumpyArrayInitializer's array has shape {list(self._value.shape)}, but {var.name!r}"
            f" has {list(var.shape)}",
        )
        return self._value


_on_cpu = InForce("initializers on the CPU", False)


def force_init_on_cpu() -> bool:
    """Whether Constant initializers are marked force_cpu, see init_on_cpu."""
    return _on_cpu.get()


def init_on_cpu() -> contextlib.AbstractContextManager[None]:
    """Constant initializers within carry force_cpu=True."""
    return _on_cpu.within(True)


Constant = ConstantInitializer
Uniform = UniformInitializer
Normal = NormalInitializer
TruncatedNormal = TruncatedNormalInitializer
Xavier = XavierInitializer
MSRA = MSRAInitializer
Bilinear = BilinearInitializer

__all__ = [
    "MSRA",
    "Bilinear",
    "BilinearInitializer",
    "Constant",
    "ConstantInitializer",
    "Initializer",
    "MSRAInitializer",
    "Normal",
    "NormalInitializer",
    "NumpyArrayInitializer",
    "TruncatedNormal",
    "TruncatedNormalInitializer",
    "Uniform",
    "UniformInitializer",
    "Xavier",
    "XavierInitializer",
    "force_init_on_cpu",
    "init_on_cpu",
]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.initializer", __all__)
