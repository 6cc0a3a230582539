"""Elementwise functions of one and two operands, reductions, comparisons, logic, casts."""

from __future__ import annotations

from ..draw import Skip, kind

ANY = (-30, 30)
UNARY = {
    "abs": ANY, "acos": (-0.95, 0.95), "asin": (-0.95, 0.95), "atan": ANY, "ceil": ANY, "cos": ANY, "exp": (-5, 3), "floor": ANY,
    "log": (0.05, 30), "logsigmoid": ANY, "reciprocal": (0.05, 30), "relu": ANY, "rsqrt": (0.05, 30), "sigmoid": ANY, "sin": ANY,
    "softplus": ANY, "softsign": ANY, "sqrt": (0.05, 30), "square": ANY, "tanh": (-3, 3), "tanh_shrink": (-3, 3), "log1p": (-0.9, 30),
    "erf": ANY, "sign": ANY, "assign": ANY, "log_softmax": ANY, "zeros_like": ANY, "ones_like": ANY, "rank": ANY, "size": ANY,
    "shape": ANY, "isfinite": ANY, "has_inf": ANY, "has_nan": ANY, "is_empty": ANY, "mean": ANY, "sum": ANY, "softmax": ANY,
}  # fmt: skip
WITH = {
    "brelu": lambda d: d.args(t_min=d.real(-1, 0), t_max=d.real(0.2, 1)),
    "elu": lambda d: d.args(alpha=d.real(0.1, 2)),
    "gelu": lambda d: d.args(approximate=d.one(True, False)),
    "hard_shrink": lambda d: d.args(threshold=d.one(None, d.real(0, 1))),
    "hard_sigmoid": lambda d: d.args(slope=d.real(0.1, 0.5), offset=d.real(0.2, 0.7)),
    "hard_swish": lambda d: d.args(threshold=d.real(2, 6), scale=d.real(3, 6), offset=d.real(1, 3)),
    "leaky_relu": lambda d: d.args(alpha=d.real(0, 0.9)),
    "mish": lambda d: "",
    "pow": lambda d: d.args(factor=d.one(2.0, 3.0, 1.0, d.real(0.5, 2))),
    "relu6": lambda d: d.args(threshold=d.one(None, d.real(0.5, 3))),
    "selu": lambda d: d.args(scale=d.one(None, d.real(0.5, 2)), alpha=d.one(None, d.real(0.5, 2))),
    "soft_relu": lambda d: d.args(threshold=d.one(None, d.real(1, 40))),
    "softshrink": lambda d: d.args(alpha=d.one(None, d.real(0, 1))),
    "stanh": lambda d: d.args(scale_a=d.real(0.1, 1), scale_b=d.real(0.5, 2)),
    "swish": lambda d: "",  # 1.8.5 forgets beta
    "thresholded_relu": lambda d: d.args(threshold=d.one(None, d.real(-0.5, 1))),
    "clip": lambda d: ", %s, %s" % (d.real(-1, 0), d.real(0.1, 1)),
    "clip_by_norm": lambda d: ", %s" % d.real(0.3, 3),
    "clamp": lambda d: d.args(
        min=d.real(-1, 0), max=d.one(None, d.real(0.1, 1))
    ),  # without min, 1.8.5 takes 2e-308 for it
}


@kind(6)
def unary(d):
    name = d.of(UNARY)
    return "L.%s(%s)" % (name, d.floats(domain=UNARY[name]))


@kind(4)
def unary_with(d):
    name = d.of(WITH)
    domain = (0.05, 20) if name == "pow" else ANY
    return "L.%s(%s%s)" % (name, d.floats(domain=domain), WITH[name](d))


@kind(1.5)
def scale(d):
    x = d.floats() if d.chance(0.8) else d.ints(-9, 9, sg=True)
    act = d.one(None, None, "'relu'", "'tanh'") if x.dtype[:5] == "float" else None
    number = d.real if x.dtype[:5] == "float" else d.number
    return "L.scale(%s%s)" % (
        x,
        d.args(
            scale=number(-2, 2), bias=number(-1, 1), bias_after_scale=d.one(True, False), act=act
        ),
    )


def second(d, x, domain=(-30, 30)):
    """A y that elementwise ops take beside x, and the axis: a part of x's axes, ones among them, or
    the same shape.
    """
    if d.chance(0.3):
        y = d.find(x.dtype, None, domain, where=lambda v: v.size == x.size, fresh=0)
        if y is not None:
            return y, -1
    shape, axis = list(x.size), -1
    if d.chance(0.7) and x.rank > 1:
        start = d.number(0, x.rank - 1)
        end = d.number(start + 1, x.rank)
        shape = shape[start:end]
        axis = start if end != x.rank or d.chance(0.5) else -1
    if d.chance(0.2):
        shape = [1 if d.chance(0.4) and (len(shape) > 1) else s for s in shape]
        # 1.8.5 is wrong for [C, 1] beside [N, C, ...]: trailing ones behind an axis
        if axis != -1 and shape[-1] == 1:
            raise Skip
    if x.dtype[:5] == "float":
        return (
            d.new(
                shape,
                x.dtype,
                ["uniform", max(domain[0], -1.5), min(domain[1], 1.5)],
                open=False if len(shape) < x.rank else None,
            ),
            axis,
        )
    return d.new(shape, x.dtype, ["ints", int(domain[0]), int(domain[1]) + 1], open=False), axis


