"""Gather, scatter, selection, arg-max and sort."""

import numpy as np

from ..sample import Sample, bools, distinct, f32, f64, ints


def i32(*values):
    return np.array(values, "int32")


def i64(*values):
    return np.array(values, "int64")


def gathers():
    yield Sample("gather", {"X": f32(4, 3), "Index": i32(2, 0)}, {}, ["Out"], grad=["X"])
    yield Sample("gather", {"X": f32(4, 3, 2), "Index": i64(3, 1, 0)}, {}, ["Out"], grad=["X"])
    yield Sample("gather", {"X": f32(4), "Index": i64(3, 1, 0)}, {}, ["Out"], grad=["X"])
    yield Sample("gather", {"X": f32(4, 3), "Index": i32([2], [0])}, {}, ["Out"], grad=["X"])
    yield Sample(
        "gather", {"X": f32(4, 3), "Index": i32(2, 0, 2)}, {"overwrite": False}, ["Out"], grad=["X"]
    )
    yield Sample(
        "gather",
        {"X": f32(4, 3), "Index": i32(2, 0, 2)},
        {},
        ["Out"],
        grad=["X"],
        skip={"numeric": "gather_grad with overwrite keeps only the last gradient of a row"},
    )
    yield Sample("gather", {"X": ints(4, 3, high=9), "Index": i32(1)}, {}, ["Out"])
    for index in ([[1, 2], [0, 0]], [[1], [0], [1]], [[[1, 0], [1, 2]]]):
        yield Sample(
            "gather_nd",
            {"X": f32(2, 3, 2), "Index": np.array(index, "int64")},
            {},
            ["Out"],
            grad=["X"],
        )
    yield Sample(
        "gather_nd", {"X": f32(2, 3), "Index": i32([1, 2], [1, 2], [0, 1])}, {}, ["Out"], grad=["X"]
    )
    for dim in (0, 1, 2, -1):
        yield Sample(
            "index_select",
            {"X": f32(3, 2, 4), "Index": i64(1, 0, 1)},
            {"dim": dim},
            ["Out"],
            grad=["X"],
        )
    yield Sample(
        "index_select", {"X": f32(3, 4), "Index": i32(1, 0, 1)}, {"dim": 1}, ["Out"], grad=["X"]
    )
    yield Sample(
        "index_sample",
        {"X": f32(3, 4), "Index": i64([0, 2], [3, 3], [1, 0])},
        {},
        ["Out"],
        grad=["X"],
    )
    yield Sample(
        "index_sample",
        {"X": f64(2, 3), "Index": i32([0, 2, 1, 1], [2, 2, 0, 1])},
        {},
        ["Out"],
        grad=["X"],
    )
    yield Sample(
        "multiplex",
        {"Ids": i32([1], [0], [2], [0]), "X": [f32(4, 2), f32(4, 2), f32(4, 2)]},
        {},
        ["Out"],
        grad=["X"],
    )
    yield Sample(
        "where",
        {"Condition": bools(2, 3), "X": f32(2, 3), "Y": f32(2, 3)},
        {},
        ["Out"],
        grad=["X", "Y"],
    )
    yield Sample(
        "where", {"Condition": bools(4), "X": ints(4, high=9), "Y": ints(4, high=9)}, {}, ["Out"]
    )


def scatters():
    kept = {"numeric": "scatter_grad keeps the gradient of rows that were overwritten"}

    def rows(x, ids, u, grad, **attrs):
        return Sample(
            "scatter",
            {"X": x, "Ids": ids, "Updates": u},
            attrs,
            ["Out"],
            grad=grad,
            skip=kept if "X" in grad else None,
        )

    yield rows(f32(4, 2), i64(2, 0), f32(2, 2), ["Updates"])
    yield rows(f32(4, 2), i64(2, 0), f32(2, 2), ["X", "Updates"])
    yield rows(f32(4, 2), i32(2, 0, 2), f32(3, 2), ["X", "Updates"])
    yield rows(f32(4, 2), i32(2, 0, 2), f32(3, 2), ["Updates"], overwrite=False)
    yield rows(f32(4, 2), i32(2, 0, 2), f32(3, 2), ["X", "Updates"], overwrite=False)
    grad = ["X", "Updates"]
    yield Sample(
        "scatter_nd_add",
        {"X": f32(4, 2), "Index": i32([2], [0], [2]), "Updates": f32(3, 2)},
        {},
        ["Out"],
        grad=grad,
    )
    yield Sample(
        "scatter_nd_add",
        {"X": f32(3, 4), "Index": i64([2, 1], [0, 0]), "Updates": f32(2)},
        {},
        ["Out"],
        grad=grad,
    )
    yield Sample(
        "scatter_nd_add",
        {"X": f32(3, 2, 2), "Index": i64([[1, 1]], [[1, 1]]), "Updates": f32(2, 1, 2)},
        {},
        ["Out"],
        grad=grad,
    )


