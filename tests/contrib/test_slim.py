"""fluid.contrib.slim.quantization: small nets from training to int8, equal to Paddle 1.8.5's at
each stage.
"""

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

from ..test_golden_programs import compare
from ..tools.slim_nets import CASES

RECORDED = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data" / "slim_1.8.5.json.gz").read_bytes())
)


_MORE = ("after training, abs_max", "weights, channels", "conv, functions of weights")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.thorough) if n in _MORE else n for n in sorted(CASES)],
)
def test_stages_equal_paddles(name):
    """Programs op by op with all their attributes, losses, everything that is kept, what saved
    models compute.
    """
    with fluid.unique_name.guard():
        said = CASES[name](fluid)
    want = RECORDED[name]
    assert said["programs"].keys() == want["programs"].keys()
    for stage, program in said["programs"].items():
        compare(program, want["programs"][stage], stage)
        for op, w in zip(
            program.global_block().ops, want["programs"][stage]["blocks"][0]["ops"], strict=True
        ):
            assert op.type == w["type"], stage
        if stage != "mobile":  # whose ops are for other engines
            verify(program.desc, lookup)
    assert said["arrays"].keys() == want["arrays"].keys()
    for what, w in want["arrays"].items():
        got = said["arrays"][what]
        assert (str(got.dtype), list(got.shape)) == (w["dtype"], w["shape"]), what
        np.testing.assert_allclose(
            got.reshape(-1), np.array(w["values"]), rtol=1e-5, atol=1e-6, err_msg=what
        )


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
    assert np.array_equal(
        run(x, w.astype("int8"), None, None), run(x, w.astype("float32"), None, None)
    )


def test_zeros_are_frozen_as_zeros(net):
    scope, graph = fluid.Scope(), conv_graph(net, True)
    weight = np.zeros((2, 1, 2, 2), "float32")
    weight[1] = 0.5
    scope.var("conv2d_0.w_0").get_tensor().set(weight, None)
    kind = {"weight_quantize_type": "channel_wise_abs_max"}
    with fluid.unique_name.guard():
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
    assert [n.name() for n in graph.topology_sort()] == [op.name()] == ["conv2d"] and (
        graph.graph_num(),
        graph.has_circle(),
    ) == (1, False)
    assert [n.name() for n in graph.all_persistable_nodes()] == [
        "conv2d_0.w_0"
    ] and op in graph.all_nodes()
    graph.link_to(op.outputs[0], op)
    assert graph.has_circle()
    graph.create_var_node('a"\\b', VarType.LOD_TENSOR, [1], VarType.FP32)
    graph.draw(str(tmp_path), "g", marked_nodes=op)
    drawn = (tmp_path / "g.dot").read_text(encoding="utf-8")
    # no name ends its label
    assert 'label="conv2d", shape=box, style=filled' in drawn and r'label="a\"\\b"' in drawn
    graph.safe_remove_nodes(op)
    assert not graph.all_op_nodes()
    with pytest.raises(FluidValueError, match="conv2d are not in this graph"):
        graph.link_to(graph.all_var_nodes()[0], op)


WRONG = {
    "'conv' is not quantised.*conv2d": lambda net: slim.QuantizationTransformPass(quantizable_op_type=["conv"]),
    "activation_quantize_type is one of": lambda net: slim.QuantizationTransformPass(activation_quantize_type="channel_wise_abs_max"),
    "weight_quantize_func takes a variable and gives another": lambda net: by_function(net, lambda x: x),
    "needs optimizer_func": lambda net: by_function(trained_net(), fluid.layers.tanh, False),
    "needs an executor and a scope": lambda net: slim.QuantizationTransformPass(
        fluid.Scope(), weight_quantize_func=fluid.layers.tanh).apply(conv_graph(net, True)),
    "goes through a weight_preprocess_func": lambda net: slim.QuantizationFreezePass(fluid.Scope(), fluid.CPUPlace()).apply(
        by_function(net, fluid.layers.tanh, what="weight_preprocess_func")),
    "takes an IrGraph": lambda net: slim.QuantizationTransformPass().apply(net),
    "takes a program's desc": lambda net: fluid.core.Graph(net),
    "needs the scope and the place": lambda net: slim.ConvertToInt8Pass(None, None),
    "needs a value in a scope": lambda net: slim.OutScaleForTrainingPass().apply(conv_graph(net)),
    "has no variable 'conv2d_0.w_0'": lambda net: slim.QuantizationFreezePass(fluid.Scope(), fluid.CPUPlace()).apply(
        transformed(net)),
    "apply the passes": lambda net: fluid.contrib.Compressor,
    "needs an executor": lambda net: slim.PostTrainingQuantization(model_dir="m", sample_generator=list),
    "needs a model_dir": lambda net: post(model_dir=None),
    "a sample_generator or a batch_generator": lambda net: post(sample_generator=None),
    "batch_size is a positive number, not 0": lambda net: post(batch_size=0),
    "algo is one of 'KL', 'abs_max', 'min_max'": lambda net: post(algo="mse"),
    "'fc' is not quantised": lambda net: post(quantizable_op_type=["fc"]),
    "call quantize first": lambda net: post().save_quantized_model("saved"),
    "There is no directory named 'm'": lambda net: post().quantize(),
    "weight_bits is one of 8, 16, not 4": lambda net: slim.WeightQuantization("m").quantize_weight_to_int("to", weight_bits=4),
    "from 0 to below 1, not 1": lambda net: slim.WeightQuantization("m").quantize_weight_to_int("to", threshold_rate=1),
    "There is no directory named 'n'": lambda net: slim.WeightQuantization("n").quantize_weight_to_int("to"),
    "weight_quantize_type is one of": lambda net: fluid.contrib.QuantizeTranspiler(weight_quantize_type="channel_wise_abs_max"),
}  # fmt: skip


