"""A script that catches what 1.8.5 raises catches what is raised here: the kinds below are those
that 1.8.5 was seen to raise for the same calls.
"""

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers, optimizer
from fluidjax.core import EnforceNotMet
from fluidjax.paddle.compat import get_exception_message


@pytest.fixture(autouse=True)
def _fresh():
    with (
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
        fluid.program_guard(fluid.Program(), fluid.Program()),
    ):
        yield


def _x():
    return fluid.data("x", [None, 2])


def _ones(*shape):
    return layers.ones(list(shape), "float32")


def _run(**given):
    _x()
    return fluid.Executor().run(**({"feed": {"x": np.ones((4, 2), np.float32)}} | given))


def _loss():
    return layers.mean(layers.fc(_x(), 2))


def _compiled():
    _loss()
    return fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel()


def _closed():
    exe = fluid.Executor()
    exe.close()
    exe.run(fluid.Program())


def _tensor():
    return fluid.create_lod_tensor([[1, 2], [3]], [[2, 2]], fluid.CPUPlace())


def _bare_op():
    fluid.default_main_program().global_block().append_op(type="mul", inputs={}, outputs={})


def _state(value):
    layers.create_parameter([2], "float32", name="w")
    fluid.Executor().run(fluid.default_startup_program())
    fluid.io.set_program_state(fluid.default_main_program(), {"w": value})


