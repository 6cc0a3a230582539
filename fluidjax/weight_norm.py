"""Weight normalisation: w = g * v / |v|, written as ops (see WeightNormParamAttr)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import unique_name
from .graph.block import Block
from .graph.program import Program
from .graph.variable import Variable
from .param_attr import WeightNormParamAttr, initialise


class _Writer:
    """Appends ops to one block under the names ``<layer>.weight_norm_<what>_k``."""

    def __init__(self, layer: str, dtype: Any, block: Block) -> None:
        self.layer, self.dtype, self.block = layer, dtype, block

    def var(self, what: str) -> Variable:
        name = unique_name.generate_with_ignorable_key(f"{self.layer}.weight_norm_{what}")
        return self.block.create_var(name=name, dtype=self.dtype, persistable=False)

    def op(
        self,
        kind: str,
        x: Variable,
        out: Variable | None = None,
        what: str | None = None,
        **attrs: Any,
    ) -> Variable:
        out = out if out is not None else self.var(what or kind)
        self.block.append_op(type=kind, inputs={"X": x}, outputs={"Out": out}, attrs=attrs)
        return out

    def norm(self, x: Variable, out: Variable | None, dim: int | None) -> Variable:
        """sqrt(sum(x ** 2)) over everything, or over dimension `dim`."""
        out = out if out is not None else self.var("norm")
        powers = self.op("pow", self.op("abs", x), factor=2.0)
        reduce = {"reduce_all": True} if dim is None else {"dim": [dim], "reduce_all": False}
        total = self.op("reduce_sum", powers, what="sum", keep_dim=False, **reduce)
        return self.op("pow", total, out, factor=0.5)

    def norm_except(self, x: Variable, out: Variable | None, dim: int | None) -> Variable:
        """Norms of `x` over every dimension but `dim`, which keeps its place: shape [1, .., n, ..,
        1].
        """
        out = out if out is not None else self.var("norm")
        shape = x.shape
        if dim is None:
            return self.norm(x, out, None)
        if dim == 0:
            flat = self.norm(self.op("reshape", x, shape=[shape[0], -1]), None, 1)
            return self.op("reshape", flat, out, shape=[shape[0], *[1] * (len(shape) - 1)])
        if dim == len(shape) - 1:
            flat = self.norm(self.op("reshape", x, shape=[-1, shape[-1]]), None, 0)
            return self.op("reshape", flat, out, shape=[*[1] * (len(shape) - 1), shape[-1]])
        perm = list(range(len(shape)))
        perm[0], perm[dim] = dim, 0
        moved = self.op("transpose", x, axis=perm)
        flat = self.norm(self.op("reshape", moved, shape=[shape[dim], -1]), None, 1)
        back = self.op("reshape", flat, shape=[shape[dim], *[1] * (len(shape) - 1)])
        return self.op("transpose", back, out, axis=perm)


def _layer(
    block: Block,
    kind: str,
    inputs: dict[str, Variable],
    outs: Sequence[str] = ("Out",),
    **attrs: Any,
) -> Variable:
    """The first output of an op under the names that its layer would give; layers are built on
    this, so none can be called.
    """
    name = unique_name.generate(kind)
    made = {}
    for slot in outs:
        temporary = block.new_name(lambda: unique_name.generate_with_ignorable_key(f"{name}.tmp"))
        made[slot] = block.create_var(name=temporary, dtype=inputs["X"].dtype)
    block.append_op(type=kind, inputs=inputs, outputs=made, attrs=attrs)
    return made[outs[0]]


def normalized_weight(
    layer: str,
    main_program: Program,
    startup_program: Program,
    attr: WeightNormParamAttr,
    shape: Sequence[int],
    dtype: Any,
) -> Variable:
    """Parameters ``<name>_g`` and ``<name>_v`` and the ops for g * v / |v|; the startup program
    sets g to |v|.

    layer: the name of the layer whose weight it is.
    """
    dim = attr.dim
    g_shape = [n if i == dim else 1 for i, n in enumerate(shape)]
    g_attr = attr.with_defaults(str(attr.name), None)
    v_attr = attr.with_defaults(str(attr.name), None)
    g_attr.name, v_attr.name = f"{attr.name}_g", f"{attr.name}_v"

    startup = startup_program.global_block()
    g = startup.create_parameter(shape=g_shape, dtype=dtype, **g_attr._to_kwargs())
    v = initialise(startup, v_attr, shape, dtype)
    writer = _Writer(layer, dtype, startup)
    writer.norm_except(v, g, dim)
    writer.op("reshape", g, g, shape=g_shape)

    g = main_program.global_block().create_parameter(
        shape=g_shape, dtype=dtype, **g_attr._to_kwargs()
    )
    v = main_program.global_block().create_parameter(
        shape=shape, dtype=dtype, **v_attr._to_kwargs()
    )
    block = main_program.current_block()
    norm = _Writer(layer, dtype, block).norm_except(v, None, dim)
    scale = _layer(block, "elementwise_div", {"X": g, "Y": norm}, axis=-1)
    if dim is None:
        return _layer(block, "elementwise_mul", {"X": v, "Y": scale}, axis=-1)
    scale = _layer(block, "reshape2", {"X": scale}, ("Out", "XShape"), shape=[shape[dim]])
    return _layer(block, "elementwise_mul", {"X": v, "Y": scale}, axis=dim)
