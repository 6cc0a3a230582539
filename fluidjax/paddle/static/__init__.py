"""paddle.static: programs, executors and strategies under the names of Paddle 2.0."""

from __future__ import annotations

from typing import Any

from ...backward import append_backward as append_backward
from ...backward import gradients as gradients
from ...compiler import BuildStrategy as BuildStrategy
from ...compiler import CompiledProgram as CompiledProgram
from ...compiler import ExecutionStrategy as ExecutionStrategy
from ...compiler import ParallelExecutor as ParallelExecutor
from ...devices.place import cpu_places as cpu_places
from ...devices.place import cuda_places as cuda_places
from ...executor import Executor as Executor
from ...graph.device_guard import device_guard as device_guard
from ...graph.name_scope import name_scope as name_scope
from ...graph.program import Program as Program
from ...graph.program import default_main_program as default_main_program
from ...graph.program import default_startup_program as default_startup_program
from ...graph.program import program_guard as program_guard
from ...graph.variable import Variable as Variable
from ...input import data as _data
from ...io import is_persistable as is_persistable
from ...io import load as load
from ...io import load_program_state as load_program_state
from ...io import load_vars as load_vars
from ...io import save as save
from ...io import save_vars as save_vars
from ...io import set_program_state as set_program_state
from ...layers import accuracy as accuracy
from ...layers import auc as auc
from ...layers import create_global_var as create_global_var
from ...layers import create_parameter as create_parameter
from ...layers import py_func as py_func
from ...optimizer import ExponentialMovingAverage as ExponentialMovingAverage
from ...param_attr import WeightNormParamAttr as WeightNormParamAttr
from ...state.scope import global_scope as global_scope
from ...state.scope import scope_guard as scope_guard
from ..names import MissingName, sentence
from . import amp as amp
from . import nn
from .input_spec import InputSpec as InputSpec
from .model import load_inference_model as load_inference_model
from .model import save_inference_model as save_inference_model
from .serialize import deserialize_persistables as deserialize_persistables
from .serialize import deserialize_program as deserialize_program
from .serialize import load_from_file as load_from_file
from .serialize import normalize_program as normalize_program
from .serialize import save_to_file as save_to_file
from .serialize import serialize_persistables as serialize_persistables
from .serialize import serialize_program as serialize_program


def data(name: str, shape: Any, dtype: Any = None, lod_level: int = 0) -> Variable:
    """A variable of the main program that is fed, of exactly this shape (None or -1: any size).
    dtype: default float32.
    """
    return _data(name, shape, dtype or "float32", lod_level)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise MissingName(sentence("paddle.static", name))


__all__ = [
    "BuildStrategy", "CompiledProgram", "ExecutionStrategy", "Executor", "ExponentialMovingAverage", "InputSpec",
    "ParallelExecutor", "Program", "Variable", "WeightNormParamAttr", "accuracy", "amp", "append_backward", "auc", "cpu_places",
    "create_global_var", "create_parameter", "cuda_places", "data", "default_main_program", "default_startup_program",
    "deserialize_persistables", "deserialize_program", "device_guard", "global_scope", "gradients", "is_persistable",
    "load", "load_from_file", "load_inference_model", "load_program_state", "load_vars", "name_scope", "nn",
    "normalize_program", "program_guard", "py_func", "save", "save_inference_model", "save_to_file", "save_vars",
    "scope_guard", "serialize_persistables", "serialize_program", "set_program_state",
]  # fmt: skip
