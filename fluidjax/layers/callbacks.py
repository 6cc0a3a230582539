"""Python within a program: printing values, and functions of the user."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ..base.loc import located
from ..errors import FluidTypeError, FluidValueError, UnsupportedError
from ..feeds.bucketing import StepTensor
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..lod_tensor import ArrayTensor, LoDTensor, as_tensor, has_lod
from ..ops import py_functions
from ..ops.ragged import Ragged
from ._build import BOOL, FLOATS, INTS, append, variable


@located
def Print(
    input: Variable, first_n: int = -1, message: str | None = None, summarize: int = 20, print_tensor_name: bool = True,
    print_tensor_type: bool = True, print_tensor_shape: bool = True, print_tensor_lod: bool = True, print_phase: str = "both",
) -> Variable:  # fmt: skip
    """The variable, printed with `message` whenever a step computes it. The other arguments are
    attributes of the op.
    """
    variable(input, "input", "Print", (*FLOATS, *INTS, *BOOL))
    if str(print_phase).upper() not in ("FORWARD", "BACKWARD", "BOTH"):
        raise FluidValueError(
            f"Print's print_phase is 'forward', 'backward' or 'both', not {print_phase!r}"
        )
    attrs = {
        "first_n": first_n, "summarize": summarize, "message": message or "", "print_tensor_name": print_tensor_name,
        "print_tensor_type": print_tensor_type, "print_tensor_shape": print_tensor_shape, "print_tensor_lod": print_tensor_lod,
        "print_phase": print_phase.upper(),
    }  # fmt: skip
    return append(
        LayerHelper("print_" + input.name), {"In": input}, {"Out": input.dtype}, attrs, kind="print"
    )


@located
def Assert(cond: Variable, data: Any = None, summarize: int = 20, name: str | None = None) -> None:
    """Raise EnforceNotMet in a step in which `cond`, a bool variable of one element, is false; the
    scope does not change.

    data: a list of variables whose first `summarize` numbers are then printed (-1: all). Paddle 2
    added this layer.
    """
    variable(cond, "cond", "Assert", BOOL)
    helper = LayerHelper(name or "assert_" + cond.name)
    inputs = {"Cond": [cond], "Data": list(data or ())}
    helper.append_op(type="assert", inputs=inputs, outputs={}, attrs={"summarize": int(summarize)})


def _variables(value: Any, what: str) -> list[Variable]:
    found = [] if value is None else [value] if isinstance(value, Variable) else value
    if not isinstance(found, list | tuple) or not all(isinstance(v, Variable) for v in found):
        raise FluidTypeError(
            f"py_func's {what} is a variable, or a list or tuple of variables, not {value!r}"
        )
    return list(found)


def _of_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, called with a step's values as tensors. Raises UnsupportedError for results
    with a LoD.
    """

    @wraps(function)
    def called(*values: Any) -> Any:
        results = function(*(None if value is None else _tensor(value) for value in values))
        for result in results if isinstance(results, list | tuple) else (results,):
            if isinstance(result, LoDTensor) and has_lod(result):
                raise UnsupportedError(
                    "py_func's function returns a tensor with a LoD, which its outputs do not take;"
                    " return np.array(tensor)"
                )
        return results

    return called


def _tensor(value: Any) -> LoDTensor:
    if not isinstance(value, Ragged):
        return as_tensor(value)
    found = StepTensor(value)
    tensor = ArrayTensor.of(np.asarray(found.array()))
    tensor.offsets = found.offsets
    return tensor


@located
def py_func(
    func: Callable[..., Any], x: Any, out: Any, backward_func: Callable[..., Any] | None = None,
    skip_vars_in_backward_input: Any = None,
) -> Any:  # fmt: skip
    """Write func(*x), a Python function of LoDTensors that runs with every step, to the variables
    `out`; returns them.

    func: its arguments can also be used as NumPy arrays. out: existing variables with the shapes
    and dtypes of the results; a first dimension of -1 means that of the first input. backward_func:
    called with x, out and the gradients of out (None for a missing one), without
    skip_vars_in_backward_input; it returns the gradients of x, None for zero. Without it no
    gradient flows. A run raises the functions' errors, and the scope does not change. A run raises
    UnsupportedError for a result with a LoD.

    Raises FluidTypeError for arguments that are not functions or variables, FluidValueError for an
    output without a shape and for skipped variables that are neither in x nor in out.
    """
    for what, fn in (("func", func), ("backward_func", backward_func)):
        if not callable(fn) and not (fn is None and what == "backward_func"):
            raise FluidTypeError(f"py_func's {what} is a Python function, not {fn!r}")
    ins, outs, skipped = (
        _variables(x, "x"),
        _variables(out, "out"),
        _variables(skip_vars_in_backward_input, "skip_vars_in_backward_input"),
    )
    for v in outs:
        if not v.shape:
            raise FluidValueError(
                f"py_func writes {v.name!r}, which has no shape; make it with the shape that func"
                " returns"
            )
    names = {v.name for v in (*ins, *outs)}
    for v in skipped:
        if v.name not in names:
            raise FluidValueError(f"py_func skips {v.name!r}, which is neither in x nor in out")
    backward = -1 if backward_func is None else py_functions.add(_of_tensors(backward_func))
    attrs = {
        "forward_callable_id": py_functions.add(_of_tensors(func)), "backward_callable_id": backward,
        "backward_skip_vars": sorted({v.name for v in skipped}) if backward_func is not None else [],
    }  # fmt: skip
    LayerHelper("py_func").append_op(
        type="py_func", inputs={"X": ins}, outputs={"Out": outs}, attrs=attrs
    )
    return out


__all__ = ["Assert", "Print", "py_func"]