@kind(6)
def elementwise(d):
    name = d.one("add", "sub", "mul", "div", "max", "min", "pow")
    x = d.floats(domain=(0.05, 6) if name == "pow" else ANY)
    y, axis = second(d, x, {"div": (0.3, 3), "pow": (-2, 2)}.get(name, (-5, 5)))
    act = d.one(None, None, "'relu'", "'tanh'", "'sigmoid'")
    return "L.elementwise_%s(%s, %s%s)" % (
        name,
        x,
        y,
        d.args(axis=None if axis == -1 and d.chance(0.5) else axis, act=act),
    )


@kind(1.5)
def elementwise_integers(d):
    name = d.one("add", "sub", "mul", "max", "min", "mod", "floordiv", "div", "pow")
    dtype = d.one("int64", "int32")
    x = d.ints(0 if name == "pow" else -9, 9, dtype=dtype)
    low, high = (
        (1, 5) if name in ("mod", "floordiv", "div") else (0, 3) if name == "pow" else (-5, 5)
    )
    y, axis = second(d, x, (low, high))
    return "L.elementwise_%s(%s, %s%s)" % (name, x, y, d.args(axis=None if axis == -1 else axis))


@kind(2)
def operator(d):
    """Python's operators of variables."""
    x = d.floats(domain=(0.05, 6)) if d.chance(0.3) else d.floats()
    positive = x.value.size and x.value.min() > 0
    forms = [
        "%s + 1.5",
        "2 - %s",
        "%s * 3",
        "-%s",
        "1.0 - %s",
        "%s / 2.0",
        "0.5 * %s",
        "%s - 1",
        "%s > 0.5",
        "%s <= 0.25",
        "%s >= 0",
    ]
    if positive:
        forms += ["1.0 / %s", "%s ** 2", "2.0 ** %s", "%s ** 1.5", "%s // 0.37", "%s %% 0.37"]
    form = d.of(forms)
    if d.chance(0.4):
        y = d.find(
            x.dtype,
            None,
            (0.3, 20) if positive else None,
            where=lambda v: v.size == x.size,
            fresh=0,
        )
        if y is not None:
            return "%s %s %s" % (
                x,
                d.one("+", "-", "*", *(["/"] if positive else []), "<", ">="),
                y,
            )
    return form % x


@kind(4)
def reduce(d):
    name = d.one("sum", "mean", "max", "min", "prod")
    x = (
        d.floats(domain=(-4, 4))
        if d.chance(0.85) or name == "mean"
        else d.ints(-4, 4, rank=d.one(2, 3))
    )
    if name == "prod" and x.value.dtype.kind == "f" and abs(x.value).min() < 0.01:
        raise Skip  # 1.8.5 divides by the elements
    r = d.r.random()
    if r < 0.35 or x.rank == 1:  # 1.8.5 is wrong where as many dims are named as there are
        dim = "None" if x.rank == 1 or d.chance(0.4) else d.number(-x.rank, x.rank - 1)
    else:
        axes = sorted(d.r.sample(range(x.rank), d.number(1, x.rank - 1)))
        dim = [a if d.chance(0.6) else a - x.rank for a in axes]
    keep = False if dim == "None" else d.one(True, False)
    return "L.reduce_%s(%s, dim=%s%s)" % (name, x, dim, d.args(keep_dim=keep or None))


@kind(0.7)
def reduce_logic(d):
    x = d.bools(d.shape(d.number(2, 3)))
    return "L.reduce_%s(%s, dim=%s, keep_dim=%s)" % (
        d.one("all", "any"),
        x,
        d.number(-x.rank, x.rank - 1),
        d.one(True, False),
    )


@kind(1)
def logsumexp(d):
    x = d.floats(domain=(-10, 10))
    dim = "None" if x.rank == 1 or d.chance(0.3) else d.number(-x.rank, x.rank - 1)
    return "L.logsumexp(%s, dim=%s%s)" % (
        x,
        dim,
        d.args(keepdim=True if dim != "None" and d.chance(0.5) else None),
    )


