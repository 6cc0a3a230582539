"""What layers share: parameter attributes, initialisation, names, the user's line, blocks that fail
half-way.
"""

from __future__ import annotations

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FluidError, FluidTypeError, FluidValueError
from fluidjax.layer_helper import LayerHelper

L = fluid.layers


@pytest.fixture(autouse=True)
def programs():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        yield main, startup


def test_one_attribute_object_serves_several_parameters():
    attr = fluid.ParamAttr(initializer=fluid.initializer.Constant(2.0))
    x = fluid.data("x", [-1, 3])
    L.fc(x, 4, param_attr=attr, bias_attr=attr)
    L.fc(x, 4, param_attr=attr, bias_attr=False)
    names = [p.name for p in fluid.default_main_program().all_parameters()]
    assert names == ["fc_0.w_0", "fc_0.b_0", "fc_1.w_0"]
    assert attr.name is None


@pytest.mark.parametrize(
    "given", [None, True, "w", fluid.initializer.Constant(1.0), fluid.regularizer.L2Decay(0.1)]
)
def test_what_stands_for_an_attribute(given):
    attr = fluid.ParamAttr._to_attr(given)
    assert isinstance(attr, fluid.ParamAttr)
    assert (
        given is None or given is True or given in (attr.name, attr.initializer, attr.regularizer)
    )


def test_false_and_lists_of_attributes():
    assert fluid.ParamAttr._to_attr(False) is False
    assert [a.name for a in fluid.ParamAttr._to_attr(["a", "b"])] == ["a", "b"]


def test_a_shared_parameter_of_another_shape_names_the_line():
    x, y = fluid.data("x", [-1, 3]), fluid.data("y", [-1, 5])
    L.fc(x, 4, param_attr="w")
    with pytest.raises(FluidValueError, match=r"'w' exists with shape \[3, 4\].*test_helper\.py"):
        L.fc(y, 4, param_attr="w")


def test_a_shared_parameter_is_initialised_once(programs):
    x = fluid.data("x", [-1, 3])
    for _ in range(3):
        L.fc(x, 4, param_attr="w", bias_attr=False)
    assert [op.type for op in programs[1].global_block().ops] == ["uniform_random"]


def test_helper_as_custom_layers_use_it(programs):
    x = fluid.data("x", [-1, 3])
    helper = LayerHelper("double", input=x, act="relu")
    out = helper.create_variable_for_type_inference(helper.input_dtype())
    helper.append_op(
        type="scale", inputs={"X": helper.input()}, outputs={"Out": out}, attrs={"scale": 2.0}
    )
    assert helper.append_activation(out).name == "double_0.tmp_1"
    assert [op.type for op in programs[0].global_block().ops] == ["scale", "relu"]
    with pytest.raises(FluidTypeError):
        LayerHelper("double", input=3).input()
    with pytest.raises(FluidValueError):
        helper.get_parameter("nothing")


def test_errors_name_the_users_line():
    with pytest.raises(FluidError, match=r"test_helper\.py"):
        L.elementwise_add(fluid.data("x", [2, 3]), fluid.data("y", [4, 5]))


def test_a_case_that_fails_leaves_no_conditional_block(programs):
    one = L.fill_constant([1], "float32", 1.0)
    with pytest.raises(ZeroDivisionError), L.Switch() as switch, switch.case(L.less_than(one, one)):
        raise ZeroDivisionError
    main = programs[0]
    assert main.current_block() is main.global_block()
    assert "conditional_block" not in [op.type for op in main.global_block().ops]


def test_clamp_without_a_lower_bound_keeps_negative_values(programs):
    L.clamp(fluid.data("x", [3]), max=L.fill_constant([1], "float32", 2.0))
    assert programs[0].global_block().ops[-1].attr("min") == -np.inf


def test_momentum_as_a_variable_reaches_batch_norm(programs):
    L.batch_norm(fluid.data("x", [-1, 3, 4, 4]), momentum=fluid.data("m", [1]))
    assert programs[0].global_block().ops[-1].input("MomentumTensor") == ["m"]


def test_random_crop_makes_its_seed(programs):
    out = L.random_crop(fluid.data("x", [-1, 3, 8, 8]), [3, 4, 4], seed=7)
    assert out.shape == (-1, 3, 4, 4)
    (op,) = programs[0].global_block().ops
    assert (
        op.input("Seed") == op.output("SeedOut") == ["random_crop_seed_0"]
        and op.attr("startup_seed") == 7
    )
    assert programs[1].global_block().ops[0].output("Out") == ["random_crop_seed_0"]


def test_uniform_random_keeps_its_dtype():
    assert L.uniform_random([2], "float64").dtype == fluid.data("d", [1], "float64").dtype


def test_init_on_cpu_marks_constants(programs):
    with fluid.initializer.init_on_cpu():
        assert fluid.initializer.force_init_on_cpu()
        L.create_parameter([2], "float32", is_bias=True)
    assert programs[1].global_block().ops[0].attr("force_cpu") is True
    assert not fluid.initializer.force_init_on_cpu()


def test_numbers_of_numpy_are_numbers():
    out = L.conv2d(
        fluid.data("x", [-1, 3, 8, 8]), 4, np.int64(3), padding=(np.int32(1), 1), bias_attr=False
    )
    assert out.shape == (-1, 4, 8, 8)


def test_modules_that_scripts_import_from():
    assert (
        L.nn.fc is L.fc
        and L.ops.relu is L.relu
        and L.tensor.concat is L.concat
        and L.loss.cross_entropy is L.cross_entropy
    )
    assert L.control_flow.Switch is L.Switch and L.control_flow.less_than is L.less_than
