"""Layers of one function: what they are made with, keep and pass on."""

from __future__ import annotations

import inspect

import pytest

import fluidjax as fluid
from fluidjax.paddle import nn
from fluidjax.paddle.nn import functional as F
from fluidjax.paddle.nn.layer.function import FunctionLayer

from ..nets import fresh

LAYERS = sorted((c for c in FunctionLayer.__subclasses__()), key=lambda c: c.__name__)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda c: c.__name__)
def test_a_layer_is_made_with_what_its_function_takes(layer: type[nn.Layer]) -> None:
    """Behind its inputs: under the same names, in the same order, with the same defaults."""
    function = getattr(F, layer.__doc__.split()[0].rpartition(".")[2])
    made, whole = (
        [(p.name, p.default) for p in inspect.signature(f).parameters.values()]
        for f in (layer, function)
    )
    assert made == whole[-len(made) :] and len(made) < len(whole)
    assert getattr(nn, layer.__name__) is layer


def test_what_a_layer_keeps_can_be_changed_and_its_class_be_extended() -> None:
    class Steep(nn.ELU):
        def __init__(self) -> None:
            super().__init__(alpha=4.0)

    with fresh() as (main, _):
        x = fluid.data("x", [2, 3])
        steep = Steep()
        steep(x)
        steep.alpha = 0.5
        steep(x=x)
    ops = main.global_block().ops
    assert [op.attr("alpha") for op in ops] == [4.0, 0.5]
    assert list(inspect.signature(Steep).parameters) == []
    with pytest.raises(TypeError, match="unexpected keyword argument 'beta'"):
        nn.ELU(beta=1.0)