def ordered():
    for op in ("arg_max", "arg_min"):
        for axis in (0, 1, -1):
            yield Sample(op, {"X": f32(3, 4, 2)}, {"axis": axis}, ["Out"])
        yield Sample(op, {"X": ints(3, 6, high=3)}, {"axis": 1}, ["Out"])
        yield Sample(op, {"X": f32(5)}, {"axis": 0}, ["Out"])
        yield Sample(op, {"X": f32(3, 4)}, {"axis": 1, "keepdims": True}, ["Out"])
        yield Sample(op, {"X": f32(3, 4)}, {"axis": 0, "dtype": 2}, ["Out"])
        yield Sample(op, {"X": f32(3, 4)}, {"axis": 0, "dtype": 3}, ["Out"])
    for descending in (False, True):
        for axis in (-1, 0, 1):
            yield Sample(
                "argsort",
                {"X": distinct(3, 4, 2)},
                {"axis": axis, "descending": descending},
                ["Out", "Indices"],
                grad=["X"],
                of=["Out"],
            )
        yield Sample(
            "argsort",
            {"X": np.array([5, -9, 2**40, 0, -(2**63)], "int64")},
            {"descending": descending},
            ["Out", "Indices"],
        )
    yield Sample("argsort", {"X": distinct(5)}, {}, ["Out", "Indices"], grad=["X"], of=["Out"])
    for shape, k in (((3, 5), 1), ((3, 5), 3), ((2, 2, 4), 4), ((6,), 2)):
        yield Sample(
            "top_k", {"X": distinct(*shape)}, {"k": k}, ["Out", "Indices"], grad=["X"], of=["Out"]
        )
    yield Sample(
        "top_k",
        {"X": distinct(3, 5), "K": i32(2)},
        {"k": 1},
        ["Out", "Indices"],
        grad=["X"],
        of=["Out"],
    )
    yield Sample(
        "top_k",
        {"X": np.array([[3, -1, 7, 5]], "int64")},
        {"k": 2},
        ["Out", "Indices"],
        paddle=False,
        note="1.8.5 has top_k of floats only on the CPU",
    )


def others():
    ids = i64([0], [1], [7], [9], [10], [19])
    for shard in (0, 1, 2):
        yield Sample(
            "shard_index", {"X": ids}, {"index_num": 20, "nshards": 3, "shard_id": shard}, ["Out"]
        )
    yield Sample(
        "shard_index",
        {"X": ids},
        {"index_num": 20, "nshards": 2, "shard_id": 1, "ignore_value": -7},
        ["Out"],
    )
    for dtype in (3, 5, 2, 0):
        yield Sample("sequence_mask", {"X": i64(2, 0, 4)}, {"maxlen": 5, "out_dtype": dtype}, ["Y"])
    yield Sample("sequence_mask", {"X": i64([2, 1], [3, 0])}, {"maxlen": 3, "out_dtype": 5}, ["Y"])
    yield Sample("sequence_mask", {"X": i64(2, 0, 4)}, {"out_dtype": 3}, ["Y"])
    yield Sample(
        "sequence_mask", {"X": i64(2, 0, 4), "MaxLenTensor": i32(6)}, {"out_dtype": 3}, ["Y"]
    )
    tree = {
        "Ids": i64([[2, 2], [6, 1]], [[3, 9], [6, 1]], [[0, 1], [9, 0]]),
        "Parents": i64([[0, 0], [1, 1]], [[1, 0], [1, 0]], [[0, 0], [0, 1]]),
    }
    yield Sample("gather_tree", tree, {}, ["Out"])
    yield Sample(
        "gather_tree",
        {
            "Ids": ints(4, 2, 3, high=9, dtype="int32"),
            "Parents": ints(4, 2, 3, high=3, dtype="int32"),
        },
        {},
        ["Out"],
    )


SAMPLES = [*gathers(), *scatters(), *ordered(), *others()]