@kind(1.5)
def compare(d):
    name = d.one("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal")
    x = d.ints(-3, 3, dtype=d.one("int64", "int32")) if d.chance(0.6) else d.floats()
    y = d.find(x.dtype, where=lambda v: v.size == x.size and v is not x, fresh=0) or (
        d.new(x.size, x.dtype, ["ints", -3, 4])
        if x.dtype[:3] == "int"
        else d.new(x.size, x.dtype, ["uniform", -1, 1])
    )
    return "L.%s(%s, %s)" % (name, x, y)


@kind(1)
def logical(d):
    x = d.find("bool", where=lambda v: v.rank > 0) or d.bools(d.shape(d.number(1, 3)))
    if d.chance(0.3):
        return "L.logical_not(%s)" % x
    y = d.find("bool", where=lambda v: v.size == x.size, fresh=0.4) or d.bools(x.size)
    return "L.logical_%s(%s, %s)" % (d.one("and", "or", "xor"), x, y)


@kind(2)
def cast(d):
    x = (
        d.find(
            where=lambda v: v.value.dtype.kind != "f" or abs(v.value).max(initial=0) < 100,
            fresh=0.1,
        )
        or d.floats()
    )
    choices = ["float32", "float64", "int32", "int64", "bool", "int8", "uint8"]
    if x.value.size and x.value.dtype.kind == "f" and x.value.min() < 0:
        choices.remove("uint8")
    if d.chance(0.6):
        choices = [d.float_dtype]
    return "L.cast(%s, '%s')" % (x, d.of(choices))


@kind(1)
def cumsum(d):
    x = d.floats()
    return "L.cumsum(%s%s)" % (
        x,
        d.args(
            axis=d.one(None, d.number(-1, x.rank - 1)),
            exclusive=d.one(None, True),
            reverse=d.one(None, True),
        ),
    )


@kind(1)
def sums(d):
    x = d.floats()
    others = [
        d.find(x.dtype, where=lambda v: v.size == x.size, fresh=0)
        or d.new(x.size, x.dtype, ["uniform", -1, 1])
        for _ in range(d.number(1, 2))
    ]
    return "L.%s([%s])" % (d.one("sums", "sum"), ", ".join(map(str, [x] + others)))


@kind(1)
def argument(d):
    name = d.one("argmax", "argmin", "argsort")
    x = d.floats()
    if len(set(x.value.ravel().tolist())) != x.value.size:
        raise Skip
    axis = d.number(-x.rank, x.rank - 1)
    return "L.%s(%s, axis=%s%s)" % (
        name,
        x,
        axis,
        d.args(descending=d.one(True, False) if name == "argsort" else None),
    )


@kind(1)
def topk(d):
    x = d.floats(rank=(1, 2, 3))
    if len(set(x.value.ravel().tolist())) != x.value.size:
        raise Skip
    return "L.topk(%s, %d)" % (x, d.number(1, x.size[-1]))


@kind(1)
def increment(d):
    x = d.floats(shape=[1])
    return "L.increment(%s, value=%s, in_place=%s)" % (x, d.real(-2, 2), d.one(True, False, False))


@kind(1)
def constants(d):
    n = d.batch
    like = d.floats(rank=(2, 3))
    form = d.one(
        "L.fill_constant([%d, 3], '%s', %s)" % (n, d.float_dtype, d.real(-2, 2)),
        "L.fill_constant([2], 'int64', %d)" % d.number(-5, 5),
        "L.fill_constant_batch_size_like(%s, [1, 4], '%s', %s)"
        % (like, d.float_dtype, d.real(-2, 2)),
        "L.fill_constant_batch_size_like(%s, [3, -1], '%s', %s, input_dim_idx=%d, output_dim_idx=1)"
        % (like, d.float_dtype, d.real(-2, 2), d.number(0, 1)),
        "L.assign(np.array(%s, '%s'))"
        % ([d.real(-1, 1) for _ in range(3)], d.one("float32", "int32")),
        "L.eye(%d, %s, dtype='%s')"
        % (d.number(1, 3), d.one("None", d.number(1, 4)), d.one("float32", "int64")),
        "L.eye(%d, batch_shape=[%d])" % (d.number(1, 3), d.number(1, 3)),
        "L.linspace(%s, %s, %d, '%s')"
        % (d.real(-2, 0), d.real(0, 2), d.number(1, 5), d.one("float32", "float64")),
        "L.range(%d, %d, %d, '%s')"
        % (d.number(-3, 0), d.number(1, 6), d.number(1, 2), d.one("int32", "int64", "float32")),
        "L.ones([%d, 2], 'float32')" % n,
        "L.zeros([2, %d], 'int64')" % n,
        "L.full_like(%s, %s)" % (like, d.real(-1, 1)),
        "L.diag(%s)" % d.new([d.number(1, 4)], "float32", ["uniform", -1, 1], open=False),
        # what is not persistable has no value behind the startup program
        "L.create_global_var([%d], %s, 'float32', persistable=True)"
        % (d.number(1, 3), d.real(-1, 1)),
    )
    return form
