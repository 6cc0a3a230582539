"""Embedding tables and one-hot vectors."""

import numpy as np

from ..sample import Sample, f32, f64, ints


def i64(*values):
    return np.array(values, "int64")


def look(op, w, ids, grad=True, **attrs):
    return Sample(op, {"W": w, "Ids": ids}, attrs, ["Out"], grad=["W"] if grad else None)


def tables():
    yield look("lookup_table", f32(5, 3), i64([1], [4], [1], [0]))
    yield look("lookup_table", f32(5, 3), ints(2, 3, 1, high=5))
    yield look("lookup_table", f32(5, 3), i64([1], [4], [2], [1]), padding_idx=1)
    yield look("lookup_table", f32(5, 3), i64([1], [4], [1]), is_sparse=True, grad=False)
    yield look(
        "lookup_table", f32(5, 3), i64([1], [4], [1]), is_sparse=True, padding_idx=1, grad=False
    )
    yield look("lookup_table", f64(5, 2), i64([3], [3]), padding_idx=0)
    yield look("lookup_table_v2", f32(5, 3), i64(1, 4, 1, 0))
    yield look("lookup_table_v2", f32(5, 3), ints(2, 3, high=5))
    yield look("lookup_table_v2", f32(5, 3), ints(2, 3, 1, high=5))
    yield look("lookup_table_v2", f32(5, 3), i64(1, 4, 2, 1), padding_idx=1)
    yield look("lookup_table_v2", f32(5, 3), i64(1, 4, 1), is_sparse=True, grad=False)


def vectors():
    def hot(op, x, inputs=None, **attrs):
        return Sample(op, dict({"X": x}, **(inputs or {})), attrs, ["Out"])

    depth = {"depth_tensor": np.array([6], "int32")}
    yield hot("one_hot", i64([1], [0], [3]), depth=4)
    yield hot("one_hot", ints(2, 3, 1, high=4), depth=4, dtype=3)
    yield hot("one_hot", ints(3, 1, high=4, dtype="int32"), depth=4)
    yield hot("one_hot", i64([1], [5]), depth, depth=2)
    yield hot("one_hot", i64([1], [7], [-1]), depth=4, allow_out_of_range=True)
    yield hot("one_hot_v2", i64(1, 0, 3), depth=4)
    yield hot("one_hot_v2", ints(2, 3, high=4), depth=4, dtype=2)
    yield hot("one_hot_v2", i64(1, 5), depth, depth=2)
    yield hot("one_hot_v2", i64(1, 7, -1), depth=4, allow_out_of_range=True)


SAMPLES = [*tables(), *vectors()]
