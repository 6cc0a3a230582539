"""Layers of click-through models: hash, continuous_value_model."""

from __future__ import annotations

import numbers

from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ._build import HALF, INTS, append, typed, variable


@located
def hash(input: Variable, hash_size: int, num_hash: int = 1, name: str | None = None) -> Variable:
    """xxHash64 of each row of input [N, n] (int32, int64) below hash_size, with num_hash seeds: [N,
    num_hash, 1].
    """
    variable(input, "input", "hash", INTS)
    typed(hash_size, "hash_size", numbers.Integral, "hash")
    typed(num_hash, "num_hash", numbers.Integral, "hash")
    helper = LayerHelper("hash", name=name)
    attrs = {"num_hash": int(num_hash), "mod_by": int(hash_size)}
    return append(helper, {"X": input}, {"Out": input.dtype}, attrs, stop="Out")


@located
def continuous_value_model(input: Variable, cvm: Variable, use_cvm: bool = True) -> Variable:
    """input [N, 2 + width] with its first two columns, shows and clicks, replaced by logarithms, or
    removed without use_cvm.

    cvm [instances, 2]: shows and clicks of each instance, used as the gradients of these columns.
    See the op cvm.
    """
    variable(input, "input", "cvm", HALF)
    typed(cvm, "cvm", Variable, "cvm")
    helper = LayerHelper("cvm")
    out = helper.main_program.current_block().create_var(dtype=input.dtype)
    return append(helper, {"X": [input], "CVM": [cvm]}, {"Y": out}, {"use_cvm": use_cvm})


__all__ = ["continuous_value_model", "hash"]
