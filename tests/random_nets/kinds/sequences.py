"""Sequences: layers that read a LoD, recurrent layers on them, decoders' metrics."""

from __future__ import annotations

from ..draw import Skip, kind
from .dense import quoted


def rows(d, level=1, width=None, domain=(-20, 20), fresh=0.3):
    """Float rows with this many levels, of rank 2."""

    def good(v):
        return (width is None or v.size[1] == width) and v.shape[1] > 0

    return d.floats(
        rank=2,
        lod=level,
        domain=domain,
        where=good,
        fresh=fresh,
        shape=[0, width or d.number(1, 4)],
    )


def ids(d, high, level=1):
    return d.ints(
        0, high, shape=[0, 1], rank=2, lod=level, where=lambda v: v.size[1] == 1, fresh=0.3
    )


@kind(3)
def sequence_pool(d):
    x = rows(d, d.one(1, 1, 2))
    name = d.one("sum", "average", "sqrt", "max", "first", "last")
    if name in ("first", "last") and d.chance(0.5):
        return "L.sequence_%s_step(%s)" % (name, x)
    return "L.sequence_pool(%s, '%s'%s)" % (
        x,
        name,
        d.args(pad_value=d.one(None, d.real(-1, 1)), is_test=d.one(None, None, True)),
    )


@kind(1)
def sequence_softmax(d):
    return "L.sequence_softmax(%s)" % rows(d, 1, 1)


@kind(1)
def sequence_reverse(d):
    return "L.sequence_reverse(%s)" % rows(d, d.one(1, 1, 2))


@kind(1.5)
def sequence_conv(d):
    x = rows(d)
    more = d.args(
        filter_size=d.one(None, 1, 2), padding=d.one(None, False), padding_start=d.one(None, None, -1, 0), act=quoted(d.act()),
        param_attr=d.attr(false=False), bias_attr=d.attr(True),
    )  # fmt: skip
    return "L.sequence_conv(%s, %d%s)" % (x, d.number(1, 4), more)


@kind(1.5)
def sequence_expand(d):
    y = rows(d, d.one(1, 2))
    level = d.number(-1, len(y.lod) - 1)
    count = len(y.lod[level])
    if d.chance(0.5):
        x = d.floats(
            rank=2, lod=0, where=lambda v: v.size[0] == count, shape=[count, d.number(1, 3)]
        )
    else:
        lengths = [d.number(1, 3) for _ in range(count)]
        x = d.new(
            [sum(lengths), d.number(1, 3)], d.float_dtype, ["uniform", -1, 1], lengths=[lengths]
        )
    return "L.sequence_expand(%s, %s, ref_level=%d)" % (x, y, level)


@kind(1)
def sequence_expand_as(d):
    y = rows(d)
    count = len(y.lod[-1])
    x = d.floats(rank=2, lod=0, where=lambda v: v.size[0] == count, shape=[count, d.number(1, 3)])
    return "L.sequence_expand_as(%s, %s)" % (x, y)


@kind(1)
def sequence_concat(d):
    x = rows(d)
    count = len(x.lod[-1])
    y = d.find(
        x.dtype,
        2,
        lod=1,
        where=lambda v: len(v.lod[-1]) == count and v.size[1] == x.size[1],
        fresh=0.2,
    )
    if y is None:
        lengths = [d.number(1, 3) for _ in range(count)]
        y = d.new([sum(lengths), x.size[1]], x.dtype, ["uniform", -1, 1], lengths=[lengths])
    return "L.sequence_concat([%s, %s])" % (x, y)


@kind(1)
def sequence_slice(d):
    x = rows(d)
    lengths = x.lod[-1]
    start = [d.number(0, n - 1) if n > 0 else 0 for n in lengths]
    size = [d.number(1, n - s) if n > s else 0 for n, s in zip(lengths, start)]
    if not all(size):
        raise Skip
    a = d.new([len(lengths), 1], "int64", ["list", start], open=False)
    b = d.new([len(lengths), 1], "int64", ["list", size], open=False)
    return "L.sequence_slice(%s, offset=%s, length=%s)" % (x, a, b)


@kind(1.5)
def sequence_pad(d):
    x = rows(d)
    value = d.new([1], x.dtype, ["list", [d.real(-1, 1)]], sg=True, open=False, how="fluid")
    more = d.args(maxlen=d.one(None, max(x.lod[-1]) + d.number(0, 2)))
    if d.chance(0.4):
        return (
            "RESULT_p, RESULT_n = L.sequence_pad(%s, %s%s)\nRESULT = [RESULT_p, RESULT_n,"
            " L.sequence_unpad(L.tanh(RESULT_p), RESULT_n)]" % (x, value, more)
        )
    return "L.sequence_pad(%s, %s%s)" % (x, value, more)


