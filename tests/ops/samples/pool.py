"""Pools: layouts, paddings, ceil_mode, adaptive and global windows, ties."""

import numpy as np

from ..sample import Sample, distinct, f32, ints

TIES = {"numeric": "a maximum has no derivative at ties"}


def pool(op, kind, shape, ksize, x=None, **attrs):
    attrs.update(pooling_type=kind, ksize=ksize)
    return Sample(
        op, {"X": distinct(*shape) if x is None else x}, attrs, outputs=["Out"], grad=["X"]
    )


def planes(kind):
    def p(shape, ksize, **attrs):
        return pool("pool2d", kind, shape, ksize, **attrs)

    yield p((2, 2, 6, 4), [2, 2], strides=[2, 2])
    yield p((2, 6, 4, 2), [2, 2], strides=[2, 2], data_format="NHWC")
    yield p((2, 2, 7, 5), [2, 2], strides=[2, 2])
    yield p((2, 2, 7, 5), [3, 2])
    yield p((2, 2, 7, 6), [3, 3], strides=[2, 2], paddings=[1, 1])
    yield p((2, 7, 6, 3), [3, 3], strides=[2, 2], paddings=[1, 1], data_format="NHWC")
    yield p((2, 2, 7, 6), [3, 3], strides=[2, 2], paddings=[1, 1], exclusive=False)
    yield p((2, 2, 8, 6), [3, 3], strides=[2, 2], ceil_mode=True)
    yield p((2, 2, 8, 6), [3, 3], strides=[2, 2], paddings=[1, 0], ceil_mode=True, exclusive=False)
    yield p((1, 2, 7, 7), [2, 2], strides=[2, 2], ceil_mode=True)
    yield p((1, 2, 7, 6), [3, 2], strides=[2, 1], paddings=[1, 2, 0, 1])
    yield p(
        (1, 7, 6, 2),
        [3, 2],
        strides=[1, 2],
        paddings=[2, 1, 1, 0],
        data_format="NHWC",
        exclusive=False,
    )
    yield p((1, 2, 7, 6), [3, 3], strides=[2, 2], padding_algorithm="SAME", paddings=[1, 1])
    yield p((1, 2, 7, 6), [3, 3], strides=[2, 3], padding_algorithm="VALID", paddings=[1, 1])
    yield p((1, 2, 7, 6), [1, 2], strides=[2, 3])
    yield p((2, 3, 4, 5), [2, 2], global_pooling=True, paddings=[1, 1])
    yield p((2, 4, 5, 3), [2, 2], global_pooling=True, data_format="NHWC")
    yield p((1, 1, 10, 9), [8, 9])
    yield p((1, 2, 10, 9), [8, 8], paddings=[2, 1], exclusive=False)
    yield p((1, 1, 16, 16), [8, 8], strides=[8, 8])
    yield p((2, 2, 6, 4), [3, 2], adaptive=True)
    yield p((2, 2, 7, 5), [3, 2], adaptive=True)
    yield p((2, 7, 5, 2), [3, 2], adaptive=True, data_format="NHWC")
    if kind == "avg":
        yield p((2, 2, 3, 2), [5, 4], adaptive=True)
    else:  # windows that lie outside hold the least number there is: no gradient to compare
        yield Sample(
            "pool2d",
            {"X": distinct(2, 2, 3, 2)},
            dict(pooling_type="max", ksize=[5, 4], adaptive=True),
            outputs=["Out"],
        )
    yield p((2, 2, 7, 5), [1, 1], adaptive=True)


def volumes(kind):
    def p(shape, ksize, **attrs):
        return pool("pool3d", kind, shape, ksize, **attrs)

    yield p((1, 2, 4, 4, 2), [2, 2, 2], strides=[2, 2, 2])
    yield p((1, 2, 5, 4, 3), [3, 2, 2], strides=[2, 1, 1], paddings=[1, 0, 1])
    yield p(
        (1, 5, 4, 3, 2),
        [3, 2, 2],
        strides=[2, 1, 2],
        paddings=[1, 0, 1, 0, 0, 1],
        data_format="NDHWC",
    )
    yield p((1, 2, 5, 4, 4), [2, 2, 3], strides=[2, 2, 2], ceil_mode=True, exclusive=False)
    yield p((1, 2, 5, 4, 3), [2, 2, 2], adaptive=True)
    yield p((1, 5, 4, 3, 2), [2, 3, 2], adaptive=True, data_format="NDHWC")
    yield p((2, 2, 3, 2, 3), [2, 2, 2], global_pooling=True)
    yield p((1, 2, 5, 4, 3), [2, 2, 2], padding_algorithm="SAME", strides=[2, 2, 1])


def ties():
    """equal cells: the gradient goes to the first maximum of each window"""

    def few(*shape):
        return ints(*shape, high=3, dtype="float32")

    for x, attrs in [
        (few(2, 2, 6, 6), dict(ksize=[2, 2], strides=[2, 2])),
        (few(2, 6, 6, 2), dict(ksize=[3, 3], strides=[3, 3], data_format="NHWC")),
        (few(2, 2, 7, 7), dict(ksize=[3, 3], strides=[2, 2], paddings=[1, 1])),
        (few(2, 2, 7, 7), dict(ksize=[3, 3], strides=[1, 1])),
        (few(1, 1, 16, 16), dict(ksize=[8, 8], strides=[8, 8])),
        (few(1, 1, 12, 12), dict(ksize=[8, 8], strides=[2, 2])),
        (few(1, 2, 7, 5), dict(ksize=[3, 2], adaptive=True)),
    ]:
        attrs = dict(attrs, pooling_type="max")
        yield Sample("pool2d", {"X": x}, attrs, outputs=["Out"], grad=["X"], skip=TIES)


