"""Layers of fluid.contrib for text matching, trees and fused ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import unique_name
from ...base.absent import reporter
from ...base.loc import located
from ...errors import FluidTypeError, FluidValueError
from ...graph.variable import Variable
from ...layer_helper import LayerHelper
from ...layers.utils import convert_to_list
from ..missing import HINTS
from . import click as click
from .click import *  # noqa: F403
from .click import append


@located
def fused_elemwise_activation(
    x: Variable,
    y: Variable,
    functor_list: Any,
    axis: int = -1,
    scale: float = 0.0,
    save_intermediate_out: bool = True,
) -> Variable:
    """f(x, g(y)) if functor_list is f, g with a binary f, else f(g(x, y)); see the op
    fused_elemwise_activation.
    """
    names = functor_list.split(",") if isinstance(functor_list, str) else functor_list
    if not isinstance(names, list) or len(names) != 2:
        raise FluidValueError(
            f"fused_elemwise_activation's functor_list is a list of two names, not {functor_list!r}"
        )
    helper = LayerHelper("fused_elemwise_activation")
    out, inner = (helper.create_variable_for_type_inference(x.dtype) for _ in range(2))
    attrs = {
        "axis": axis,
        "scale": scale,
        "save_intermediate_out": save_intermediate_out,
        "functor_list": names,
    }
    append(helper, {"X": x, "Y": y}, {"Out": out, "IntermediateOut": inner}, attrs)
    return out


@located
def var_conv_2d(
    input: Variable,
    row: Variable,
    col: Variable,
    input_channel: int,
    output_channel: int,
    filter_size: Any,
    stride: Any = 1,
    param_attr: Any = None,
    act: str | None = None,
    dtype: Any = "float32",
    name: str | None = None,
) -> Variable:
    """A convolution of images of different sizes, flattened as sequences [rows, 1]; the LoDs of row
    and col give the sizes.
    """
    helper = LayerHelper("var_conv_2d", param_attr=param_attr, act=act, name=name)
    if len(input.shape) != 2:
        raise FluidValueError(
            f"var_conv_2d's input has the shape [rows, 1], not {list(input.shape)}"
        )
    size, steps = (
        convert_to_list(filter_size, 2, "filter_size"),
        convert_to_list(stride, 2, "stride"),
    )
    shape = [int(output_channel), int(input_channel) * size[0] * size[1]]
    weight = helper.create_parameter(helper.param_attr, shape, dtype)
    out = helper.create_variable_for_type_inference(dtype)
    windows = helper.create_variable_for_type_inference(dtype, True)
    attrs = {
        "InputChannel": input_channel, "OutputChannel": output_channel, "StrideH": steps[0], "StrideW": steps[1],
        "KernelH": size[0], "KernelW": size[1],
    }  # fmt: skip
    append(
        helper,
        {"X": input, "ROW": row, "COLUMN": col, "W": weight},
        {"Out": out, "Col": windows},
        attrs,
    )
    return helper.append_activation(out)


@located
def match_matrix_tensor(
    x: Variable,
    y: Variable,
    channel_num: int,
    act: str | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """The match of each row of a sequence of x with each row of the same sequence of y, in
    channel_num ways; and x @ w.
    """
    helper = LayerHelper("match_matrix_tensor", param_attr=param_attr, act=act, name=name)
    if len(x.shape) != 2 or len(y.shape) != 2 or x.shape[-1] != y.shape[-1]:
        raise FluidValueError(
            f"match_matrix_tensor takes x and y [rows, D], not {list(x.shape)} and {list(y.shape)}"
        )
    weight = helper.create_parameter(
        helper.param_attr, [x.shape[-1], channel_num, y.shape[-1]], dtype
    )
    out = helper.create_variable_for_type_inference(dtype)
    half = helper.create_variable_for_type_inference(dtype, True)
    append(helper, {"X": x, "Y": y, "W": weight}, {"Out": out, "Tmp": half}, {"dim_t": channel_num})
    return helper.append_activation(out), half


@located
def sequence_topk_avg_pooling(
    input: Variable, row: Variable, col: Variable, topks: list[int], channel_num: int
) -> Variable:
    """The average of the topks[k] greatest numbers in each row of each channel: [rows, channel_num
    * len(topks)] with row's LoD.
    """
    helper = LayerHelper("sequence_topk_avg_pooling", input=input)
    out = helper.create_variable_for_type_inference(helper.input_dtype())
    places = helper.create_variable_for_type_inference(helper.input_dtype(), True)
    attrs = {"topks": topks, "channel_num": channel_num}
    append(helper, {"X": input, "ROW": row, "COLUMN": col}, {"Out": out, "pos": places}, attrs)
    return out


@located
def tree_conv(
    nodes_vector: Variable,
    edge_set: Variable,
    output_size: int,
    num_filters: int = 1,
    max_depth: int = 2,
    act: str | None = "tanh",
    param_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
) -> Variable:
    """A convolution over trees, [N, nodes, output_size, num_filters]; nodes_vector [N, nodes, F],
    edge_set [N, edges, 2], int32.
    """
    helper = LayerHelper(
        "tree_conv",
        input=nodes_vector,
        param_attr=param_attr,
        bias_attr=bias_attr,
        act=act,
        name=name,
    )
    dtype = helper.input_dtype()
    weight = helper.create_parameter(
        helper.param_attr, [nodes_vector.shape[2], 3, output_size, num_filters], dtype
    )
    out = helper.create_variable_for_type_inference(dtype)
    append(
        helper,
        {"NodesVector": nodes_vector, "EdgeSet": edge_set, "Filter": weight},
        {"Out": out},
        {"max_depth": max_depth},
    )
    return helper.append_activation(helper.append_bias_op(out) if helper.bias_attr else out)


@located
def fused_embedding_seq_pool(
    input: Variable,
    size: list[int],
    is_sparse: bool = False,
    padding_idx: int | None = None,
    combiner: str = "sum",
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Variable:
    """The sum of the embeddings of each sequence of ids, [N, size[1]]; a negative padding_idx
    counts from the end of the table.
    """
    helper = LayerHelper("fused_embedding_seq_pool", param_attr=param_attr)
    weight = helper.create_parameter(helper.param_attr, size, dtype)
    out = helper.create_variable_for_type_inference(dtype)
    padding = (
        -1 if padding_idx is None else padding_idx if padding_idx >= 0 else size[0] + padding_idx
    )
    append(
        helper,
        {"Ids": input, "W": weight},
        {"Out": out},
        {"is_sparse": is_sparse, "combiner": combiner, "padding_idx": padding},
    )
    return out


@located
def shuffle_batch(x: Variable, seed: int | Variable | None = None) -> Variable:
    """The rows of x [..., D] in random order, with x's shape and LoD; see the op shuffle_batch.

    seed: a number that determines the orders of all steps, or a variable [1] (int64) with the next
    seed; None: the program's random_seed, or if it has none a random number from NumPy. Raises
    FluidTypeError for anything else.
    """
    helper = LayerHelper("shuffle_batch")
    if not isinstance(seed, int | Variable | None):
        raise FluidTypeError(f"shuffle_batch's seed is an int, a Variable or None, not {seed!r}")
    out = helper.create_variable_for_type_inference(x.dtype)
    order = helper.create_variable_for_type_inference("int64")
    if seed is None:
        seed = helper.main_program.random_seed or np.random.randint(-65536, 65535)
    attrs = {}
    if not isinstance(seed, Variable):
        attrs["startup_seed"] = seed
        seed = helper.create_variable(
            name=unique_name.generate("shuffle_batch_seed"),
            shape=[1],
            dtype="int64",
            persistable=True,
        )
    append(
        helper, {"X": x, "Seed": seed}, {"Out": out, "ShuffleIdx": order, "SeedOut": seed}, attrs
    )
    return out


__all__ = [
    "fused_elemwise_activation", "fused_embedding_seq_pool", "match_matrix_tensor", "sequence_topk_avg_pooling", "shuffle_batch",
    "tree_conv", "var_conv_2d",
]  # fmt: skip
__all__ += click.__all__

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib.layers.nn", __all__, HINTS)
