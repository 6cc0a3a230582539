"""Layers with weights on rows, products of matrices, norms, cells."""

from __future__ import annotations

from ..draw import Skip, kind


@kind(6)
def fc(d):
    if d.chance(0.15):
        xs = [d.floats(rank=(2, 3)) for _ in range(2)]
        dims = d.number(1, 1)
        for x in xs:
            x.known(*range(dims, x.rank))
        if xs[0].size[0] != xs[1].size[0]:
            raise Skip
        return "L.fc([%s, %s], %d%s)" % (
            xs[0],
            xs[1],
            d.number(1, 5),
            d.args(param_attr=d.attr(false=False), bias_attr=d.attr(True), act=quoted(d.act())),
        )
    x = d.floats(rank=(2, 3, 4))
    dims = d.number(1, x.rank - 1)
    x.known(*range(dims, x.rank))
    return "L.fc(%s, %d, num_flatten_dims=%d%s)" % (
        x,
        d.number(1, 5),
        dims if d.chance(0.8) else dims - x.rank,
        d.args(param_attr=d.attr(false=False), bias_attr=d.attr(True), act=quoted(d.act())),
    )


def quoted(act):
    return None if act is None else "'%s'" % act


@kind(2)
def matmul(d):
    x = d.floats(rank=(1, 2, 3, 4), domain=(-8, 8))
    if x.rank == 1:
        y = d.floats(shape=[x.size[0]])
        tx = ty = False
        return "L.matmul(%s, %s%s)" % (x, y, d.args(alpha=d.one(None, d.real(0.2, 2))))
    tx, ty = d.one(True, False), d.one(True, False)
    inner = x.size[-2] if tx else x.size[-1]
    lead = list(x.size[:-2]) if d.chance(0.8) else []
    outer = d.number(1, 4)
    shape = lead + ([outer, inner] if ty else [inner, outer])
    y = d.new(shape, x.dtype, ["uniform", -1, 1], open=None if lead else False)
    return "L.matmul(%s, %s, transpose_x=%s, transpose_y=%s%s)" % (
        x,
        y,
        tx,
        ty,
        d.args(alpha=d.one(None, d.real(0.2, 2))),
    )


@kind(1)
def mul(d):
    x = d.floats(rank=(2, 3, 4), domain=(-8, 8))
    cols = d.number(1, x.rank - 1)
    inner = 1
    for s in x.size[cols:]:
        inner *= s
    if d.chance(0.6):
        y, ycols = d.new([inner, d.number(1, 4)], x.dtype, ["uniform", -1, 1], open=False), 1
    else:
        y, ycols = d.new([1, inner, 2], x.dtype, ["uniform", -1, 1], open=False), 2
    return "L.mul(%s, %s, x_num_col_dims=%d, y_num_col_dims=%d)" % (x, y, cols, ycols)


@kind(1)
def products(d):
    f = d.float_dtype
    n, a, b, c = d.batch, d.number(1, 4), d.number(1, 4), d.number(1, 4)
    x2, x3 = d.floats(shape=[n, a]), d.floats(shape=[n, a, b])
    return (
        d.one(
            lambda: "L.bmm(%s, %s)" % (x3, d.floats(shape=[n, b, c])),
            lambda: "L.dot(%s, %s)" % (x2, d.floats(shape=[n, a])),
            lambda: (
                "L.addmm(%s, %s, %s%s)"
                % (
                    d.floats(shape=[n, c]),
                    x2,
                    d.floats(shape=[a, c], open=False),
                    d.args(alpha=d.real(0, 2), beta=d.real(0, 2)),
                )
            ),
            lambda: (
                "L.addcmul(%s, %s, %s, value=%s)"
                % (x2, d.floats(shape=[n, a]), d.floats(shape=[n, a]), d.real(-2, 2))
            ),
            lambda: "L.cos_sim(%s, %s)" % (x2, d.floats(shape=[d.one(n, 1), a], open=False)),
            lambda: "L.kron(%s, %s)" % (x2, d.floats(shape=[b, c], open=False)),
            lambda: "L.cross(%s, %s, dim=1)" % (d.floats(shape=[n, 3]), d.floats(shape=[n, 3])),
            lambda: (
                "L.dist(%s, %s, p=%s)"
                % (x2, d.floats(shape=[n, a]), d.one(0, 1, 2, 3, "float('inf')"))
            ),
            lambda: (
                "L.bilinear_tensor_product(%s, %s, %d%s)"
                % (
                    x2,
                    d.floats(shape=[n, b]),
                    c,
                    d.args(
                        param_attr=d.attr(false=False), bias_attr=d.attr(True), act=quoted(d.act())
                    ),
                )
            ),
            lambda: "L.t(%s)" % x2,
            lambda: "L.allclose(%s, %s)" % (x2, x2),
            lambda: (
                "L.fsp_matrix(%s, %s)"
                % (
                    d.floats(shape=[n, a, 3, 3], open=False),
                    d.floats(shape=[n, b, 3, 3], open=False),
                )
            ),
        )()
        if f
        else None
    )


