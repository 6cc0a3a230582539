"""paddle.atan2, paddle.lgamma, paddle.bitwise_and ...: Paddle 2's elementwise functions that
Fluid's layers lack.
"""

from __future__ import annotations

import math
from typing import Any

from .. import layers
from ..base.dtypes import INTEGERS, REAL_OF, VarType
from ..errors import FluidTypeError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..layers._build import append, chosen, unary, variable
from ..layers.loops import while_loop
from .math import isnan, mod

_SPLIT = ("float16", "float32", "float64")


def _late(kind: str, x: Variable, name: str | None, **attrs: Any) -> Variable:
    """A unary op of Paddle 2.5 or later, whose slots are in lower case."""
    x = variable(x, "x", kind)
    return append(LayerHelper(kind, name=name), {"x": x}, {"out": x.dtype}, attrs)


def _binary(kind: str, x: Variable, y: Variable, name: str | None) -> Variable:
    x, y = variable(x, "x", kind), variable(y, "y", kind)
    return append(LayerHelper(kind, name=name), {"X": x, "Y": y}, {"Out": x.dtype})


# -- of one variable -------------------------------------------------------------------------------


def acosh(x: Variable, name: str | None = None) -> Variable:
    """log(x + sqrt(x * x - 1)), nan below 1."""
    return unary("acosh", x, name=name)


def asinh(x: Variable, name: str | None = None) -> Variable:
    """log(x + sqrt(x * x + 1))."""
    return unary("asinh", x, name=name)


def atanh(x: Variable, name: str | None = None) -> Variable:
    """log((1 + x) / (1 - x)) / 2, nan outside of [-1, 1]."""
    return unary("atanh", x, name=name)


def angle(x: Variable, name: str | None = None) -> Variable:
    """The angle of complex numbers, in their real dtype; for real ones 0, or pi below 0."""
    dtype = REAL_OF.get(str(variable(x, "x", "angle").desc.dtype), x.dtype)
    return append(LayerHelper("angle", name=name), {"X": x}, {"Out": dtype})


def deg2rad(x: Variable, name: str | None = None) -> Variable:
    """x * pi / 180; integers become float32."""
    return layers.scale(_real(x), math.pi / 180.0, name=name)


def rad2deg(x: Variable, name: str | None = None) -> Variable:
    """x * 180 / pi; integers become float32."""
    return layers.scale(_real(x), 180.0 / math.pi, name=name)


def _real(x: Variable) -> Variable:
    return layers.cast(x, "float32") if x.desc.dtype in INTEGERS else x


def digamma(x: Variable, name: str | None = None) -> Variable:
    """The derivative of lgamma."""
    return unary("digamma", x, name=name)


def lgamma(x: Variable, name: str | None = None) -> Variable:
    """log |gamma(x)|."""
    return unary("lgamma", x, name=name)


def erfinv(x: Variable, name: str | None = None) -> Variable:
    """The y with erf(y) = x: infinite at -1 and 1, nan outside."""
    return unary("erfinv", x, name=name)


def expm1(x: Variable, name: str | None = None) -> Variable:
    """exp(x) - 1, accurate for small x."""
    return unary("expm1", x, name=name)


def trunc(input: Variable, name: str | None = None) -> Variable:
    """The elements rounded towards zero."""
    return unary("trunc", input, name=name)


def frac(x: Variable, name: str | None = None) -> Variable:
    """x - trunc(x), with the sign of x."""
    return layers.elementwise_sub(x, trunc(x), name=name)


def i0(x: Variable, name: str | None = None) -> Variable:
    """The modified Bessel function of the first kind and order 0."""
    return _late("i0", x, name)


def i0e(x: Variable, name: str | None = None) -> Variable:
    """exp(-|x|) * i0(x)."""
    return _late("i0e", x, name)


def i1(x: Variable, name: str | None = None) -> Variable:
    """The modified Bessel function of the first kind and order 1."""
    return _late("i1", x, name)


def i1e(x: Variable, name: str | None = None) -> Variable:
    """exp(-|x|) * i1(x)."""
    return _late("i1e", x, name)


