"""Ops that replace several others on arrays: fc, squared differences of matrices, repeated fc,
elementwise with an activation.

1.8.5's inference passes write them. Each computes the ops that it replaces, and XLA decides what to
fuse.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..errors import EnforceNotMet, ShapeError
from ..ir.desc import OpDesc
from .broadcast import align
from .conditions import attribute, pairs
from .definition import GradNames, GradOp
from .infer import Spec
from .registry import GRAD, Array, Floats, Strs, grad_of, lookup, op
from .traits import elementwise, row_wise


def _fc_spec(
    Input: Spec,
    W: Spec,
    Bias: Spec | None,
    *,
    in_num_col_dims: int,
    activation_type: str,
    padding_weights: bool,
    **_: Any,
) -> Spec:
    if activation_type not in ("", "relu"):
        raise EnforceNotMet(
            f"op 'fc' knows the activation_type relu or none, not {activation_type!r}"
        )
    columns = Input.shape[in_num_col_dims:]
    height, width = (n - 4 * padding_weights for n in W.shape)
    if len(W.shape) != 2 or (min(columns, default=0) >= 0 and math.prod(columns) != height):
        raise ShapeError(
            f"op 'fc' takes a W with as many rows as Input has columns, not {list(W.shape)} beside"
            f" {list(Input.shape)}"
        )
    return Spec((*Input.shape[:in_num_col_dims], width), Input.dtype)


@op(
    outs="Out",
    infer=_fc_spec,
    rows=row_wise("Input", when=attribute("in_num_col_dims", lambda n: n >= 1)),
    heavy=True,
)
def fc(
    Input: Array, W: Array, Bias: Array | None, *, in_num_col_dims: int = 1, activation_type: str = "", padding_weights: bool = False,
    use_mkldnn: bool = False, use_quantizer: bool = False, Scale_in: float = 1.0, Scale_weights: Floats = (1.0,),
    Scale_out: float = 1.0, force_fp32_output: bool = False,
):  # fmt: skip
    """Out = activation(flatten(Input, in_num_col_dims) @ W + Bias), activation relu or none.

    padding_weights: W has four extra rows and columns, which are ignored.
    """
    weight = W[: W.shape[0] - 4, : W.shape[1] - 4] if padding_weights else W
    out = Input.reshape(math.prod(Input.shape[:in_num_col_dims]), -1) @ weight
    out = out if Bias is None else out + Bias.reshape(1, -1)
    out = jax.nn.relu(out) if activation_type == "relu" else out
    return out.reshape(*Input.shape[:in_num_col_dims], weight.shape[1])


@op(outs="SquaredX~ SquaredY~ SquaredXY~ Out", rows=row_wise("X", outs="SquaredX SquaredXY Out"))
def fusion_squared_mat_sub(X: Array, Y: Array, *, scalar: float = 1.0):
    """Out = scalar * ((X @ Y)^2 - X^2 @ Y^2). X [N, K], Y [K, M]."""
    x, y, product = jnp.square(X), jnp.square(Y), jnp.square(X @ Y)
    return x, y, product, scalar * (product - x @ y)


@op(outs="ReluOut*~ Out", rows=row_wise("X"))
def fusion_repeated_fc_relu(X: Array, W: list[Array], Bias: list[Array]):
    """Out = relu(... relu(X @ W[0] + Bias[0]) ... @ W[-1] + Bias[-1]); ReluOut: the results but the
    last. X [N, K].
    """
    if len(W) != len(Bias) or len(W) < 2:
        raise EnforceNotMet(
            "op 'fusion_repeated_fc_relu' takes two weights or more, each with a bias, not"
            f" {len(W)} and {len(Bias)}"
        )
    found, value = [], X
    for weight, bias in zip(W, Bias, strict=True):
        value = jax.nn.relu(value @ weight + bias.reshape(1, -1))
        found.append(value)
    return found[:-1], value


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "elementwise_add": jnp.add,
    "elementwise_mul": jnp.multiply,
}


def _unary(scale: float) -> dict[str, Callable[[Any], Any]]:
    return {
        "scale": lambda x: scale * x,
        "relu": jax.nn.relu,
        "tanh": jnp.tanh,
        "sigmoid": jax.nn.sigmoid,
    }


def _functors(functor_list: Any) -> tuple[str, str, bool]:
    """The unary and the binary function, and whether the binary one is the outer; a gradient op
    says ``relu_grad``.
    """
    names = [n.partition(",")[0].removesuffix("_grad") for n in functor_list]
    if len(names) == 2:
        for one, two, outer in ((names[1], names[0], True), (names[0], names[1], False)):
            if one in _unary(1.0) and two in BINARY:
                return one, two, outer
    raise EnforceNotMet(
        f"op 'fused_elemwise_activation' takes one of {', '.join(BINARY)} and one of"
        f" {', '.join(_unary(1.0))} as functor_list, not {list(functor_list)}"
    )


def _fused_specs(X: Spec, Y: Spec, *, functor_list: Any, **_: Any) -> tuple[Spec, Spec]:
    _, _, outer = _functors(functor_list)
    return X, (Y if outer else X)


def _write_grad(op: OpDesc, names: GradNames) -> list[GradOp]:
    """1.8.5's gradient op names the functions of its gradient, and has IntermediateOut only if that
    is saved.
    """
    saved = op.attrs.get("save_intermediate_out", False)
    inner = ["IntermediateOut"] if saved else []
    ins = {slot: names.taken(slot) for slot in ("X", "Y", "Out", *inner, "Out" + GRAD)}
    outs = {
        "X" + GRAD: names.given("X"),
        "Y" + GRAD: names.given("Y"),
        **{s + GRAD: names.taken(s + GRAD) for s in inner},
    }
    functors = tuple(n + "_grad" for n in op.attrs["functor_list"])
    attrs = {n: v for n, v in op.attrs.items() if n in lookup(op.type).attrs}
    return [
        GradOp("fused_elemwise_activation_grad", ins, outs, {**attrs, "functor_list": functors})
    ]


@op(
    outs="Out IntermediateOut~",
    infer=_fused_specs,
    write_grad=_write_grad,
    rows=elementwise("X", "Y", when=pairs, beside="Y"),
)
def fused_elemwise_activation(
    X: Array, Y: Array, *, axis: int = -1, scale: float = 0.0, save_intermediate_out: bool = False, functor_list: Strs,
):  # fmt: skip
    """Out = f(X, g(Y)) if functor_list is f, g with a binary f, else f(g(X, Y)); IntermediateOut:
    the result of g.

    The binary functions are elementwise_add and elementwise_mul; the unary ones are scale, relu,
    tanh and sigmoid.
    """
    outer, inner = _outer_and_inner(axis, scale, functor_list)
    between = inner(X, Y)
    return outer(X, between), between


def _outer_and_inner(
    axis: int, scale: float, functor_list: Any
) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """Out as a function of X and IntermediateOut, and that as one of X and Y."""
    one, two, outer = _functors(functor_list)
    single, both = _unary(scale)[one], BINARY[two]
    if outer:
        return (lambda x, between: both(*align(x, between, axis))), (lambda x, y: single(y))
    return (lambda x, between: single(between)), (lambda x, y: both(*align(x, y, axis)))


@grad_of(
    "fused_elemwise_activation",
    "X Y Out IntermediateOut",
    gives={s + GRAD: s for s in ("X", "Y", "IntermediateOut")},
    when={"IntermediateOut": "save_intermediate_out"},
    needs={"IntermediateOut" + GRAD: "IntermediateOut"},
)
def fused_elemwise_activation_grad(
    X: Any,
    Y: Any,
    Out: Any,
    IntermediateOut: Any,
    d_Out: Any,
    *,
    axis: int,
    scale: float,
    functor_list: Any,
) -> tuple[Any, Any, Any]:
    """The gradients of X, Y and IntermediateOut, which is recomputed if it was not saved."""
    outer, inner = _outer_and_inner(axis, scale, functor_list)
    between, through = jax.vjp(inner, X, Y)
    out, back = jax.vjp(outer, X, between if IntermediateOut is None else IntermediateOut)
    direct, d_between = back(
        jnp.zeros_like(out) if d_Out is None else jnp.asarray(d_Out, out.dtype).reshape(out.shape)
    )
    d_x, d_y = through(d_between)
    return d_x + direct, d_y, d_between
