"""Shapes with unknown dimensions, as Paddle 1.8.5 infers them, and what is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax.ops  # noqa: F401
from fluidjax.errors import FluidError, UnsupportedError
from fluidjax.ir.desc import FrozenMap
from fluidjax.ops.infer import Spec, by_rule, by_running, infer
from fluidjax.ops.registry import lookup

INFERRED: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any], tuple[int, ...]]] = [
    ("elementwise_add", (-1, 4), (3, 4), {}, (3, 4)),
    ("elementwise_add", (-1, 4), (1, 4), {}, (-1, 4)),
    ("elementwise_add", (-1, 4), (-1, 1), {}, (-1, 4)),
    ("elementwise_add", (1, 4), (-1, 4), {}, (-1, 4)),
    ("elementwise_add", (2, 3, 4), (-1,), {"axis": 1}, (2, 3, 4)),
    ("elementwise_add", (2, -1, 4), (3,), {"axis": 1}, (2, 3, 4)),
    ("elementwise_add", (3,), (-1, 3), {}, (-1, 3)),
    ("elementwise_add", (-1, 3, 4), (-1,), {"axis": 0}, (-1, 3, 4)),
    ("elementwise_add", (-1, 1, 4), (-1, 3, 4), {}, (-1, 3, 4)),
    ("elementwise_add", (2, 3), (2, 3), {"axis": 5}, (2, 3)),  # 1.8.5 does not look at it
    ("mul", (-1, -1), (5, 3), {}, (-1, 3)),  # 1.8.5 refuses it, and takes it once the batch is fed
    ("mul", (-1, 2, -1), (6, 3), {"x_num_col_dims": 2}, (-1, 2, 3)),
    ("matmul", (-1, -1), (5, 3), {}, (-1, 3)),
    ("matmul", (-1, 2, 4), (5, 4, 3), {}, (-1, 2, 3)),
    ("matmul", (-1, 8, -1, 16), (-1, 8, -1, 16), {"transpose_Y": True}, (-1, 8, -1, -1)),
    ("matmul", (2, -1, 2, 4), (4, 4, 3), {}, (2, -1, 2, 3)),
    ("matmul", (-1,), (4,), {}, (1,)),
    ("matmul", (4,), (3,), {"transpose_X": True, "transpose_Y": True}, (4, 3)),
    ("bmm", (-1, 2, 3), (-1, 3, 4), {}, (-1, 2, 4)),
    ("dot", (-1, 4), (-1, 4), {}, (-1, 1)),
    ("kron", (-1, 4), (3, 4), {}, (-1, 16)),
    ("cross", (-1, 3), (-1, 3), {}, (-1, 3)),
    ("dist", (-1, 4), (3, 4), {}, (1,)),
]
REFUSED: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any], str]] = [
    ("elementwise_add", (2, 3), (4, 3), {}, "2 is not 4"),
    ("elementwise_add", (2, 3, 4), (3, 2), {"axis": 2}, "axis 2"),
    ("elementwise_add", (2, 3), (2, 1), {"axis": 1}, "axis 1"),
    ("elementwise_add", (2, 3), (2, 3), {"axis": -2}, "axis -2"),
    ("mul", (-1, 4), (5, 3), {}, r"sums over \[4\] of X and \[5\] of Y"),
    ("mul", (4,), (4, 3), {}, "splits"),
    ("matmul", (-1, 4), (5, 3), {}, "sums over 4 of X"),
    ("matmul", (2, 2, 3), (3, 3, 4), {}, "as many matrices"),
    ("bmm", (2, 3), (3, 4), {}, "bmm takes"),
    ("minus", (2, 3), (2, 4), {}, "one shape"),
    ("cross", (2, 4), (2, 4), {}, "size 3"),
]


def specs(x: tuple[int, ...], y: tuple[int, ...], y_dtype: str = "float32") -> FrozenMap:
    return FrozenMap({"X": Spec(x, "float32"), "Y": Spec(y, y_dtype)})


@pytest.mark.parametrize(("kind", "x", "y", "attrs", "out"), INFERRED)
def test_unknown_dimensions(kind: str, x: Any, y: Any, attrs: dict[str, Any], out: Any) -> None:
    assert infer(lookup(kind), specs(x, y), attrs)["Out"] == Spec(out, "float32")


@pytest.mark.parametrize(("kind", "x", "y", "attrs", "text"), REFUSED)
def test_refusals(kind: str, x: Any, y: Any, attrs: dict[str, Any], text: str) -> None:
    with pytest.raises(FluidError, match=text):
        infer(lookup(kind), specs(x, y), attrs)


def test_elementwise_ops_take_one_dtype() -> None:
    with pytest.raises(FluidError, match="X is float32 and Y is int64"):
        infer(lookup("elementwise_add"), specs((2,), (2,), "int64"), {})
    with pytest.raises(FluidError, match="X is float32 and Y is int32"):
        lookup("elementwise_mul")({"X": jnp.ones(2, "float32"), "Y": jnp.ones(2, "int32")}, {})


@pytest.mark.parametrize(
    ("x", "y", "heads", "message"),
    [
        ((2, 4), (4, 6), 3, "cuts the 4 columns of X into head_number = 3 equal parts"),
        ((2, 4), (3, 6), 2, "takes 4 rows in Y, or 2 and a multiple of 2 columns"),
        ((2, 4), (2, 5), 2, r"not X\[2, 4\] and Y\[2, 5\]"),
    ],
)
def test_matmul_refuses_heads_that_do_not_fit(x: Any, y: Any, heads: int, message: str) -> None:
    with pytest.raises(FluidError, match=message):
        infer(lookup("matmul"), specs(x, y), {"head_number": heads})


def test_matmul_refuses_what_only_mkl_has() -> None:
    with pytest.raises(UnsupportedError, match="fused"):
        lookup("matmul")(
            {"X": jnp.ones((2, 2)), "Y": jnp.ones((2, 2))},
            {"fused_reshape_Out": (4,), "fused_transpose_Out": (0,)},
        )


def test_second_gradient_of_a_broadcast_dividend_is_refused() -> None:
    ones = {"Y": (2, 3), "Out": (2, 3), "DX": (3,), "DDX": (3,)}
    with pytest.raises(UnsupportedError, match="expand"):
        lookup("elementwise_div_grad_grad")({s: jnp.ones(shape) for s, shape in ones.items()}, {})


@pytest.mark.parametrize(
    ("kind", "slots"), [("elementwise_add", ""), ("elementwise_mul", "X Y"), ("mul", "X Y")]
)
def test_second_gradients_where_little_flows_back(kind: str, slots: str) -> None:
    """Without DDX and DDY everything is zero."""
    given = {s: np.ones((2, 2), "float32") for s in ("X", "Y", "DOut")}
    with jax.enable_x64(True):
        out = lookup(kind + "_grad_grad")(given, {})
    assert all(value.shape == (2, 2) and not value.any() for value in out.values())


F4 = "float32"
PARTS = {"Scale": (8,), "Bias": (8,), "Mean": (8,), "Variance": (8,)}
USUAL: list[tuple[str, dict[str, tuple[int, ...]], dict[str, Any]]] = [
    ("relu", {"X": (-1, 3)}, {}),
    ("batch_norm", {"X": (-1, 8, 4, -1), **PARTS}, {}),
    ("batch_norm", {"X": (5, 8), **PARTS}, {"is_test": True}),
    ("batch_norm", {"X": (-1, 4, 4, 8), **PARTS, "MomentumTensor": (1,)}, {"data_layout": "NHWC"}),
    (
        "conv2d",
        {"Input": (-1, 4, 9, 8), "Filter": (6, 2, 3, 5)},
        {"groups": 2, "strides": (2, 1), "paddings": (1, 0, 2, 2)},
    ),
    (
        "conv2d",
        {"Input": (-1, 9, 8, 4), "Filter": (6, 4, 3, 3)},
        {"data_format": "NHWC", "padding_algorithm": "SAME", "strides": (2, 3)},
    ),
    (
        "conv2d",
        {"Input": (2, 4, 9, 8), "Filter": (6, 4, 3, 3)},
        {"dilations": (2, 1), "padding_algorithm": "VALID"},
    ),
    ("depthwise_conv2d", {"Input": (-1, 4, 9, 8), "Filter": (4, 1, 3, 3)}, {"groups": 4}),
    ("softmax_with_cross_entropy", {"Logits": (-1, 5), "Label": (-1, 1)}, {}),
    ("softmax_with_cross_entropy", {"Logits": (-1, 5, 7), "Label": (-1, 1, 7)}, {"axis": 1}),
    ("softmax_with_cross_entropy", {"Logits": (-1, 5), "Label": (-1, 5)}, {"soft_label": True}),
]


@pytest.mark.parametrize(("kind", "shapes", "attrs"), USUAL)
def test_a_rule_of_a_usual_op_says_what_running_it_says(
    kind: str, shapes: dict[str, Any], attrs: dict[str, Any]
) -> None:
    hard = kind.startswith("softmax") and not attrs.get("soft_label")
    inputs = FrozenMap(
        {s: Spec(shape, "int64" if hard and s == "Label" else F4) for s, shape in shapes.items()}
    )
    definition, given = lookup(kind), FrozenMap(attrs)
    ruled, ran = by_rule(definition, inputs, given), by_running(definition, inputs, given)
    assert ruled is not None and {s: v for s, v in ruled.items() if v is not None} == {
        s: v for s, v in ran.items() if v is not None
    }


UNUSUAL: list[tuple[str, dict[str, tuple[int, ...]], dict[str, Any]]] = [
    ("batch_norm", {"X": (-1, -1, 4, 4), **PARTS}, {}),
    ("batch_norm", {"X": (-1, 7, 4, 4), **PARTS}, {}),
    ("conv2d", {"Input": (-1, 4, -1, 8), "Filter": (6, 4, 3, 3)}, {}),
    ("conv2d", {"Input": (-1, 5, 9, 8), "Filter": (6, 4, 3, 3)}, {}),
    ("conv2d", {"Input": (-1, 4, 9, 8), "Filter": (6, 4, 3, 3), "Bias": (6,)}, {}),
    ("softmax_with_cross_entropy", {"Logits": (-1, 5), "Label": (-1,)}, {}),
]


@pytest.mark.parametrize(("kind", "shapes", "attrs"), UNUSUAL)
def test_it_says_nothing_of_other_inputs(
    kind: str, shapes: dict[str, Any], attrs: dict[str, Any]
) -> None:
    inputs = FrozenMap(
        {s: Spec(shape, "int64" if s == "Label" else F4) for s, shape in shapes.items()}
    )
    assert by_rule(lookup(kind), inputs, FrozenMap(attrs)) is None
