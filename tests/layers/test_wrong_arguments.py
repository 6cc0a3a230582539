"""Arguments of another kind than a layer takes: what Paddle 1.8.5 refuses is refused, by an error
that is a TypeError where its is.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FluidError
from fluidjax.ir.parse import parse

from . import cases, wrong

RECORDED = json.loads(
    gzip.decompress(
        (Path(__file__).parents[1] / "data" / "wrong_arguments_1.8.5.json.gz").read_bytes()
    )
)


def outcome(put, kind):
    """What the call raises, or None."""
    with fluid.unique_name.guard(), fluid.program_guard(fluid.Program(), fluid.Program()):
        try:
            eval(put(kind), cases.namespace(fluid))
        except Exception as exc:
            return exc
    return None


def failures():
    """(argument, kind) -> what 1.8.5 raises, what is raised here, where that does not do."""
    found = {}
    for key, put in wrong.arguments():
        for error, kinds in RECORDED.get(key, {}).items():
            for kind in kinds:
                exc = outcome(put, kind)
                fits = isinstance(
                    exc, TypeError if error == "TypeError" else TypeError | ValueError
                )
                if not (fits and isinstance(exc, FluidError)) and (key, kind) not in EXPECTED:
                    found[key, kind] = (error, exc)
    return found


# What is taken here though 1.8.5 refuses it, or refused by its shape and not by its kind.
EXPECTED = {
    # the number of a dtype is one
    *((f"{name}|{at}", "int") for name, at in (
        ("L.cast", 1), ("L.create_global_var", 2), ("L.create_tensor", 0), ("L.data", "dtype"), ("L.eye", "dtype"), ("L.fill_constant", 1),
        ("L.fill_constant_batch_size_like", 2), ("L.full", "dtype"), ("L.full_like", "dtype"), ("L.log_softmax", "dtype"), ("L.ones", 1),
        ("L.randint", "dtype"), ("L.randperm", "dtype"), ("L.sequence_mask", "dtype"), ("L.zeros", 1),
        ("fluid.contrib.layers.tdm_child", "dtype"),
        ("fluid.contrib.layers.tdm_sampler", "dtype"), ("fluid.data", 2), ("fluid.data", "dtype"))),
    # a variable that holds a shape does for these too
    ("L.ones|0", "ivar"), ("L.zeros|0", "ivar"), ("L.scatter_nd|2", "ivar"),
    # one integer stands for a list of them
    *((f"L.{name}", kind) for kind in ("int", "bool") for name in (
        "deformable_roi_pooling|5", "deformable_roi_pooling|8", "deformable_roi_pooling|group_size", "flip|1", "roll|1", "roll|dims")),
    # None is the default
    *((f"L.{name}", "None") for name in (
        "data_norm|slot_dim", "diag_embed|2", "diag_embed|3", "trace|2", "trace|3", "pool3d|ceil_mode", "multi_box_head|5",
        "multi_box_head|6")),
    # of another shape, or too few of them, before it is of another dtype
    ("L.clamp|1", "ivar"), ("L.clamp|2", "ivar"), ("L.clamp|min", "ivar"), ("L.pow|1", "ivar"), ("L.pow|factor", "ivar"),
    ("L.collect_fpn_proposals|1", "arrays"), ("L.collect_fpn_proposals|2", "float"), ("L.distribute_fpn_proposals|2", "float"),
    ("L.create_global_var|1", "array"), ("L.dropout|dropout_implementation", "arrays"), ("L.nce|custom_dist", "str"),
    ("L.roll|dims", "arrays"), ("L.layer_norm|begin_norm_axis", "int"),
    # without a meaning in the recorded call
    *(("L.data_norm|enable_scale_and_shift", kind) for kind in ("arrays", "var", "ivar")), ("L.data_norm|param_attr", "array"),
    ("L.hsigmoid|is_sparse", "array"), ("L.GRUCell|3", "array"), ("L.GRUCell|4", "array"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # of comparisons used as truth values
def test_what_1_8_5_refuses_is_refused():
    assert not failures()


def test_a_function_of_the_users_raises_what_it_raises():
    def mine():
        raise TypeError("mine")

    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [1], "bool")
        with pytest.raises(TypeError, match=r"^mine$"):
            fluid.layers.cond(x, mine, mine)


def test_names_that_functions_take():
    """What no layer is: 1.8.5's exceptions of append_backward, gradients, create_parameter,
    to_string.
    """
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [2, 3])
        x.stop_gradient = False
        y = fluid.layers.fc(x, 2)
        for wrong_call in (
            lambda: fluid.append_backward(fluid.layers.mean(y), no_grad_set="test"),
            lambda: fluid.gradients(y, x, target_gradients="x"),
            lambda: fluid.gradients(y, x, target_gradients=["x"]),
            lambda: fluid.gradients(y, x, no_grad_set="x"),
            lambda: fluid.layers.create_parameter([2.0], "float32"),
            lambda: fluid.layers.create_global_var([2.0], 1.0, "float32"),
            lambda: fluid.layers.create_parameter([2], "float32", attr="w"),
            lambda: main.global_block().create_var(name="v", shape=[2.5], dtype="float32"),
            lambda: main.global_block().create_var(
                name="v", shape=[2], dtype="float32", persistable="no"
            ),
            lambda: main.global_block().create_var(
                name="v", shape=[2], dtype="float32", lod_level="1"
            ),
        ):
            with pytest.raises(TypeError) as caught:
                wrong_call()
            assert isinstance(caught.value, FluidError)
        with pytest.raises(ValueError, match="at least one target"):
            fluid.gradients([], x)
        for dtype in (None, "float33", object):
            with pytest.raises(ValueError, match="not a dtype"):
                fluid.layers.create_parameter([2], dtype)
        with pytest.raises(AssertionError, match="at least one dimension"):
            fluid.layers.randn([])
        one = fluid.layers.create_global_var([1], np.array([2.5], "float32"), "float32")
        assert one.shape == (1,)


def test_details_are_comments():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        fluid.layers.fc(fluid.data("x", [2, 3]), 2, param_attr=fluid.ParamAttr(learning_rate=0.5))
    short, long = main.to_string(True), main.to_string(True, with_details=True)
    assert long.startswith(short) and parse(long) == parse(short) == main.desc
    assert "# fc_0.w_0: error_clip=None, optimize_attr={'learning_rate': 0.5}" in long
    block = main.global_block()
    for owner in (block, block.var("x"), block.var("fc_0.w_0")):
        assert len(owner.to_string(True)) < len(owner.to_string(True, with_details=True))


def test_sizes_of_windows_are_told():
    """Strides, dilations and windows below 1, of every layer with windows: which, and not that
    something else does not fit.
    """
    layers = fluid.layers
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, x3 = fluid.data("x", [2, 3, 8, 8]), fluid.data("x3", [2, 3, 8, 8, 8])
        for call, told in (
            (
                lambda: layers.conv2d(x, 4, 3, stride=[-1, 1]),
                r"strides are numbers from 1, not \[-1, 1\]",
            ),
            (
                lambda: layers.conv2d(x, 4, 3, stride=0, padding="SAME"),
                r"strides are numbers from 1, not \[0, 0\]",
            ),
            (
                lambda: layers.conv2d(x, 4, 3, dilation=[0, 1]),
                r"dilations are numbers from 1, not \[0, 1\]",
            ),
            (
                lambda: layers.conv3d(x3, 4, 3, stride=0),
                r"strides are numbers from 1, not \[0, 0, 0\]",
            ),
            (
                lambda: layers.conv2d_transpose(x, 4, filter_size=3, stride=[-1, 1]),
                r"strides are numbers from 1, not \[-1, 1\]",
            ),
            (
                lambda: layers.conv2d_transpose(x, 4, filter_size=3, dilation=0),
                r"dilations are numbers from 1, not \[0, 0\]",
            ),
            (
                lambda: layers.pool2d(x, 2, pool_stride=[-1, 1]),
                r"strides are numbers from 1, not \[-1, 1\]",
            ),
            (lambda: layers.pool2d(x, [0, 0]), r"ksize are numbers from 1, not \[0, 0\]"),
            (lambda: layers.pool3d(x3, 2, pool_stride=0), r"strides are numbers from 1"),
            (lambda: layers.unfold(x, 2, strides=0), r"strides are numbers from 1"),
            (
                lambda: layers.unfold(x, 2, dilations=[1, -1]),
                r"dilations are numbers from 1, not \[1, -1\]",
            ),
            (lambda: layers.im2sequence(x, stride=0), r"strides are numbers from 1"),
        ):
            with pytest.raises(ValueError, match=told):
                call()


def test_what_full_writes_is_a_variable() -> None:
    """Its third argument is not a dtype, as in 1.8.5."""
    with pytest.raises(TypeError, match="full's out is a None or Variable, not 'int32'"):
        fluid.layers.full([2], 1.9, "int32")


# values of the right kind that 1.8.5 refuses while the program is built, and what is said
REFUSED = {
    "L.fc(x, 2, num_flatten_dims=0)": "x_num_col_dims and y_num_col_dims of 1 or more, not 0",
    "L.embedding(ids, [10])": r"table of an embedding is \[height, width\], not \[10\]",
    "L.topk(x, 0)": "'top_k' takes a k of 1 or more, not 0",
    "L.topk(x, -1)": "'top_k' takes a k of 1 or more, not -1",
    "L.diag(x)": r"'diag' takes a Diagonal of 1 dimension, not \[4, 6\]",
    "L.uniform_random([2], min=2., max=2.)": "takes a min below max, not 2.0 and 2.0",
    "L.increment(L.zeros([2], 'float32'))": r"increment takes one element, not \[2\]",
    "L.increment(x, in_place=False)": r"increment takes one element, not \[4, 6\]",
    "L.exponential_decay(1., 0, .5)": "divides by its decay_steps, which cannot be 0",
    "L.natural_exp_decay(1., 0., .5)": "divides by its decay_steps",
    "L.polynomial_decay(1., 0)": "divides by its decay_steps",
    "L.cosine_decay(1., 0, 5)": "divides by its step_each_epoch",
    "L.cosine_decay(1., 5, 0)": "divides by its epochs",
    "L.linear_lr_warmup(.5, 0, .1, .3)": "divides by its warmup_steps",
    "L.create_parameter([2, 3], 'float32', default_initializer=array(2))": r"array has shape \[2\], but .* has \[2, 3\]",
    "L.create_parameter([6], 'float32', default_initializer=array(3, 2))": r"array has shape \[3, 2\]",
    "sgd(no_grad_set='x')": "no_grad_set is a set, a list or a tuple",
    "append(loss, checkpoints=3)": "checkpoints is a list of variables, not 3",
    "append(loss, checkpoints=loss)": "checkpoints is a list of variables, not",
}  # fmt: skip


@pytest.mark.parametrize("call", REFUSED)
def test_values_that_1_8_5_refuses(call):
    with fluid.unique_name.guard(), fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [4, 6])
        loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        names = {
            "L": fluid.layers,
            "x": x,
            "loss": loss,
            "ids": fluid.data("ids", [4, 1], "int64"),
            "array": lambda *shape: fluid.initializer.NumpyArrayInitializer(np.ones(shape)),
            "sgd": lambda **given: fluid.optimizer.SGD(0.1).minimize(loss, **given),
            "append": fluid.backward.append_backward,
        }
        with pytest.raises(FluidError, match=REFUSED[call]):
            eval(call, names)
