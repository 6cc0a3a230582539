"""Functions of many packages as programs: equal to jax.jit of them in every bit, over steps that
hand state on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.graph.program import Program
from fluidjax.ir.jsonio import from_json, to_json
from fluidjax.ir.parse import parse
from fluidjax.ir.text import to_text

from .functions import CASES
from .same import as_function, check_same

# One of each kind; the others repeat the mechanism on other nets.
SHOWN = """arithmetic special_functions indexing every_dtype linear_algebra convolutions pools_and_their_gradients
    random_typed_keys scans loops_and_branches custom_rules rematerialized vmapped closed_over_arrays jitted_within
    swapped_and_untouched_state moving_average scalars_and_keywords linen_mlp_momentum nnx_batch_norm_and_dropout
    optax_multi_steps equinox_mlp functions_of_the_users_own more_linear_algebra axes_of_a_vmap over_a_mesh
    large_constants_within""".split()


@pytest.mark.first(14)
@pytest.mark.parametrize(
    "name", [n if n in SHOWN else pytest.param(n, marks=pytest.mark.thorough) for n in CASES]
)
def test_a_program_computes_what_the_function_does(name: str) -> None:
    check_case(name)


def test_state_that_becomes_constants() -> None:
    """Counters that start anew and flags that are set: no op of the function computes them."""

    def fn(s: Any, x: Any) -> Any:
        fresh = {
            "n": jnp.int32(0),
            "m": 5,
            "flag": True,
            "zeros": jnp.zeros(2),
            "half": np.float32(0.5),
        }
        return {**fresh, "w": s["w"] + x, "same": s["same"]}, x.sum(), 7

    state = {
        "n": jnp.int32(3),
        "m": 1,
        "flag": False,
        "zeros": x_of(2),
        "half": np.float32(2),
        "w": x_of(2),
        "same": 4,
    }
    traced = fluid.trace(fn, state, x_of(2))
    assert parse(to_text(traced.main.desc)) == traced.main.desc
    check_same(jax.jit(fn)(state, x_of(2)), jax.jit(traced.step())(state, x_of(2)))
    traced.write()
    fluid.Executor().run(traced.main, {"x": x_of(2)}, list(traced.fetches))
    ((found, _), _) = traced.tree_of(traced.read())
    check_same(jax.jit(fn)(state, x_of(2))[0], found)


def x_of(size: int) -> Any:
    return jnp.arange(1, size + 1, dtype=jnp.float32)


def check_case(name: str) -> None:
    """A case of functions.py over three steps, of the program that its text says."""
    fn, args, options = CASES[name]()
    kwargs = options.get("kwargs", {})
    traced = fluid.trace(fn, *args, **options)
    text = to_text(traced.main.desc)
    assert parse(text) == traced.main.desc
    assert from_json(to_json(traced.main.desc)) == traced.main.desc
    again = replace(traced, main=Program.from_desc(parse(text)))

    reference, args = as_function(fn, args)
    run, step = jax.jit(reference), jax.jit(again.step())
    for _ in range(3):
        expected, found = run(*args, **kwargs), step(*args, **kwargs)
        check_same(expected, found)
        args = handed_on(traced, args, expected)


def handed_on(traced: fluid.Traced, args: Any, results: Any) -> tuple[Any, ...]:
    """The arguments of the next step."""
    parts = results if type(results) is tuple else (results,)
    to = traced.continued
    return tuple(parts[to[i]] if to.get(i) is not None else arg for i, arg in enumerate(args))
