"""What the draws of ops of Paddle 2 and 3 look like, and what follows from them; they draw by keys
of their own.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

from fluidjax.errors import FluidError
from fluidjax.ops.registry import lookup

COUNT = 4000


def run(kind, inputs, attrs=None, key=3):
    definition = lookup(kind)
    with jax.enable_x64(True):
        found = definition(inputs, {**definition.defaults, **(attrs or {})}, jax.random.key(key))
        return {slot: None if value is None else np.asarray(value) for slot, value in found.items()}


@pytest.mark.parametrize(("kind", "inputs", "out", "mean", "spread"), [
    ("poisson", {"X": np.full(COUNT, 3.0, "float32")}, "Out", 3.0, 3.0),
    ("standard_gamma", {"x": np.full(COUNT, 2.0, "float32")}, "out", 2.0, 2.0),
    ("binomial", {"count": np.full(COUNT, 10), "prob": np.full(COUNT, 0.25, "float32")}, "out", 2.5, 1.875),
])  # fmt: skip
def test_means_and_variances(kind, inputs, out, mean, spread):
    drawn = run(kind, inputs)[out]
    assert drawn.mean() == pytest.approx(mean, rel=0.05) and drawn.var() == pytest.approx(
        spread, rel=0.12
    )
    assert kind == "standard_gamma" or (drawn == np.round(drawn)).all()
    assert drawn.dtype == (np.int64 if kind == "binomial" else np.float32) and (drawn >= 0).all()


def test_shares():
    drawn = run("dirichlet", {"Alpha": np.tile(np.array([1, 3], "float32"), (COUNT, 1))})["Out"]
    np.testing.assert_allclose(drawn.sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(drawn.mean(0), [0.25, 0.75], rtol=0.05)


def test_slopes_that_are_drawn():
    x = np.linspace(-1, 1, 40, dtype="float32")
    found = run("rrelu", {"X": x}, {"lower": 0.1, "upper": 0.3})
    noise = found["Noise"]
    np.testing.assert_array_equal(found["Out"], x * noise)
    assert (
        (noise[x >= 0] == 1).all()
        and ((noise[x < 0] >= 0.1) & (noise[x < 0] <= 0.3)).all()
        and np.ptp(noise[x < 0]) > 0.1
    )
    given = lookup("rrelu_grad")({"X": x, "Noise": noise, "Out@GRAD": np.ones_like(x)}, {})
    np.testing.assert_array_equal(given["X@GRAD"], noise)


def test_gumbel_softmax():
    x = np.log(np.tile(np.array([1, 2, 5], "float32"), (COUNT, 1)))
    soft, hard = (
        run("gumbel_softmax", {"X": x}, {"hard": h, "temperature": 0.5})["Out"]
        for h in (False, True)
    )
    np.testing.assert_allclose(soft.sum(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(hard, np.eye(3)[soft.argmax(1)])
    np.testing.assert_allclose(hard.mean(0), [1 / 8, 2 / 8, 5 / 8], atol=0.03)
    d = np.array([[-0.08, 0.3, 0.7]], "float32")
    # Paddle 3.3.1 gave this gradient beside this output
    out = np.array([[0.00724566, 0.6203368, 0.37241757]], "float32")
    grad = lookup("gumbel_softmax_grad")(
        {"Out": out, "Out@GRAD": d}, {"temperature": 0.5, "axis": -1}
    )["X@GRAD"]
    np.testing.assert_allclose(grad, out * (d - (out * d).sum()), rtol=1e-5)


def test_eigenvectors_and_their_gradient():
    """A V = V w; the gradient of |V| by differences."""
    x = np.array([[1, 2, 0], [3, -4, 1], [0.5, 0, 2]])
    found = run("eig", {"X": x})
    w, v = found["Eigenvalues"], found["Eigenvectors"]
    np.testing.assert_allclose(x @ v, v * w, atol=1e-12)
    weight = np.arange(9).reshape(3, 3) / 9

    def loss(a):
        return (np.abs(run("eig", {"X": a})["Eigenvectors"]) ** 2 * weight).sum()

    with jax.enable_x64(True):
        given = {"X": x, "Eigenvalues": w, "Eigenvectors": v, "Eigenvectors@GRAD": 2 * weight * v}
        grad = np.asarray(lookup("eig_grad")(given, {})["X@GRAD"])
    for at in ((0, 0), (1, 2), (2, 1)):
        step = np.zeros((3, 3))
        step[at] = 1e-6
        assert grad[at] == pytest.approx(
            (loss(x + step) - loss(x - step)) / 2e-6, rel=1e-4, abs=1e-8
        )


@pytest.mark.parametrize(("kind", "inputs", "attrs", "message"), [
    ("eig", {"X": np.ones((2, 3))}, {}, "takes square matrices"),
    ("rrelu", {"X": np.ones(2)}, {"lower": 0.5, "upper": 0.1}, "lower <= upper"),
    ("gumbel_softmax", {"X": np.ones(2)}, {"temperature": 0.0}, "a temperature above 0"),
    ("unpool3d", {"X": np.ones((1, 1, 1, 1, 1)), "Indices": np.zeros((1, 1, 1, 1, 1), "int32")},
     {"ksize": (2, 2, 2), "data_format": "NDHWC"}, "takes data_format NCDHW"),
])  # fmt: skip
def test_refused(kind, inputs, attrs, message):
    with pytest.raises(FluidError, match=message):
        run(kind, inputs, attrs)
