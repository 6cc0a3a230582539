"""What moves elements: reshape, transpose, slices, gathers, scatters, pads, joins and splits."""

from __future__ import annotations

import numpy as np

from ..draw import Skip, kind


def anything(d, rank=None, where=None):
    if d.chance(0.15):
        return d.ints(-9, 9, rank=rank, where=where, dtype=d.one("int64", "int32"))
    return d.floats(rank=rank, where=where)


def factors(d, n):
    found, rest = [], n
    while rest > 1 and len(found) < 3:
        f = d.of([k for k in range(1, rest + 1) if rest % k == 0])
        found.append(f)
        rest //= f
    return found + [rest]


@kind(3)
def reshape(d):
    x = anything(d)
    # a parameter keeps its shape, and fluid.data is fed as declared
    lines = "\n".join(d.net["lines"] + d.pending)
    made = any(
        "%s = %s(" % (x.name, maker) in lines for maker in ("L.create_parameter", "fluid.data")
    )
    shape = factors(d, x.value.size)
    for i in range(len(shape)):
        if i < x.rank and x.size[i] == shape[i] and d.chance(0.4):
            shape[i] = 0
    zero = [i for i, s in enumerate(shape) if s == 0]
    if d.chance(0.5):
        i = d.number(0, len(shape) - 1)
        if i not in zero:
            shape[i] = -1
    return "L.reshape(%s, %s%s)" % (
        x,
        shape,
        d.args(
            act=d.one(None, None, None, "'tanh'"), inplace=None if made else d.one(None, None, True)
        )
        if x.dtype[:5] == "float"
        else "",
    )


@kind(2.5)
def transpose(d):
    x = anything(d)
    perm = d.r.sample(range(x.rank), x.rank)
    return "L.transpose(%s, %s)" % (x, perm)


@kind(2)
def squeeze(d):
    x = anything(d)
    if d.chance(0.5):
        axes = sorted({d.number(-x.rank - 1, x.rank) for _ in range(d.number(1, 2))})
        return "L.unsqueeze(%s, %s)" % (x, axes if d.chance(0.8) else axes[0])
    ones = [i for i, s in enumerate(x.size) if s == 1]
    axes = [i if d.chance(0.7) else i - x.rank for i in ones if d.chance(0.7)]
    return "L.squeeze(%s, %s)" % (x, axes)


@kind(1)
def flatten(d):
    x = anything(d)
    return "L.flatten(%s, axis=%d)" % (x, d.number(0, x.rank))


@kind(2.5)
def slice_(d):
    x = anything(d)
    axes = sorted(d.r.sample(range(x.rank), d.number(1, x.rank)))
    starts, ends = [], []
    for a in axes:
        n = x.size[a]
        s = d.number(0, n - 1)
        e = d.number(s + 1, n)
        starts.append(s if d.chance(0.6) else s - n)
        ends.append(e if e < n and d.chance(0.7) else e - n if e < n else d.one(n, n + 3, 10000))
    return "L.slice(%s, %s, %s, %s)" % (x, axes, starts, ends)


@kind(1.5)
def strided_slice(d):
    x = anything(d)
    axes = sorted(d.r.sample(range(x.rank), d.number(1, x.rank)))
    starts, ends, strides = [], [], []
    for a in axes:
        n = x.size[a]
        step = d.one(1, 2, 3, -1, -2)
        s = d.number(0, n - 1)
        if step > 0:
            e = d.number(s + 1, n)
        else:
            e = d.number(-1, s - 1)
            e = e if e >= 0 else -n - 1
        starts.append(s if d.chance(0.7) else s - n)
        ends.append(e)
        strides.append(step)
    return "L.strided_slice(%s, %s, %s, %s, %s)" % (x, axes, starts, ends, strides)


@kind(1.5)
def index(d):
    """Python's indexing."""
    x = anything(d)
    parts = []
    for n in x.size[: d.number(1, x.rank)]:
        parts.append(
            d.one(
                ":",
                str(d.number(-n, n - 1)),
                "%d:" % d.number(0, n - 1),
                ":%d" % d.number(1, n),
                "::%d" % d.one(1, 2),
                "%d:%d" % (0, n),
                "::-1",
            )
        )
    if d.chance(0.1):
        parts = ["..."] + parts[:1] if x.rank > 1 else ["..."]
    return "%s[%s]" % (x, ", ".join(parts))


@kind(2)
def concat(d):
    x = anything(d)
    axis = d.number(0, x.rank - 1)
    others = []
    for _ in range(d.number(1, 2)):
        y = d.find(
            x.dtype,
            x.rank,
            where=lambda v: all(i == axis or v.size[i] == x.size[i] for i in range(x.rank)),
            fresh=0.3,
        )
        if y is None:
            shape = list(x.size)
            if not (axis == 0 and x.rank > 1 and d.chance(0.5)):
                shape[axis] = d.number(1, 3)
            y = d.new(
                shape, x.dtype, ["uniform", -1, 1] if x.dtype[:5] == "float" else ["ints", -5, 6]
            )
        others.append(y)
    items = d.r.sample([x] + others, 1 + len(others))
    return "L.concat([%s], axis=%d)" % (
        ", ".join(map(str, items)),
        axis if d.chance(0.6) else axis - x.rank,
    )