@kind(0.7)
def sequence_unpad(d):
    n, t = d.batch, d.number(2, 4)
    x = d.floats(shape=[n, t] + ([d.number(1, 3)] if d.chance(0.7) else []))
    return "L.sequence_unpad(%s, %s)" % (x, d.new([n], "int64", ["ints", 1, t + 1]))


@kind(0.7)
def sequence_reshape(d):
    lengths = [2 * d.number(1, 2) for _ in range(d.number(1, 3))]
    x = d.new([sum(lengths), d.one(2, 4)], d.float_dtype, ["uniform", -1, 1], lengths=[lengths])
    return "L.sequence_reshape(%s, %d)" % (x, d.one(1, 2, 4, 8))


@kind(0.7)
def sequence_scatter(d):
    lengths = [d.number(1, 3) for _ in range(d.number(1, 3))]
    width = d.number(3, 5)
    x = d.floats(shape=[len(lengths), width], open=False)
    i = d.new([sum(lengths), 1], "int64", ["ints", 0, width], lengths=[lengths])
    u = d.new([sum(lengths), 1], d.float_dtype, ["uniform", -1, 1], lengths=[lengths])
    return "L.sequence_scatter(%s, %s, %s)" % (x, i, u)


@kind(0.7)
def sequence_enumerate(d):
    return "L.sequence_enumerate(%s, win_size=%d%s)" % (
        ids(d, 9),
        d.number(1, 3),
        d.args(pad_value=d.one(None, 5)),
    )


@kind(1)
def lod_reset(d):
    x = d.floats(rank=2, where=lambda v: v.size[0] > 1)
    n = x.size[0]
    if d.chance(0.5):
        cut = d.number(1, n - 1) if n > 1 else n
        return "L.lod_reset(%s, target_lod=%s)" % (x, sorted({0, cut, n}))
    y = d.find(None, 2, lod=1, where=lambda v: sum(v.lod[-1]) == n, fresh=0)
    if y is None:
        raise Skip
    return "L.lod_reset(%s, %s)" % (x, y)


@kind(0.4)
def lod_append(d):
    x = rows(d)
    n = x.size[0]
    return "L.lod_append(%s, %s)" % (x, [1] * n)


@kind(1.5)
def sequence_embedding(d):
    n, width = d.number(3, 9), d.number(1, 4)
    x = ids(d, n - 1, d.one(1, 1, 2))
    more = d.args(
        is_sparse=d.one(None, True),
        padding_idx=d.one(None, None, d.number(-n, n - 1)),
        param_attr=d.attr(false=False),
        dtype="'float64'" if d.wide else None,
    )
    return "L.embedding(%s, [%d, %d]%s)" % (x, n, width, more)


@kind(1)
def sequence_fc(d):
    return "L.fc(%s, %d%s)" % (
        rows(d, d.one(1, 1, 2)),
        d.number(1, 4),
        d.args(act=quoted(d.act()), param_attr=d.attr(false=False), bias_attr=d.attr(True)),
    )


ACTS = ("sigmoid", "tanh", "relu", "identity")


@kind(2)
def dynamic_lstm(d):
    h = d.number(1, 3)
    x = rows(d, 1, 4 * h)
    more = d.args(
        use_peepholes=d.one(None, False), is_reverse=d.one(None, True), gate_activation=quoted(d.one(None, None, *ACTS)),
        cell_activation=quoted(d.one(None, None, *ACTS)), candidate_activation=quoted(d.one(None, None, *ACTS)),
        param_attr=d.attr(false=False), bias_attr=d.attr(True, false=False), dtype="'float64'" if d.wide else None,
    )  # fmt: skip
    if d.chance(0.3):
        n = len(x.lod[-1])
        more += d.args(
            h_0=d.floats(shape=[n, h], open=False), c_0=d.floats(shape=[n, h], open=False)
        )
    return "L.dynamic_lstm(%s, %d%s)" % (x, 4 * h, more)


@kind(1)
def dynamic_lstmp(d):
    h, p = d.number(1, 3), d.number(1, 3)
    x = rows(d, 1, 4 * h)
    more = d.args(
        use_peepholes=d.one(None, False), is_reverse=d.one(None, True), proj_activation=quoted(d.one(None, *ACTS)),
        cell_clip=d.one(None, 0.5), proj_clip=d.one(None, 0.3), param_attr=d.attr(false=False), bias_attr=d.attr(True, false=False),
        dtype="'float64'" if d.wide else None,
    )  # fmt: skip
    return "L.dynamic_lstmp(%s, %d, %d%s)" % (x, 4 * h, p, more)


@kind(1.5)
def dynamic_gru(d):
    h = d.number(1, 3)
    x = rows(d, 1, 3 * h)
    more = d.args(
        is_reverse=d.one(None, True), gate_activation=quoted(d.one(None, None, *ACTS)), candidate_activation=quoted(d.one(None, None, *ACTS)),
        origin_mode=d.one(None, True), param_attr=d.attr(false=False), bias_attr=d.attr(True, false=False),
        h_0=d.floats(shape=[len(x.lod[-1]), h], open=False) if d.chance(0.3) else None,
    )  # fmt: skip
    return "L.dynamic_gru(%s, %d%s)" % (x, h, more)


