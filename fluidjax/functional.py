"""Programs as pure functions, for JAX users: ``init_fn`` and ``step_fn``, ``read_state`` and
``write_state``.

    init = fluid.init_fn(startup)                   # key -> state
    step = fluid.step_fn(main, [loss])              # (state, feed, key) -> (state, fetches)

    state = init(jax.random.key(0))
    step = jax.jit(step, donate_argnums=0)
    for i, batch in enumerate(batches):
        state, (cost,) = step(state, batch, jax.random.key(i))

The state is a dict from variable names to arrays. Both are plain functions: jax.jit (with
donation), lax.scan, vmap and grad apply to them. Dtypes are those that the program declares,
including 64-bit ones; call a jit under ``with jax.enable_x64(True)`` so that it does not narrow
int64 feeds to int32.

Under jax.shard_map the gradient of a replicated value is the sum over the devices, as with
jax.grad. The gradient of a parameter that is read within the branches of a condition keeps a
varying type, so JAX refuses out_specs=P() for it.

A feed that decides sizes (a fed shape, a fed number of ``range``) must be known when the step is
compiled. Under a jit, close over a NumPy array, or feed ``fluid.Fixed(array)``: the jit then keeps
a program for each of its values.

To copy a state from or to a scope, for saving and loading:

    state = fluid.read_state(main)                  # of the scope: after a load, or runs of an
    Executor fluid.write_state(state, main)                  # then fluid.save(main, "model"),
    fluid.io.save_checkpoint(exe, ...)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from .devices import forked
from .devices.placement import owned
from .errors import EnforceNotMet, FluidTypeError, LoadError, MixesRows, note
from .feeds.feeding import NARROWED, FeedRule, explained, narrowed, ranges, rule_for, unknown_feed
from .graph.fetches import fetch_names, found_names
from .graph.program import Program, default_main_program, default_startup_program
from .graph.variable import Variable
from .ir.desc import VarDesc
from .lower.step import Step
from .lower.uncompiled import uncompiled
from .ops.concrete import tracing
from .ops.fixed import Fixed
from .ops.ragged import Ragged
from .ops.selected import SelectedRows
from .ops.threefry import known_key
from .saved.values import collect, compare, descs, is_persistable, listed, put
from .state.scope import Scope, global_scope
from .state.shapes import zeros

State = dict[str, Any]


def init_fn(startup: Program | None = None) -> Callable[[jax.Array | None], State]:
    """``init(key) -> state``: run a startup program as a pure function.

    startup: default the default startup program. key: a jax.random.key; may be None if nothing is
    random. A call outside of a trace compiles almost nothing, and gives the same bits.
    """
    program = default_startup_program() if startup is None else _program(startup)
    step = Step(program.desc)
    alone = uncompiled(step)

    def init(key: jax.Array | None = None) -> State:
        forked.devices_asked_for()
        known = known_key(key)
        if alone is not None and (known or not step.random) and not tracing():
            made, _ = alone.run(known)
            return dict(zip(made, owned(list(made.values())), strict=True))
        return step({}, {}, key)[0]

    init.__doc__ = f"Initial state of {program!r}."
    return init


def step_fn(
    main: Program | None = None,
    fetch_list: Sequence[Variable | str] = (),
    literal: bool = False,
    budget: int | float | str | None = None,
    batch_size: int | None = None,
    feed_shapes: Mapping[str, Sequence[int]] | None = None,
    lengths: int | Sequence[int] | Mapping[str, int | Sequence[int]] | None = None,
) -> Callable[..., tuple[State, list[Any]]]:
    """``step(state, feed, key=None) -> (state, fetches)``: one run of a program as a pure function.

    main: default the default main program. fetch_list: variables or names whose values are
    returned, in order. literal: gradient ops run their forward op again, as they are defined,
    instead of sharing its pullback.

    budget: the most bytes, or text such as "800MB" or "2GiB", that ``step.jit()``, which is jitted
    with its state donated, may need on JAX's default device, by the compiler's own figure, for
    batches of batch_size, feed_shapes and lengths as in memory_report. The backward pass then
    recomputes values of the forward pass, as in fluid.memory_optimize(budget=), and
    ``step.budget_report`` lists them. If its `chosen.scheduler` is "default", ``jax.jit(step,
    donate_argnums=0)`` is the same; else the budget is kept only under XLA's scheduler for memory,
    and under another jit the step raises UnsupportedError. The program does not change. Raises
    memory_optimize's errors about budgets, and FluidTypeError for sizes without a budget.

    The returned state has every entry of the given one; entries that the program writes are
    replaced. It also has accumulators that no startup program sets, which begin at zero if the
    given state lacks them. Building the function raises FluidTypeError for a fetch_list that is not
    a list and FetchError for a target that the program does not have. Calling it raises
    EnforceNotMet for a variable that the state lacks, and FeedError for a feed that is missing,
    unknown or of another shape, dtype or range than Executor.run would take (32-bit values that JAX
    made from 64-bit ones are accepted).
    """
    program = default_main_program() if main is None else _program(main)
    if isinstance(fetch_list, Variable | str):
        name = repr(fetch_list) if isinstance(fetch_list, str) else fetch_list.name
        raise FluidTypeError(
            f"fetch_list is a list of variables or names; write [{name}], as in step_fn(main,"
            f" [{name}])"
        )
    program = program.holding(fetch_names(fetch_list))
    names = found_names(program, fetch_list)
    if budget is None:
        if batch_size is not None or feed_shapes is not None or lengths is not None:
            raise FluidTypeError(
                "batch_size, feed_shapes and lengths belong to a budget, and there is none"
            )
        return _stepping(program, Step(program.desc, names, literal, exact=True))
    from .memory.budget import Sizing
    from .memory.jitted import fit_step

    def stepping(step: Step) -> Callable[..., Any]:
        return _stepping(program, step)

    return fit_step(
        Step(program.desc, names, literal, exact=True),
        stepping,
        budget,
        Sizing(batch_size, feed_shapes, lengths),
    )


def _stepping(program: Program, compiled: Step) -> Callable[..., tuple[State, list[Any]]]:
    """A step of a program as a function that checks its arguments."""
    check = _FeedCheck(compiled)

    def step(
        state: Mapping[str, Any], feed: Mapping[str, Any], key: jax.Array | None = None
    ) -> tuple[State, list[Any]]:
        forked.devices_asked_for()
        absent = {n: zeros(compiled, n) for n in compiled.reads if n not in state}
        missing = [n for n, value in absent.items() if value is None]
        if missing:
            raise EnforceNotMet(
                f"variable {missing[0]!r} is not initialised: the state that the step is given"
                f" lacks {listed(missing)}; take the state from fluid.init_fn(startup)(key), or"
                " from fluid.read_state(program) where the scope holds the values (of a model that"
                " was loaded)"
            )
        values = check(feed)
        try:
            return compiled({**state, **absent}, values, key)
        except MixesRows as error:
            for choice in compiled.sizes.choices:
                note(error, choice.advice_under_jit())
            raise
        except Exception as error:
            raise explained(error, check.rules, values)  # noqa: B904

    step.__doc__ = f"One step of {program!r}, fetching {', '.join(compiled.fetches) or 'nothing'}."
    return step


class _FeedCheck:
    """Checks the feeds of a step as Executor.run does; values in an outer jit are checked by shape
    and dtype.
    """

    def __init__(self, step: Step) -> None:
        self._step = step
        self._bounds = ranges(step.desc, step.ops)
        self.rules: dict[str, FeedRule] = {}

    def __call__(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._checked(name, value) for name, value in feed.items()}

    def _checked(self, name: str, value: Any) -> Any:
        var = self._step.desc.find_var(name) if isinstance(name, str) else None
        if var is None:
            raise unknown_feed(name, self._step.desc)
        if isinstance(value, Fixed):
            return Fixed(self._checked(name, value.array))
        if (
            isinstance(value, Ragged | SelectedRows)
            or var.shape is None
            or name not in self._step.feeds
        ):
            return value
        if name not in self.rules:
            self.rules[name] = rule_for(var, self._bounds.get(name, ()))
        rule = self.rules[name]
        return replace(rule, dtype=value.dtype)(value) if narrowed(value, rule) else rule(value)


def read_state(program: Program | None = None, scope: Scope | None = None) -> State:
    """The state of a program for its step function: copies of its persistable variables' values in
    a scope.

    program: default the default main program. scope: default global_scope(). Sharded values are
    gathered. Raises EnforceNotMet for variables without a value that the program reads: run the
    startup program first, or load them.
    """
    program = default_main_program() if program is None else _program(program)
    scope = global_scope() if scope is None else scope
    needed = set(Step(program.desc).reads)
    names = [n for n in _persistables(program) if n in needed or _held(scope, n)]
    with jax.enable_x64(True):
        return {name: jax.numpy.array(value) for name, value in collect(names, scope).items()}


def write_state(
    state: Mapping[str, Any], program: Program | None = None, scope: Scope | None = None
) -> None:
    """Copy a step function's state into a scope, to run on, save it, or write a checkpoint.

    program: the program of these persistable variables, default the default main program; the
    startup program need not have run. scope: default global_scope(). Raises LoadError for entries
    that are missing, that the program does not have, or that have another shape or dtype (32-bit
    values that JAX made from 64-bit ones are accepted); then the scope does not change.
    """
    program = default_main_program() if program is None else _program(program)
    known, needed = _persistables(program), set(Step(program.desc).reads)
    given = {name: np.array(value) for name, value in state.items()}
    for name in given.keys() & known.keys():
        declared = known[name].dtype
        if declared is not None and NARROWED.get(declared) == given[name].dtype.name:
            given[name] = given[name].astype(declared)
    difference = compare({n: v for n, v in known.items() if n in needed or n in given}, given)
    if difference:
        raise LoadError(f"the state does not fit the program:\n{difference}")
    put(given, scope)


def _persistables(program: Program) -> dict[str, VarDesc]:
    return descs(program, filter(is_persistable, program.list_vars()))


def _held(scope: Scope, name: str) -> bool:
    var = scope.find_var(name)
    return var is not None and not var.empty


def _program(value: Any) -> Program:
    if not isinstance(value, Program):
        raise FluidTypeError(f"expected a Program, got {type(value).__name__}")
    return value
