"""A gradient op and the forward op that it differentiates: found by names, and a mismatch is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import VerifyError
from fluidjax.ir.desc import FrozenMap
from fluidjax.ir.gradients import Gradients
from fluidjax.ir.verify import verify
from fluidjax.ops.registry import REGISTRY, lookup
from tests.golden import desc_from_golden

DATA = Path(__file__).parents[1] / "data"


def trained(kind: str, **more):
    """A training program whose hidden layer's activation is `kind`."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        hidden = getattr(layers, kind)(layers.fc(fluid.data("x", [None, 4]), 3), **more)
        loss = layers.mean(layers.batch_norm(layers.dropout(hidden, 0.5)))
        fluid.optimizer.SGD(0.1).minimize(loss)
    return main


def with_type(main, old: str, new: str):
    """The program with the forward ops of one type made another's."""
    for op in main.global_block().ops:
        if op.type == old:
            op.change(
                type=new,
                attrs=FrozenMap(
                    {n: v for n, v in op.desc.attrs.items() if lookup(new).attr_type(n)}
                ),
            )
    return main.desc


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("relu", "leaky_relu", "leaky_relu_grad"),  # takes Out
        ("gelu", "relu", "relu_grad"),  # takes X: Out is known by its gradient's name
        ("leaky_relu", "tanh", "tanh_grad"),
        ("tanh", "sign", "scale"),  # whose gradient is an ordinary op
    ],
)
def test_a_forward_op_of_another_type_is_told(old, new, told):
    desc = with_type(trained(old), old, new)
    with pytest.raises(VerifyError) as caught:
        verify(desc, lookup)
    said = str(caught.value)
    assert (
        f"'{old}_grad' (" in said
        and f"differentiates op '{old}'" in said
        and f"made by op '{new}' (" in said
    )
    assert f"differentiated by {told}," in said and "before minimize or append_backward" in said


def test_gradient_ops_are_paired_with_what_they_differentiate():
    desc = trained("relu").desc
    verify(desc, lookup)
    pairs = {
        (gradient.type, forward.type)
        for gradient, forward in Gradients(desc, lookup).pairs.values()
    }
    kinds = ("relu", "elementwise_add", "mul", "dropout", "batch_norm", "mean")
    assert pairs == {(f"{kind}_grad", kind) for kind in kinds}


def test_a_name_that_is_written_again_is_no_mismatch():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        hidden = layers.relu(layers.fc(fluid.data("x", [None, 4]), 3))
        loss = layers.mean(hidden)
        layers.assign(layers.tanh(hidden), hidden)
        fluid.optimizer.SGD(0.1).minimize(loss)
    verify(main.desc, lookup)


def programs(value):
    """The recorded programs within a JSON value."""
    if isinstance(value, dict) and {"blocks", "random_seed"} <= value.keys():
        yield desc_from_golden(value)
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from programs(part)


class Unknown:
    forward = grad = None
    reuse = ()


def test_programs_of_paddle_have_none():
    found = [
        Gradients(desc, lambda kind: REGISTRY.get(kind, Unknown))
        for folder in ("golden", "golden_extra", "jobs", "parallel", "memory")
        for path in sorted((DATA / folder).glob("*.json"))
        for desc in programs(json.loads(path.read_text()))
    ]
    assert [m for gradients in found for m in gradients.mismatches] == []
    assert sum(len(gradients.pairs) for gradients in found) > 400
