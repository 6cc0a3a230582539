"""fluidjax: PaddlePaddle Fluid's static-graph programs on JAX. ``import fluidjax as fluid`` ports a
script.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import ops as ops  # isort: skip  # first: fills the op registry
from . import backward as backward
from . import clip as clip
from . import compiler as compiler
from . import core as core
from . import data_feeder as data_feeder
from . import dataloader as dataloader
from . import errors as errors
from . import executor as executor
from . import framework as framework
from . import functional as functional
from . import initializer as initializer
from . import input as input
from . import layer_helper as layer_helper
from . import layers as layers
from . import lod_tensor as lod_tensor
from . import metrics as metrics
from . import nets as nets
from . import optimizer as optimizer
from . import parallel_executor as parallel_executor
from . import param_attr as param_attr
from . import place as place
from . import program as program
from . import reader as reader
from . import regularizer as regularizer
from . import scope as scope
from . import unique_name as unique_name
from .backward import append_backward as append_backward
from .backward import gradients as gradients
from .base.absent import reporter as _reporter
from .base.flags import get_flags as get_flags
from .base.flags import set_flags as set_flags
from .base.lazy import on_demand as _on_demand
from .compiler import BuildStrategy as BuildStrategy
from .compiler import CompiledProgram as CompiledProgram
from .compiler import ExecutionStrategy as ExecutionStrategy
from .compiler import ParallelExecutor as ParallelExecutor
from .data_feeder import DataFeeder as DataFeeder
from .devices.place import CPUPlace as CPUPlace
from .devices.place import CUDAPinnedPlace as CUDAPinnedPlace
from .devices.place import CUDAPlace as CUDAPlace
from .devices.place import XPUPlace as XPUPlace
from .devices.place import cpu_places as cpu_places
from .devices.place import cuda_pinned_places as cuda_pinned_places
from .devices.place import cuda_places as cuda_places
from .devices.place import is_compiled_with_cuda as is_compiled_with_cuda
from .devices.place import is_compiled_with_xpu as is_compiled_with_xpu
from .errors import FluidError as FluidError
from .executor import Executor as Executor
from .feeds.bucketing import bucketed as bucketed
from .framework import get_var as get_var
from .framework import in_dygraph_mode as in_dygraph_mode
from .framework import load_op_library as load_op_library
from .framework import require_version as require_version
from .functional import init_fn as init_fn
from .functional import read_state as read_state
from .functional import step_fn as step_fn
from .functional import write_state as write_state
from .graph import program as _program
from .graph.device_guard import device_guard as device_guard
from .graph.name_scope import name_scope as name_scope
from .graph.program import Program as Program
from .graph.program import default_main_program as default_main_program
from .graph.program import default_startup_program as default_startup_program
from .graph.program import program_guard as program_guard
from .graph.variable import Variable as Variable
from .input import data as data
from .input import embedding as embedding
from .input import one_hot as one_hot
from .layers import readers as _readers
from .lod_tensor import LoDTensor as LoDTensor
from .lod_tensor import LoDTensorArray as LoDTensorArray
from .lod_tensor import create_lod_tensor as create_lod_tensor
from .lod_tensor import create_random_int_lodtensor as create_random_int_lodtensor
from .ops.fixed import Fixed as Fixed
from .ops.ragged import Ragged as Ragged
from .param_attr import ParamAttr as ParamAttr
from .param_attr import WeightNormParamAttr as WeightNormParamAttr
from .state.scope import Scope as Scope
from .state.scope import global_scope as global_scope
from .state.scope import scope_guard as scope_guard

if _TYPE_CHECKING:  # otherwise imported at the first use
    from . import async_executor as async_executor
    from . import average as average
    from . import checkpoint as checkpoint
    from . import compat as compat
    from . import contrib as contrib
    from . import data_feed_desc as data_feed_desc
    from . import debugger as debugger
    from . import default_scope_funcs as default_scope_funcs
    from . import dist as dist
    from . import dygraph as dygraph
    from . import evaluator as evaluator
    from . import exporting as exporting
    from . import incubate as incubate
    from . import install_check as install_check
    from . import io as io
    from . import memory as memory
    from . import op as op
    from . import passes as passes
    from . import planning as planning
    from . import predictors as predictors
    from . import profiler as profiler
    from . import proto as proto
    from . import saved as saved
    from . import tracing as tracing
    from . import transpiler as transpiler
    from . import wrapped_decorator as wrapped_decorator
    from .async_executor import AsyncExecutor as AsyncExecutor
    from .compat import compat_report as compat_report
    from .contrib.inferencer import Inferencer as Inferencer
    from .contrib.trainer import BeginEpochEvent as BeginEpochEvent
    from .contrib.trainer import BeginStepEvent as BeginStepEvent
    from .contrib.trainer import CheckpointConfig as CheckpointConfig
    from .contrib.trainer import EndEpochEvent as EndEpochEvent
    from .contrib.trainer import EndStepEvent as EndStepEvent
    from .contrib.trainer import Trainer as Trainer
    from .data_feed_desc import DataFeedDesc as DataFeedDesc
    from .dygraph import disable_dygraph as disable_dygraph
    from .dygraph import disable_imperative as disable_imperative
    from .dygraph import enable_dygraph as enable_dygraph
    from .dygraph import enable_imperative as enable_imperative
    from .dygraph import load_dygraph as load_dygraph
    from .dygraph import save_dygraph as save_dygraph
    from .exporting import ExportError as ExportError
    from .exporting import export as export
    from .exporting import load_exported as load_exported
    from .exporting import load_onnx as load_onnx
    from .io import load as load
    from .io import load_program_state as load_program_state
    from .io import save as save
    from .io import set_program_state as set_program_state
    from .loaders.slots.datasets import DatasetFactory as DatasetFactory
    from .loaders.slots.datasets import InMemoryDataset as InMemoryDataset
    from .loaders.slots.datasets import QueueDataset as QueueDataset
    from .planning import plan as plan
    from .profiler import watch as watch
    from .tracing import Traced as Traced
    from .tracing import fit_memory as fit_memory
    from .tracing import trace as trace
    from .transpiler import DistributeTranspiler as DistributeTranspiler
    from .transpiler import DistributeTranspilerConfig as DistributeTranspilerConfig
    from .transpiler import InferenceTranspiler as InferenceTranspiler
    from .transpiler import memory_optimize as memory_optimize
    from .transpiler import release_memory as release_memory


__version__ = "0.1.0"
Tensor = LoDTensor


def _report_memory(*args: _Any) -> _Any:
    from .memory import memory_report

    return memory_report(*args)


def _profile(*args: _Any) -> _Any:
    from .profiler import profile

    return profile(*args)


_program.memory_reporter = _report_memory
_program.profile_maker = _profile


def _feeds(variables: _Any, capacity: int, double_buffer: bool) -> _Any:
    """Feeds these variables, and so their program, batch by batch."""
    return reader.DataLoader.from_generator(variables, capacity, double_buffer, iterable=False)


_readers.loader_maker = _feeds


def _predictors(name: str) -> _Any:
    """fluid.core's names of predictors."""
    from . import predictors

    return getattr(predictors, name)


