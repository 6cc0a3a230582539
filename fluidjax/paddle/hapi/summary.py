"""paddle.summary: a table of a net's layers, with their output shapes and parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Any

from ...errors import FluidTypeError, FluidValueError
from ..nn.layer import Layer
from .built import beside, in_mode, listed, placed, shapes_of

HEAD = ("Layer (type)", "Input Shape", "Output Shape", "Param #")


def summary(
    net: Layer, input_size: Any = None, dtypes: Any = None, input: Any = None
) -> dict[str, int]:
    """Print a row for each innermost layer in call order, and totals: {"total_params": ...,
    "trainable_params": ...}.

    input_size: the shape of the input with the batch, or a list of shapes or InputSpecs; None and
    -1 count as 1. dtypes: those of the inputs, default float32. input: arrays (or a list, or a dict
    by argument) whose shapes and dtypes are used instead. A norm's statistics count among all
    parameters. The net is called in a separate program. Raises FluidTypeError unless net is a
    layer, FluidValueError without shapes.
    """
    if not isinstance(net, Layer):
        raise FluidTypeError(f"summary takes a layer, not {type(net).__name__}")
    if input is None and input_size is None:
        raise FluidValueError(
            "summary needs input_size, the shape of the input with the batch, or an input"
        )
    names = list(input) if isinstance(input, dict) else []
    given = [] if input is None else list(input.values()) if names else listed(input)
    shapes = [tuple(a.shape) for a in given] or shapes_of(input_size)
    rows: list[tuple[str, str, str, int]] = []
    counted: dict[str, tuple[int, bool]] = {}
    kinds: Counter[str] = Counter()

    def note(layer: Layer, inputs: Sequence[Any], outputs: Any) -> None:
        own = {
            v.name: (prod(v.shape), bool(getattr(v, "trainable", False)))
            for v in layer.state_dict().values()
        }
        counted.update(own)
        kind = type(layer).__name__
        kinds[kind] += 1
        rows.append(
            (
                f"{kind}-{kinds[kind]}",
                _shown(inputs),
                _shown(outputs),
                sum(n for n, _ in own.values()),
            )
        )

    leaves = [layer for layer in net.sublayers(include_self=True) if not list(layer.children())]
    hooks = [layer.register_forward_post_hook(note) for layer in leaves]
    try:
        with beside(net), in_mode(net, False):
            inputs = placed(shapes, [str(a.dtype) for a in given] or dtypes)
            _ = net(**dict(zip(names, inputs, strict=True))) if names else net(*inputs)
    finally:
        for hook in hooks:
            hook.remove()
    counted |= {
        v.name: (prod(v.shape), bool(getattr(v, "trainable", False)))
        for v in net.state_dict().values()
    }
    total = sum(n for n, _ in counted.values())
    trainable = sum(n for n, trains in counted.values() if trains)
    sizes = sum(prod(s) * 4 for s in shapes)
    print(_table(rows), f"Total params: {total:,}", f"Trainable params: {trainable:,}", f"Non-trainable params: {total - trainable:,}",
          f"Input size (MB): {sizes / 2**20:.2f}", f"Params size (MB): {total * 4 / 2**20:.2f}", sep="\n")  # fmt: skip
    return {"total_params": total, "trainable_params": trainable}


def _shown(values: Any) -> str:
    found = [list(v.shape) if hasattr(v, "shape") else _shown(v) for v in listed(values)]
    return str(found[0] if len(found) == 1 else found)


def _table(rows: Sequence[tuple[str, str, str, int]]) -> str:
    cells = [HEAD, *((*row[:3], f"{row[3]:,}") for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(HEAD))]
    lines = [
        "  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in cells
    ]
    rule = "=" * len(lines[0])
    return "\n".join(["-" * len(rule), lines[0], rule, *lines[1:], rule])


__all__ = ["summary"]
