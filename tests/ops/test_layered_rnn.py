"""cudnn_lstm by the documented formula, gate by gate, of weights cut out of the flat vector by
hand; what both recurrences refuse.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import EnforceNotMet, FluidError, ShapeError
from fluidjax.ops.registry import lookup

from .samples import layered_rnn

D, H, N, T = 3, 2, 2, 3


def run(kind: str, inputs: dict[str, Any], attrs: dict[str, Any], key: int = 0) -> dict[str, Any]:
    definition = lookup(kind)
    with jax.enable_x64(True):
        return definition(inputs, {**definition.defaults, **attrs}, jax.random.key(key))


def by_hand(
    x: np.ndarray,
    flat: np.ndarray,
    layers: int,
    ways: int,
    first_h: np.ndarray,
    first_c: np.ndarray,
) -> tuple[Any, Any, Any]:
    """Every gate of every step by itself."""
    at = 0

    def taken(*shape: int) -> np.ndarray:
        nonlocal at
        at += int(np.prod(shape))
        return flat[at - int(np.prod(shape)) : at].reshape(shape)

    places = [(layer, way) for layer in range(layers) for way in range(ways)]
    matrices = {
        p: [taken(H, ways * H if p[0] else D) for _ in "ifgo"] + [taken(H, H) for _ in "ifgo"]
        for p in places
    }
    biases = {p: [taken(H) for _ in range(8)] for p in places}
    assert at == flat.size
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    last_h, last_c = [], []
    for layer in range(layers):
        outs = []
        for way in range(ways):
            h, c = first_h[layer * ways + way], first_c[layer * ways + way]
            out = np.zeros((len(x), x.shape[1], H))
            m, b = matrices[layer, way], biases[layer, way]
            for t in reversed(range(len(x))) if way else range(len(x)):
                i, f, g, o = (x[t] @ m[k].T + h @ m[4 + k].T + b[k] + b[4 + k] for k in range(4))
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = out[t] = sigmoid(o) * np.tanh(c)
            outs.append(out)
            last_h.append(h)
            last_c.append(c)
        x = np.concatenate(outs, -1)
    return x, np.stack(last_h), np.stack(last_c)


@pytest.mark.parametrize(
    "sample", [s for s in layered_rnn.SAMPLES if s.op == "cudnn_lstm"], ids=str
)
def test_cudnn_lstm_is_the_formula(sample: Any) -> None:
    count, ways = sample.attrs["num_layers"], 1 + sample.attrs["is_bidirec"]
    given = {slot: value.astype("float64") for slot, value in sample.inputs.items()}
    states = [given[s].reshape(count * ways, N, H) for s in ("InitH", "InitC")]
    wanted = by_hand(given["Input"], given["W"], count, ways, *states)
    found = run("cudnn_lstm", given, sample.attrs)
    for slot, value in zip(("Out", "last_h", "last_c"), wanted, strict=True):
        np.testing.assert_allclose(found[slot], value, rtol=1e-12, atol=1e-14)


@pytest.mark.slow
def test_dropout_is_between_layers_and_its_gradient_draws_the_same() -> None:
    """With nothing kept the second layer sees zeros; paired and literal gradients agree, and a
    fixed seed draws the same again.
    """
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, first = fluid.data("x", [T, N, D]), layers.fill_constant([2, N, H], "float32", 0.0)
        x.stop_gradient = False
        out, _, _ = layers.lstm(x, first, first, T, H, 2, dropout_prob=0.5)
        fixed, _, _ = layers.lstm(
            x,
            first,
            first,
            T,
            H,
            2,
            dropout_prob=0.5,
            seed=3,
            default_initializer=fluid.initializer.Constant(0.3),
        )
        slopes = fluid.gradients([layers.reduce_sum(out)], [x, main.all_parameters()[0]])
    names = (out.name, fixed.name, *(g.name for g in slopes))
    state = fluid.init_fn(startup)(jax.random.key(5))
    fed, keys = {"x": np.ones((T, N, D), "float32")}, [jax.random.key(i) for i in range(3)]
    # What a kernel keeps in its Cache is not state: nothing has set it.
    _, paired = fluid.step_fn(main, names)(state, fed, keys[0])
    _, literal = fluid.step_fn(main, names, literal=True)(state, fed, keys[0])
    for one, other in zip(paired, literal, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
    _, other = fluid.step_fn(main, names)(state, fed, keys[1])
    assert not np.array_equal(paired[0], other[0]) and np.array_equal(paired[1], other[1])
    sample = next(
        s for s in layered_rnn.SAMPLES if s.op == "cudnn_lstm" and s.attrs["num_layers"] == 2
    )
    nothing = run(
        "cudnn_lstm", sample.inputs, {**sample.attrs, "dropout_prob": 1.0, "is_test": False}
    )
    assert np.isfinite(nothing["Out"]).all()
    shown = run(
        "rnn",
        layered_rnn.rnn("GRU", 2).inputs,
        {"mode": "GRU", "num_layers": 2, "hidden_size": 2, "dropout_prob": 0.5},
    )
    assert set(np.asarray(shown["DropoutState"]).ravel().tolist()) <= {0, 1} and shown[
        "DropoutState"
    ].shape == (1, 3, 2, 2)


GRU = layered_rnn.rnn("GRU")


@pytest.mark.parametrize(
    ("change", "attrs", "message"),
    [
        (
            {"WeightList": GRU.inputs["WeightList"][:3]},
            {},
            r"takes 4 weights for 1 layers in 1 directions, not 3",
        ),
        (
            {"WeightList": [np.zeros((4, 2), "float32"), *GRU.inputs["WeightList"][1:]]},
            {},
            r"the weight of the input in layer 0 forwards",
        ),
        ({}, {"mode": "LSTM"}, r"takes 2 first states here, not 1"),
        ({}, {"mode": "ELMAN"}, r"knows the modes LSTM, GRU, RNN_TANH, RNN_RELU, not 'ELMAN'"),
        ({"PreState": [np.zeros((2, 2, 2), "float32")]}, {}, r"takes first states \[1, 2, 2\]"),
    ],
)
def test_rnn_refuses_what_does_not_fit(
    change: dict[str, Any], attrs: dict[str, Any], message: str
) -> None:
    block = fluid.Program().global_block()

    def variables(slot: str, value: Any) -> Any:
        many = value if isinstance(value, list) else [value]
        return [
            block.create_var(name=f"{slot}{i}", shape=v.shape, dtype=str(v.dtype), is_data=True)
            for i, v in enumerate(many)
        ]

    outs = {"Out": 1, "State": len({**GRU.inputs, **change}["PreState"]), "Reserve": 1}
    with pytest.raises((ShapeError, EnforceNotMet), match=message):
        block.append_op(
            "rnn", {slot: variables(slot, v) for slot, v in {**GRU.inputs, **change}.items()},
            {slot: [block.create_var(name=f"o{slot}{i}") for i in range(n)] for slot, n in outs.items()}, {**GRU.attrs, **attrs},
        )  # fmt: skip


def test_a_length_beyond_the_steps_is_refused() -> None:
    sample = layered_rnn.rnn("GRU", lengths=[1, 2], value=True)
    objections = list(
        lookup("rnn").traits.refuses(
            {**sample.inputs, "SequenceLength": np.array([1, 4], "int32")}, {}
        )
    )
    assert [bool(holds) for holds, _, _ in objections] == [
        True,
        False,
    ] and "up to 3 steps" in objections[0][1]


def test_layers_lstm_wants_a_flat_weight_that_fits() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, first = fluid.data("x", [T, N, D]), fluid.data("h", [3, N, H])
        with pytest.raises(
            FluidError, match=r"'cudnn_lstm' takes first states \[1, 2, 2\], not \[3, 2, 2\]"
        ):
            layers.lstm(x, first, first, T, H, 1)