@kind(1)
def stack(d):
    x = anything(d)
    others = [
        d.find(x.dtype, x.rank, where=lambda v: v.size == x.size, fresh=0.2) or x
        for _ in range(d.number(0, 2))
    ]
    return "L.stack([%s], axis=%d)" % (
        ", ".join(map(str, [x] + others)),
        d.number(-x.rank - 1, x.rank),
    )


@kind(1)
def unstack(d):
    x = anything(d, rank=(2, 3, 4))
    axis = d.number(-x.rank, x.rank - 1)
    if d.chance(0.3):
        return "L.unbind(%s, axis=%d)" % (x, axis)
    return "L.unstack(%s, axis=%d%s)" % (x, axis, d.args(num=d.one(None, x.size[axis])))


@kind(2)
def split(d):
    x = anything(d)
    dim = d.number(0, x.rank - 1)
    n = x.size[dim]
    if d.chance(0.5):
        parts = d.of([k for k in range(1, n + 1) if n % k == 0])
    else:
        parts, rest = [], n
        while rest and len(parts) < 3:
            p = d.number(1, rest)
            parts.append(p)
            rest -= p
        if rest:
            parts.append(rest)
        if d.chance(0.4):
            parts[d.number(0, len(parts) - 1)] = -1
    return "L.split(%s, %s, dim=%d)" % (x, parts, dim if d.chance(0.5) else dim - x.rank)


@kind(1.5)
def expand(d):
    x = anything(d)
    if d.chance(0.3):
        target = [s * d.number(1, 2) for s in x.size]
        return "L.expand_as(%s, %s)" % (
            x,
            d.new(
                target, x.dtype, ["uniform", -1, 1] if x.dtype[:5] == "float" else ["ints", 0, 2]
            ),
        )
    return "L.expand(%s, %s)" % (x, [d.number(1, 3) for _ in x.size])


@kind(1.5)
def gather(d):
    x = anything(d)
    n = d.number(1, 4)
    ids = d.ints(0, x.size[0] - 1, shape=[n], dtype=d.one("int64", "int32"), open=False)
    return "L.gather(%s, %s%s)" % (x, ids, d.args(overwrite=d.one(None, True, False)))


@kind(1)
def gather_nd(d):
    x = anything(d)
    depth = d.number(1, x.rank)
    rows = d.number(1, 3)
    where = [[d.number(0, x.size[k] - 1) for k in range(depth)] for _ in range(rows)]
    ids = d.new([rows, depth], d.one("int64", "int32"), ["list", where])
    return "L.gather_nd(%s, %s)" % (x, ids)


@kind(1)
def index_select(d):
    x = anything(d)
    dim = d.number(-x.rank, x.rank - 1)
    ids = d.ints(
        0, x.size[dim] - 1, shape=[d.number(1, 4)], dtype=d.one("int64", "int32"), open=False
    )
    return "L.index_select(%s, %s, dim=%d)" % (x, ids, dim)


@kind(0.7)
def index_sample(d):
    x = d.floats(rank=2)
    ids = d.ints(0, x.size[1] - 1, shape=[x.size[0], d.number(1, 4)], dtype=d.one("int64", "int32"))
    return "L.index_sample(%s, %s)" % (x, ids)


@kind(1.5)
def scatter(d):
    x = d.floats()
    overwrite = d.one(True, False)
    n = d.number(1, x.size[0])
    rows = (
        d.r.sample(range(x.size[0]), n)
        if overwrite
        else [d.number(0, x.size[0] - 1) for _ in range(n)]
    )
    ids = d.new([n], d.one("int64", "int32"), ["list", rows], open=False)
    updates = d.new([n] + list(x.size[1:]), x.dtype, ["uniform", -1, 1], open=False)
    return "L.scatter(%s, %s, %s, overwrite=%s)" % (x, ids, updates, overwrite)


@kind(1)
def scatter_nd(d):
    x = d.floats()
    depth = d.number(1, x.rank)
    rows = d.number(1, 3)
    where = [[d.number(0, x.size[k] - 1) for k in range(depth)] for _ in range(rows)]
    ids = d.new([rows, depth], d.one("int64", "int32"), ["list", where], open=False)
    updates = d.new([rows] + list(x.size[depth:]), x.dtype, ["uniform", -1, 1], open=False)
    if d.chance(0.4):
        return "L.scatter_nd(%s, %s, %s)" % (ids, updates, list(x.size))
    return "L.scatter_nd_add(%s, %s, %s)" % (x, ids, updates)


@kind(1.5)
def pad(d):
    x = anything(d)
    return "L.pad(%s, %s%s)" % (
        x,
        [d.number(0, 2) for _ in range(2 * x.rank)],
        d.args(pad_value=d.one(None, d.real(-1, 1)) if x.dtype[:5] == "float" else None),
    )


