"""Recurrences: one step of a GRU or an LSTM, and LSTMs over whole batches."""

from __future__ import annotations

from typing import Any

from ..base.dtypes import VarType
from ..base.loc import located, warn
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..param_attr import ParamAttr
from ._build import FLOATS, append, require, typed, variable
from .nn_dense import fc
from .tensor import concat

ACTIVATIONS = {"identity": 0, "sigmoid": 1, "tanh": 2, "relu": 3}


@located
def gru_unit(
    input: Variable,
    hidden: Variable,
    size: int,
    param_attr: Any = None,
    bias_attr: Any = None,
    activation: str = "tanh",
    gate_activation: str = "sigmoid",
    origin_mode: bool = False,
) -> tuple[Variable, Variable, Variable]:
    """One step of a GRU: hidden [N, size / 3], the reset hidden r * h [N, size / 3] and the gates
    [N, size].

    input [N, size], hidden [N, size / 3]; see the op gru_unit. As in 1.8.5, the activations are
    always tanh and sigmoid; a warning reports other arguments. Raises FluidTypeError,
    FluidValueError for arguments that do not fit.
    """
    variable(input, "input", "gru_unit", FLOATS)
    variable(hidden, "hidden", "gru_unit", FLOATS)
    typed(size, "size", int, "gru_unit")
    for what, name, fixed in (
        ("activation", activation, "tanh"),
        ("gate_activation", gate_activation, "sigmoid"),
    ):
        require(
            name in ACTIVATIONS,
            f"gru_unit's {what} is one of {', '.join(ACTIVATIONS)}, not {name!r}",
        )
        if name != fixed:
            warn(f"gru_unit's {what} is {fixed}, as in Paddle 1.8.5, though {name!r} was asked for")
    helper = LayerHelper("gru_unit", input=input, param_attr=param_attr, bias_attr=bias_attr)
    dtype, width = helper.input_dtype(), size // 3
    weight = helper.create_parameter(helper.param_attr, [width, 3 * width], dtype)
    bias = helper.create_parameter(helper.bias_attr, [1, 3 * width], dtype, is_bias=True)
    inputs = {"Input": input, "HiddenPrev": hidden, "Weight": weight, "Bias": bias}
    outs = {"Gate": dtype, "ResetHiddenPrev": dtype, "Hidden": dtype}
    attrs = {
        "activation": ACTIVATIONS["tanh"],
        "gate_activation": ACTIVATIONS["sigmoid"],
        "origin_mode": origin_mode,
    }
    gate, reset, updated = append(helper, inputs, outs, attrs)
    return updated, reset, gate


