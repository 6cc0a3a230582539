"""Fluid's small names: statistics of programs, averages, private names, texts, equal to what Paddle
1.8.5 gave.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
import fluidjax.paddle as paddle
import fluidjax.paddle.compat
from fluidjax.errors import FluidTypeError, FluidValueError
from fluidjax.loaders.collate import default_collate_fn

from .tools.small_names import CASES

RECORDED = json.loads((Path(__file__).parent / "data" / "small_names_1.8.5.json").read_text())
# What 1.8.5 asserts, or leaves to what happens next, is an error of the fitting kind here.
OTHERWISE = {"AssertionError": "ValueError", "Exception": "TypeError"}


def plain(value):
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return OTHERWISE.get(value, value) if isinstance(value, str) else value


def test_every_case_is_recorded():
    assert sorted(RECORDED) == sorted(CASES)


@pytest.mark.parametrize("name", sorted(CASES))
def test_as_1_8_5(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = plain(CASES[name](fluid, paddle))
    assert got == plain(RECORDED[name])


def test_run_check(capsys):
    fluid.install_check.run_check()
    printed = capsys.readouterr().out
    assert "It works on" in printed and "ready" in printed and "does not" not in printed


def test_collate():
    batch = [(np.arange(2), 1, {"a": 2.0, "b": "x"}), (np.arange(2) + 5, 3, {"a": 4.0, "b": "y"})]
    rows, numbers, named = default_collate_fn(batch)
    assert rows.tolist() == [[0, 1], [5, 6]] and numbers.tolist() == [1, 3]
    assert named["a"].tolist() == [2.0, 4.0] and named["b"] == ["x", "y"]
    for bad in ([], [(1, 2), (1,)], [{"a": 1}, {"b": 1}], [np.zeros(2), np.zeros(3)]):
        with pytest.raises(FluidValueError, match="default_collate_fn"):
            default_collate_fn(bad)
    with pytest.raises(FluidTypeError, match="not object"):
        default_collate_fn([object()])


def test_a_place_that_is_chosen_later():
    place = fluid.core.Place()
    with pytest.raises(FluidValueError, match="set_place"):
        place.device()
    place.set_place(fluid.CPUPlace())
    assert fluid.Executor(place).place == fluid.CPUPlace() and place.device().platform == "cpu"
    for wrong in (None, "cpu"):
        with pytest.raises(FluidTypeError):
            place.set_place(wrong)
    fluid.core._cuda_synchronize(fluid.CPUPlace())


def test_names_of_no_effect():
    assert fluid.core.is_compiled_with_mkldnn() is False and fluid.is_compiled_with_xpu() is False
    assert fluid.core.DenseTensor is fluid.LoDTensor
    fluid.core.save_op_version_info(fluid.Program().desc)
    with pytest.raises(FluidTypeError, match="desc"):
        fluid.core.save_op_compatible_info(fluid.Program())
    fluid.core.nvprof_nvtx_push("epoch")
    fluid.core.nvprof_nvtx_pop()
    with pytest.raises(FluidValueError, match="no range is open"):
        fluid.core.nvprof_nvtx_pop()


def test_decorators_keep_signatures():
    import inspect

    from fluidjax.wrapped_decorator import signature_safe_contextmanager, wrap_decorator

    @wrap_decorator(lambda f: lambda *args: f(*args) + 1)
    def add(x, y=2):
        "sum"
        return x + y

    @signature_safe_contextmanager
    def within(a):
        yield a

    assert add(1, 2) == 4 and str(inspect.signature(add)) == "(x, y=2)" and add.__doc__ == "sum"
    with within(3) as got:
        assert got == 3
    assert list(inspect.signature(within).parameters) == ["a"]
