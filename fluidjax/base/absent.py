"""Names of Fluid that fluidjax lacks, and the sentence that an error shows when one is used.

For a name that Fluid has, the error says that it is not supported, and what to use instead. A name
that Fluid lacks too may be a typing error, so the error suggests similar names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn

from ..errors import FluidError, UnsupportedError, near

_CLOSE = 0.8  # similarity from which a name may be a typing error for another

# Unsupported modules of Paddle below "paddle."; a key covers the modules within it.
MODULES: dict[str, str] = {
    "fluid.dygraph_utils": "dynamic mode is not supported; build static programs",
    **{f"fluid.contrib.{n}": "this part of contrib is not supported" for n in (
        "slim.core", "slim.distillation", "slim.nas", "slim.prune", "slim.searcher")},
    "fluid.contrib.utils.lookup_table_utils": 
        "tools for tables of parameter servers are not supported; fluid.io.load_persistables loads tables too",
    **{f"fluid.contrib.slim.{n}": "slim's Compressor is not supported; apply the passes of fluid.contrib.slim.quantization" for n in (
        "graph.executor", "graph.graph_wrapper", "quantization.quantization_strategy")},
    **{f"fluid.contrib.slim.quantization.{n}": "MKL-DNN's integer kernels are not supported; use QuantizationFreezePass" for n in (
        "mkldnn_post_training_strategy", "qat_int8_mkldnn_pass", "qat2_int8_mkldnn_pass")},
    "fluid.incubate.fleet.parameter_server.pslib": "pslib's servers are not supported; use fleet of parameter_server.distribute_transpiler",
    "fluid.incubate.fleet.parameter_server.version": "it is a part of Paddle's own build",
    "fluid.incubate.fleet.utils.fleet_barrier_util": "workers do not wait by files; use paddle.distributed.fleet.barrier_worker()",
    "fluid.distributed": "Downpour is not supported; use fluid.DistributeTranspiler",
    "fluid.device_worker": "it is a part of Paddle's own trainers; Executor.train_from_dataset runs a program over a dataset",
    "fluid.trainer_desc": "it is a part of Paddle's own trainers; Executor.train_from_dataset runs a program over a dataset",
    "fluid.trainer_factory": "it is a part of Paddle's own trainers; fluid.executor has FetchHandler",
    "fluid.communicator":
        "asynchronous jobs run without a Communicator, so none needs to be started",
    "fluid.distribute_lookup_table": "it is a part of Paddle's own transpiler",
    **{f"fluid.transpiler.details.{n}": "it is a part of Paddle's own transpiler" for n in ("checkport", "ufind", "vars_distributed")},
    "fluid.graphviz": "it is a part of Paddle's own drawing; use fluid.debugger.draw_block_graphviz",
    "fluid.net_drawer": "in 1.8.5 it raises a TypeError; use fluid.debugger.draw_block_graphviz",
    **{f"fluid.proto.{n}":
        "only framework_pb2 of Paddle's protobuf modules is supported" for n in ("data_feed_pb2", "profiler")},
    "fluid.annotations": "it is a tool of Paddle's own sources",
    "fluid.log_helper": "it is a tool of Paddle's own sources",
    "fluid.multiprocess_utils": "it is a tool of Paddle's own sources",
    "fluid.layers.layer_function_generator": "it is a tool of Paddle's own sources",
    "fluid.layers.math_op_patch": "variables have their operators from the start",
    "fluid.dataloader.dataloader_iter": "it is a part of Paddle's own DataLoader",
    "check_import_scipy": "it is a tool of Paddle's own sources",
    "common_ops_import": "it is a tool of Paddle's own sources",
    "complex": "complex numbers are not supported",
    **{f"distributed.{n}": "start the processes by python -m fluidjax launch, which takes the options of Paddle's launchers" for n in (
        "cloud_utils", "launch", "launch_ps", "utils")},
    "distribution": "probability distributions are not supported",
    "incubate": "its high-level API is paddle.Model, with paddle.io and paddle.metric",
    "sysconfig": "there is no C++ library as in Paddle",
    **{f"utils.{n}": "Paddle's image and plot tools are not supported" for n in (
        "image_util", "plot", "plotcurve", "preprocess_img", "preprocess_util", "show_pb", "torch2paddle")},
    "utils.profiler": "Paddle 2's Profiler is not supported; use fluid.profiler",
}  # fmt: skip
NAMES: dict[str, str] = {
    "ComplexVariable": "belongs to complex numbers, which are not supported",
    "Ploter": "draws curves, which is not supported; use matplotlib",
    **dict.fromkeys(
        ("MPIRoleMaker", "GeneralRoleMaker"),
        "is not supported; use PaddleCloudRoleMaker or UserDefinedRoleMaker",
    ),
    "CollectiveOpBasedOptimizer": "is not supported; use fleet.distributed_optimizer",
    "geo_parameter_server": (
        "is not supported; use StrategyFactory.create_geo_strategy of"
        " parameter_server.distribute_transpiler"
    ),
    "kNewGradSuffix": "is not supported; gradients that are summed are called NAME@RENAME@block0@K",
    "ProgramDescTracer": "is of dynamic mode, which is not supported; build static programs",
    "has_infer_inplace": "is not supported: XLA decides what is computed in place",
    "create_param": "does not exist in Fluid either; use fluid.layers.create_parameter",
    "expand_dims": "does not exist in Fluid either; use fluid.layers.unsqueeze",
    "Constant": "does not exist in Fluid either; use fluid.initializer.Constant",
    **{
        n: f"does not exist in Fluid either; use fluid.layers.{n}"
        for n in "expand matmul reduce_sum reshape softmax squeeze tanh transpose".split()
    },
    "multiply": "does not exist in Fluid either; use fluid.layers.elementwise_mul",
    "cross_entropy2": "is not supported; cross_entropy appends it for hard labels",
    **dict.fromkeys(
        "BCELoss BatchNorm BilinearTensorProduct Conv2D Conv2DTranspose Conv3D Conv3DTranspose"
        " Dropout Embedding GRUUnit GroupNorm InstanceNorm L1Loss Layer LayerNorm Linear MSELoss"
        " NCE NLLLoss PRelu Pool2D SpectralNorm TreeConv".split(),
        "is a layer of dynamic mode, which is not supported; use the functions of fluid.layers",
    ),
    **dict.fromkeys(
        "DataLoaderBase DatasetLoader feature_range is_compiled_with_brpc is_compiled_with_dist "
        "loaded_var_suffix".split(),
        "is not supported",
    ),
}


class MissingName(UnsupportedError, AttributeError):
    """A name of Fluid that fluidjax lacks; also an AttributeError, so that hasattr() is False."""


class MissingModule(FluidError, ModuleNotFoundError):
    """A module of Paddle, or a name imported from one, that fluidjax lacks."""


def subject(path: str) -> str | None:
    """The sentence about an unsupported module of Paddle; None for any other path below
    "paddle.".
    """
    parts = path.split(".")
    heads = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((MODULES[head] for head in heads if head in MODULES), None)


def sentence(
    module: str, name: str, known: Iterable[str], hints: Mapping[str, str] = NAMES
) -> str | None:
    """The sentence about the missing ``module.name`` ("fluid.layers"); None if nothing is known
    about it.
    """
    found = subject(f"{module}.{name}")
    if found:
        return f"{module}.{name}: {found}"
    if name in hints or name in NAMES:
        return f"{module}.{name} {hints.get(name) or NAMES[name]}"
    slip = near(name, [n for n in known if not n.startswith("_")], _CLOSE)
    return f"{module} has no {name!r}{slip}" if slip else None


def lacking(owner: str, hints: Mapping[str, str]) -> Callable[[object, str], NoReturn]:
    """A class's ``__getattr__``: raises MissingName with the hint for these names, AttributeError
    for others.
    """

    def report(self: object, name: str) -> NoReturn:
        if name in hints:
            raise MissingName(f"{owner}.{name} {hints[name]}")
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
        )

    return report


def reporter(
    module: str, known: Iterable[str], hints: Mapping[str, str] = NAMES
) -> Callable[[str], NoReturn]:
    """A module's ``__getattr__``: raises MissingName for a name of Fluid, else AttributeError.

    module: Fluid's name for it ("fluid.optimizer"); known: the names that exist.
    """

    def report(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        message = sentence(module, name, known, hints)
        if message is None or " has no " in message:
            raise AttributeError(message or f"{module} has no {name!r}")
        raise MissingName(message)

    return report
