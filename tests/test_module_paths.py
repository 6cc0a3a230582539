"""Fluid's module paths are modules: 1.8.5's own list of them, recorded, each imported or said to be
missing.
"""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from pathlib import Path

import pytest

import fluidjax
import fluidjax.paddle
from fluidjax import dygraph
from fluidjax.base.absent import MODULES, subject
from fluidjax.errors import FluidError
from fluidjax.layers import utils

RECORDED = json.loads(
    gzip.decompress((Path(__file__).parent / "data" / "modules_1.8.5.json.gz").read_bytes())
)
THERE = {m for m in RECORDED if m == "paddle" or subject(m.removeprefix("paddle.")) is None}

# Modules of 1.8.5 that exist here under the same path, directly and for scripts.
FLUID = """
backward clip compiler contrib contrib.decoder contrib.decoder.beam_search_decoder contrib.layers contrib.layers.nn contrib.layers.rnn_impl
debugger contrib.layers.metric_op contrib.extend_optimizer contrib.extend_optimizer.extend_optimizer_with_weight_decay
contrib.memory_usage_calc contrib.model_stat contrib.op_frequence contrib.mixed_precision contrib.mixed_precision.decorator
contrib.mixed_precision.fp16_lists contrib.mixed_precision.fp16_utils average profiler install_check wrapped_decorator
core data data_feed_desc data_feeder dataloader default_scope_funcs evaluator executor framework initializer input io layer_helper
layer_helper_base layers layers.control_flow layers.device layers.distributions layers.io layers.learning_rate_scheduler layers.loss
layers.detection layers.metric_op layers.nn layers.ops layers.rnn layers.sequence_lod layers.tensor layers.utils lod_tensor metrics nets
optimizer parallel_executor param_attr reader regularizer transpiler transpiler.collective
transpiler.distribute_transpiler transpiler.geo_sgd_transpiler transpiler.memory_optimization_transpiler
transpiler.ps_dispatcher unique_name contrib.reader contrib.reader.distributed_reader
proto proto.framework_pb2 incubate incubate.data_generator incubate.fleet
incubate.fleet.base incubate.fleet.base.fleet_base incubate.fleet.base.role_maker incubate.fleet.collective 
incubate.fleet.base.mode incubate.fleet.parameter_server
incubate.fleet.parameter_server.distribute_transpiler
incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy
incubate.fleet.utils incubate.fleet.utils.hdfs incubate.fleet.utils.utils
contrib.quantize contrib.quantize.quantize_transpiler contrib.slim contrib.slim.graph contrib.slim.quantization
contrib.slim.quantization.quantization_pass
contrib.slim.quantization.post_training_quantization contrib.utils contrib.utils.hdfs_utils layers.collective
op transpiler.details transpiler.details.program_utils
""".split()
# dynamic mode's: they import, and what is called says that it is not there (amp and io are of later
# Paddles)
FLUID += [f"dygraph.{m}".rstrip(".") for m in dygraph.NAMES if m not in ("amp", "io")]
ROOT = (
    "paddle paddle.batch paddle.dataset paddle.dataset.common paddle.dataset.mnist"
    " paddle.dataset.uci_housing paddle.compat paddle.version paddle.utils paddle.dataset.cifar"
    " paddle.dataset.conll05 paddle.dataset.flowers paddle.dataset.image paddle.dataset.imdb"
    " paddle.dataset.imikolov paddle.dataset.movielens paddle.dataset.mq2007"
    " paddle.dataset.sentiment paddle.dataset.voc2012 paddle.dataset.wmt14 paddle.dataset.wmt16"
    " paddle.device"
).split()
OTHER = [
    "paddle.fluid",
    "paddle.fluid.dataset",
    "paddle.reader",
    "paddle.reader.decorator",
    "paddle.regularizer",
    "paddle.fluid.core_avx",
    "paddle.fluid.dataloader.batch_sampler",
    "paddle.fluid.dataloader.dataset",
    "paddle.distributed",
    "paddle.distributed.fs_wrapper",
]


@pytest.fixture(scope="module")
def shim():
    fluidjax.paddle.install()
    try:
        yield
    finally:
        fluidjax.paddle.uninstall()
        assert not [n for n in sys.modules if n.split(".")[0] == "paddle"]


def test_every_module_is_there_or_said_to_be_missing():
    assert THERE == {*ROOT, *OTHER, *(f"paddle.fluid.{n}" for n in FLUID)}


def test_what_is_said_to_be_missing_is_one_of_paddles():
    assert not [m for m in MODULES if not any(r == f"paddle.{m}" or r.startswith(f"paddle.{m}.") for r in RECORDED)
                and m not in NOT_WALKED]  # fmt: skip


