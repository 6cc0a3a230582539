"""Methods of programs, blocks, ops and variables that scripts of 1.x call, with the answers that
1.8.5 gives.
"""

import copy
import gc
import pickle

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.core import VarDesc, op_proto_and_checker_maker
from fluidjax.errors import EnforceNotMet, FluidError, FluidValueError


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
    for give in (plain._copy_param_info_from, plain._copy_dist_param_info_from):
        with pytest.raises(TypeError, match="not str"):
            give("program")


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


def _relu():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [-1, 4, 1])
        return main, x, layers.relu(x)


def test_the_setters_of_a_variables_desc():
    main, x, y = _relu()
    x.desc.set_need_check_feed(False)
    (got,) = fluid.Executor().run(main, feed={"x": -np.ones((4, 1), "float32")}, fetch_list=[y])
    assert got.shape == (4, 1) and not got.any()
    x.desc.set_shape([5, 6])
    x.desc.set_dtype(VarDesc.VarType.FP64)
    x.desc.set_lod_level(1)
    x.desc.set_persistable(True)
    told = x.shape, x.dtype, x.lod_level, x.persistable
    assert told == ((5, 6), VarDesc.VarType.FP64, 1, True)
    x.desc.set_type(VarDesc.VarType.SELECTED_ROWS)
    assert x.type == x.desc.type() == VarDesc.VarType.SELECTED_ROWS
    x.desc.set_name("z")
    assert main.global_block().var("z") is x and main.global_block().ops[0].input("X") == ["z"]
    held = main.desc.blocks[0].vars["z"]
    assert x.desc == held == copy.deepcopy(x.desc) and hash(x.desc) == hash(held)
    assert type(pickle.loads(pickle.dumps(x.desc))) is type(held) and repr(x.desc) == repr(held)
    before = x.desc
    del main, x, y
    gc.collect()
    with pytest.raises(FluidValueError, match="'z' does not exist any more"):
        before.set_shape([1])


def test_an_attribute_that_an_op_lacks_is_a_note():
    main, _, y = _relu()
    (op,) = main.global_block().ops
    for name, value in [("my_note", "z"), ("sizes", [1, 2]), ("big", 2**40), ("rate", 1.5)]:
        with pytest.warns(UserWarning, match=f"'relu' has no attribute '{name}'"):
            op._set_attr(name, value)
        assert op.attr(name) == value
    again = fluid.Program.parse_from_string(main.desc.serialize_to_string())
    for program in (main.clone(), again):
        assert program.global_block().ops[0].attr("my_note") == "z"
    (got,) = fluid.Executor().run(
        main, feed={"x": np.ones((1, 4, 1), "float32")}, fetch_list=[y.name]
    )
    assert got.sum() == 4
    assert op.desc.attr("op_device") == "" and op.desc.has_attr("op_device")
    with pytest.raises(FluidError, match="no attribute"):
        main.global_block().append_op("relu", {"X": "x"}, {"Out": y}, {"my_note": "z"})


def test_slots_that_an_op_type_has():
    main, *_ = _relu()
    (op,) = main.global_block().ops
    assert (op.input("X"), op.desc.input("Nope")) == (["x"], ())
    for ask, said in ((op.input, "input slot 'Y'"), (op.output, "output slot 'Y'")):
        with pytest.raises(EnforceNotMet, match=f"'relu' has no {said}"):
            ask("Y")
    with fluid.program_guard(main):
        layers.dropout(layers.fill_constant([2], "float32", 1.0), 0.5)
    assert main.global_block().ops[-1].input("Seed") == []  # it has one, which is empty


def test_what_a_declaration_leaves_out():
    block = fluid.Program().global_block()
    kinds = VarDesc.VarType
    array = block.create_var(name="a", type=kinds.LOD_TENSOR_ARRAY, dtype="float32")
    assert (array.shape, array.lod_level) == ((), 0)
    with fluid.unique_name.guard():
        w = block.create_parameter(shape=[2], dtype="float32")
    assert (w.name, w.shape) == ("_generated_var_0", (2,))
    with pytest.raises(FluidValueError, match="needs a dtype"):
        block.create_parameter(shape=[2])


def test_cuda_places_without_a_gpu():
    if not fluid.is_compiled_with_cuda():
        with pytest.raises(FluidValueError, match="no GPU; use cpu_places"):
            fluid.cuda_places()
        assert list(layers.device.get_places()) == fluid.cpu_places()
    place = fluid.core.Place()
    place.set_place(fluid.CPUPlace())
    assert place._equals(fluid.CPUPlace()) and fluid.CPUPlace()._equals(place)
    assert not place._equals(fluid.CUDAPlace(0))


def test_ops_with_blocks_have_no_device():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.device_guard("cpu"):
        i, end = (layers.fill_constant([1], "int64", n) for n in (0, 3))
        going = layers.less_than(i, end)
        loop = layers.While(going)
        with pytest.warns(UserWarning, match="no device of op 'while'"), loop.block():
            layers.less_than(layers.increment(i), end, cond=going)
        main = fluid.default_main_program()
        assert [op.attr("op_device") for op in main.blocks[0].ops] == ["cpu"] * 3 + [""]
        assert {op.attr("op_device") for op in main.blocks[1].ops} == {"cpu"}
        assert fluid.Executor().run(main, fetch_list=[i])[0].tolist() == [3]


def test_numbers_of_numpy_on_the_left_of_a_variable():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, i = fluid.data("x", [4]), fluid.data("i", [4], "int64")
        two = np.float32(2)
        found = [two * x, two + x, np.float64(2) - x, two / x, two**x, two > x, np.array(2.0) * x]
        found += [np.int64(2) + i, np.int32(2) * i]
        values = {"x": np.float32([1, 2, 3, 4]), "i": np.int64([1, 2, 3, 4])}
        got = fluid.Executor().run(feed=values, fetch_list=found)
    a, j = values["x"], values["i"]
    want = [2 * a, 2 + a, 2 - a, 2 / a, 2**a, a < 2, 2 * a, 2 + j, 2 * j]
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
        assert one.dtype == other.dtype


def test_an_array_of_numpy_beside_a_variable_is_refused():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [2])
        with pytest.raises(FluidError, match="takes a variable or a number"):
            np.float32([1, 2]) * x
