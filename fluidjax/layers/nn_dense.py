"""Dense layers: fully connected, embeddings, products of matrices, dropout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.loc import located
from ..errors import FluidTypeError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import FLOATS, HALF, INTS, REAL, append, dtype_in, require, shapes_fit, typed, variable


@located
def fc(
    input: Any,
    size: int,
    num_flatten_dims: int = 1,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """act(sum_i flatten(input_i) @ w_i + b): shape input.shape[:num_flatten_dims] + [size].

    input: a float variable, or a list of them with one weight each. num_flatten_dims: the number of
    leading dimensions that stay; -1: all but the last. bias_attr: False means no bias. Raises
    FluidTypeError for other inputs, FluidValueError if their dtypes or the number of param_attr do
    not fit.
    """
    typed(input, "input", (list, tuple, Variable), "fc")
    for i, x in enumerate(input if isinstance(input, list | tuple) else []):
        typed(x, f"input[{i}]", Variable, "fc")
    helper = LayerHelper(
        "fc", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name
    )
    dtype = helper.input_dtype()
    dtype_in(dtype, "input", "fc", HALF)
    products = []
    for x, attr in helper.iter_inputs_and_params():
        if num_flatten_dims == -1:
            num_flatten_dims = x.ndim - 1
        w = helper.create_parameter(attr, [math.prod(x.shape[num_flatten_dims:]), size], dtype)
        attrs = {"x_num_col_dims": num_flatten_dims, "y_num_col_dims": 1}
        products.append(append(helper, {"X": x, "Y": w}, {"Out": dtype}, attrs, kind="mul"))
    total = (
        products[0]
        if len(products) == 1
        else append(helper, {"X": products}, {"Out": dtype}, kind="sum")
    )
    return helper.append_activation(helper.append_bias_op(total, dim_start=num_flatten_dims))


def lookup(
    kind: str, layer: str, input: Any, size: Sequence[int], is_sparse: bool, is_distributed: bool,
    padding_idx: int | None, param_attr: Any, dtype: Any,
) -> Variable:  # fmt: skip
    """Rows of a new table of shape `size`; shared by layers.embedding and fluid.embedding."""
    helper = LayerHelper("embedding", param_attr=param_attr)
    variable(input, "input", layer, ("int64",))
    dtype_in(dtype, "dtype", layer, HALF)
    typed(size, "size", (tuple, list, np.ndarray), layer)
    w = helper.create_parameter(helper.param_attr, size, dtype)
    out = helper.create_variable_for_type_inference(dtype)
    padding = -1 if padding_idx is None else padding_idx + (size[0] if padding_idx < 0 else 0)
    attrs = {
        "is_sparse": is_sparse, "is_distributed": is_distributed, "padding_idx": padding,
        "remote_prefetch": bool(is_sparse and not is_distributed),
    }  # fmt: skip
    helper.append_op(type=kind, inputs={"Ids": input, "W": w}, outputs={"Out": out}, attrs=attrs)
    return out


@located
def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Variable:
    """Rows of a [height, width] table: ids [..., 1] (int64) give [..., width].

    is_sparse: the gradient holds only the batch's rows (docs/sparse.md). is_distributed: the
    pserver transpiler distributes the table. padding_idx: an id (from the end if negative) whose
    row reads as zeros; its row gets no gradient unless the gradient is sparse. Raises
    FluidTypeError for other ids or an integer dtype.
    """
    return lookup(
        "lookup_table",
        "embedding",
        input,
        size,
        is_sparse,
        is_distributed,
        padding_idx,
        param_attr,
        dtype,
    )


@located
def one_hot(input: Variable, depth: Any, allow_out_of_range: bool = False) -> Variable:
    """Out[..., k] = 1 where input[..., 0] == k, else 0: ids [..., 1] give float32 [..., depth].

    depth: an integer or a variable of one. allow_out_of_range: such ids give zeros instead of an
    error.
    """
    variable(input, "input", "one_hot", INTS)
    typed(depth, "depth", (int, Variable), "one_hot")
    helper = LayerHelper("one_hot")
    return one_hot_of(helper, input, depth, allow_out_of_range, stop=True)


def one_hot_of(
    helper: LayerHelper, input: Variable, depth: Any, allow_out_of_range: bool, stop: bool
) -> Variable:
    inputs, attrs = {"X": input}, {"allow_out_of_range": allow_out_of_range}
    if isinstance(depth, Variable):
        depth.stop_gradient = True
        inputs["depth_tensor"] = depth
    else:
        attrs["depth"] = depth
    out = append(helper, inputs, {"Out": "float32"}, attrs)
    if stop:
        out.stop_gradient = True
    return out


@located
def mul(
    x: Variable,
    y: Variable,
    x_num_col_dims: int = 1,
    y_num_col_dims: int = 1,
    name: str | None = None,
) -> Variable:
    """flatten(x, x_num_col_dims) @ flatten(y, y_num_col_dims), with the outer dimensions of both."""
    variable(x, "x", "mul", HALF)
    variable(y, "y", "mul", HALF)
    attrs = {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}
    return append(LayerHelper("mul", name=name), {"X": x, "Y": y}, {"Out": x.dtype}, attrs)


@located
def matmul(
    x: Variable,
    y: Variable,
    transpose_x: bool = False,
    transpose_y: bool = False,
    alpha: float = 1.0,
    name: str | None = None,
) -> Variable:
    """alpha * x @ y over the last two dimensions, those before broadcast; either may be transposed.

    Raises FluidTypeError for integers, FluidValueError for dimensions that do not fit.
    """
    variable(x, "x", "matmul", HALF)
    variable(y, "y", "matmul", HALF)
    _check_matmul(list(x.shape), list(y.shape), transpose_x, transpose_y)
    attrs = {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": float(alpha)}
    return append(LayerHelper("matmul", name=name), {"X": x, "Y": y}, {"Out": x.dtype}, attrs)


def _check_matmul(x: list[int], y: list[int], transpose_x: bool, transpose_y: bool) -> None:
    x = [1, *x] if len(x) == 1 else x
    y = [*y, 1] if len(y) == 1 else y
    width = x[-2] if transpose_x else x[-1]
    height = y[-1] if transpose_y else y[-2]
    shapes_fit(
        width == height or -1 in (width, height),
        f"matmul's inner dimensions differ: {width} of {x} and {height} of {y}",
    )
    if len(x) > 2 and len(y) > 2:
        for m, n in zip(x[:-2], y[:-2], strict=False):
            shapes_fit(m == n or m < 0 or n < 0, f"matmul's batch dimensions differ: {x} and {y}")


@located
def bmm(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Out[b] = x[b] @ y[b] for x [B, M, K], y [B, K, N]. Raises FluidValueError if the shapes do
    not fit.
    """
    helper = LayerHelper("bmm", name=name)
    typed(x, "x", Variable, "bmm")
    typed(y, "y", Variable, "bmm")
    fits = x.ndim == 3 and y.ndim == 3 and x.shape[2] == y.shape[1]
    shapes_fit(fits, f"bmm takes [B, M, K] and [B, K, N], not {list(x.shape)} and {list(y.shape)}")
    return append(helper, {"X": x, "Y": y}, {"Out": x.dtype})