@kind(1)
def row_conv(d):
    return "L.row_conv(%s, %d%s)" % (
        rows(d),
        d.number(1, 3),
        d.args(act=quoted(d.act()), param_attr=d.attr(false=False)),
    )


@kind(0.7)
def sequence_conv_pool(d):
    return "N.sequence_conv_pool(%s, %d, %d%s)" % (
        rows(d),
        d.number(1, 3),
        d.number(1, 3),
        d.args(act=d.one(None, "'tanh'"), pool_type=d.one(None, "'sum'", "'average'")),
    )


@kind(0.7)
def dynamic_rnn(d):
    x = rows(d)
    h = d.number(1, 3)
    n = len(x.lod[-1])
    value = d.real(-1, 1)
    boot = (
        "init=%s" % d.floats(shape=[n, h], open=False)
        if d.chance(0.4)
        else "shape=[%d], value=%s%s" % (h, value, ", dtype='float64'" if d.wide else "")
    )
    static = (
        d.floats(rank=2, lod=0, where=lambda v: v.size[0] == n, shape=[n, 2])
        if d.chance(0.4)
        else None
    )
    body = "[w, m]" + (" + [rnn.static_input(%s)]" % static if static else "")
    return (
        "rnn = L.DynamicRNN()\nwith rnn.block():\n    w = rnn.step_input(%s)\n    m ="
        " rnn.memory(%s)\n    parts = %s\n    new = L.fc(parts, %d, act='%s')\n   "
        " rnn.update_memory(m, new)\n    rnn.output(%s)\nRESULT = rnn()"
        % (
            x,
            boot,
            body,
            h,
            d.one("tanh", "sigmoid", "relu"),
            d.one("new", "new, L.scale(new, 2.0)", "L.elementwise_add(m, new)"),
        )
    )


@kind(0.5)
def metrics(d):
    high = 4
    a, b = ids(d, high), None
    n = len(a.lod[-1])
    b = d.find("int64", 2, lod=1, where=lambda v: len(v.lod[-1]) == n and v.size[1] == 1, fresh=0.4)
    if b is None:
        lengths = [d.number(1, 3) for _ in range(n)]
        b = d.new([sum(lengths), 1], "int64", ["ints", 0, high + 1], lengths=[lengths])
    return "L.edit_distance(%s, %s, normalized=%s%s)" % (
        a,
        b,
        d.one(True, False),
        d.args(ignored_tokens=d.one(None, [0])),
    )


@kind(0.6)
def ctc(d):
    c = d.number(2, 4)
    x = rows(d, 1, c)
    n = len(x.lod[-1])
    if d.chance(0.5):
        return "L.ctc_greedy_decoder(%s, blank=%d)" % (x, d.number(0, c - 1))
    lengths = [d.number(1, max(1, k // 2)) for k in x.lod[-1]]
    label = d.new([sum(lengths), 1], "int32", ["ints", 1, c], lengths=[lengths])
    assert n == len(lengths)
    return "L.warpctc(%s, %s, blank=0, norm_by_times=%s)" % (x, label, d.one(True, False))


@kind(0.6)
def crf(d):
    c = d.number(2, 4)
    x = rows(d, 1, c)
    label = d.ints(0, c - 1, shape=[x.size[0], 1], rank=2, lod=None)
    label = d.new([x.size[0], 1], "int64", ["ints", 0, c], lengths=x.lod)
    d.count += 1
    name = "crf%d" % d.count
    return (
        "RESULT_c = L.linear_chain_crf(%s, %s, param_attr=P(name='%s'%s))\n"
        "RESULT = [RESULT_c, L.crf_decoding(%s, P(name='%s')%s)]"
        % (
            x,
            label,
            name,
            d.one("", ", learning_rate=0.5"),
            x,
            name,
            d.one("", ", label=%s" % label),
        )
    )


@kind(0.4)
def chunk_eval(d):
    x, n = ids(d, 6), 3
    y = d.new([x.size[0], 1], "int64", ["ints", 0, 7], lengths=x.lod)
    return "L.chunk_eval(%s, %s, 'IOB', %d)" % (x, y, n)


@kind(0.5)
def lstm(d):
    t, n, w, h = d.number(1, 3), d.batch, d.number(1, 3), d.number(1, 3)
    layers = d.number(1, 2)
    x = d.new([t, n, w], "float32", ["uniform", -1, 1], open=False)
    a = d.new([layers, n, h], "float32", ["uniform", -1, 1], open=False)
    return "L.lstm(%s, %s, %s, %d, %d, %d)" % (x, a, a, t, h, layers)
