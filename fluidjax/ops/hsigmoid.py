"""hierarchical_sigmoid: a class as a path of binary choices through a tree, the default one or one
that is given.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import ShapeError
from .bounds import below
from .index import put, take
from .outside import within
from .registry import Array, Longs, SelectedRows, Strs, grad_of, op
from .traits import Bounds, SparseGradient, Unchanged, row_wise

LIMIT = 40.0  # logits are clipped to [-40, 40]; gradients pass the clip


def _path(label: Any, table: Any, code: Any, classes: int) -> tuple[Any, Any, Any]:
    """For each row and step of its path: the inner node, the choice there (1 or 0), and whether the
    path has this step.

    In the default tree, class c ends at leaf c + num_classes of a heap whose root is 1, and W has a
    row for each inner node.
    """
    if table is not None:
        there = jnp.cumprod(table >= 0, axis=1).astype(bool)
        return jnp.where(there, table, 0), code, there
    leaf = label.reshape(-1, 1).astype(np.int64) + classes
    step = np.arange((classes - 1).bit_length(), dtype=np.int64)
    node = (leaf >> (step + 1)) - 1
    return jnp.maximum(node, 0), (leaf >> step) & 1, node >= 0


def _checked(x: Any, w: Any, label: Any, table: Any, code: Any, bias: Any, classes: int) -> None:
    if x.ndim != 2 or w.ndim != 2 or w.shape[1] != x.shape[1]:
        raise ShapeError(
            f"hierarchical_sigmoid takes X [N, D] and W [nodes, D], not {list(x.shape)} and"
            f" {list(w.shape)}"
        )
    if (table is None) != (code is None):
        raise ShapeError(
            "hierarchical_sigmoid takes PathTable and PathCode together, or neither for the default"
            " tree"
        )
    if table is not None:
        if table.ndim != 2 or table.shape != code.shape or table.shape[0] != x.shape[0]:
            raise ShapeError(
                "hierarchical_sigmoid takes PathTable and PathCode [N, longest path], N ="
                f" {x.shape[0]}, not {list(table.shape)} and {list(code.shape)}"
            )
    elif classes < 2 or label.size != x.shape[0] or w.shape[0] < classes - 1:
        raise ShapeError(
            "hierarchical_sigmoid's default tree takes num_classes of 2 and more, a label a row"
            f" and a row of W for each of num_classes - 1 inner nodes, not num_classes {classes},"
            f" Label {list(label.shape)} and W {list(w.shape)}"
        )
    if bias is not None and bias.size != w.shape[0]:
        raise ShapeError(
            f"hierarchical_sigmoid takes a Bias number for each row of W, {w.shape[0]}, not"
            f" {list(bias.shape)}"
        )


@op(
    outs="Out PreOut~ W_Out~",
    rows=row_wise("X", "Label", "PathTable", "PathCode", outs="Out PreOut"),
    bounds=Bounds("Label", "label", below("num_classes", "PathTable")),
    refuses=within("PathTable", "node", lambda inputs, attrs: inputs["W"].shape[0], low=None),
    sparse=SparseGradient("is_sparse", "W", looks_up=False),
    unchanged=Unchanged({"W_Out": "W"}, lambda attrs: True),
)
def hierarchical_sigmoid(
    X: Array, W: Array, Label: Array, PathTable: Array | None, PathCode: Array | None, Bias: Array | None, *,
    num_classes: int = 2, is_sparse: bool = False, remote_prefetch: bool = False, trainer_id: int = 0,
    height_sections: Longs = (), epmap: Strs = (), table_names: Strs = (),
):  # fmt: skip
    """Out [N, 1] = sum along the path of log(1 + exp(z)) - choice * z, z = X . W[node] + Bias[node]
    clipped to [-40, 40].

    PreOut [N, longest path] = log(1 + exp(z)). Steps beyond the end of a shorter path add log(2),
    as in 1.8.5. W_Out = W.
    """
    _checked(X, W, Label, PathTable, PathCode, Bias, num_classes)
    node, choice, there = _path(Label, PathTable, PathCode, num_classes)
    z = jnp.einsum("nd,nld->nl", X, take(W, node[..., None]))
    if Bias is not None:
        z = z + take(Bias.reshape(-1), node[..., None])
    z = jnp.clip(jnp.where(there, z, 0), -LIMIT, LIMIT)
    soft = jnp.log(1 + jnp.exp(z))
    taken = jnp.sum(jnp.where(there & (choice != 0), z, 0), 1, keepdims=True)
    return jnp.sum(soft, 1, keepdims=True) - taken, soft, W


@grad_of(
    "hierarchical_sigmoid",
    "X W Label PathTable PathCode Bias PreOut",
    nograd="Label PathTable PathCode",
    grad_outs="Out",
)
def hierarchical_sigmoid_grad(
    X: Array, W: Array, Label: Array, PathTable: Array | None, PathCode: Array | None, Bias: Array | None, PreOut: Array, d_Out: Array,
    *, num_classes: int, is_sparse: bool,
):  # fmt: skip
    """X@GRAD = sum of s W[node], W@GRAD[node] += s X, Bias@GRAD[node] += s, where s = Out@GRAD * (1
    - exp(-PreOut) - choice).

    W@GRAD is sparse rows with is_sparse. A clipped logit also has its gradient, as in 1.8.5.
    """
    node, choice, there = _path(Label, PathTable, PathCode, num_classes)
    slope = jnp.where(
        there, (1 - 1 / jnp.exp(PreOut) - (choice != 0)) * d_Out.reshape(-1, 1), 0
    ).astype(X.dtype)
    flat = (slope == 0)[..., None]  # adds nothing, whatever the factor
    d_x = jnp.einsum("nl,nld->nd", slope, jnp.where(flat, 0, take(W, node[..., None])))
    at = jnp.where(there, node, W.shape[0]).reshape(-1, 1)  # past the end: dropped
    rows = jnp.where(flat, 0, slope[..., None] * X[:, None, :]).reshape(-1, W.shape[1])
    d_w: Any = (
        SelectedRows(at[:, 0], rows, W.shape[0])
        if is_sparse
        else put(jnp.zeros_like(W), at, rows, add=True)
    )
    d_bias = (
        None
        if Bias is None
        else put(jnp.zeros(Bias.size, Bias.dtype), at, slope.reshape(-1), add=True).reshape(
            Bias.shape
        )
    )
    return d_x, d_w, d_bias