core.predictor_names.append(_predictors)

if not _TYPE_CHECKING:
    _LATER = {
        "async_executor": "AsyncExecutor",
        "average": "",
        "checkpoint": "",
        "compat": "compat_report",
        "contrib": "",
        "data_feed_desc": "DataFeedDesc",
        "contrib.inferencer": "Inferencer",
        "contrib.trainer": "BeginEpochEvent BeginStepEvent CheckpointConfig EndEpochEvent EndStepEvent Trainer",
        "debugger": "",
        "default_scope_funcs": "",
        "dist": "",
        "dygraph": "disable_dygraph disable_imperative enable_dygraph enable_imperative load_dygraph save_dygraph",
        "evaluator": "",
        "exporting": "ExportError export load_exported load_onnx",
        "incubate": "",
        "install_check": "",
        "io": "load load_program_state save set_program_state",
        "loaders.slots.datasets": "DatasetFactory InMemoryDataset QueueDataset",
        "memory": "",
        "op": "",
        "passes": "",
        "planning": "plan",
        "predictors": "",
        "profiler": "watch",
        "proto": "",
        "saved": "",
        "tracing": "Traced fit_memory trace",
        "transpiler": "DistributeTranspiler DistributeTranspilerConfig InferenceTranspiler memory_optimize release_memory",
        "wrapped_decorator": "",
    }
    __getattr__, __dir__ = _on_demand(
        __name__, _LATER, _reporter("fluid", [*dir(), *_LATER, *" ".join(_LATER.values()).split()])
    )

__all__ = [
    "AsyncExecutor", "BeginEpochEvent", "BeginStepEvent", "BuildStrategy", "CPUPlace", "CUDAPinnedPlace", "CUDAPlace",
    "CheckpointConfig", "CompiledProgram", "DataFeedDesc", "DataFeeder", "DatasetFactory", "DistributeTranspiler",
    "DistributeTranspilerConfig", "EndEpochEvent", "EndStepEvent", "ExecutionStrategy", "Executor", "ExportError", "Fixed", "FluidError",
    "InMemoryDataset", "InferenceTranspiler", "Inferencer", "LoDTensor", "LoDTensorArray", "ParallelExecutor", "ParamAttr",
    "Program", "QueueDataset", "Ragged", "Scope", "Tensor", "Traced", "Trainer", "Variable", "WeightNormParamAttr", "XPUPlace",
    "append_backward", "async_executor", "average", "backward", "bucketed", "clip", "compat_report", "compiler", "core",
    "cpu_places", "create_lod_tensor", "create_random_int_lodtensor", "cuda_pinned_places", "cuda_places", "data", "data_feed_desc",
    "data_feeder", "dataloader", "debugger", "default_main_program", "default_startup_program", "device_guard", "disable_dygraph",
    "disable_imperative", "dist", "dygraph", "embedding", "enable_dygraph", "enable_imperative", "errors", "evaluator", "executor",
    "export", "exporting", "fit_memory",
    "framework", "functional", "get_flags", "get_var", "global_scope", "gradients", "in_dygraph_mode", "incubate", "init_fn",
    "initializer", "input", "install_check", "io", "is_compiled_with_cuda", "is_compiled_with_xpu", "layer_helper", "layers",
    "load", "load_dygraph",
    "load_exported", "load_onnx", "load_op_library", "load_program_state", "lod_tensor", "memory_optimize", "metrics", "name_scope",
    "nets", "one_hot", "op", "ops", "optimizer", "parallel_executor", "param_attr", "passes", "place", "plan", "planning",
    "predictors", "profiler", "program", "program_guard", "proto", "read_state", "reader", "regularizer", "release_memory",
    "require_version", "save", "save_dygraph", "scope", "scope_guard", "set_flags", "set_program_state", "step_fn", "trace", "tracing",
    "transpiler",
    "unique_name", "watch", "wrapped_decorator", "write_state",
]  # fmt: skip
