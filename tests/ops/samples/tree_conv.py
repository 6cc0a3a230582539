"""A convolution over trees, and positions added to rows."""

import numpy as np

from ..sample import Sample, f32


def tree(edges, nodes, depth=2, wide=3, out=(2, 2), paddle=True):
    """1.8.5 makes a gradient of Filter only beside one of NodesVector, which it computes too, but
    not as the derivative
    """
    edges = np.array(edges, "int32")
    inputs = {
        "NodesVector": f32(edges.shape[0], nodes, wide),
        "EdgeSet": edges,
        "Filter": f32(wide, 3, *out),
    }
    note = (
        ""
        if paddle
        else (
            "1.8.5's gradient of NodesVector is not the derivative, and behind a short tree it"
            " leaves old memory"
        )
    )
    return Sample(
        "tree_conv",
        inputs,
        {"max_depth": depth},
        ["Out"],
        [] if paddle else ["NodesVector", "Filter"],
        paddle=paddle,
        note=note,
    )


def position(*shape, lod=None, **attrs):
    return Sample(
        "add_position_encoding",
        {"X": f32(*shape)},
        attrs,
        ["Out"],
        ["X"],
        lod={"X": lod} if lod else None,
    )


WIDE = [[1, 2], [1, 3], [1, 4], [2, 5], [2, 6], [4, 7]]
DEEP = [[1, 2], [2, 3], [3, 4], [3, 5], [5, 6], [2, 7]]
SHORT = [[1, 2], [2, 3], [3, 4], [3, 5], [0, 0], [0, 0]]

SAMPLES = [
    tree([WIDE], 7),
    tree([WIDE, DEEP], 8, depth=3),
    tree([DEEP], 6),
    tree([WIDE, DEEP], 7, depth=4, out=(3, 1)),
    tree([WIDE], 7, paddle=False),
    tree([WIDE, DEEP], 7, depth=3, paddle=False),
    tree([WIDE, SHORT], 7, depth=3, paddle=False),
    position(2, 5, 6),
    position(2, 3, 2, alpha=0.5, beta=2.0),
    position(2, 4, 8, alpha=1.5, beta=0.0),
    position(7, 4, lod=[[3, 4]]),
    position(6, 6, lod=[[1, 3, 2]], alpha=0.7, beta=0.3),
]
