"""Ops whose inputs have a row for each sample refuse one row beside three, as Paddle 1.8.5 does:
NumPy's rules would repeat it without a word. (Each was run on 1.8.5: EnforceNotMet.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FluidError
from tests.nets import fresh

L = fluid.layers


def _of(name: str, size: int = 4, dtype: str = "float32") -> Any:
    return L.data(name, [size], dtype=dtype)


OPS: dict[str, Callable[[], Any]] = {
    "bpr_loss": lambda: L.bpr_loss(L.softmax(_of("a")), _of("b", 1, "int64")),
    "cross_entropy": lambda: L.cross_entropy(L.softmax(_of("a")), _of("b"), soft_label=True),
    "softmax_with_cross_entropy": lambda: L.softmax_with_cross_entropy(
        _of("a"), _of("b"), soft_label=True
    ),
    "huber_loss": lambda: L.huber_loss(_of("a", 1), _of("b", 1), 1.0),
    "log_loss": lambda: L.log_loss(L.sigmoid(_of("a", 1)), _of("b", 1)),
    "sigmoid_cross_entropy": lambda: L.sigmoid_cross_entropy_with_logits(_of("a"), _of("b")),
    "smooth_l1": lambda: L.smooth_l1(_of("a"), _of("b")),
    "kldiv_loss": lambda: L.kldiv_loss(_of("a"), _of("b")),
    "margin_rank_loss": lambda: L.margin_rank_loss(_of("b", 1), _of("a", 1), _of("a", 1)),
    "teacher_student": lambda: L.teacher_student_sigmoid_loss(_of("a", 1), _of("b", 1)),
    "multiplex": lambda: L.multiplex([_of("a"), _of("b")], L.data("c", [1], dtype="int32")),
    "bilinear": lambda: L.bilinear_tensor_product(_of("a"), _of("b"), 3),
    "gru_unit": lambda: L.gru_unit(_of("a", 12), _of("b"), 12),
    "grid_sampler": lambda: L.grid_sampler(L.data("a", [2, 3, 3]), L.data("b", [3, 3, 2])),
}


@pytest.mark.parametrize("name", OPS)
def test_one_row_is_not_repeated(name: str) -> None:
    with fresh() as (main, startup), fluid.scope_guard(fluid.Scope()):
        out = OPS[name]()
        exe, variables = fluid.Executor(), main.global_block().vars
        exe.run(startup)

        def run(**rows: int) -> None:
            shapes = {n: (k, *variables[n].shape[1:]) for n, k in rows.items() if n in variables}
            dtypes = {n: fluid.data_feeder.convert_dtype(variables[n].dtype) for n in shapes}
            feed = {n: np.full(shape, 0.5).astype(dtypes[n]) for n, shape in shapes.items()}
            exe.run(feed=feed, fetch_list=[out])

        run(a=3, b=3, c=3)
        for a, b in ((1, 3), (3, 1)):
            with pytest.raises(FluidError, match="take"):
                run(a=a, b=b, c=a)