@kind(0.7)
def pad_constant_like(d):
    y = anything(d)
    x = d.new(
        [s + d.number(0, 2) for s in y.size],
        y.dtype,
        ["uniform", -1, 1] if y.dtype[:5] == "float" else ["ints", 0, 3],
        open=False,
    )
    return "L.pad_constant_like(%s, %s%s)" % (
        x,
        y,
        d.args(pad_value=d.one(None, d.real(-1, 1)) if y.dtype[:5] == "float" else None),
    )


@kind(1)
def crop(d):
    x = anything(d)
    shape = [d.number(1, s) for s in x.size]
    offsets = [d.number(0, s - t) for s, t in zip(x.size, shape)]
    if d.chance(0.5):
        return "L.crop(%s, shape=%s%s)" % (x, shape, d.args(offsets=d.one(None, offsets)))
    if d.chance(0.3):
        i = d.number(0, x.rank - 1)
        shape[i] = -1
    return "L.crop_tensor(%s, shape=%s%s)" % (x, shape, d.args(offsets=d.one(None, offsets)))


@kind(1)
def turn(d):
    x = anything(d)
    axes = sorted(d.r.sample(range(x.rank), d.number(1, x.rank)))
    r = d.number(0, 2)
    if r == 0:
        return "L.reverse(%s, axis=%s)" % (x, axes if d.chance(0.7) else axes[0])
    if r == 1:
        return "L.flip(%s, dims=%s)" % (x, axes)
    return "L.roll(%s, %s, dims=%s)" % (x, [d.number(-3, 3) for _ in axes], axes)


@kind(0.7)
def triangle(d):
    x = anything(d, rank=(2, 3, 4))
    return "L.%s(%s, diagonal=%d)" % (d.one("tril", "triu"), x, d.number(-2, 2))


@kind(0.7)
def diagonal(d):
    x = d.floats(rank=(2, 3))
    r = d.number(0, 2)
    if r == 0:
        a, b = d.r.sample(range(x.rank), 2)
        # with its axes exchanged, 1.8.5 takes the offset the other way round
        return "L.trace(%s, offset=%d, dim1=%d, dim2=%d)" % (
            x,
            d.number(0, 1) if a < b else 0,
            a,
            b,
        )
    if r == 1:
        return "L.diag_embed(%s, offset=%d)" % (x, d.number(-1, 1))
    return "L.meshgrid([%s, %s])" % tuple(
        d.new([d.number(1, 3)], d.float_dtype, ["uniform", -1, 1], open=False) for _ in "ab"
    )


@kind(0.7)
def multiplex(d):
    x = d.floats(rank=2)
    other = [d.new(x.size, x.dtype, ["uniform", -1, 1]) for _ in range(d.number(1, 2))]
    ids = d.ints(0, len(other), shape=[x.size[0], 1], dtype="int32")
    return "L.multiplex([%s], %s)" % (", ".join(map(str, [x] + other)), ids)


@kind(0.8)
def one_hot(d):
    depth = d.number(3, 6)
    if d.chance(0.5):
        return "L.one_hot(%s, %d)" % (d.ints(0, depth - 1, shape=[d.number(1, 4), 1]), depth)
    return "fluid.one_hot(%s, %d)" % (d.ints(0, depth - 1, rank=d.one(1, 2)), depth)


@kind(0.5)
def unique(d):
    x = d.ints(-3, 3, shape=[d.number(1, 6)], dtype=d.one("int64", "int32"), open=False)
    return "L.%s(%s%s)" % (
        d.one("unique", "unique_with_counts"),
        x,
        d.args(dtype=d.one(None, "'int64'")),
    )


@kind(0.5)
def where(d):
    c = d.find("bool", where=lambda v: v.rank > 0) or d.bools(d.shape(d.number(1, 3)))
    if not c.value.any():
        raise Skip
    return "L.where(%s)" % c


@kind(0.5)
def shard_index(d):
    x = d.ints(0, 19, shape=[d.number(1, 4), 1])
    return "L.shard_index(%s, 20, %d, %d%s)" % (
        x,
        d.number(2, 4),
        d.number(0, 1),
        d.args(ignore_value=d.one(None, -5)),
    )


@kind(0.4)
def gather_tree(d):
    t, b, k = d.number(1, 4), d.batch, d.number(1, 3)
    ids = d.ints(0, 9, shape=[t, b, k])
    return "L.gather_tree(%s, %s)" % (ids, d.ints(0, k - 1, shape=[t, b, k]))


@kind(0.5)
def sequence_mask(d):
    x = d.ints(0, 5, shape=[d.number(1, 4)] + ([1] if d.chance(0.3) else []), open=False)
    return "L.sequence_mask(%s%s, dtype='%s')" % (
        x,
        d.args(maxlen=d.one(None, d.number(5, 7)) if x.value.max() > 0 else 6),
        d.one("int64", "float32", "int32"),
    )


_ = np
