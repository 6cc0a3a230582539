"""Losses and metrics of labels."""

from __future__ import annotations

import numpy as np

from ..draw import Skip, kind


def logits(d, least=2, rank=2):
    x = d.floats(
        rank=rank,
        domain=(-10, 10),
        where=lambda v: v.size[-1] >= least and v.shape[-1] > 0,
        shape=d.shape(rank)[:-1] + [d.number(least, 5)],
    )
    return x


def label(d, x, c=None, shape=None):
    c = c or x.size[-1]
    return d.new(shape or list(x.size[:-1]) + [1], "int64", ["ints", 0, c], lengths=x.lod or None)


def probability(d, shape):
    return d.new(shape, d.float_dtype, ["uniform", 0.05, 0.95])


@kind(2)
def softmax_with_cross_entropy(d):
    x = logits(d, rank=d.one(2, 2, 3))
    axis = d.one(-1, -1, d.number(-x.rank, x.rank - 1))
    soft = d.chance(0.3)
    more = d.args(
        soft_label=soft or None,
        axis=None if axis == -1 else axis,
        return_softmax=d.one(None, True),
        ignore_index=d.one(None, None, 7) if not soft else None,
        numeric_stable_mode=d.one(None, False),
    )
    if soft:
        y = probability(d, list(x.size))
    else:
        shape = list(x.size)
        shape[axis] = 1
        y = label(d, x, x.size[axis], shape)
    return "L.softmax_with_cross_entropy(%s, %s%s)" % (x, y, more)


@kind(2)
def cross_entropy(d):
    x = logits(d, rank=d.one(2, 2, 3))
    if d.chance(0.3):
        return "L.cross_entropy(L.softmax(%s), %s, soft_label=True)" % (
            x,
            probability(d, list(x.size)),
        )
    return "L.cross_entropy(L.softmax(%s), %s%s)" % (
        x,
        label(d, x),
        d.args(ignore_index=d.one(None, None, 0)),
    )


@kind(1.5)
def square_error(d):
    x = d.floats(rank=(2, 3))
    y = d.new(x.size, x.dtype, ["uniform", -1, 1], lengths=x.lod or None)
    return "L.%s(%s, %s)" % (d.one("square_error_cost", "mse_loss"), x, y)


@kind(2)
def regression(d):
    n = d.batch
    x = d.floats(rank=2, where=lambda v: v.size[1] == 1, shape=[n, 1])
    y = d.new(x.size, x.dtype, ["uniform", -1, 1])
    zero_one = d.new(x.size, x.dtype, ["ints", 0, 2], sg=True)
    wide = d.floats(rank=2)
    other = d.new(wide.size, wide.dtype, ["uniform", -1, 1])
    return d.one(
        lambda: "L.huber_loss(%s, %s, %s)" % (x, y, d.real(0.2, 2)),
        lambda: "L.log_loss(%s, %s)" % (probability(d, x.size), zero_one),
        lambda: (
            "L.smooth_l1(%s, %s%s)"
            % (
                wide,
                other,
                d.args(
                    sigma=d.one(None, 2.0),
                    inside_weight=d.one(None, d.new(wide.size, wide.dtype, ["uniform", 0, 1])),
                ),
            )
        ),
        lambda: "L.rank_loss(%s, %s, %s)" % (zero_one, x, y),
        lambda: "L.margin_rank_loss(%s, %s, %s, margin=%s)" % (zero_one, x, y, d.real(0, 1)),
        lambda: (
            "L.kldiv_loss(%s, %s, reduction='%s')"
            % (wide, probability(d, wide.size), d.one("mean", "sum", "batchmean", "none"))
        ),
        lambda: (
            "L.sigmoid_cross_entropy_with_logits(%s, %s%s)"
            % (
                wide,
                d.new(wide.size, wide.dtype, ["ints", 0, 2], sg=True),
                d.args(normalize=d.one(None, True), ignore_index=d.one(None, 0)),
            )
        ),
        lambda: (
            "L.teacher_student_sigmoid_loss(%s, %s)"
            % (x, d.new(x.size, x.dtype, ["uniform", 0.1, 0.9]))
        ),
        lambda: (
            "L.label_smooth(%s, epsilon=%s%s)"
            % (probability(d, wide.size), d.real(0.05, 0.5), ", dtype='float64'" if d.wide else "")
        ),
    )()


@kind(1.5)
def classes(d):
    x = logits(d)
    n, c = x.size
    y = label(d, x)
    return d.one(
        lambda: "L.bpr_loss(L.softmax(%s), %s)" % (x, y),
        lambda: "L.dice_loss(L.softmax(%s), %s)" % (x, y),
        lambda: "L.accuracy(L.softmax(%s), %s%s)" % (x, y, d.args(k=d.one(None, min(2, c)))),
        lambda: (
            "L.center_loss(%s, %s, %d, %s, None%s)"
            % (x, y, c, d.real(0.1, 0.9), d.args(update_center=d.one(None, False)))
        ),
        lambda: (
            "L.hsigmoid(%s, %s, %d%s)"
            % (
                x,
                y,
                max(c, 3),
                d.args(
                    param_attr=d.attr(false=False),
                    bias_attr=d.attr(True),
                    is_sparse=d.one(None, True),
                ),
            )
        ),
        lambda: (
            "L.npair_loss(%s, %s, %s)"
            % (
                x,
                d.new(x.size, x.dtype, ["uniform", -1, 1]),
                d.new([n], d.float_dtype, ["ints", 0, 3], open=False, how="layers"),
            )
        ),
        lambda: (
            "L.sigmoid_focal_loss(%s, %s, %s%s)"
            % (
                x,
                d.new([n, 1], "int32", ["ints", 0, c + 1]),
                d.new([1], "int32", ["list", [d.number(1, 3)]], open=False),
                d.args(gamma=d.one(None, 1.5), alpha=d.one(None, 0.4)),
            )
        ),
        lambda: (
            "L.mean_iou(%s, %s, %d)"
            % (
                d.ints(0, c - 1, shape=[n, 1], dtype="int32"),
                d.ints(0, c - 1, shape=[n, 1], dtype="int32"),
                c,
            )
        ),
        lambda: (
            "L.auc(L.softmax(%s), %s, num_thresholds=%d)"
            % (d.new([n, 2], "float32", ["uniform", -1, 1]), d.ints(0, 1, shape=[n, 1]), 15)
        ),
        lambda: (
            "L.continuous_value_model(%s, %s, %s)"
            % (
                d.floats(shape=[n, 4]),
                d.new([n, 2], d.float_dtype, ["uniform", 0.5, 3], sg=True),
                d.one(True, False),
            )
        ),
    )()


@kind(0.4)
def warp_padded(d):
    t, n, c = d.number(2, 4), d.batch, d.number(2, 4)
    x = d.new([t, n, c], "float32", ["uniform", -1, 1], open=False)
    y = d.new([n, 1], "int32", ["ints", 1, c], open=False)
    lengths = d.new([n], "int64", ["ints", 1, t + 1], open=False)
    ones = d.new([n], "int64", ["list", [1] * n], open=False)
    return "L.warpctc(%s, %s, input_length=%s, label_length=%s)" % (x, y, lengths, ones)


_ = (np, Skip)
