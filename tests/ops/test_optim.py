"""Five steps of each optimizer op against Paddle 1.8.5, and the noise of dpsgd."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from fluidjax.ops.later import SLOTS
from fluidjax.ops.registry import canonical, lookup

RECORD = json.loads((Path(__file__).parent.parent / "data" / "optimizers.json").read_text())
BETAS = {"beta1": 0.9, "beta2": 0.999}
# name: op, attributes; every accumulator starts at 0
RUNS = {
    "adam": ("adam", BETAS),
    "adam_bigeps": ("adam", {"epsilon": 1e-2}),
    "adagrad": ("adagrad", {}),
    "rmsprop": ("rmsprop", {"decay": 0.95, "epsilon": 1e-6}),
    "rmsprop_m": ("rmsprop", {"decay": 0.95, "epsilon": 1e-6, "momentum": 0.9, "centered": True}),
    "momentum": ("momentum", {"mu": 0.9}),
    "nesterov": ("momentum", {"mu": 0.9, "use_nesterov": True}),
    "adadelta": ("adadelta", {"epsilon": 1e-6, "rho": 0.95}),
    "adamax": ("adamax", BETAS),
    "lamb": ("lamb", {"weight_decay": 0.01}),
    "lars": ("lars_momentum", {"mu": 0.9, "lars_coeff": 0.001, "lars_weight_decay": 0.0005}),
    "ftrl": ("ftrl", {}),
    "decayed": ("decayed_adagrad", {"decay": 0.95, "epsilon": 1e-6}),
}


def run(kind, attrs, inputs):
    definition = lookup(kind)
    attrs = {n: canonical(definition, n, v) for n, v in attrs.items()}
    key = jax.random.key(0) if definition.random else None
    return definition, definition(inputs, attrs, key)


def test_every_recorded_optimizer_is_run():
    assert set(RUNS) == set(RECORD["w_after_step"])


@pytest.mark.parametrize("name", RUNS)
def test_five_steps(name):
    kind, attrs = RUNS[name]
    slots = [
        s.name
        for s in lookup(kind).inputs
        if not s.name.endswith("Tensor") and s.name not in SLOTS.get(kind, ())
    ]
    state = {slot: np.zeros((3, 1), np.float32) for slot in slots}
    state["Param"] = np.ones((3, 1), np.float32)
    if "LearningRate" in slots:
        state["LearningRate"] = np.float32([0.1])
    for n, beta in ((1, 0.9), (2, 0.999)):
        if f"Beta{n}Pow" in state:
            state[f"Beta{n}Pow"] = np.float32([beta])
    for grad, wanted in zip(RECORD["gradients"], RECORD["w_after_step"][name], strict=True):
        state["Grad"] = np.float32(grad).reshape(3, 1)
        definition, outs = run(kind, attrs, state)
        for out, slot in definition.inplace.items():
            if slot in state:
                state[slot] = outs[out]
        if kind == "adamax":  # its optimizer appends a scale op for this
            state["Beta1Pow"] = state["Beta1Pow"] * np.float32(0.9)
        np.testing.assert_allclose(np.ravel(state["Param"]), wanted, rtol=1e-6, atol=1e-6)


def test_dpsgd_adds_one_number_to_the_whole_parameter():
    inputs = {"Param": np.zeros((4, 5), np.float32), "Grad": np.zeros((4, 5), np.float32)}
    inputs["LearningRate"] = np.float32([1.0])
    _, outs = run("dpsgd", {"sigma": 2.0, "batch_size": 4.0}, inputs)
    assert np.unique(outs["ParamOut"]).size == 1
    definition = lookup("dpsgd")
    attrs = {"sigma": 2.0, "batch_size": 4.0, "clip": 1.0}
    keys = jax.random.split(jax.random.key(1), 4000)
    noise = np.asarray(jax.vmap(lambda key: definition(inputs, attrs, key)["ParamOut"][0, 0])(keys))
    assert abs(noise.mean()) < 4 * 0.5 / 4000**0.5
    assert abs(noise.std() - 0.5) < 0.03


def test_dpsgd_with_a_seed_repeats_itself():
    inputs = {
        "Param": np.ones(3, np.float32),
        "Grad": np.ones(3, np.float32),
        "LearningRate": np.float32([0.1]),
    }
    definition = lookup("dpsgd")
    first, second = (definition(inputs, {"seed": 5}, jax.random.key(k))["ParamOut"] for k in (1, 2))
    np.testing.assert_array_equal(first, second)