def polygamma(x: Variable, n: int, name: str | None = None) -> Variable:
    """The derivative of order n + 1 of lgamma; n = 0 is digamma."""
    return digamma(x, name) if n == 0 else _late("polygamma", x, name, n=n)


def multigammaln(x: Variable, p: int, name: str | None = None) -> Variable:
    """log of the multivariate gamma function of dimension p: sum of lgamma(x - i / 2), i < p, + p
    (p - 1) / 4 log(pi).
    """
    each = lgamma(layers.stack([layers.scale(x, 1.0, -0.5 * i) for i in range(p)], axis=-1))
    return layers.scale(
        layers.reduce_sum(each, -1), 1.0, 0.25 * p * (p - 1) * math.log(math.pi), name=name
    )


def logit(x: Variable, eps: float | None = None, name: str | None = None) -> Variable:
    """log(x / (1 - x)), with x clipped to [eps, 1 - eps]; without eps, nan outside of [0, 1]."""
    return unary("logit", x, name=name, attrs={"eps": float(eps or 0.0)})


def neg(x: Variable, name: str | None = None) -> Variable:
    """-x."""
    return layers.scale(x, -1.0, name=name)


def sgn(x: Variable, name: str | None = None) -> Variable:
    """-1, 0 or 1; for complex numbers x / |x|, and 0 for 0."""
    if str(variable(x, "x", "sgn").desc.dtype) not in REAL_OF:
        return layers.sign(x)
    real = REAL_OF[str(x.desc.dtype)]
    pairs = append(LayerHelper("as_real"), {"X": x}, {"Out": real})
    size = layers.sqrt(layers.reduce_sum(layers.square(pairs), -1, True))
    least = layers.fill_constant([1], real, float.fromhex("0x1p-126"))
    out = layers.elementwise_div(pairs, layers.elementwise_max(size, least))
    return append(LayerHelper("as_complex", name=name), {"X": out}, {"Out": x.dtype})


def nan_to_num(
    x: Variable,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    name: str | None = None,
) -> Variable:
    """x with numbers in place of nan, inf and -inf; None: the greatest and the least finite number
    of x's dtype.
    """
    greatest = (
        float.fromhex("0x1.fffffep127")
        if x.desc.dtype == "float32"
        else float.fromhex("0x1.fffffffffffffp1023")
    )
    values = (nan, greatest if posinf is None else posinf, -greatest if neginf is None else neginf)
    missing, high, low = (layers.full_like(x, float(v)) for v in values)
    bounds = [layers.full_like(x, v) for v in (greatest, -greatest)]
    out = chosen(isnan(x), missing, x)
    out = chosen(layers.greater_than(x, bounds[0]), high, out)
    return chosen(layers.less_than(x, bounds[1]), low, out, name)


def frexp(x: Variable, name: str | None = None) -> tuple[Variable, Variable]:
    """(mantissa, exponent) of x's dtype with x = mantissa * 2 ** exponent, |mantissa| in [0.5, 1);
    (0, 0) for 0.
    """
    size = layers.abs(x)
    least = layers.fill_constant([1], x.dtype, 2.0**-126)
    power = layers.floor(
        append(LayerHelper("log2"), {"X": layers.elementwise_max(size, least)}, {"Out": x.dtype})
    )
    exponent = layers.scale(power, 1.0, 1.0)
    two, none = layers.fill_constant([1], x.dtype, 2.0), layers.full_like(x, 0.0)
    mantissa = layers.scale(layers.elementwise_div(x, _power(two, power)), 0.5)
    far = layers.abs(mantissa)  # log2 was rounded if it is not in [0.5, 1)
    high, low = (
        layers.greater_equal(far, layers.full_like(x, 1.0)),
        layers.less_than(far, layers.full_like(x, 0.5)),
    )
    shift = layers.elementwise_sub(layers.cast(high, x.dtype), layers.cast(low, x.dtype))
    mantissa = chosen(
        high, layers.scale(mantissa, 0.5), chosen(low, layers.scale(mantissa, 2.0), mantissa)
    )
    there = layers.greater_than(size, none)
    return mantissa, chosen(there, layers.elementwise_add(exponent, shift), none, name)


def _power(base: Variable, exponent: Variable) -> Variable:
    return layers.elementwise_pow(
        layers.elementwise_add(layers.full_like(exponent, 0.0), base), exponent
    )


