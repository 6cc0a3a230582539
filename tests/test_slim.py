"""fluid.contrib.slim.quantization: small nets from training to int8, equal to Paddle 1.8.5's at each stage."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.base.dtypes import VarType
from fluidjax.contrib.slim import quantization as slim
from fluidjax.errors import FluidError, FluidValueError
from fluidjax.ir.verify import verify
from fluidjax.ops.registry import lookup

from .test_golden_programs import compare
from .tools.slim_nets import CASES

RECORDED = json.loads(gzip.decompress((Path(__file__).parent / "data" / "slim_1.8.5.json.gz").read_bytes()))


@pytest.mark.parametrize("name", sorted(CASES))
def test_stages_equal_paddles(name):
    """Programs op by op with all their attributes, losses, everything that is kept, what saved models compute."""
    with fluid.unique_name.guard():
        said = CASES[name](fluid)
    want = RECORDED[name]
    assert said["programs"].keys() == want["programs"].keys()
    for stage, program in said["programs"].items():
        compare(program, want["programs"][stage], stage)
        for op, w in zip(program.global_block().ops, want["programs"][stage]["blocks"][0]["ops"], strict=True):
            assert op.type == w["type"], stage
        if stage != "mobile":  # whose ops are for other engines
            verify(program.desc, lookup)
    assert said["arrays"].keys() == want["arrays"].keys()
    for what, w in want["arrays"].items():
        got = said["arrays"][what]
        assert (str(got.dtype), list(got.shape)) == (w["dtype"], w["shape"]), what
        np.testing.assert_allclose(got.reshape(-1), np.array(w["values"]), rtol=1e-5, atol=1e-6, err_msg=what)


def conv_graph(program, for_test=False):
    return fluid.framework.IrGraph(fluid.core.Graph(program.desc), for_test)


@pytest.fixture(scope="module")
def net():
    """A test program of one convolution, which nothing has run."""
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        fluid.layers.conv2d(fluid.layers.data("x", [1, 3, 3]), 2, 2, bias_attr=False)
    return main


def test_weights_as_int8():
    """A convolution takes them as the floats that they are."""
    x, w = np.ones((1, 1, 3, 3), "float32"), np.array([[[[1, -2], [3, 127]]]])
    run = lookup("conv2d").fn
    assert np.array_equal(run(x, w.astype("int8"), None, None), run(x, w.astype("float32"), None, None))


def test_zeros_are_frozen_as_zeros(net):
    scope, graph = fluid.Scope(), conv_graph(net, True)
    weight = np.zeros((2, 1, 2, 2), "float32")
    weight[1] = 0.5
    scope.var("conv2d_0.w_0").get_tensor().set(weight, None)
    kind = {"weight_quantize_type": "channel_wise_abs_max"}
    slim.QuantizationTransformPass(scope, fluid.CPUPlace(), **kind).apply(graph)
    slim.QuantizationFreezePass(scope, fluid.CPUPlace(), **kind).apply(graph)
    assert np.array_equal(scope.get("conv2d_0.w_0"), weight * 254)
    assert scope.get("channel_scale_0").tolist() == [0, 0.5]


def test_a_test_graph_keeps_the_scales_of_training(net):
    scope, graph = fluid.Scope(), conv_graph(net, True)
    slim.OutScaleForTrainingPass(scope, fluid.CPUPlace()).apply(graph)
    op = graph.to_program().global_block().ops[-1]
    assert (op.type, op.output_arg_names) == ("moving_average_abs_max_scale", ["conv2d_0.tmp_0"])
    assert scope.get("conv2d_0.tmp_0@scale").tolist() == [1]
    slim.OutScaleForInferencePass(scope).apply(graph)
    assert graph.to_program().global_block().ops[0].attr("out_threshold") == 1.0


def test_a_graph(net, tmp_path):
    """What scripts ask of it."""
    graph = conv_graph(net)
    (op,) = graph.all_op_nodes()
    assert [n.name() for n in graph.topology_sort()] == [op.name()] == ["conv2d"] and (graph.graph_num(), graph.has_circle()) == (1, False)
    assert [n.name() for n in graph.all_persistable_nodes()] == ["conv2d_0.w_0"] and op in graph.all_nodes()
    graph.link_to(op.outputs[0], op)
    assert graph.has_circle()
    graph.create_var_node('a"\\b', VarType.LOD_TENSOR, [1], VarType.FP32)
    graph.draw(str(tmp_path), "g", marked_nodes=op)
    drawn = (tmp_path / "g.dot").read_text(encoding="utf-8")
    assert 'label="conv2d", shape=box, style=filled' in drawn and r'label="a\"\\b"' in drawn  # no name ends its label
    graph.safe_remove_nodes(op)
    assert not graph.all_op_nodes()
    with pytest.raises(FluidValueError, match="conv2d are not in this graph"):
        graph.link_to(graph.all_var_nodes()[0], op)


WRONG = {
    "'conv' is not quantised.*conv2d": lambda net: slim.QuantizationTransformPass(quantizable_op_type=["conv"]),
    "activation_quantize_type is one of": lambda net: slim.QuantizationTransformPass(activation_quantize_type="channel_wise_abs_max"),
    "functions of one's own": lambda net: slim.QuantizationTransformPass(weight_quantize_func=abs),
    "takes an IrGraph": lambda net: slim.QuantizationTransformPass().apply(net),
    "takes a program's desc": lambda net: fluid.core.Graph(net),
    "needs the scope and the place": lambda net: slim.ConvertToInt8Pass(None, None),
    "needs a value in a scope": lambda net: slim.OutScaleForTrainingPass().apply(conv_graph(net)),
    "has no variable 'conv2d_0.w_0'": lambda net: slim.QuantizationFreezePass(fluid.Scope(), fluid.CPUPlace()).apply(
        transformed(net)),
    "train a few steps with QuantizationTransformPass": lambda net: slim.PostTrainingQuantization,
    "apply the passes": lambda net: fluid.contrib.Compressor,
    "weight_quantize_type is one of": lambda net: fluid.contrib.QuantizeTranspiler(weight_quantize_type="channel_wise_abs_max"),
}  # fmt: skip


def transformed(net):
    graph = conv_graph(net, True)
    slim.QuantizationTransformPass().apply(graph)
    return graph


@pytest.mark.parametrize("sentence", WRONG)
def test_what_does_not_fit_is_said(net, sentence):
    with pytest.raises(FluidError, match=sentence):
        WRONG[sentence](net)
