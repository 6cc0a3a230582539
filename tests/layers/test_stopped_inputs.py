"""The inputs that get no gradient because a layer says so: as in Paddle 1.8.5, in every case that
it has of such layers.
"""

from __future__ import annotations

import pytest

import fluidjax as fluid

from ..nets import fresh
from . import cases

# What 1.8.5 made of the data variables of all cases of cases.py, each with stop_gradient False to
# begin with: those that are True then.
STOPPED = {
    "concat tensor": "x2", "crop_tensor list": "x1 x2", "crop_tensor var": "x1 x2", "expand list": "x1", "expand tensor": "x1",
    "fill_constant list": "x0", "fill_constant tensor": "x0", "fluid.one_hot tensor": "x1", "gaussian_random tensor": "x0 x1",
    "label_smooth": "x0", "label_smooth prior": "x0", "one_hot tensor": "x1", "pow factor": "x2", "reshape actual": "x1",
    "reshape list": "x1", "reshape tensor": "x1", "sequence_slice": "x1 x2", "sequence_unpad": "x1 x3", "slice list": "x1 x2",
    "slice partial": "x1", "slice tensor": "x1", "split dim tensor": "x1", "split tensor": "x1", "strided_slice list": "x1 x2",
    "strided_slice partial": "x1", "strided_slice tensor": "x1 x2 x3", "uniform_random tensor": "x0 x1", "unsqueeze list": "x1",
    "unsqueeze tensor": "x1",
    "scale": "", "matmul": "", "cross_entropy": "", "smooth_l1": "", "gather": "", "dropout": "",
}  # fmt: skip


@pytest.mark.parametrize("name", STOPPED)
def test_inputs_without_a_gradient(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with fresh() as (main, _):
        declare = fluid.data

        def flowing(*args: object, **named: object) -> fluid.Variable:
            var = declare(*args, **named)
            var.stop_gradient = False
            return var

        monkeypatch.setattr(fluid, "data", flowing)
        eval(cases.CASES[name], cases.namespace(fluid))
        stopped = [
            v.name for v in main.global_block().vars.values() if v.is_data and v.stop_gradient
        ]
    assert sorted(stopped) == STOPPED[name].split()
