"""A traced step in stages: what they compute together is what the step computes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluidjax.lower.stages import Stages, divided

TABLE = np.arange(6.0, dtype=np.float32)


def step(state: list[Any], feed: Any) -> Any:
    """Two variables, of which the second stays; an output twice, one of a constant, one that a later stage reads too."""
    a, b = state
    h = jnp.tanh(a * feed + jnp.arange(6.0)) + TABLE
    g = jnp.cos(h) * jax.lax.platform_dependent(h, cpu=jnp.sin, default=jnp.exp)
    unused = jnp.exp(g) + 1
    new = a - 0.1 * (g + h)
    del unused
    return [new, b], (g, g, jnp.zeros(3), h, 7, jnp.arange(4))


def run(stages: Stages, leaves: list[Any]) -> list[Any]:
    values = dict(enumerate([*leaves, *stages.consts]))
    for stage in stages.stages:
        given = [values[n] for n in stage.takes]
        for n in stage.drops:
            del values[n]
        values.update(zip(stage.makes, stage.function(*given), strict=True))
    return [values[n] for n in stages.results]


ARGS: tuple[Any, Any] = ([np.linspace(-1, 1, 6, dtype=np.float32), np.ones(2, np.float32)], np.float32(0.5))


@pytest.mark.parametrize("count", [1, 3, 9])
def test_stages_are_the_step(count: int) -> None:
    traced = jax.jit(step).trace(*ARGS)
    stages = divided(traced.jaxpr, count, 2)
    assert stages is not None and len(stages.stages) == count
    wanted = jax.tree.leaves(jax.jit(step)(*ARGS))
    found = run(stages, jax.tree.leaves(ARGS))
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        assert jnp.asarray(x).dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6)


def test_who_may_overwrite_what() -> None:
    """The variable that changes, by the stage that reads it last, if it makes the new value; the feed never."""
    stages = divided(jax.jit(step).trace(*ARGS).jaxpr, 3, 2)
    assert stages is not None
    given = [stage.takes[i] for stage in stages.stages for i in stage.donates]
    assert given[0] == 0 and set(given) <= {0, 1}
    at = next(i for i, stage in enumerate(stages.stages) if stage.donates)
    assert all(0 not in stage.takes for stage in stages.stages[at + 1 :])


def test_what_no_argument_is_in_is_made_where_it_is_read() -> None:
    """No table of zeros goes from stage to stage, and no choice of a platform becomes one that is made while the step runs."""

    def twice(x: Any) -> Any:
        big = jnp.broadcast_to(jnp.arange(4.0), (50, 4))
        for _ in range(6):
            x = jax.lax.platform_dependent(x, cpu=jnp.sin, default=jnp.exp) + big.sum()
        return x

    stages = divided(jax.jit(twice).trace(np.float32(1)).jaxpr, 3, 0)
    assert stages is not None
    assert [t.shape for stage in stages.stages[1:] for t in stage.types] == [()] * 2
    np.testing.assert_allclose(run(stages, [np.float32(1)])[0], jax.jit(twice)(np.float32(1)), rtol=1e-6)


def test_a_cut_is_where_little_is_alive() -> None:
    def narrow(x: Any) -> Any:
        for width in (64, 1, 64):
            x = jnp.broadcast_to(x.sum(), (width,))
            for _ in range(8):
                x = jnp.sin(x)
        return x

    stages = divided(jax.jit(narrow).trace(np.ones(3, np.float32)).jaxpr, 2, 0)
    assert stages is not None and [t.shape for t in stages.stages[1].types] == [(1,)]


def test_effects_are_left_in_their_order() -> None:
    def prints(x: Any) -> Any:
        jax.debug.print("{}", x)
        return x + 1

    assert divided(jax.jit(prints).trace(1.0).jaxpr, 2, 0) is None


def test_equations_that_nothing_needs_are_left_out() -> None:
    stages = divided(jax.jit(lambda x: (jnp.exp(x), x * 2)[1]).trace(1.0).jaxpr, 1, 0)
    assert stages is not None and len(stages.stages[0].makes) == 1