CASES = {
    "no rate": (AssertionError, lambda: optimizer.SGD(None)),
    "no momentum": (AssertionError, lambda: optimizer.Momentum(0.1, None)),
    "no coefficient": (AssertionError, lambda: fluid.regularizer.L2Decay(None)),
    "nothing within": (AssertionError, lambda: optimizer.LookaheadOptimizer(None)),
    "alpha": (AssertionError, lambda: optimizer.LookaheadOptimizer(optimizer.SGD(0.1), 1.5)),
    "k": (AssertionError, lambda: optimizer.LookaheadOptimizer(optimizer.SGD(0.1), 0.5, 0)),
    "loss of text": (AssertionError, lambda: optimizer.SGD(0.1).minimize("loss")),
    "loss of many": (AssertionError, lambda: optimizer.SGD(0.1).minimize(layers.fc(_x(), 2))),
    "no checkpoints": (
        AssertionError,
        lambda: optimizer.RecomputeOptimizer(optimizer.SGD(0.1)).minimize(_loss()),
    ),
    "compiled twice": (AssertionError, lambda: _compiled().with_data_parallel()),
    "shared with text": (
        AssertionError,
        lambda: fluid.ParallelExecutor(False, share_vars_from="x"),
    ),
    "flag of text": (AssertionError, lambda: fluid.default_main_program().to_string("yes")),
    "fetch of a number": (AssertionError, lambda: _run(fetch_list=3)),
    "two feeds": (AssertionError, lambda: _run(feed=[{}, {}], fetch_list=["x"])),
    "a field too few": (
        AssertionError,
        lambda: fluid.DataFeeder([_x()], fluid.CPUPlace()).feed([()]),
    ),
    "other lengths": (AssertionError, _tensor),
    "no input": (AssertionError, _bare_op),
    "no name of a scope": (AssertionError, lambda: fluid.name_scope("").__enter__()),
    "no name of a file": (
        AssertionError,
        lambda: fluid.io.save(fluid.default_main_program(), ""),
    ),
    "state of another shape": (AssertionError, lambda: _state(np.ones(3, np.float32))),
    "state of another dtype": (AssertionError, lambda: _state(np.ones(2))),
    "value of no parameter": (
        AssertionError,
        lambda: fluid.io.get_parameter_value(_x(), fluid.Executor()),
    ),
    "index": (EnforceNotMet, lambda: layers.slice(_x(), [5], [0], [1])),
    "shapes": (EnforceNotMet, lambda: layers.concat([_ones(2, 3), _ones(3, 4)], axis=1)),
    "nothing fed": (EnforceNotMet, lambda: _run(feed={}, fetch_list=["x"])),
    "fetch of no variable": (EnforceNotMet, lambda: _run(fetch_list=["nosuch"])),
    "closed": (RuntimeError, _closed),
    "two open sizes": (AssertionError, lambda: layers.reshape(_x(), [-1, -1])),
    "no sizes": (AssertionError, lambda: layers.reshape(_x(), [])),
    "a split that leaves a rest": (AssertionError, lambda: layers.split(_ones(2, 5), 2, 1)),
    "parts of none": (AssertionError, lambda: layers.expand(_x(), [2, 0])),
    "inner sizes": (AssertionError, lambda: layers.matmul(_ones(2, 3, 4), _ones(2, 3, 4))),
    "paddings of a group": (
        AssertionError,
        lambda: fluid.nets.img_conv_group(_ones(2, 3, 8, 8), [4, 4], 2, conv_padding=[1]),
    ),
    "an image of three dimensions": (EnforceNotMet, lambda: layers.conv2d(_ones(2, 4, 6), 4, 3)),
    "row": (EnforceNotMet, lambda: _ones(2, 3)[5]),
    "too many indices": (EnforceNotMet, lambda: _ones(2, 3)[0, 0, 0]),
    "a norm of at most 0": (EnforceNotMet, lambda: layers.clip_by_norm(_x(), 0.0)),
    "rows and ids": (
        EnforceNotMet,
        lambda: layers.scatter(_ones(2, 3), layers.ones([1], "int64"), _ones(2, 3)),
    ),
    "concat of nothing": (IndexError, lambda: layers.concat([])),
    "stack of nothing": (IndexError, lambda: layers.stack([])),
    "sum of nothing": (IndexError, lambda: layers.sum([])),
    "sums of nothing": (IndexError, lambda: layers.sums([])),
    "sequences of nothing": (EnforceNotMet, lambda: layers.sequence_concat([])),
    "a layer of nothing": (ValueError, lambda: layers.fc([], 2)),
    "no case": (IndexError, lambda: layers.case([])),
    "no numbered case": (IndexError, lambda: layers.switch_case(layers.ones([1], "int32"), [])),
    "axis": (IndexError, lambda: layers.unstack(_ones(2, 3), 5)),
    "axis from behind": (IndexError, lambda: layers.unstack(_ones(2, 3), -3)),
    "bytes without a program": (
        EnforceNotMet,
        lambda: fluid.Program.parse_from_string(b"abc"),
    ),
    "no model": (
        FileNotFoundError,
        lambda: fluid.io.load_inference_model(".", fluid.Executor(), "no such file"),
    ),
    "no parameters": (
        EnforceNotMet,
        lambda: fluid.io.load_params(fluid.Executor(), "no such folder"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_caught_by_what_catches_paddles(case):
    kind, call = CASES[case]
    with pytest.raises(kind) as caught:
        if case == "no parameters":
            layers.fc(_x(), 2)
        call()
    assert isinstance(caught.value, fluid.FluidError)


def test_parameters_that_the_folder_lacks(tmp_path):
    executor = fluid.Executor()
    layers.fc(_x(), 2, param_attr="saved", bias_attr=False)
    executor.run(fluid.default_startup_program())
    fluid.io.save_params(executor, str(tmp_path))
    layers.fc(_x(), 2, param_attr="later", bias_attr=False)
    with pytest.raises(EnforceNotMet, match="later"):
        fluid.io.load_params(executor, str(tmp_path))


def _loader(**given):
    return fluid.io.DataLoader.from_generator([_x()], capacity=2, **given)


def _batches():
    return iter([np.ones((2, 2), np.float32)])


ASSERTED = {
    "the loader's places": lambda: _loader().set_batch_generator(_batches),
    "the loader's source": lambda: list(_loader()()),
    "start of an iterable loader": lambda: _loader().start(),
    "reset of an iterable loader": lambda: _loader().reset(),
    "iterating one that is started": lambda: list(_loader(iterable=False)()),
    "a batch of no samples": lambda: _loader().set_sample_generator(
        _batches, 0, places=fluid.CPUPlace()
    ),
    "Uniform's bounds": lambda: fluid.initializer.Uniform(2.0, 1.0),
    "Uniform's diagonal": lambda: fluid.initializer.Uniform(-1.0, 1.0, 0, 4, 0),
    "Constant's value": lambda: fluid.initializer.Constant(None),
    "Normal's mean": lambda: fluid.initializer.Normal(None),
    "a list for an array": lambda: fluid.initializer.NumpyArrayInitializer([1]),
    "the name of a variable": lambda: fluid.executor._fetch_var(3),
    "the loss name": lambda: [
        optimizer.SGD(0.1).minimize(_loss()),
        fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(),
    ],
    "an exception's text": lambda: get_exception_message(None),
}


@pytest.mark.parametrize("call", ASSERTED.values(), ids=ASSERTED)
def test_what_185_asserts(call):
    with pytest.raises(AssertionError):
        call()


@pytest.mark.parametrize("key", [3, None])
def test_a_unique_names_key_is_a_string(key):
    with pytest.raises(TypeError, match="the key of a unique name is a string"):
        fluid.unique_name.generate(key)


@pytest.mark.parametrize("kind", ["GradientClipByNorm", "GradientClipByGlobalNorm"])
def test_a_clips_bound_is_a_number(kind):
    with pytest.raises(ValueError, match="is a number, not 'a'"):
        getattr(fluid.clip, kind)("a")


@pytest.mark.parametrize("scope", [3, {}])
def test_a_scope_is_a_scope(scope):
    main = fluid.default_main_program()
    calls = [
        lambda: _run(scope=scope),
        lambda: fluid.Executor().run_steps(main, [{}], [], scope=scope),
        lambda: fluid.executor._fetch_var("x", scope),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r"scope is a fluid\.Scope"):
            call()