def with_index():
    def p(op, x, ksize, skip=None, **attrs):
        return Sample(
            op,
            {"X": x},
            dict(attrs, ksize=ksize),
            outputs=["Out", "Mask"],
            grad=["X"],
            of=["Out"],
            skip=skip,
        )

    two, three = "max_pool2d_with_index", "max_pool3d_with_index"
    yield p(two, distinct(2, 2, 6, 4), [2, 2], strides=[2, 2])
    yield p(two, distinct(2, 2, 7, 5), [3, 2], strides=[2, 1], paddings=[1, 0])
    yield p(two, distinct(2, 2, 5, 5), [3, 3], strides=[1, 1], paddings=[1, 1])
    yield p(two, distinct(2, 2, 4, 5), [2, 2], global_pooling=True)
    yield p(two, distinct(2, 2, 7, 5), [3, 2], adaptive=True)
    yield p(two, distinct(2, 2, 6, 4), [3, 2], adaptive=True)
    yield p(
        two,
        ints(1, 2, 6, 6, high=3, dtype="float32"),
        [3, 3],
        strides=[2, 2],
        paddings=[1, 1],
        skip=TIES,
    )
    yield p(three, distinct(1, 2, 4, 4, 2), [2, 2, 2], strides=[2, 2, 2])
    yield p(three, distinct(1, 2, 5, 4, 3), [3, 2, 2], strides=[2, 1, 1], paddings=[1, 0, 1])
    yield p(three, distinct(1, 2, 5, 4, 3), [2, 3, 2], adaptive=True)
    yield p(three, distinct(1, 2, 3, 2, 3), [2, 2, 2], global_pooling=True)


def unpool():
    """Indices as max_pool2d_with_index with ksize 2 and stride 2 gives them: one cell of each 2x2
    window
    """
    rows, cols = np.arange(3)[:, None] * 2, np.arange(4)[None, :] * 2
    where = (rows + ints(2, 2, 3, 4, high=2)) * 8 + cols + ints(2, 2, 3, 4, high=2)
    yield Sample(
        "unpool",
        {"X": f32(2, 2, 3, 4), "Indices": where.astype("int32")},
        {"unpooling_type": "max", "ksize": [2, 2], "strides": [2, 2], "paddings": [0, 0]},
        outputs=["Out"],
        grad=["X"],
    )
    yield Sample(
        "unpool",
        {"X": f32(1, 1, 2, 2), "Indices": np.array([[[[0, 3], [17, 13]]]], "int32")},
        {"unpooling_type": "max", "ksize": [3, 3], "strides": [2, 2]},
        outputs=["Out"],
        grad=["X"],
    )


SAMPLES = [
    *planes("max"),
    *planes("avg"),
    *volumes("max"),
    *volumes("avg"),
    *ties(),
    *with_index(),
    *unpool(),
]


def cut_short():
    """Sizes are divided toward zero: a window that lacks fewer cells than a stride has one output,
    of what there is.
    """
    for pooling in ("max", "avg"):
        for n, k, s, p, ceil in ((6, 7, 7, 0, False), (4, 7, 3, 1, False), (2, 4, 2, 0, True)):
            for exclusive in (True, False)[: 1 + (pooling == "avg")]:
                yield Sample(
                    "pool2d",
                    {"X": distinct(1, 2, n, n)},
                    {
                        "pooling_type": pooling,
                        "ksize": [k, k],
                        "strides": [s, s],
                        "paddings": [p, p],
                        "ceil_mode": ceil,
                        "exclusive": exclusive,
                    },
                    ["Out"],
                    grad=["X"],
                )
        yield Sample(
            "pool3d",
            {"X": distinct(1, 1, 2, 3, 3)},
            {"pooling_type": pooling, "ksize": [3, 4, 4], "strides": [2, 2, 2]},
            ["Out"],
            grad=["X"],
        )
    yield Sample(
        "max_pool2d_with_index",
        {"X": distinct(1, 2, 6, 6)},
        {"ksize": [7, 7], "strides": [7, 7]},
        ["Out", "Mask"],
        grad=["X"],
        of=["Out"],
    )
    yield Sample(
        "max_pool2d_with_index",
        {"X": distinct(1, 2, 3, 4)},
        {"ksize": [2, 2], "adaptive": True, "global_pooling": True},
        ["Out", "Mask"],
        grad=["X"],
        of=["Out"],
        note="adaptive wins: every cell is a window",
        skip={"unknown": "as many outputs as cells"},
    )
    nothing = f32(1, 1, 4, 4)
    nothing[..., :2, :2], nothing[..., 2:, 2:], nothing[..., 0, 3] = np.nan, -np.inf, np.nan
    yield Sample(
        "max_pool2d_with_index",
        {"X": nothing},
        {"ksize": [2, 2], "strides": [2, 2]},
        ["Out", "Mask"],
    )


SAMPLES += [*cut_short()]


def left_over():
    """One window side by side with nothing, and cells behind it that no window covers."""
    for pooling in ("max", "avg"):
        for kind, shape, k in (
            ("pool2d", (2, 2, 3, 3), [2, 2]),
            ("pool2d", (1, 2, 2, 7), [2, 5]),
            ("pool3d", (1, 1, 2, 2, 3), [2, 2, 2]),
        ):
            yield Sample(
                kind,
                {"X": distinct(*shape)},
                {"pooling_type": pooling, "ksize": k, "strides": k},
                ["Out"],
                grad=["X"],
            )


SAMPLES += [*left_over()]
