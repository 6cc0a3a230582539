"""Methods of programs, blocks, ops and variables that scripts of 1.x call, with the answers that
1.8.5 gives.
"""

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.core import VarDesc, op_proto_and_checker_maker


def _types(program):
    return [op.type for op in program.global_block().ops]


def test_inference_optimize_drops_the_reader_and_keeps_the_updates():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        reader = layers.py_reader(10, [[-1, 3]], ["float32"], lod_levels=[0])
        x = layers.dropout(layers.fc(layers.read_file(reader), 2), 0.5)
        fluid.optimizer.SGD(0.1).minimize(layers.mean(x))
        main = fluid.default_main_program()
    bare, whole = main._inference_optimize(), main._inference_optimize(prune_read_op=False)
    assert _types(whole) == _types(main)
    assert _types(whole)[:2] == ["create_double_buffer_reader", "read"]
    assert _types(bare) == _types(main)[2:]
    assert [op.attr("is_test") for op in bare.global_block().ops if op.type == "dropout"] == [True]


def test_parameters_become_those_of_another_program():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        decay = fluid.regularizer.L2Decay(0.5)
        layers.fc(layers.data("x", [2]), 1, param_attr=fluid.ParamAttr("w", regularizer=decay))
        known = fluid.default_main_program()
    plain = fluid.Program()
    plain.global_block().create_var(name="w", shape=[2, 1], dtype="float32", persistable=True)
    plain._copy_param_info_from(known)
    plain._copy_dist_param_info_from(known)
    (w,) = plain.all_parameters()
    assert (w.name, w.regularizer, w.trainable) == ("w", decay, True)
    for copy in (plain._copy_param_info_from, plain._copy_dist_param_info_from):
        with pytest.raises(TypeError, match="not str"):
            copy("program")


@pytest.mark.parametrize(
    "again",
    [{"shape": (3,)}, {"dtype": "int32"}, {"lod_level": 2}, {"persistable": True},
     {"type": VarDesc.VarType.SELECTED_ROWS}],
    ids=lambda again: next(iter(again)),
)  # fmt: skip
def test_a_variable_that_is_made_again_is_the_same(again):
    block = fluid.Program().global_block()
    made = block.create_var(name="v", shape=[2], dtype="float64", lod_level=0)
    assert block.create_var(name="v") is made
    assert block.create_var(name="v", stop_gradient=True).stop_gradient
    with pytest.raises(ValueError, match="cannot be made again"):
        block.create_var(name="v", **again)


def test_what_a_block_tells_of_its_ops():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        y = layers.fc(layers.data("x", [2]), 1)
        fluid.optimizer.SGD(0.1).minimize(layers.mean(y))
        block = fluid.default_main_program().global_block()
    assert [op.type for op in block._slice_ops(0, 2)] == ["mul", "elementwise_add"]
    assert [op.type for op in block.ops if op._is_optimize_op()] == ["sgd", "sgd"]
    assert y.op is block.ops[1]
    assert block.var("x").op is None
    maker = op_proto_and_checker_maker
    assert all(
        y.op.has_attr(name) for name in (maker.kOpNameScopeAttrName(), maker.kOpDeviceAttrName())
    )


def test_names_and_indices():
    program = fluid.Program()
    with pytest.raises(ValueError, match="feeded_var_names"):
        program._prune_with_input([2], [])
    with pytest.raises(ValueError, match="needs a dtype"):
        program.global_block().create_parameter("w", [1], None)
    with fluid.program_guard(program):
        part = layers.assign(np.arange(6, dtype=np.float32).reshape(2, 3))[np.array(1)]
        with pytest.raises(ValueError, match="print_phase"):
            layers.Print(part, print_phase="sideways")
    np.testing.assert_array_equal(fluid.Executor().run(program, fetch_list=[part])[0], [3, 4, 5])