@kind(2)
def embedding(d):
    rows, width = d.number(3, 8), d.number(1, 5)
    sparse = d.one(True, False)
    padding = d.one(None, None, d.number(-rows, rows - 1))
    more = d.args(
        is_sparse=sparse,
        padding_idx=padding,
        param_attr=d.attr(false=False),
        dtype="'float64'" if d.wide else None,
    )
    if d.chance(0.5):
        ids = d.ints(
            0, rows - 1, shape=[d.batch, 1] if d.chance(0.5) else [d.batch, d.number(1, 3), 1]
        )
        return "L.embedding(%s, [%d, %d]%s)" % (ids, rows, width, more)
    ids = d.ints(0, rows - 1, rank=d.one(1, 2))
    return "fluid.embedding(%s, [%d, %d]%s)" % (ids, rows, width, more)


@kind(2)
def layer_norm(d):
    x = d.floats(rank=(2, 3, 4))
    axis = d.number(1, x.rank - 1)
    x.known(*range(axis, x.rank))
    if x.value.reshape(-1, int(np_prod(x.size[axis:]))).std(1).min() < 0.05:
        raise Skip
    return "L.layer_norm(%s, begin_norm_axis=%d%s)" % (
        x, axis, d.args(scale=d.one(None, False), shift=d.one(None, False), epsilon=d.one(None, 1e-3), act=quoted(d.act()), param_attr=d.attr(false=False), bias_attr=d.attr(true_bias(d), false=False)),
    )  # fmt: skip


def true_bias(d):
    return True


def np_prod(sizes):
    n = 1
    for s in sizes:
        n *= s
    return n


@kind(1)
def l2_normalize(d):
    x = d.floats(where=lambda v: abs(v.value).min() > 1e-3)
    return "L.l2_normalize(%s, axis=%d%s)" % (
        x,
        d.number(-x.rank, x.rank - 1),
        d.args(epsilon=d.one(None, 1e-3)),
    )


@kind(0.7)
def data_norm(d):
    x = d.floats(shape=[d.batch, d.number(1, 4)])
    more = d.args(
        epsilon=d.one(None, 1e-3),
        act=quoted(d.act()),
        enable_scale_and_shift=d.one(None, True),
        slot_dim=d.one(None, 1),
        summary_decay_rate=d.one(None, 0.9),
    )
    return "L.data_norm(%s%s)" % (x, more)


@kind(0.7)
def spectral_norm(d):
    h, w = d.number(2, 4), d.number(2, 4)
    x = d.floats(shape=[h, w, 2], how="parameter")
    return "L.spectral_norm(%s, dim=%d, power_iters=%d)" % (x, d.number(0, 1), d.number(1, 3))


@kind(1)
def prelu(d):
    x = d.floats(rank=4)
    mode = d.one("all", "channel", "element")
    x.known(1, *((2, 3) if mode == "element" else ()))
    return "L.prelu(%s, '%s'%s)" % (x, mode, d.args(param_attr=d.attr(false=False)))


@kind(0.7)
def maxout(d):
    x = d.floats(shape=[d.batch, 4, d.number(1, 3), d.number(1, 3)])
    return "L.maxout(%s, %d%s)" % (x, d.one(2, 4), d.args(axis=d.one(None, 1, -3)))


@kind(0.5)
def gru_unit(d):
    n, h = d.batch, d.number(1, 4)
    return "L.gru_unit(%s, %s, %d%s)" % (
        d.floats(shape=[n, 3 * h]), d.floats(shape=[n, h]), 3 * h,
        d.args(param_attr=d.attr(false=False), bias_attr=d.attr(True), activation=d.one(None, "'relu'", "'identity'"), origin_mode=d.one(None, True)),
    )  # fmt: skip


@kind(0.5)
def lstm_unit(d):
    n, h = d.batch, d.number(1, 4)
    return "L.lstm_unit(%s, %s, %s%s)" % (
        d.floats(shape=[n, d.number(1, 4)]), d.floats(shape=[n, h]), d.floats(shape=[n, h]),
        d.args(forget_bias=d.one(None, 1.0), param_attr=d.attr(false=False), bias_attr=d.attr(True, false=False)),
    )  # fmt: skip


@kind(0.5)
def rnn_cell(d):
    n, t, w, h = d.batch, d.number(1, 4), d.number(1, 3), d.number(1, 4)
    major = d.one(True, False)
    x = d.floats(shape=[t, n, w] if major else [n, t, w], open=False)
    lengths = d.new([n], "int64", ["ints", 1, t + 1], open=False) if d.chance(0.5) else None
    cell = d.one("L.GRUCell(hidden_size=%d)", "L.LSTMCell(hidden_size=%d, forget_bias=0.5)") % h
    return "L.rnn(%s, %s%s)" % (
        cell,
        x,
        d.args(time_major=major or None, is_reverse=d.one(None, True), sequence_length=lengths),
    )


@kind(0.5)
def attention(d):
    n, t, h = d.batch, d.number(1, 3), d.one(2, 4)
    q = d.floats(shape=[n, t, h])
    k = d.floats(shape=[n, t, h])
    return "N.scaled_dot_product_attention(%s, %s, %s, num_heads=%d)" % (q, k, k, d.one(1, 2))


@kind(0.4)
def glu(d):
    x = d.floats(rank=(2, 3), where=lambda v: v.size[-1] % 2 == 0, shape=[d.batch, 4])
    return "N.glu(%s)" % x


@kind(0.4)
def position(d):
    x = d.floats(shape=[d.batch, d.number(1, 3), d.one(2, 4)])
    return "L.add_position_encoding(%s, %s, %s)" % (x, d.real(0, 2), d.real(0, 2))
