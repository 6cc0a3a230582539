"""fluid.layers.distributions: values beside scipy.stats, and draws beside the moments that they
should have.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy  # stats is loaded where it is used

import fluidjax as fluid
from fluidjax import layers as L
from fluidjax.errors import UnsupportedError

LOW, HIGH = np.array([-1.0, 0.5], np.float32), np.array([2.0, 0.75], np.float32)
# both bounds, inside, outside
VALUE = np.array([[-1.0, 0.5], [0.0, 0.6], [2.0, 0.75], [3.0, -1e4]], np.float32)
LOGITS = np.array([[0.0, 0.0, 0.0], [1e4, -1e4, 3.0], [1.0, 2.0, 3.0]], np.float32)
OTHER = np.array([[1.0, 2.0, 3.0], [1e4, -1e4, 3.0], [-2.0, 0.0, 5.0]], np.float32)
MEANS = np.array([[1.0, 2.0], [-0.5, 0.25]], np.float32)
COVARIANCES = np.array([np.diag([1.0, 2.0]), np.diag([0.5, 3.0])], np.float32)


def evaluated(build, batch=None, **feed):
    """The values of what build(variables...) returns; batch: the first size that they declare, else
    that which is fed.
    """
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        fluid.default_main_program().random_seed = 7
        made = build(
            *(
                fluid.data(n, [batch or v.shape[0], *v.shape[1:]], str(v.dtype))
                for n, v in feed.items()
            )
        )
        return fluid.Executor().run(feed=feed, fetch_list=[made])[0]


def softmax(x):
    e = np.exp(x.astype("float64") - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_uniform():
    with np.errstate(divide="ignore"):
        expected = scipy.stats.uniform(LOW, HIGH - LOW).logpdf(VALUE)
    inside = (VALUE > LOW) & (VALUE < HIGH)  # Fluid's interval is open
    found = evaluated(lambda lo, hi, v: L.Uniform(lo, hi).log_prob(v), lo=LOW, hi=HIGH, v=VALUE)
    np.testing.assert_allclose(found, np.where(inside, expected, -np.inf), rtol=1e-6)
    found = evaluated(lambda: L.Uniform([-1.0, 0.5], [2.0, 0.75]).entropy())
    np.testing.assert_allclose(found, scipy.stats.uniform(LOW, HIGH - LOW).entropy(), rtol=1e-6)


def test_normal():
    loc, scale = LOW, HIGH
    found = evaluated(lambda a, b, v: L.Normal(a, b).log_prob(v), a=loc, b=scale, v=VALUE)
    np.testing.assert_allclose(found, scipy.stats.norm(loc, scale).logpdf(VALUE), rtol=1e-5)
    np.testing.assert_allclose(
        evaluated(lambda: L.Normal(0.25, 3.0).entropy()),
        scipy.stats.norm(0.25, 3.0).entropy(),
        rtol=1e-6,
    )
    found = evaluated(lambda: L.Normal([0.0, 1.0], [2.0, 0.5]).kl_divergence(L.Normal(1.0, 3.0)))
    by_sum = [
        _divergence(scipy.stats.norm(m, s), scipy.stats.norm(1.0, 3.0))
        for m, s in ((0.0, 2.0), (1.0, 0.5))
    ]
    np.testing.assert_allclose(found, by_sum, rtol=1e-4)


def _divergence(p, q):
    x = np.linspace(-30, 30, 60001)
    return np.sum(p.pdf(x) * (p.logpdf(x) - q.logpdf(x))) * (x[1] - x[0])


def test_categorical():
    found = evaluated(lambda x: L.Categorical(x).entropy(), x=LOGITS)
    np.testing.assert_allclose(
        found[:, 0], scipy.stats.entropy(softmax(LOGITS), axis=-1), rtol=1e-5, atol=1e-6
    )
    found = evaluated(
        lambda x, y: L.Categorical(x).kl_divergence(L.Categorical(y)), x=LOGITS, y=OTHER
    )
    np.testing.assert_allclose(
        found[:, 0],
        scipy.stats.entropy(softmax(LOGITS), softmax(OTHER), axis=-1),
        rtol=1e-5,
        atol=1e-6,
    )


def test_multivariate_normal():
    p, q = (scipy.stats.multivariate_normal(m, c) for m, c in zip(MEANS, COVARIANCES, strict=True))
    found = evaluated(
        lambda m, c: L.MultivariateNormalDiag(m, c).entropy(), m=MEANS[0], c=COVARIANCES[0]
    )
    np.testing.assert_allclose(found, p.entropy(), rtol=1e-6)
    grid = np.stack(np.meshgrid(*[np.linspace(-15, 15, 601)] * 2), -1)
    expected = np.sum(p.pdf(grid) * (p.logpdf(grid) - q.logpdf(grid))) * 0.05**2
    found = evaluated(
        lambda a, s, b, t: L.MultivariateNormalDiag(a, s).kl_divergence(L.MultivariateNormalDiag(b, t)),
        a=MEANS[0], s=COVARIANCES[0], b=MEANS[1], t=COVARIANCES[1],
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize(
    "kind, low, high, shape, expected, deviation",
    [
        # on [-1, 3): numbers draw from low - (high - low), as in 1.8.5
        (L.Uniform, 1.0, 3.0, [4000], 1.0, 2 / 3**0.5),
        (L.Uniform, "variable", "variable", [4000], 2.0, 1 / 3**0.5),
        (L.Normal, 1.0, 3.0, [4000], 1.0, 3.0),
        (L.Normal, "variable", "variable", [4000], 1.0, 3.0),
    ],
)
def test_draws_have_their_moments(kind, low, high, shape, expected, deviation):
    feed = (
        {"a": np.full((3, 2), 1.0, np.float32), "b": np.full((3, 2), 3.0, np.float32)}
        if low == "variable"
        else {}
    )
    found = evaluated(
        lambda *given: kind(*(given or (low, high))).sample(shape, seed=3), -1, **feed
    )
    assert found.shape == (4000, 3, 2) if feed else (4000,)
    np.testing.assert_allclose(found.mean(), expected, atol=0.15)
    np.testing.assert_allclose(found.std(), deviation, atol=0.1)


def test_what_a_distribution_lacks_says_so():
    with pytest.raises(UnsupportedError, match="Categorical has no sample"):
        L.Categorical([1.0]).sample()
