"""paddle.flops: the number of operations of a net, or a static program, for one input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from ...errors import FluidTypeError
from ...graph.operator import Operator
from ...graph.program import Program
from ..nn import layer as nn
from ..nn.layer import Layer
from .built import beside, in_mode, placed, shapes_of


def _conv(layer: Any, x: Any, y: Any) -> int:
    weight = layer.weight.shape
    return int(
        prod(y.shape) * (x.shape[1] / layer.groups * prod(weight[2:]) + (layer.bias is not None))
    )


def _adaptive(layer: Any, x: Any, y: Any) -> int:
    return prod(y.shape) * (prod(a // b for a, b in zip(x.shape[2:], y.shape[2:], strict=True)) + 1)


COUNTED: dict[type[Layer], Callable[[Any, Any, Any], int]] = {
    **dict.fromkeys(
        (
            nn.Conv1D,
            nn.Conv2D,
            nn.Conv3D,
            nn.Conv1DTranspose,
            nn.Conv2DTranspose,
            nn.Conv3DTranspose,
        ),
        _conv,
    ),
    **dict.fromkeys((nn.BatchNorm, nn.BatchNorm2D), lambda layer, x, y: 2 * prod(x.shape)),
    nn.LeakyReLU: lambda layer, x, y: prod(x.shape),
    nn.Linear: lambda layer, x, y: layer.weight.shape[0] * prod(y.shape),
    **dict.fromkeys((nn.AvgPool1D, nn.AvgPool2D, nn.AvgPool3D), lambda layer, x, y: prod(y.shape)),
    **dict.fromkeys((nn.AdaptiveAvgPool1D, nn.AdaptiveAvgPool2D, nn.AdaptiveAvgPool3D), _adaptive),
}


def flops(
    net: Any,
    input_size: Any,
    custom_ops: Mapping[type[Layer], Callable[..., Any]] | None = None,
    print_detail: bool = False,
) -> int:
    """The number of operations of a layer on an input of this shape (with the batch), or of a
    program for one sample; also printed.

    Counted as in Paddle: a multiplication with its addition is one, a bias one more in convolutions
    and none in Linear; batch norms, leaky ReLUs and average pools count, other layers are 0.
    custom_ops: layer class -> function(layer, inputs, output) that returns its operations, or adds
    them to layer.total_ops. print_detail: print a row per layer. In a program, conv2d, pool2d, mul,
    matmul, batch_norm and element-wise ops count, and input_size is ignored. Raises FluidTypeError
    for anything else.
    """
    if isinstance(net, Program):
        rows = [(op.type, "", n) for block in net.blocks for op in block.ops if (n := _of_op(op))]
    elif isinstance(net, Layer):
        rows = _of_layer(net, input_size, {**COUNTED, **(custom_ops or {})}, custom_ops or {})
    else:
        raise FluidTypeError(f"flops takes a layer or a program, not {type(net).__name__}")
    if print_detail:
        for kind, shape, n in rows:
            print(f"{kind:<24} {shape:<24} {n:>14,}")
    total = sum(n for _, _, n in rows)
    print(f"Total Flops: {total}")
    return total


def _of_layer(
    net: Layer, input_size: Any, counted: Mapping[Any, Any], custom: Mapping[Any, Any]
) -> list[tuple[str, str, int]]:
    rows: list[tuple[str, str, int]] = []

    def note(layer: Any, inputs: Sequence[Any], outputs: Any) -> None:
        y = outputs[0] if isinstance(outputs, list | tuple) else outputs
        kind = type(layer)
        if kind in custom:
            layer.total_ops = 0
            made = custom[kind](layer, inputs, y)
            n = int(layer.total_ops if made is None else made)
        else:
            n = counted[kind](layer, inputs[0], y) if kind in counted else 0
        rows.append((layer.full_name(), str(list(y.shape)), abs(n)))

    leaves = [layer for layer in net.sublayers(include_self=True) if not list(layer.children())]
    hooks = [layer.register_forward_post_hook(note) for layer in leaves]
    try:
        with beside(net), in_mode(net, False):
            net(*placed(shapes_of(input_size), None))
    finally:
        for hook in hooks:
            hook.remove()
    return rows


def _of_op(op: Operator) -> int:
    """The operations of an op for one sample."""

    def size(names: Sequence[str]) -> tuple[int, ...]:
        return tuple(op.block._var_recursive(names[0]).shape)

    if op.type in ("conv2d", "depthwise_conv2d"):
        return abs(
            prod(size(op.output("Output"))[1:])
            * (prod(size(op.input("Filter"))[1:]) + bool(op.input("Bias")))
        )
    if op.type == "pool2d":
        x, y = size(op.input("X")), size(op.output("Out"))
        return abs((prod(a // b for a, b in zip(x[2:], y[2:], strict=True)) + 1) * prod(y[1:]))
    if op.type in ("mul", "matmul"):
        return abs(size(op.input("Y"))[0] * prod(size(op.output("Out"))[1:]))
    if op.type == "batch_norm":
        return abs(2 * prod(size(op.output("Y"))[1:]))
    return abs(prod(size(op.input("X"))[1:])) if op.type.startswith("element") else 0


__all__ = ["flops"]