def post(**args):
    return slim.PostTrainingQuantization(
        fluid.Executor(fluid.CPUPlace()), **{"model_dir": "m", "sample_generator": list, **args}
    )


def test_no_batch_and_a_weight_that_two_ops_read(tmp_path):
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        _no_batch_and_a_weight_that_two_ops_read(tmp_path)


def _no_batch_and_a_weight_that_two_ops_read(tmp_path):
    x = fluid.data("x", [None, 3])
    shared = fluid.ParamAttr(
        "w",
        initializer=fluid.initializer.NumpyArrayInitializer(np.array([[0, 1, 2]] * 3, "float32")),
    )
    out = fluid.layers.fc(
        fluid.layers.fc(x, 3, param_attr=shared, bias_attr=False),
        3,
        param_attr=shared,
        bias_attr=False,
    )
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path), ["x"], [out], exe)
    with (
        pytest.raises(FluidValueError, match="gave no batch of 10 samples"),
        fluid.scope_guard(fluid.Scope()),
    ):
        post(
            model_dir=str(tmp_path), sample_generator=lambda: iter([np.zeros(3, "float32")] * 9)
        ).quantize()
    slim.WeightQuantization(str(tmp_path)).quantize_weight_to_int(
        str(tmp_path), generate_test_model=True
    )
    assert fluid.global_scope().get("w").tolist() == [[0, 1, 2]] * 3
    with fluid.scope_guard(fluid.Scope()):
        program = fluid.io.load_inference_model(str(tmp_path / "test_model"), exe)[0]
        # a column of zeros stays one
        assert fluid.global_scope().get("w").tolist() == [[0, 1, 2]] * 3
    assert [op.attr("w_quant_scale") for op in program.global_block().ops if op.type == "mul"] == [
        pytest.approx([0, 1 / 127, 2 / 127])
    ] * 2
    verify(program.desc, lookup)


def trained_net():
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        fluid.optimizer.SGD(0.1).minimize(
            fluid.layers.mean(fluid.layers.conv2d(fluid.layers.data("x", [1, 3, 3]), 2, 2))
        )
    return main


def by_function(net, function, test=True, what="weight_quantize_func"):
    graph = conv_graph(net, test)
    slim.QuantizationTransformPass(
        fluid.Scope(), executor=fluid.Executor(), **{what: function}
    ).apply(graph)
    return graph


def transformed(net):
    graph = conv_graph(net, True)
    slim.QuantizationTransformPass().apply(graph)
    return graph


@pytest.mark.parametrize("sentence", WRONG)
def test_what_does_not_fit_is_said(net, sentence):
    with pytest.raises(FluidError, match=sentence):
        WRONG[sentence](net)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("how", ["channel_wise_abs_max", "abs_max"])
def test_a_model_of_quantised_weights_is_loaded_again(how, bits, tmp_path):
    """Its weights times their scales: those of the test model, and as near to the ones before as
    the bits let them be.
    """
    main, startup = fluid.Program(), fluid.Program()
    exe = fluid.Executor(fluid.CPUPlace())
    with (
        fluid.program_guard(main, startup),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        image = fluid.data("image", [None, 2, 4, 4])
        out = fluid.layers.fc(fluid.layers.conv2d(image, 3, 3), 5)
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path / "m"), ["image"], [out], exe)
        names = [
            v.name
            for v in main.list_vars()
            if v.persistable and fluid.global_scope().find_var(v.name) is not None
        ]
        before = {name: np.asarray(fluid.global_scope().get(name)) for name in names}
    quantised = slim.WeightQuantization(str(tmp_path / "m"))
    quantised.quantize_weight_to_int(
        str(tmp_path), weight_bits=bits, weight_quantize_type=how, generate_test_model=True
    )
    found = []
    for folder in ("quantized_model", "test_model"):
        with fluid.scope_guard(fluid.Scope()):
            fluid.io.load_inference_model(str(tmp_path / folder), exe)
            found.append({name: np.asarray(fluid.global_scope().get(name)) for name in before})
    for name, value in before.items():
        assert found[0][name].dtype == np.float32
        np.testing.assert_allclose(found[0][name], found[1][name], rtol=1e-6)
        np.testing.assert_allclose(
            found[0][name], value, atol=np.abs(value).max() / 2 ** (bits - 1) if value.any() else 0
        )


def test_matmul_v2_is_quantised_as_matmul():
    """Paddle 2's product: its weight and its data are quantised by the same ops."""
    kinds = {}
    for kind in ("matmul", "matmul_v2"):
        main = fluid.Program()
        with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
            x = fluid.data("x", [2, 3])
            w = fluid.layers.create_parameter([3, 4], "float32", name="w")
            out = main.global_block().create_var(name="out", dtype="float32")
            main.global_block().append_op(type=kind, inputs={"X": x, "Y": w}, outputs={"Out": out})
        graph = fluid.framework.IrGraph(fluid.core.Graph(main.desc), for_test=True)
        slim.QuantizationTransformPass(
            fluid.Scope(), fluid.CPUPlace(), quantizable_op_type=[kind]
        ).apply(graph)
        kinds[kind] = [op.type for op in graph.to_program().global_block().ops]
    assert (
        kinds["matmul_v2"] == [k.replace("matmul", "matmul_v2") for k in kinds["matmul"]]
        and len(kinds["matmul"]) > 3
    )