@located
def lstm_unit(
    x_t: Variable,
    hidden_t_prev: Variable,
    cell_t_prev: Variable,
    forget_bias: float = 0.0,
    param_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """One step of an LSTM: hidden and cell [N, D] from x_t [N, M], hidden_t_prev [N, D] and
    cell_t_prev [N, D].

    An fc of x_t and hidden_t_prev makes the gates; see the op lstm_unit. Raises FluidTypeError,
    FluidValueError for arguments that do not fit.
    """
    given = {"x_t": x_t, "hidden_t_prev": hidden_t_prev, "cell_t_prev": cell_t_prev}
    helper = LayerHelper("lstm_unit", name=name)
    for what, value in given.items():
        variable(value, what, "lstm_unit", FLOATS)
    for what, value in given.items():
        require(len(value.shape) == 2, f"Rank of {what} must be 2.")
    require(
        x_t.shape[0] == hidden_t_prev.shape[0] == cell_t_prev.shape[0],
        "The 1st dimensions of x_t, hidden_t_prev and cell_t_prev must be the same.",
    )
    require(
        hidden_t_prev.shape[1] == cell_t_prev.shape[1],
        "The 2nd dimensions of hidden_t_prev and cell_t_prev must be the same.",
    )
    bias_attr = ParamAttr() if bias_attr is None else bias_attr
    joined = concat([x_t, hidden_t_prev], axis=1)
    gates = fc(joined, 4 * cell_t_prev.shape[1], param_attr=param_attr, bias_attr=bias_attr)
    outs = {"C": x_t.dtype, "H": x_t.dtype}
    cell, hidden = append(
        helper, {"X": gates, "C_prev": cell_t_prev}, outs, {"forget_bias": forget_bias}
    )
    return hidden, cell


@located
def dynamic_lstmp(
    input: Variable,
    size: int,
    proj_size: int,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    proj_activation: str = "tanh",
    dtype: Any = "float32",
    name: str | None = None,
    h_0: Variable | None = None,
    c_0: Variable | None = None,
    cell_clip: float | None = None,
    proj_clip: float | None = None,
) -> tuple[Variable, Variable]:
    """An LSTM with a projection along each sequence: projection [rows, proj_size] and cell [rows,
    size / 4], with input's LoD.

    input [rows, size]; h_0 [N, proj_size], c_0 [N, size / 4]: first states, default 0; see the op
    lstmp. Raises FluidTypeError, FluidValueError for arguments that do not fit, including
    bias_attr=False.
    """
    require(bias_attr is not False, "bias_attr should not be False in dynamic_lstmp.")
    variable(input, "input", "dynamic_lstmp", FLOATS)
    width = size // 4
    for what, state, columns in (("h_0", h_0, proj_size), ("c_0", c_0, width)):
        typed(state, what, (Variable, type(None)), "dynamic_lstmp")
        if state is not None:
            variable(state, what, "dynamic_lstmp", FLOATS)
            require(
                tuple(state.shape[1:]) == (columns,),
                f"dynamic_lstmp's {what} has shape [N, {columns}], not {list(state.shape)}",
            )
    for what, bound in (("cell_clip", cell_clip), ("proj_clip", proj_clip)):
        require(not bound or bound >= 0, f"{what} should not be negative.")
    helper = LayerHelper(
        "lstmp", input=input, param_attr=param_attr, bias_attr=bias_attr, name=name
    )
    weight = helper.create_parameter(helper.param_attr, [proj_size, 4 * width], dtype)
    projection = helper.create_parameter(helper.param_attr, [width, proj_size], dtype)
    bias = helper.create_parameter(
        helper.bias_attr, [1, (7 if use_peepholes else 4) * width], dtype, is_bias=True
    )
    inputs = {
        "Input": input,
        "Weight": weight,
        "ProjWeight": projection,
        "Bias": bias,
        "H0": h_0,
        "C0": c_0,
    }
    outs = dict.fromkeys(
        ("Projection", "Cell", "OrderedP0", "BatchHidden", "BatchGate", "BatchCellPreAct"), dtype
    )
    attrs = {
        "use_peepholes": use_peepholes, "is_reverse": is_reverse, "gate_activation": gate_activation,
        "cell_activation": cell_activation, "candidate_activation": candidate_activation, "proj_activation": proj_activation,
        **{n: v for n, v in (("cell_clip", cell_clip), ("proj_clip", proj_clip)) if v is not None},
    }  # fmt: skip
    made = {slot: helper.create_variable_for_type_inference(kind) for slot, kind in outs.items()}
    made.pop("OrderedP0")  # 1.8.5 declares it without writing it
    append(helper, inputs, made, attrs)
    return made["Projection"], made["Cell"]


@located
def lstm(
    input: Variable,
    init_h: Variable,
    init_c: Variable,
    max_len: int,
    hidden_size: int,
    num_layers: int,
    dropout_prob: float = 0.0,
    is_bidirec: bool = False,
    is_test: bool = False,
    name: str | None = None,
    default_initializer: Any = None,
    seed: int = -1,
) -> tuple[Variable, Variable, Variable]:
    """LSTMs in layers over a plain batch: outputs [T, N, H * directions] and the last h and c
    [layers * directions, N, H].

    input [T, N, D], time first, unlike Paddle's documents say; init_h, init_c [layers * directions,
    N, H] with H = hidden_size. One parameter holds all weights in cuDNN's order, see the op
    cudnn_lstm. dropout_prob: for the values between layers, sampled again in every step if seed is
    -1. max_len is ignored. In 1.8.5 only a GPU runs it. Raises FluidTypeError, FluidValueError for
    arguments that do not fit.
    """
    for what, value in (("input", input), ("init_h", init_h), ("init_c", init_c)):
        variable(value, what, "lstm", FLOATS)
    for what, number in (
        ("max_len", max_len),
        ("hidden_size", hidden_size),
        ("num_layers", num_layers),
    ):
        typed(number, what, int, "lstm")
    helper = LayerHelper("cudnn_lstm", name=name)
    directions = 2 if is_bidirec else 1
    # Each layer has weights for its input and for its state, and two biases, for four gates each.
    given = [input.shape[-1], *[directions * hidden_size] * (num_layers - 1)]
    size = sum(4 * hidden_size * (width + hidden_size + 2) * directions for width in given)
    weight = helper.create_parameter(
        helper.param_attr, [size], input.dtype, default_initializer=default_initializer
    )
    outs = {
        slot: helper.create_variable_for_type_inference(input.dtype)
        for slot in ("Out", "last_h", "last_c")
    }
    cache = helper.create_variable(persistable=True, type=VarType.RAW, stop_gradient=True)
    inputs = {"Input": input, "InitH": init_h, "InitC": init_c, "W": weight, "Cache": cache}
    attrs = {
        "max_len": max_len, "is_bidirec": is_bidirec, "input_size": input.shape[-1], "hidden_size": hidden_size,
        "num_layers": num_layers, "is_test": is_test, "dropout_prob": dropout_prob, "seed": seed,
    }  # fmt: skip
    append(helper, inputs, outs, attrs)
    return outs["Out"], outs["last_h"], outs["last_c"]


__all__ = ["dynamic_lstmp", "gru_unit", "lstm", "lstm_unit"]
