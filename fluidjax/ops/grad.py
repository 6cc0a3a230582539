"""Gradients that Paddle writes with ordinary ops: a table with one row per op type.

Families declare other gradient ops with ``@op(grad=...)`` and ``@grad_of``; the gradients of this
table need no rule, because the named ops exist already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import UnsupportedError
from .registry import REGISTRY, Reuse, grad_reuses

_X = {"X": "Out@GRAD"}
_OUT = {"Out": "X@GRAD"}


def _swapped_cast(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**attrs, "in_dtype": attrs["out_dtype"], "out_dtype": attrs["in_dtype"]}


def _scaled_by(value: float) -> Any:
    return lambda attrs: {"scale": value, "bias": 0.0, "bias_after_scale": True}


def _without_bias(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**attrs, "bias": 0.0, "bias_after_scale": True}


def _reversed(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    if attrs.get("flatten"):
        raise UnsupportedError(
            "cumsum with flatten has no gradient here: reshape X to one axis before it instead"
        )
    return {**attrs, "reverse": not attrs.get("reverse", False)}


TABLE: dict[str, tuple[Reuse, ...]] = {
    "assign": (Reuse("assign", _X, _OUT),),
    "scale": (Reuse("scale", {**_X, "ScaleTensor": "ScaleTensor"}, _OUT, _without_bias),),
    "sign": (Reuse("scale", _X, _OUT, _scaled_by(0.0)),),
    "cast": (Reuse("cast", _X, _OUT, _swapped_cast),),
    "flip": (Reuse("flip", _X, _OUT),),
    "reverse": (Reuse("reverse", _X, _OUT),),
    "cumsum": (Reuse("cumsum", _X, _OUT, _reversed),),
    "sum": (Reuse("scale", _X, _OUT, _scaled_by(1.0), each=True),),
    "minus": (
        Reuse("scale", _X, _OUT, _scaled_by(1.0)),
        Reuse("scale", _X, {"Out": "Y@GRAD"}, _scaled_by(-1.0)),
    ),
    "increment": (
        Reuse(
            "increment", {"X": "Out"}, {"Out": "X"}, lambda a: {**a, "step": -a.get("step", 1.0)}
        ),
    ),
    "split": (Reuse("concat", {**_X, "AxisTensor": "AxisTensor"}, _OUT),),
    "unbind": (Reuse("stack", _X, {"Y": "X@GRAD"}),),
    "reduce_sum_grad": (Reuse("reduce_sum", {"X": "X@GRAD@GRAD"}, {"Out": "Out@GRAD@GRAD"}),),
    "reduce_mean_grad": (Reuse("reduce_mean", {"X": "X@GRAD@GRAD"}, {"Out": "Out@GRAD@GRAD"}),),
    "expand_grad": (
        Reuse(
            "expand",
            {
                "X": "X@GRAD@GRAD",
                "ExpandTimes": "ExpandTimes",
                "expand_times_tensor": "expand_times_tensor",
            },
            {"Out": "Out@GRAD@GRAD"},
        ),
    ),
    "slice_grad": (
        Reuse(
            "slice",
            {
                "Input": "Input@GRAD@GRAD",
                "StartsTensor": "StartsTensor",
                "EndsTensor": "EndsTensor",
                "StartsTensorList": "StartsTensorList",
                "EndsTensorList": "EndsTensorList",
            },
            {"Out": "Out@GRAD@GRAD"},
        ),
    ),
}

for _kind, _ops in TABLE.items():
    if REGISTRY.has(_kind):
        grad_reuses(_kind, *_ops)