# -- of several ------------------------------------------------------------------------------------


def atan2(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The angle of the point (y, x), between -pi and pi; x and y of one shape."""
    return append(LayerHelper("atan2", name=name), {"X1": x, "X2": y}, {"Out": x.dtype})


def fmax(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The greater of x and y; if one is nan, the other."""
    return _binary("elementwise_fmax", x, y, name)


def fmin(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The smaller of x and y; if one is nan, the other."""
    return _binary("elementwise_fmin", x, y, name)


def heaviside(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """0 where x < 0, 1 where x > 0, y where x is 0."""
    return _binary("elementwise_heaviside", x, y, name)


def hypot(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """sqrt(x * x + y * y)."""
    return layers.sqrt(layers.elementwise_add(layers.square(x), layers.square(y)), name)


def ldexp(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x * 2 ** y: float64 if one is, else float32."""
    kind = "float64" if "float64" in (x.desc.dtype, y.desc.dtype) else "float32"
    power = layers.cast(y, kind)
    return layers.elementwise_mul(
        layers.cast(x, kind), _power(layers.fill_constant([1], kind, 2.0), power), name=name
    )


def logaddexp(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """log(exp(x) + exp(y)), shifted by the greater of both."""
    apart = layers.scale(layers.abs(layers.elementwise_sub(x, y)), -1.0)
    return layers.elementwise_add(
        layers.log1p(layers.exp(apart)), layers.elementwise_max(x, y), name=name
    )


def nextafter(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The number next to x in the direction of y."""
    return append(LayerHelper("nextafter", name=name), {"x": x, "y": y}, {"out": x.dtype})


def lerp(x: Variable, y: Variable, weight: Any, name: str | None = None) -> Variable:
    """x + weight * (y - x); weight: a number or a variable."""
    if not isinstance(weight, Variable):
        weight = layers.fill_constant([1], x.dtype, float(weight))
    return append(
        LayerHelper("lerp", name=name), {"X": x, "Y": y, "Weight": weight}, {"Out": x.dtype}
    )


def isclose(
    x: Variable,
    y: Variable,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    name: str | None = None,
) -> Variable:
    """Whether |x - y| <= atol + rtol * |y|, element by element. equal_nan: nan is near nan."""
    attrs = {"rtol": str(rtol), "atol": str(atol), "equal_nan": equal_nan}
    return append(
        LayerHelper("isclose", name=name), {"Input": x, "Other": y}, {"Out": "bool"}, attrs
    )


def floor_mod(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x mod y with the sign of y."""
    return mod(x, y, name)


def gcd(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The greatest common divisor of integers, with gcd(0, 0) = 0; computed by a loop. Raises
    FluidTypeError for other dtypes.
    """
    zero = layers.full_like(x, 0)
    one = layers.elementwise_add(layers.abs(_whole(x, "gcd")), layers.full_like(y, 0))
    other = layers.elementwise_add(layers.abs(_whole(y, "gcd")), zero)

    def goes_on(one: Variable, other: Variable) -> Variable:
        return layers.reduce_any(layers.not_equal(other, layers.full_like(other, 0)))

    def rest(one: Variable, other: Variable) -> list[Variable]:
        left = layers.not_equal(other, layers.full_like(other, 0))
        divisor = chosen(left, other, layers.full_like(other, 1))
        return [chosen(left, other, one), chosen(left, layers.elementwise_mod(one, divisor), other)]

    return while_loop(goes_on, rest, [one, other])[0]


def lcm(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The least common multiple of integers, not negative, 0 if one is 0. Raises FluidTypeError for
    other dtypes.
    """
    common = gcd(x, y)
    divisor = layers.elementwise_max(common, layers.full_like(common, 1))
    product = layers.elementwise_mul(
        layers.elementwise_floordiv(layers.abs(x), divisor), layers.abs(y)
    )
    return layers.scale(product, 1.0, name=name)


def _whole(x: Variable, layer: str) -> Variable:
    if x.desc.dtype not in INTEGERS:
        raise FluidTypeError(f"{layer} takes integers, but variable {x.name!r} is {x.desc.dtype}")
    return x


def _bits(
    kind: str, x: Variable, y: Variable | None, out: Variable | None, name: str | None
) -> Variable:
    inputs = {"X": variable(x, "x", kind, ("bool", *INTEGERS))}
    inputs |= {} if y is None else {"Y": variable(y, "y", kind, ("bool", *INTEGERS))}
    return append(LayerHelper(kind, name=name), inputs, {"Out": x.dtype if out is None else out})


def bitwise_and(
    x: Variable, y: Variable, out: Variable | None = None, name: str | None = None
) -> Variable:
    """Bitwise and of integers (or bools). out: a variable to write. Raises FluidTypeError for other
    dtypes.
    """
    return _bits("bitwise_and", x, y, out, name)


def bitwise_or(
    x: Variable, y: Variable, out: Variable | None = None, name: str | None = None
) -> Variable:
    """Bitwise or of integers (or bools). out: a variable to write. Raises FluidTypeError for other
    dtypes.
    """
    return _bits("bitwise_or", x, y, out, name)


def bitwise_xor(
    x: Variable, y: Variable, out: Variable | None = None, name: str | None = None
) -> Variable:
    """Bitwise exclusive or of integers (or bools). out: a variable to write. Raises FluidTypeError
    for other dtypes.
    """
    return _bits("bitwise_xor", x, y, out, name)


def bitwise_not(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Bitwise not of integers (or bools). out: a variable to write. Raises FluidTypeError for other
    dtypes.
    """
    return _bits("bitwise_not", x, None, out, name)


# -- complex numbers -------------------------------------------------------------------------------


def complex(real: Variable, imag: Variable, name: str | None = None) -> Variable:
    """real + i * imag: complex64 of float32, complex128 of float64. Raises FluidTypeError for other
    dtypes.
    """
    dtype = (
        "complex128"
        if variable(real, "real", "complex", ("float32", "float64")).dtype == VarType.FP64
        else "complex64"
    )
    return append(LayerHelper("complex", name=name), {"X": real, "Y": imag}, {"Out": dtype})


def polar(abs: Variable, angle: Variable, name: str | None = None) -> Variable:
    """abs * (cos(angle) + i * sin(angle))."""
    parts = (
        layers.elementwise_mul(abs, layers.cos(angle)),
        layers.elementwise_mul(abs, layers.sin(angle)),
    )
    return complex(*parts, name=name)


def as_complex(x: Variable, name: str | None = None) -> Variable:
    """Complex numbers [...] from pairs [..., 2]."""
    dtype = "complex128" if x.desc.dtype == "float64" else "complex64"
    return append(LayerHelper("as_complex", name=name), {"X": x}, {"Out": dtype})


def as_real(x: Variable, name: str | None = None) -> Variable:
    """Pairs [..., 2] from complex numbers [...]. Raises FluidTypeError for other dtypes."""
    dtype = REAL_OF[str(variable(x, "x", "as_real", REAL_OF).desc.dtype)]
    return append(LayerHelper("as_real", name=name), {"X": x}, {"Out": dtype})


def is_complex(x: Variable) -> bool:
    """Whether x is of a complex dtype."""
    return str(variable(x, "x", "is_complex").desc.dtype) in REAL_OF


def is_floating_point(x: Variable) -> bool:
    """Whether x is of float16, bfloat16, float32 or float64."""
    return variable(x, "x", "is_floating_point").desc.dtype in (*_SPLIT, "bfloat16")


def is_integer(x: Variable) -> bool:
    """Whether x is of an integer dtype."""
    return variable(x, "x", "is_integer").desc.dtype in INTEGERS


__all__ = [
    "acosh", "angle", "as_complex", "as_real", "asinh", "atan2", "atanh", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "complex", "deg2rad", "digamma", "erfinv", "expm1", "floor_mod", "fmax", "fmin", "frac", "frexp", "gcd",
    "heaviside", "hypot", "i0", "i0e", "i1", "i1e", "is_complex", "is_floating_point", "is_integer", "isclose", "lcm", "ldexp",
    "lerp", "lgamma", "logaddexp", "logit", "multigammaln", "nan_to_num", "neg", "nextafter", "polar", "polygamma", "rad2deg",
    "sgn", "trunc",
]  # fmt: skip
