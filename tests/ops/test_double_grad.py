"""Second gradients of conv2d, conv3d and instance_norm against jax differentiating the forward op
twice.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import fluidjax.ops  # noqa: F401
from fluidjax.ops.registry import GRAD, canonical, lookup

CASES = {
    "conv2d": (
        {"strides": [2, 1], "paddings": [1, 0], "groups": 2},
        {"Input": (2, 4, 5, 5), "Filter": (4, 2, 3, 3)},
    ),
    "conv3d": (
        {"strides": [1, 2, 1], "paddings": [1, 0, 0]},
        {"Input": (1, 2, 4, 5, 4), "Filter": (3, 2, 2, 3, 2)},
    ),
    "instance_norm": ({"epsilon": 1e-3}, {"X": (2, 3, 4, 2), "Scale": (3,), "Bias": (3,)}),
}


def setting(kind: str) -> tuple[Any, dict[str, Any], dict[str, Any], str]:
    attrs, shapes = CASES[kind]
    definition, rng = lookup(kind), np.random.default_rng(0)
    attrs = {n: canonical(definition, n, v) for n, v in attrs.items()}
    return (
        definition,
        attrs,
        {n: rng.uniform(-1, 1, s) for n, s in shapes.items()},
        definition.outputs[0].name,
    )


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", CASES)
def test_second_gradient(kind: str) -> None:
    definition, attrs, inputs, out = setting(kind)
    rng = np.random.default_rng(1)
    graddef = lookup(definition.grad.type).grad

    def both(inputs: dict[str, Any], d_out: Any, seeds: dict[str, Any]) -> Any:
        def first(values: dict[str, Any], d_y: Any) -> Any:
            grads = jax.vjp(lambda v: definition(v, attrs)[out], values)[1](d_y)[0]
            return sum((grads[n] * seeds[n]).sum() for n in values)

        origins = {
            **inputs,
            **definition(inputs, attrs),
            out + GRAD: d_out,
            **{n + GRAD + GRAD: s for n, s in seeds.items()},
        }
        given = {slot: origins[origin] for slot, origin in graddef.takes.items()}
        return *jax.grad(first, (0, 1))(inputs, d_out), lookup(graddef.type)(given, attrs)

    with jax.enable_x64(True):
        d_out = rng.uniform(
            -1, 1, jax.eval_shape(lambda v: definition(v, attrs)[out], inputs).shape
        )
        seeds = {n: rng.uniform(-1, 1, x.shape) for n, x in inputs.items()}
        wanted, wanted_d_out, got = jax.jit(both)(inputs, d_out, seeds)
    for slot, origin in graddef.gives.items():
        want = wanted_d_out if origin == out + GRAD else wanted[origin]
        np.testing.assert_allclose(got[slot], want, rtol=1e-10, atol=1e-12, err_msg=slot)


@pytest.mark.parametrize("kind", CASES)
def test_an_unwanted_gradient_counts_as_zero(kind: str) -> None:
    definition, attrs, inputs, out = setting(kind)
    graddef, first = lookup(definition.grad.type).grad, next(iter(inputs))

    def both(inputs: dict[str, Any]) -> Any:
        outputs = definition(inputs, attrs)
        origins = {
            **inputs,
            **outputs,
            out + GRAD: outputs[out],
            first + GRAD + GRAD: np.ones(inputs[first].shape),
        }
        given = {slot: origins.get(origin) for slot, origin in graddef.takes.items()}
        zeros = {
            slot: np.zeros(inputs[o.removesuffix(GRAD + GRAD)].shape)
            for slot, o in graddef.takes.items()
            if o.endswith(GRAD + GRAD)
        }
        same = lookup(graddef.type)(
            {**zeros, **{s: v for s, v in given.items() if v is not None}}, attrs
        )
        return lookup(graddef.type)(given, attrs), same

    with jax.enable_x64(True):
        got, same = jax.jit(both)(inputs)
    for slot, want in same.items():
        np.testing.assert_allclose(
            0 if got[slot] is None else got[slot], want, atol=1e-12, err_msg=slot
        )
