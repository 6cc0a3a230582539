"""Layers over ragged sequences (LoD). Feed them LoDTensors; docs/lod.md describes how they run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.loc import located
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..param_attr import ParamAttr
from ._build import FLOATS, INTS, append, require, typed, variable

NUMBERS = (*FLOATS, *INTS)


def _state(value: Any, what: str, layer: str, width: int) -> Variable | None:
    """A first state [N, width], if given."""
    typed(value, what, (Variable, type(None)), layer)
    if value is not None:
        variable(value, what, layer, FLOATS)
        require(
            tuple(value.shape[1:]) == (width,),
            f"{layer}'s {what} has shape [N, {width}], not {list(value.shape)}",
        )
    return value


@located
def dynamic_gru(
    input: Variable,
    size: int,
    param_attr: Any = None,
    bias_attr: Any = None,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    candidate_activation: str = "tanh",
    h_0: Variable | None = None,
    origin_mode: bool = False,
) -> Variable:
    """A GRU along each sequence: [rows, size] from input [rows, 3 * size] (an fc of the sequence),
    with its LoD.

    h_t = (1 - u) * h + u * c, with origin_mode u * h + (1 - u) * c, where h is the row before (h_0
    [N, size], or 0, at first); see the op gru. is_reverse: from the end. Raises FluidTypeError,
    FluidValueError for arguments that do not fit.
    """
    variable(input, "input", "dynamic_gru", FLOATS)
    _state(h_0, "h_0", "dynamic_gru", size)
    helper = LayerHelper("gru", input=input, param_attr=param_attr, bias_attr=bias_attr)
    dtype = helper.input_dtype()
    weight = helper.create_parameter(helper.param_attr, [size, 3 * size], dtype)
    bias = helper.create_parameter(helper.bias_attr, [1, 3 * size], dtype, is_bias=True)
    outs = {
        "Hidden": dtype,
        "BatchGate": dtype,
        "BatchResetHiddenPrev": dtype,
        "BatchHidden": dtype,
    }
    attrs = {
        "is_reverse": is_reverse, "gate_activation": gate_activation, "activation": candidate_activation,
        "origin_mode": origin_mode,
    }  # fmt: skip
    return append(helper, {"Input": input, "Weight": weight, "Bias": bias, "H0": h_0}, outs, attrs)[
        0
    ]


@located
def dynamic_lstm(
    input: Variable,
    size: int,
    h_0: Variable | None = None,
    c_0: Variable | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    dtype: Any = "float32",
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """An LSTM along each sequence: hidden and cell [rows, size / 4] from input [rows, size], with
    its LoD; see the op lstm.

    h_0, c_0: first states [N, size / 4], default 0. As in Paddle, no gradient flows back from the
    cell, only from the hidden states. If size / 4 is a multiple of 8, Paddle 1.8.5 loses the
    gradients of three gates, which are right here (docs/lod.md). Raises FluidTypeError,
    FluidValueError for arguments that do not fit, including bias_attr=False.
    """
    require(bias_attr is not False, "bias_attr should not be False in dynamic_lstm.")
    variable(input, "input", "dynamic_lstm", FLOATS)
    width = size // 4
    _state(h_0, "h_0", "dynamic_lstm", width)
    _state(c_0, "c_0", "dynamic_lstm", width)
    helper = LayerHelper("lstm", input=input, param_attr=param_attr, bias_attr=bias_attr, name=name)
    weight = helper.create_parameter(helper.param_attr, [width, 4 * width], dtype)
    bias = helper.create_parameter(
        helper.bias_attr, [1, (7 if use_peepholes else 4) * width], dtype, is_bias=True
    )
    attrs = {
        "use_peepholes": use_peepholes, "is_reverse": is_reverse, "gate_activation": gate_activation,
        "cell_activation": cell_activation, "candidate_activation": candidate_activation,
    }  # fmt: skip
    outs = {"Hidden": dtype, "Cell": dtype, "BatchGate": dtype, "BatchCellPreAct": dtype}
    made = append(
        helper, {"Input": input, "Weight": weight, "Bias": bias, "H0": h_0, "C0": c_0}, outs, attrs
    )
    return made[0], made[1]


@located
def linear_chain_crf(
    input: Variable, label: Variable, param_attr: Any = None, length: Variable | None = None
) -> Variable:
    """The cost [N, 1] of labels under a conditional random field: log(sum over all paths of
    exp(score)) - score(label).

    input: emissions [rows, tags] and label: int64 [rows, 1], with one LoD level; or padded [N,
    longest, tags] and [N, longest, 1] with length [N, 1]. The parameter [tags + 2, tags] scores
    starts, ends and steps; see the op linear_chain_crf.
    """
    variable(input, "input", "linear_chain_crf", FLOATS)
    variable(label, "label", "linear_chain_crf", ("int64",))
    helper = LayerHelper("linear_chain_crf", input=input, param_attr=param_attr)
    dtype = helper.input_dtype()
    tags = input.shape[2 if length is not None else 1]
    transition = helper.create_parameter(helper.param_attr, [tags + 2, tags], dtype)
    inputs = {"Emission": [input], "Transition": transition, "Label": [label], "Length": length}
    outs = {"Alpha": dtype, "EmissionExps": dtype, "TransitionExps": dtype, "LogLikelihood": dtype}
    return append(helper, inputs, outs)[3]


@located
def crf_decoding(
    input: Variable,
    param_attr: ParamAttr,
    label: Variable | None = None,
    length: Variable | None = None,
) -> Variable:
    """The best path of a conditional random field, int64 [rows, 1]; with label, 1 where it agrees
    and 0 elsewhere.

    input: emissions as for linear_chain_crf, whose parameter param_attr names. With length: [N,
    longest].
    """
    variable(input, "input", "crf_decoding", FLOATS)
    typed(param_attr, "param_attr", ParamAttr, "crf_decoding")
    require(
        param_attr.name is not None,
        "crf_decoding's param_attr names the parameter of a linear_chain_crf",
    )
    helper = LayerHelper("crf_decoding")
    inputs = {
        "Emission": [input],
        "Transition": helper.get_parameter(param_attr.name or ""),
        "Label": label,
        "Length": length,
    }
    return append(helper, inputs, {"ViterbiPath": "int64"})


@located
def sequence_pool(
    input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0
) -> Variable:
    """A row for each sequence: the "sum", "average", "sqrt" (sum / sqrt(length)), "max", "last" or
    "first" of its rows.

    Empty sequences give pad_value. The LoD levels above the last stay. Raises FluidValueError for
    another pool_type.
    """
    variable(input, "input", "sequence_pool", FLOATS)
    helper = LayerHelper("sequence_pool", input=input)
    dtype = helper.input_dtype()
    attrs = {"pooltype": str(pool_type).upper(), "is_test": is_test, "pad_value": pad_value}
    return append(
        helper,
        {"X": input},
        {"Out": dtype, "MaxIndex": dtype},
        attrs,
        stop="MaxIndex" if pool_type == "max" else "",
    )[0]


@located
def sequence_first_step(input: Variable) -> Variable:
    """The first row of each sequence."""
    variable(input, "input", "sequence_first_step", FLOATS)
    return sequence_pool(input, "first")


@located
def sequence_last_step(input: Variable) -> Variable:
    """The last row of each sequence."""
    variable(input, "input", "sequence_last_step", FLOATS)
    return sequence_pool(input, "last")


@located
def sequence_softmax(input: Variable, use_cudnn: bool = False, name: str | None = None) -> Variable:
    """softmax over the rows of each sequence, which hold one number each."""
    variable(input, "input", "sequence_softmax", FLOATS)
    helper = LayerHelper("sequence_softmax", input=input, name=name)
    return append(helper, {"X": input}, {"Out": helper.input_dtype()}, {"use_cudnn": use_cudnn})


@located
def sequence_expand(
    x: Variable, y: Variable, ref_level: int = -1, name: str | None = None
) -> Variable:
    """Row n of x repeated as often as sequence n of level ref_level of y is long. x has no LoD."""
    variable(x, "x", "sequence_expand", NUMBERS)
    variable(y, "y", "sequence_expand")
    helper = LayerHelper("sequence_expand", name=name)
    return append(helper, {"X": x, "Y": y}, {"Out": x.dtype}, {"ref_level": ref_level})


@located
def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Row n of x repeated as often as sequence n of y is long, with y's LoD."""
    variable(x, "x", "sequence_expand_as", NUMBERS)
    variable(y, "y", "sequence_expand_as")
    return append(LayerHelper("sequence_expand_as", name=name), {"X": x, "Y": y}, {"Out": x.dtype})


