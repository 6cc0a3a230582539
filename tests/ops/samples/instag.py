"""Instances that have one of some tags."""

import numpy as np

from ..sample import Sample, f32

TAGS = np.array([[0], [1], [1], [3], [0], [3], [2], [6]], "int64")
OUTS = ["Out", "LossWeight", "IndexMap"]
INF = np.array([[1, 2], [np.inf, -np.inf], [np.nan, 0], [-1, 1]], "float32")


def instag(wanted, rows, count, lengths=None, ins=None, **attrs):
    """wanted: tags; rows, count: how many rows and instances are left; lengths: those of instances,
    without them each is a row
    """
    lod = {"Ins_tag": [[2, 2, 2, 2]]}
    if lengths:
        lod["Ins"] = [lengths]
    inputs = {
        "Ins": f32(sum(lengths or [1] * 4), 2) if ins is None else ins,
        "Ins_tag": TAGS,
        "Filter_tag": np.array(wanted, "int64"),
    }
    attrs["is_lod"] = bool(lengths)
    skip = {"unknown": "how many instances there are stands in a LoD"}
    if ins is not None:
        skip["numeric"] = "there are infinities"
    return Sample(
        "filter_by_instag",
        inputs,
        attrs,
        OUTS,
        ["Ins"],
        lod=lod,
        of=["Out"],
        skip=skip,
        rows={"Out": rows, "LossWeight": count, "IndexMap": count},
    )


SAMPLES = [
    instag([0, 2], 4, 3, [1, 2, 0, 3]),
    instag([9], 1, 1, [1, 2, 0, 3], out_val_if_empty=7),
    instag([3], 2, 2, ins=INF),
]