@located
def dot(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Inner products over the last dimension, which stays with size 1."""
    for what, v in (("x", x), ("y", y)):
        variable(v, what, "dot", (*FLOATS, *INTS))
    return append(LayerHelper("dot", name=name), {"X": x, "Y": y}, {"Out": x.dtype})


@located
def addmm(
    input: Variable,
    x: Variable,
    y: Variable,
    alpha: float = 1.0,
    beta: float = 1.0,
    name: str | None = None,
) -> Variable:
    """beta * input + alpha * x @ y, for matrices."""
    typed(input, "input", Variable, "addmm")
    for what, v in (("x", x), ("y", y)):
        variable(v, what, "addmm", FLOATS)
    inputs = {"Input": input, "X": x, "Y": y}
    return append(
        LayerHelper("addmm", name=name), inputs, {"Out": x.dtype}, {"Alpha": alpha, "Beta": beta}
    )


@located
def addcmul(
    input: Variable,
    tensor1: Variable,
    tensor2: Variable,
    value: float = 1.0,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """input + value * tensor1 * tensor2, elementwise. out: a variable to write (assign) instead of
    a new one.
    """
    from .elementwise import elementwise_add, elementwise_mul
    from .tensor import assign

    variable(input, "input", "addcmul", FLOATS)
    for what, v in (("tensor1", tensor1), ("tensor2", tensor2)):
        variable(v, what, "addcmul", (*FLOATS, *INTS))
    typed(value, "value", REAL, "addcmul")
    result = elementwise_add(input, elementwise_mul(tensor1, tensor2) * value, name=name)
    return result if out is None else assign(result, out)


@located
def cos_sim(X: Variable, Y: Variable) -> Variable:
    """Out[i] = X[i] . Y[i] / (|X[i]| |Y[i]|), shape [N, 1]; Y may have one row."""
    for what, v in (("X", X), ("Y", Y)):
        variable(v, what, "cos_sim", ("float32",))
    out, _, _ = append(
        LayerHelper("cos_sim"),
        {"X": X, "Y": Y},
        {"Out": X.dtype, "XNorm": X.dtype, "YNorm": X.dtype},
    )
    return out


@located
def bilinear_tensor_product(
    x: Variable,
    y: Variable,
    size: int,
    act: str | None = None,
    name: str | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
) -> Variable:
    """Out[:, i] = act(x W_i y^T + b_i) for x [B, M], y [B, N] and a weight [size, M, N]."""
    helper = LayerHelper(
        "bilinear_tensor_product", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name
    )
    variable(x, "x", "bilinear_tensor_product", HALF)
    typed(y, "y", Variable, "bilinear_tensor_product")
    w = helper.create_parameter(helper.param_attr, [size, x.shape[1], y.shape[1]], x.dtype)
    out = helper.create_variable_for_type_inference(x.dtype)
    bias = helper.create_parameter(helper.bias_attr, [1, size], x.dtype, is_bias=True)
    return helper.append_activation(
        append(helper, {"X": x, "Y": y, "Weight": w, "Bias": bias}, {"Out": out})
    )


@located
def dropout(
    x: Variable,
    dropout_prob: float,
    is_test: bool = False,
    seed: int | None = None,
    name: str | None = None,
    dropout_implementation: str = "downgrade_in_infer",
) -> Variable:
    """Zero each element with probability `dropout_prob` while training.

    dropout_implementation: "downgrade_in_infer" (train x * mask, test x * (1 - p)) or
    "upscale_in_train" (train x * mask / (1 - p), test x). seed: None or 0 means the program's
    random_seed; any seed gives the same mask each run. Raises FluidTypeError for integers,
    FluidValueError for another implementation and a probability outside 0 to 1.
    """
    variable(x, "x", "dropout", HALF)
    require(0 <= dropout_prob <= 1, f"dropout_prob is between 0 and 1, not {dropout_prob}")
    known = ("downgrade_in_infer", "upscale_in_train")
    require(
        dropout_implementation in known,
        f"dropout_implementation is {' or '.join(known)}, not {dropout_implementation!r}",
    )
    helper = LayerHelper("dropout", name=name)
    seed = seed or helper.main_program.random_seed or seed
    attrs = {
        "dropout_prob": dropout_prob, "is_test": is_test, "fix_seed": seed is not None, "seed": seed or 0,
        "dropout_implementation": dropout_implementation,
    }  # fmt: skip
    out, _ = append(helper, {"X": [x]}, {"Out": x.dtype, "Mask": "uint8"}, attrs, stop="Mask")
    return out


@located
def merge_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """Sparse rows (the gradient of an embedding with is_sparse) with equal rows summed, in
    ascending order.
    """
    _sparse(x, "merge_selected_rows")
    return append(LayerHelper("merge_selected_rows", name=name), {"X": x}, {"Out": x.dtype})


@located
def get_tensor_from_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """The values of sparse rows as a plain array [n, width]; use merge_selected_rows first to sum
    equal rows.
    """
    _sparse(x, "get_tensor_from_selected_rows")
    return append(
        LayerHelper("get_tensor_from_selected_rows", name=name), {"X": x}, {"Out": x.dtype}
    )


def _sparse(x: Variable, layer: str) -> None:
    typed(x, "x", Variable, layer)
    if x.desc.kind != "SELECTED_ROWS":
        raise FluidTypeError(
            f"The type of 'x' in {layer} must be SELECTED_ROWS, but {x.name!r} is {x.desc.kind}."
        )


__all__ = [
    "addcmul",
    "addmm",
    "bilinear_tensor_product",
    "bmm",
    "cos_sim",
    "dot",
    "dropout",
    "embedding",
    "fc",
    "get_tensor_from_selected_rows",
    "matmul",
    "merge_selected_rows",
    "mul",
    "one_hot",
]