@located
def sequence_reverse(x: Variable, name: str | None = None) -> Variable:
    """The rows of each sequence in reverse order."""
    variable(x, "x", "sequence_reverse", (*FLOATS, "int8", *INTS))
    return append(LayerHelper("sequence_reverse", name=name), {"X": x}, {"Y": x.dtype})


@located
def sequence_concat(input: list[Variable], name: str | None = None) -> Variable:
    """Sequence n of all inputs, concatenated, for each n."""
    typed(input, "input", list, "sequence_concat")
    for i, x in enumerate(input):
        variable(x, f"input[{i}]", "sequence_concat", (*FLOATS, "int64"))
    helper = LayerHelper("sequence_concat", input=input, name=name)
    return append(helper, {"X": input}, {"Out": helper.input_dtype()})


@located
def sequence_pad(
    x: Variable, pad_value: Variable, maxlen: int | None = None, name: str | None = None
) -> tuple[Variable, Variable]:
    """[N, maxlen, ...] with pad_value after the end of each sequence, and the lengths, int64 [N].

    pad_value: a variable of one number, or of a row's shape. maxlen: default the longest length,
    for which each new value is a compilation.
    """
    variable(x, "x", "sequence_pad", NUMBERS)
    variable(pad_value, "pad_value", "sequence_pad", NUMBERS)
    pad_value.stop_gradient = True
    helper = LayerHelper("sequence_pad", name=name)
    attrs = {"padded_length": -1 if maxlen is None else maxlen}
    outs = {"Out": x.dtype, "Length": "int64"}
    return append(helper, {"X": x, "PadValue": pad_value}, outs, attrs, stop="Length")


