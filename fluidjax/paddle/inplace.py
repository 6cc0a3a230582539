"""paddle.abs_, paddle.clip_ ...: functions that write in place in dynamic mode.

A static program has nothing to write in place: each returns a new variable, as in 2.6.2's static
mode.
"""

from __future__ import annotations

from ..graph.variable import Variable
from . import arrange, counts, logic, math, pointwise, products, tensor

index_add_ = arrange.index_add
index_fill_ = arrange.index_fill
index_put_ = arrange.index_put
masked_fill_ = arrange.masked_fill
put_along_axis_ = arrange.put_along_axis

cumprod_ = counts.cumprod

equal_ = logic.equal
greater_equal_ = logic.greater_equal
greater_than_ = logic.greater_than
less_equal_ = logic.less_equal
less_than_ = logic.less_than
not_equal_ = logic.not_equal

abs_ = math.abs
acos_ = math.acos
add_ = math.add
addmm_ = math.addmm
asin_ = math.asin
atan_ = math.atan
ceil_ = math.ceil
clip_ = math.clip
cos_ = math.cos
cosh_ = math.cosh
cumsum_ = math.cumsum
divide_ = math.divide
erf_ = math.erf
exp_ = math.exp
square_ = math.square
floor_ = math.floor
floor_divide_ = math.floor_divide
log10_ = math.log10
log1p_ = math.log1p
log2_ = math.log2
log_ = math.log
mod_ = math.mod
multiply_ = math.multiply
pow_ = math.pow
reciprocal_ = math.reciprocal
remainder_ = math.remainder
round_ = math.round
rsqrt_ = math.rsqrt
scale_ = math.scale
sin_ = math.sin
sinh_ = math.sinh
sqrt_ = math.sqrt
subtract_ = math.subtract
tan_ = math.tan

acosh_ = pointwise.acosh
asinh_ = pointwise.asinh
atanh_ = pointwise.atanh
digamma_ = pointwise.digamma
expm1_ = pointwise.expm1
erfinv_ = pointwise.erfinv
floor_mod_ = pointwise.floor_mod
frac_ = pointwise.frac
gcd_ = pointwise.gcd
hypot_ = pointwise.hypot
i0_ = pointwise.i0
lcm_ = pointwise.lcm
ldexp_ = pointwise.ldexp
lerp_ = pointwise.lerp
lgamma_ = pointwise.lgamma
logit_ = pointwise.logit
multigammaln_ = pointwise.multigammaln
nan_to_num_ = pointwise.nan_to_num
neg_ = pointwise.neg
polygamma_ = pointwise.polygamma
trunc_ = pointwise.trunc

renorm_ = products.renorm

cast_ = tensor.cast
flatten_ = tensor.flatten
t_ = tensor.t
transpose_ = tensor.transpose
tril_ = tensor.tril
triu_ = tensor.triu
where_ = tensor.where


def bitwise_and_(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """bitwise_and(x, y)."""
    return pointwise.bitwise_and(x, y, name=name)


def bitwise_not_(x: Variable, name: str | None = None) -> Variable:
    """bitwise_not(x)."""
    return pointwise.bitwise_not(x, name=name)


def bitwise_or_(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """bitwise_or(x, y)."""
    return pointwise.bitwise_or(x, y, name=name)


def bitwise_xor_(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """bitwise_xor(x, y)."""
    return pointwise.bitwise_xor(x, y, name=name)


def logical_and_(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """logical_and(x, y)."""
    return logic.logical_and(x, y, name=name)


def logical_not_(x: Variable, name: str | None = None) -> Variable:
    """logical_not(x)."""
    return logic.logical_not(x, name=name)


def logical_or_(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """logical_or(x, y)."""
    return logic.logical_or(x, y, name=name)


def logical_xor_(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """logical_xor(x, y)."""
    return logic.logical_xor(x, y, name=name)


__all__ = [
    "abs_", "acos_", "acosh_", "add_", "addmm_", "asin_", "asinh_", "atan_", "atanh_", "bitwise_and_",
    "bitwise_not_", "bitwise_or_", "bitwise_xor_", "cast_", "ceil_", "clip_", "cos_", "cosh_", "cumprod_",
    "cumsum_", "digamma_", "divide_", "equal_", "erf_", "erfinv_", "exp_", "expm1_", "flatten_", "floor_",
    "floor_divide_", "floor_mod_", "frac_", "gcd_", "greater_equal_", "greater_than_", "hypot_", "i0_",
    "index_add_", "index_fill_", "index_put_", "lcm_", "ldexp_", "lerp_", "less_equal_", "less_than_", "lgamma_",
    "log1p_", "log2_", "log10_", "log_", "logical_and_", "logical_not_", "logical_or_", "logical_xor_", "logit_",
    "masked_fill_", "mod_", "multigammaln_", "multiply_", "nan_to_num_", "neg_", "not_equal_", "polygamma_", "pow_",
    "put_along_axis_", "reciprocal_", "remainder_", "renorm_", "round_", "rsqrt_", "scale_", "sin_", "sinh_",
    "sqrt_", "square_", "subtract_", "t_", "tan_", "transpose_", "tril_", "triu_", "trunc_", "where_",
]  # fmt: skip
