"""The result of ``fluid.trace``: the program, the values of its state, and the mapping from and to
the function's own arguments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from ..errors import FluidTypeError
from ..functional import read_state, step_fn
from ..graph.program import Program
from ..ir.desc import FrozenMap
from ..ir.outline import outline
from ..saved.values import put
from ..state.scope import Scope, global_scope
from . import modules


@dataclass(frozen=True)
class Report:
    """The contents of a trace. ops: the number of ops of each type; scopes: the modules and
    functions of the ops.

    state_bytes: of all persistent values. dropped: hints of the function that a program does not
    keep (shardings).
    """

    ops: FrozenMap
    scopes: tuple[str, ...]
    state_bytes: int
    dropped: tuple[str, ...]

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {n}" for kind, n in Counter(self.ops).most_common())
        lost = f"; dropped: {', '.join(self.dropped)}" if self.dropped else ""
        return f"{sum(self.ops.values())} ops, {self.state_bytes:,} bytes of state{lost}\n{kinds}"


@dataclass(frozen=True, eq=False)
class Traced:
    """A JAX function as a program.

    main: the program. startup: an empty program, for the initial values of variables that an
    optimizer adds. state: the given values of its persistable variables by name. feeds, fetches:
    the variables that are fed, and the names of the results other than the new state. in_tree,
    out_tree: the trees of the arguments (args, kwargs) and of the results. report: its contents.

    places: the variable of every leaf of the arguments, in order. results: the variable of every
    leaf of the results. continued: for each persistent argument the number of the result that is
    its new value, None for one that is only read. keys: the kinds of random keys whose data the
    variables hold, by variable.
    """

    main: Program
    state: Mapping[str, Any]
    feeds: FrozenMap
    fetches: tuple[str, ...]
    in_tree: Any
    out_tree: Any
    report: Report
    places: tuple[str, ...] = field(repr=False, default=())
    results: tuple[str, ...] = field(repr=False, default=())
    continued: Mapping[int, int | None] = field(repr=False, default_factory=FrozenMap)
    keys: Mapping[str, str] = field(repr=False, default_factory=FrozenMap)
    startup: Program = field(repr=False, default_factory=Program)

    @classmethod
    def of(
        cls,
        main: Program,
        state: Mapping[str, Any],
        in_tree: Any,
        out_tree: Any,
        places: tuple[str, ...],
        results: tuple[str, ...],
        dropped: Sequence[str],
        continued: Mapping[int, int | None],
        keys: Mapping[str, str],
    ) -> Traced:
        vars = main.desc.blocks[0].vars
        feeds = FrozenMap({n: vars[n] for n in places if not vars[n].persistable})
        fetches = tuple(dict.fromkeys(n for n in results if not vars[n].persistable))
        report = _report(main, state, dropped)
        return cls(
            main,
            state,
            feeds,
            fetches,
            in_tree,
            out_tree,
            report,
            places,
            results,
            FrozenMap(continued),
            FrozenMap(keys),
        )

    def __str__(self) -> str:
        return str(self.main)

    def to_string(self, *args: Any, **kwargs: Any) -> str:
        return self.main.to_string(*args, **kwargs)

    def outline(self, lines: int = 45) -> str:
        """An outline of the program, scope by scope (:func:`fluidjax.ir.outline.outline`)."""
        return outline(self.main.desc, lines)

    def _repr_html_(self) -> str:
        return self.main._repr_html_()

    def step(self, **options: Any) -> Callable[..., Any]:
        """The traced function, run by the program: it takes the same arguments and returns the same
        results.

        options: those of :func:`fluidjax.step_fn`; with ``budget`` the function has the attributes
        that fluid.fit_memory describes. Arrays that the function held itself are taken from
        `state`. Raises FluidTypeError for arguments of another tree; FeedError and LoadError for
        other shapes and dtypes.
        """
        run = step_fn(self.main, list(self.fetches), **options)
        found: Any = self._called(run)
        if options.get("budget") is not None:
            of_program: Any = run
            found.budget_report = of_program.budget_report
            found.jit = lambda: self._called(of_program.jit())
            found.inside = self._called(of_program.inside)
            found.compiler_options = of_program.compiler_options
        return found

    def _called(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """A step of the program, called like the function."""
        given, fed = set(self.places), set(self.feeds)
        held = {name: value for name, value in self.state.items() if name not in given}
        at = {name: i for i, name in enumerate(self.fetches)}
        dtypes = {n: var.dtype for n, var in self.main.desc.blocks[0].vars.items()}

        def array(name: str, value: Any) -> Any:
            """An array as jax.jit takes it: JAX's current setting decides the dtype of NumPy's
            64-bit values.
            """
            as_it_is = getattr(value, "dtype", None) == dtypes[name] or isinstance(value, jax.Array)
            return value if as_it_is else jax.numpy.asarray(value)

        def step(*args: Any, **kwargs: Any) -> Any:
            leaves, tree = jax.tree.flatten((args, kwargs))
            if tree != self.in_tree:  # modules themselves may be given
                arrays = [modules.arrays_of(arg) for arg in args]
                named = {name: modules.arrays_of(arg) for name, arg in kwargs.items()}
                leaves, tree = jax.tree.flatten((tuple(arrays), named))
            if tree != self.in_tree:
                raise FluidTypeError(
                    f"the arguments have the tree {tree}; the function was traced with"
                    f" {self.in_tree}"
                )
            values = dict(zip(self.places, leaves, strict=True))
            given = {n: _data(v) if n in self.keys else v for n, v in values.items()}
            state = {**held, **{n: array(n, v) for n, v in given.items() if n not in fed}}
            new, found = run(state, {n: array(n, values[n]) for n in fed})
            return self.out_tree.unflatten(
                [found[at[n]] if n in at else self._leaf(n, new[n]) for n in self.results]
            )

        return step

    def tree_of(self, state: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """(args, kwargs) with persistent values from a state, and None for fed ones."""
        args: tuple[Any, dict[str, Any]] = self.in_tree.unflatten(
            [self._leaf(n, state.get(n)) for n in self.places]
        )
        return args

    def _leaf(self, name: str, value: Any) -> Any:
        """The function's value for a variable's value: a random key for its data."""
        if name not in self.keys or value is None:
            return value
        return jax.random.wrap_key_data(jax.numpy.asarray(value), impl=self.keys[name])

    def write(self, scope: Scope | None = None) -> None:
        """Store the values of `state` in a scope (default: the global one), so that an Executor can
        run the program.

        Run the startup program afterwards; it initialises variables that an optimizer has added.
        """
        put({name: np.array(value) for name, value in self.state.items()}, scope)

    def read(self, scope: Scope | None = None) -> dict[str, Any]:
        """Read the state from a scope (default: the global one)."""
        return read_state(self.main, global_scope() if scope is None else scope)


def _data(key: Any) -> Any:
    is_key = jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(key) if is_key else key


def _report(main: Program, state: Mapping[str, Any], dropped: Sequence[str]) -> Report:
    ops = [op for block in main.desc.blocks for op in block.ops]
    scopes = dict.fromkeys(
        str(op.attrs["op_namescope"]) for op in ops if "op_namescope" in op.attrs
    )
    size = sum(getattr(v, "nbytes", 0) for v in state.values())
    return Report(
        FrozenMap(Counter(op.type for op in ops)),
        tuple(scopes),
        size,
        tuple(dict.fromkeys(dropped)),
    )