@located
def lod_reset(
    x: Variable, y: Variable | None = None, target_lod: Sequence[int] | None = None
) -> Variable:
    """x with other offsets: those of y, or target_lod (one level of offsets). Raises
    FluidValueError if both are missing.
    """
    variable(x, "x", "lod_reset", NUMBERS)
    require(y is not None or target_lod is not None, "y and target_lod should not be both none.")
    if y is not None:
        variable(y, "y", "lod_reset")
    attrs = {} if y is not None or target_lod is None else {"target_lod": list(target_lod)}
    return append(LayerHelper("lod_reset"), {"X": x, "Y": y}, {"Out": x.dtype}, attrs)


@located
def lod_append(x: Variable, level: Any) -> Variable:
    """x with one more LoD level below its own: offsets, or a variable that holds them."""
    require(x is not None, "Input(x) can't be None.")
    typed(level, "level", (list, tuple, Variable), "lod_append")
    variable(x, "x", "lod_append", NUMBERS)
    inputs: dict[str, Variable] = {"X": x}
    attrs: dict[str, Any] = {"append": True}
    if isinstance(level, Variable):
        inputs["Y"] = level
    else:
        attrs["target_lod"] = list(level)
    return append(LayerHelper("lod_append"), inputs, {"Out": x.dtype}, attrs, kind="lod_reset")


__all__ = [
    "crf_decoding", "dynamic_gru", "dynamic_lstm", "linear_chain_crf", "lod_append", "lod_reset", "sequence_concat",
    "sequence_expand", "sequence_expand_as", "sequence_first_step", "sequence_last_step", "sequence_pad", "sequence_pool",
    "sequence_reverse", "sequence_softmax",
]  # fmt: skip
