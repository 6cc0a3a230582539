"""The pure face of a program, for JAX users: ``init_fn`` and ``step_fn``.

    init = fluid.init_fn(startup)                   # key -> state
    step = fluid.step_fn(main, [loss])              # (state, feed, key) -> (state, fetches)

    state = init(jax.random.key(0))
    step = jax.jit(step, donate_argnums=0)
    for i, batch in enumerate(batches):
        state, (cost,) = step(state, batch, jax.random.key(i))

The state is a dict from variable names to arrays. Both are plain functions: jax.jit (with donation), lax.scan, vmap and
grad apply to them. Dtypes are what the program declares, 64-bit ones included; to keep int64 feeds from being narrowed
to int32 at the border of a jit, call it under ``with jax.enable_x64(True)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from .errors import FluidTypeError
from .graph.fetches import found_names
from .graph.program import Program, default_main_program, default_startup_program
from .graph.variable import Variable
from .lower.step import Step

State = dict[str, Any]


def init_fn(startup: Program | None = None) -> Callable[[jax.Array | None], State]:
    """``init(key) -> state``: run a startup program as a pure function.

    startup: default the default startup program. key: a jax.random.key; may be None if nothing is random.
    """
    program = default_startup_program() if startup is None else _program(startup)
    step = Step(program.desc)

    def init(key: jax.Array | None = None) -> State:
        return step({}, {}, key)[0]

    init.__doc__ = f"Initial state of {program!r}."
    return init


def step_fn(
    main: Program | None = None, fetch_list: Sequence[Variable | str] = (), literal: bool = False
) -> Callable[..., tuple[State, list[Any]]]:
    """``step(state, feed, key=None) -> (state, fetches)``: one run of a program as a pure function.

    main: default the default main program. fetch_list: variables or names whose values are returned, in order.
    literal: gradient ops run their forward op anew, as their definition says, instead of sharing its pullback.

    The returned state has every entry of the given one, replaced where the program writes it. The function raises
    FeedError for a missing feed and EnforceNotMet for a variable that the state lacks; building it raises FetchError
    for a target that the program does not have.
    """
    program = default_main_program() if main is None else _program(main)
    names = found_names(program, fetch_list)
    compiled = Step(program.desc, names, literal)

    def step(state: Mapping[str, Any], feed: Mapping[str, Any], key: jax.Array | None = None) -> tuple[State, list[Any]]:
        return compiled(state, feed, key)

    step.__doc__ = f"One step of {program!r}, fetching {', '.join(names) or 'nothing'}."
    return step


def _program(value: Any) -> Program:
    if not isinstance(value, Program):
        raise FluidTypeError(f"expected a Program, got {type(value).__name__}")
    return value