# modules of 1.8.5 that its own Python cannot import
NOT_WALKED = {"utils.show_pb", "utils.torch2paddle", "fluid.incubate.fleet.parameter_server.pslib"}


@pytest.mark.parametrize("module", sorted(THERE))
def test_imports(shim, module):
    """By import, by attribute, by from; whatever it lacks is said when that is used, in a sentence."""
    loaded = importlib.import_module(module)
    parent, _, name = module.rpartition(".")
    scope = {}
    exec(f"import {module}" + (f"\nfrom {parent} import {name}" if parent else ""), scope)
    # also functions of the parent
    if module not in ("paddle.batch", "paddle.fluid.data", "paddle.fluid.layers.rnn"):
        assert not parent or scope[name] is loaded is getattr(importlib.import_module(parent), name)
    lacking = [n for n in (*RECORDED[module][0], *RECORDED[module][1]) if not hasattr(loaded, n)]
    for missing in lacking:
        with pytest.raises(AttributeError) as caught:
            getattr(loaded, missing)
        assert (
            isinstance(caught.value, FluidError)
            and missing in str(caught.value)
            and "did you mean" not in str(caught.value)
        )
        with pytest.raises(ImportError, match=missing):
            exec(f"from {module} import {missing}", {})


@pytest.mark.parametrize("module", FLUID)
def test_imports_directly(module):
    if module == "data":
        assert callable(fluidjax.data)  # the function has the name; its module is input
        return
    loaded = importlib.import_module(f"fluidjax.{module}")
    assert loaded.__doc__
    parent, _, name = f"fluidjax.{module}".rpartition(".")
    if module == "layers.rnn":
        assert fluidjax.layers.rnn is loaded.rnn  # likewise
        return
    assert getattr(importlib.import_module(parent), name) is loaded


def test_absent_subjects_say_so(shim):
    for module in sorted(set(RECORDED) - THERE):
        with pytest.raises(ImportError) as caught:
            importlib.import_module(module)
        told = subject(module.removeprefix("paddle."))
        assert str(caught.value).endswith(told) and "fluid" in str(caught.value)


def test_layers_of_a_module_are_those_of_layers():
    for module in (n for n in FLUID if n.startswith("layers.")):
        loaded = importlib.import_module(f"fluidjax.{module}")
        for name in getattr(loaded, "__all__", ()):
            if name in fluidjax.layers.__all__ and module != "layers.utils":
                assert getattr(loaded, name) is getattr(fluidjax.layers, name)


def test_function_and_module_of_one_name(shim):
    import paddle.batch
    import paddle.fluid as fluid
    import paddle.fluid.data

    assert fluid.data is fluidjax.data and callable(paddle.batch)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fluidjax.layers.expand_as_dims, "fluid.layers has no .expand_as_dims."),
        (
            lambda: fluidjax.layers.softmaxx,
            r"fluid.layers has no 'softmaxx' \(did you mean 'softmax'\?\)",
        ),
        (lambda: fluidjax.layers.nothing_like_it, "fluid.layers has no 'nothing_like_it'$"),
    ],
)
def test_suggestions_could_serve(call, message):
    with pytest.raises(AttributeError, match=message):
        call()


def test_nested_structures():
    nest = {"b": [1, (2, 3)], "a": 4}
    assert utils.flatten(nest) == [4, 1, 2, 3] and utils.flatten("ab") == ["ab"]
    assert utils.map_structure(lambda x, y: x + y, nest, nest) == {"b": [2, (4, 6)], "a": 8}
    assert utils.pack_sequence_as(nest, [1, 2, 3, 4]) == {"b": [2, (3, 4)], "a": 1}
    utils.assert_same_structure(nest, {"a": 0, "b": [0, (0, 0)]})
    for other in (
        {"a": 0, "b": [0, 0, 0]},
        {"a": 0, "c": [0, (0, 0)]},
        {"a": 0, "b": (0, (0, 0))},
        3,
    ):
        with pytest.raises((ValueError, TypeError)):
            utils.assert_same_structure(nest, other)
    assert utils.convert_to_list(2, 3, "size") == [2, 2, 2] and utils.convert_to_list(
        (1, 2), 2, "size"
    ) == [1, 2]
    with pytest.raises(ValueError, match="size is a int or a list of 2, not"):
        utils.convert_to_list([1, 2, 3], 2, "size")
    with pytest.raises(ValueError, match="the structure has 4 leaves, but 1 were given"):
        utils.pack_sequence_as(nest, [1])
