"""x.reshape(...), x.sum(), x.abs_(): the functions of `paddle` as methods of variables, as in
Paddle 2's static mode.

Importing `fluidjax.paddle` adds them, as importing `paddle` does in Paddle; in a method x is the
variable. Existing methods of Fluid's variables (operators, astype, clone) do not change.
"""

from __future__ import annotations

from ..graph.variable import Variable
from ..layers import create_parameter as _create_parameter
from . import (
    arrange,
    counts,
    creation,
    inplace,
    logic,
    math,
    matrices,
    norms,
    parts,
    pointwise,
    products,
    signal,
    stat,
    state,
    tensor,
)
from .variables import OwnMethods


class Methods(OwnMethods):
    """Paddle 2's functions whose first argument is the variable."""

    create_parameter = _create_parameter
    is_tensor = state.is_tensor
    istft = signal.istft
    stft = signal.stft

    atleast_1d = arrange.atleast_1d
    atleast_2d = arrange.atleast_2d
    atleast_3d = arrange.atleast_3d
    broadcast_shape = arrange.broadcast_shape
    broadcast_tensors = arrange.broadcast_tensors
    combinations = arrange.combinations
    diagflat = arrange.diagflat
    diagonal = arrange.diagonal
    diagonal_scatter = arrange.diagonal_scatter
    index_add = arrange.index_add
    index_fill = arrange.index_fill
    index_put = arrange.index_put
    masked_fill = arrange.masked_fill
    moveaxis = arrange.moveaxis
    put_along_axis = arrange.put_along_axis
    repeat_interleave = arrange.repeat_interleave
    reverse = arrange.reverse
    rot90 = arrange.rot90
    select_scatter = arrange.select_scatter
    take = arrange.take
    take_along_axis = arrange.take_along_axis
    unflatten = arrange.unflatten
    unique_consecutive = arrange.unique_consecutive
    vander = arrange.vander
    view = arrange.view
    view_as = arrange.view_as
    vsplit = arrange.vsplit

    amax = counts.amax
    amin = counts.amin
    bincount = counts.bincount
    bucketize = counts.bucketize
    count_nonzero = counts.count_nonzero
    cummax = counts.cummax
    cummin = counts.cummin
    cumprod = counts.cumprod
    cumulative_trapezoid = counts.cumulative_trapezoid
    diff = counts.diff
    kthvalue = counts.kthvalue
    logcumsumexp = counts.logcumsumexp
    mode = counts.mode
    nanmean = counts.nanmean
    nanmedian = counts.nanmedian
    nanquantile = counts.nanquantile
    nansum = counts.nansum
    quantile = counts.quantile
    trapezoid = counts.trapezoid

    diag = creation.diag

    cholesky = norms.cholesky
    inverse = norms.inverse
    mv = norms.mv
    norm = norms.norm

    allclose = logic.allclose
    equal = logic.equal
    equal_all = logic.equal_all
    greater_equal = logic.greater_equal
    greater_than = logic.greater_than
    is_empty = logic.is_empty
    less_equal = logic.less_equal
    less_than = logic.less_than
    logical_and = logic.logical_and
    logical_not = logic.logical_not
    logical_or = logic.logical_or
    logical_xor = logic.logical_xor
    not_equal = logic.not_equal

    abs = math.abs
    acos = math.acos
    add = math.add
    add_n = math.add_n
    addmm = math.addmm
    all = math.all
    any = math.any
    asin = math.asin
    atan = math.atan
    bmm = math.bmm
    ceil = math.ceil
    clip = math.clip
    cos = math.cos
    cosh = math.cosh
    cross = math.cross
    cumsum = math.cumsum
    dist = math.dist
    divide = math.divide
    dot = math.dot
    erf = math.erf
    exp = math.exp
    floor = math.floor
    floor_divide = math.floor_divide
    increment = math.increment
    isfinite = math.isfinite
    isinf = math.isinf
    isnan = math.isnan
    kron = math.kron
    log = math.log
    log10 = math.log10
    log1p = math.log1p
    log2 = math.log2
    logsumexp = math.logsumexp
    matmul = math.matmul
    max = math.max
    maximum = math.maximum
    mean = math.mean
    min = math.min
    minimum = math.minimum
    mm = math.mm
    mod = math.mod
    multiply = math.multiply
    pow = math.pow
    prod = math.prod
    reciprocal = math.reciprocal
    remainder = math.remainder
    round = math.round
    rsqrt = math.rsqrt
    scale = math.scale
    sign = math.sign
    sin = math.sin
    sinh = math.sinh
    sqrt = math.sqrt
    square = math.square
    stanh = math.stanh
    subtract = math.subtract
    sum = math.sum
    tan = math.tan
    tanh = math.tanh
    tanh_ = math.tanh_
    trace = math.trace

    cholesky_solve = matrices.cholesky_solve
    cond = matrices.cond
    eig = matrices.eig
    eigvals = matrices.eigvals
    eigvalsh = matrices.eigvalsh
    householder_product = matrices.householder_product
    lstsq = matrices.lstsq
    lu = matrices.lu
    lu_unpack = matrices.lu_unpack
    matrix_power = matrices.matrix_power
    multi_dot = matrices.multi_dot
    pca_lowrank = matrices.pca_lowrank
    pinv = matrices.pinv
    qr = matrices.qr
    solve = matrices.solve

    conj = parts.conj
    histogram = parts.histogram
    imag = parts.imag
    real = parts.real
    unique = parts.unique

    acosh = pointwise.acosh
    angle = pointwise.angle
    as_complex = pointwise.as_complex
    as_real = pointwise.as_real
    asinh = pointwise.asinh
    atan2 = pointwise.atan2
    atanh = pointwise.atanh
    bitwise_and = pointwise.bitwise_and
    bitwise_not = pointwise.bitwise_not
    bitwise_or = pointwise.bitwise_or
    bitwise_xor = pointwise.bitwise_xor
    deg2rad = pointwise.deg2rad
    digamma = pointwise.digamma
    erfinv = pointwise.erfinv
    expm1 = pointwise.expm1
    floor_mod = pointwise.floor_mod
    fmax = pointwise.fmax
    fmin = pointwise.fmin
    frac = pointwise.frac
    frexp = pointwise.frexp
    gcd = pointwise.gcd
    heaviside = pointwise.heaviside
    hypot = pointwise.hypot
    i0 = pointwise.i0
    i0e = pointwise.i0e
    i1 = pointwise.i1
    i1e = pointwise.i1e
    is_complex = pointwise.is_complex
    is_floating_point = pointwise.is_floating_point
    is_integer = pointwise.is_integer
    isclose = pointwise.isclose
    lcm = pointwise.lcm
    ldexp = pointwise.ldexp
    lerp = pointwise.lerp
    lgamma = pointwise.lgamma
    logaddexp = pointwise.logaddexp
    logit = pointwise.logit
    multigammaln = pointwise.multigammaln
    nan_to_num = pointwise.nan_to_num
    neg = pointwise.neg
    nextafter = pointwise.nextafter
    polar = pointwise.polar
    polygamma = pointwise.polygamma
    rad2deg = pointwise.rad2deg
    sgn = pointwise.sgn
    trunc = pointwise.trunc

    cdist = products.cdist
    corrcoef = products.corrcoef
    cov = products.cov
    inner = products.inner
    outer = products.outer
    renorm = products.renorm
    tensordot = products.tensordot

    median = stat.median
    multinomial = stat.multinomial
    std = stat.std
    var = stat.var

    argmax = tensor.argmax
    argmin = tensor.argmin
    argsort = tensor.argsort
    broadcast_to = tensor.broadcast_to
    cast = tensor.cast
    chunk = tensor.chunk
    concat = tensor.concat
    diag_embed = tensor.diag_embed
    expand = tensor.expand
    expand_as = tensor.expand_as
    flatten = tensor.flatten
    flip = tensor.flip
    gather = tensor.gather
    gather_nd = tensor.gather_nd
    index_sample = tensor.index_sample
    index_select = tensor.index_select
    masked_select = tensor.masked_select
    multiplex = tensor.multiplex
    nonzero = tensor.nonzero
    numel = tensor.numel
    rank = tensor.rank
    reshape = tensor.reshape
    reshape_ = tensor.reshape_
    roll = tensor.roll
    scatter = tensor.scatter
    scatter_ = tensor.scatter_
    scatter_nd = tensor.scatter_nd
    scatter_nd_add = tensor.scatter_nd_add
    shard_index = tensor.shard_index
    slice = tensor.slice
    sort = tensor.sort
    split = tensor.split
    squeeze = tensor.squeeze
    squeeze_ = tensor.squeeze_
    stack = tensor.stack
    strided_slice = tensor.strided_slice
    t = tensor.t
    tile = tensor.tile
    topk = tensor.topk
    transpose = tensor.transpose
    tril = tensor.tril
    triu = tensor.triu
    unbind = tensor.unbind
    unsqueeze = tensor.unsqueeze
    unsqueeze_ = tensor.unsqueeze_
    unstack = tensor.unstack
    where = tensor.where

    abs_ = inplace.abs_
    acos_ = inplace.acos_
    acosh_ = inplace.acosh_
    add_ = inplace.add_
    addmm_ = inplace.addmm_
    asin_ = inplace.asin_
    asinh_ = inplace.asinh_
    atan_ = inplace.atan_
    atanh_ = inplace.atanh_
    bitwise_and_ = inplace.bitwise_and_
    bitwise_not_ = inplace.bitwise_not_
    bitwise_or_ = inplace.bitwise_or_
    bitwise_xor_ = inplace.bitwise_xor_
    cast_ = inplace.cast_
    ceil_ = inplace.ceil_
    clip_ = inplace.clip_
    cos_ = inplace.cos_
    cosh_ = inplace.cosh_
    cumprod_ = inplace.cumprod_
    cumsum_ = inplace.cumsum_
    digamma_ = inplace.digamma_
    divide_ = inplace.divide_
    equal_ = inplace.equal_
    erfinv_ = inplace.erfinv_
    exp_ = inplace.exp_
    flatten_ = inplace.flatten_
    floor_ = inplace.floor_
    floor_divide_ = inplace.floor_divide_
    floor_mod_ = inplace.floor_mod_
    frac_ = inplace.frac_
    gcd_ = inplace.gcd_
    greater_equal_ = inplace.greater_equal_
    greater_than_ = inplace.greater_than_
    hypot_ = inplace.hypot_
    i0_ = inplace.i0_
    index_add_ = inplace.index_add_
    index_fill_ = inplace.index_fill_
    index_put_ = inplace.index_put_
    lcm_ = inplace.lcm_
    ldexp_ = inplace.ldexp_
    lerp_ = inplace.lerp_
    less_equal_ = inplace.less_equal_
    less_than_ = inplace.less_than_
    lgamma_ = inplace.lgamma_
    log10_ = inplace.log10_
    log1p_ = inplace.log1p_
    log2_ = inplace.log2_
    log_ = inplace.log_
    logical_and_ = inplace.logical_and_
    logical_not_ = inplace.logical_not_
    logical_or_ = inplace.logical_or_
    logical_xor_ = inplace.logical_xor_
    logit_ = inplace.logit_
    masked_fill_ = inplace.masked_fill_
    mod_ = inplace.mod_
    multigammaln_ = inplace.multigammaln_
    multiply_ = inplace.multiply_
    nan_to_num_ = inplace.nan_to_num_
    neg_ = inplace.neg_
    not_equal_ = inplace.not_equal_
    polygamma_ = inplace.polygamma_
    pow_ = inplace.pow_
    put_along_axis_ = inplace.put_along_axis_
    reciprocal_ = inplace.reciprocal_
    remainder_ = inplace.remainder_
    renorm_ = inplace.renorm_
    round_ = inplace.round_
    rsqrt_ = inplace.rsqrt_
    scale_ = inplace.scale_
    sin_ = inplace.sin_
    sinh_ = inplace.sinh_
    sqrt_ = inplace.sqrt_
    subtract_ = inplace.subtract_
    t_ = inplace.t_
    tan_ = inplace.tan_
    transpose_ = inplace.transpose_
    tril_ = inplace.tril_
    triu_ = inplace.triu_
    trunc_ = inplace.trunc_
    where_ = inplace.where_


def attach() -> None:
    """Add these methods to variables, as a last base class, because handles are below layers and
    cannot import them.
    """
    if Methods not in Variable.__mro__:
        Variable.__bases__ = (*Variable.__bases__, Methods)
