"""One program, compiled for a set of fetches on a device: the jitted step and what surrounds it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .bank import Bank, Layout, plan
from .errors import EnforceNotMet, FeedError, FetchError, NanInfError, near
from .feeding import FeedRule, ranges, rule_for, unknown_feed
from .flags import flag
from .ir import text
from .ir.desc import OpDesc, ProgramDesc
from .lower.step import Step
from .scope import Scope


class Recompiles:
    """Counts the feed signatures that one program was compiled for, and warns once when there are too many."""

    def __init__(self) -> None:
        self.seen: dict[tuple[Any, ...], None] = {}
        self.warned = False

    def add(self, feed: Mapping[str, Any]) -> None:
        self.seen[tuple((n, tuple(v.shape), str(v.dtype)) for n, v in sorted(feed.items()))] = None
        limit = flag("FLAGS_recompile_warning")
        if len(self.seen) > limit and not self.warned:
            self.warned = True
            warnings.warn(
                f"one program was compiled for more than {limit} different feeds: {self._changing()} keeps changing; "
                "pad the feeds to a few sizes",
                RuntimeWarning,
                stacklevel=6,
            )

    def _changing(self) -> str:
        values: dict[str, set[Any]] = {}
        for signature in self.seen:
            for name, shape, dtype in signature:
                values.setdefault(name, set()).add((shape, dtype))
        name = max(values, key=lambda n: len(values[n]))
        shapes = [s for s, _ in values[name]]
        if len({len(s) for s in shapes}) > 1:
            return f"the rank of {name!r}"
        dims = [i for i in range(len(shapes[0])) if len({s[i] for s in shapes}) > 1]
        return f"dimension {', '.join(map(str, dims))} of {name!r}" if dims else f"the dtype of {name!r}"


class Compiled:
    """A jitted step over a bank of state arrays."""

    def __init__(self, desc: ProgramDesc, fetches: tuple[str, ...], device: Any, recompiles: Recompiles) -> None:
        self.step = Step(desc, fetches)
        self.device = device
        self.recompiles = recompiles
        self.fetches = fetches
        self._check_fetches(desc)
        self.rules = self._rules(desc)
        self.written = tuple(dict.fromkeys((*self.step.writes,)))
        self.creates = any(n not in self.step.reads for n in self.written)
        self.initialises = self.creates and not self.step.reads and not self.rules
        self.random = self.step.random
        self.ready: set[Any] = set()  # signatures that are compiled
        self.bank: Bank | None = None
        self._layouts: tuple[Layout, Layout] | None = None
        self._fresh: Any = None  # the types that the layouts were planned for
        self._jitted: dict[Any, Any] = {}
        self.persistable_fetches = tuple(i for i, n in enumerate(fetches) if (v := desc.blocks[0].vars.get(n)) and v.persistable)

    def _check_fetches(self, desc: ProgramDesc) -> None:
        for name in self.fetches:
            if desc.find_var(name) is None:
                raise FetchError(f"fetch target {name!r} is not in the program{near(name, desc.blocks[0].vars)}")

    def _rules(self, desc: ProgramDesc) -> dict[str, FeedRule]:
        bounds = ranges(desc, self.step.ops)
        return {name: rule_for(var, bounds.get(name, ())) for name, var in self.step.feeds.items()}

    def check_feed(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """The fed values that the step takes. Raises FeedError for what is missing, unknown or does not fit."""
        rules = self.rules
        values = {}
        for name, value in feed.items():
            rule = rules.get(name)
            if rule is not None:
                values[name] = rule(value)
            else:
                var = self.step.desc.find_var(name)
                if var is None:
                    raise unknown_feed(name, self.step.desc)
                if var.shape is not None:
                    rule_for(var)(value)  # fed, but nothing that is asked for reads it
        if len(values) < len(rules):
            name = next(n for n in rules if n not in values)
            given = f"; fed are {', '.join(map(repr, feed))}" if feed else ""
            raise FeedError(f"{name!r} must be fed{self.step._reader_of(name)}{given}")
        return values

    # -- state -----------------------------------------------------------------------------------------------------

    def bind(self, scope: Scope) -> Bank:
        """The bank of this program's state in `scope`; made from the scope's variables where it is not in force."""
        bank = self.bank
        if bank is not None and scope._bank is bank:
            return bank
        values, fresh = self._collect(scope)
        if self._layouts is None or fresh != self._fresh:
            self._fresh = fresh
            mutable = {n: values[n] for n in self.written if n in values}
            constant = {n: v for n, v in values.items() if n not in mutable}
            self._layouts = plan(mutable), plan(constant)
            self._jitted.clear()
            self.ready.clear()
        bank = Bank(scope, self._layouts, values, self.device)
        self.bank = bank
        return bank

    def _collect(self, scope: Scope) -> tuple[dict[str, Any], Any]:
        """Values of what the step reads, out of other banks; and their types, which the layout hangs on."""
        values: dict[str, Any] = {}
        for name in self.step.reads:
            var = scope.find_var(name)
            if var is not None and var._bank is not None:
                var._bank.dissolve()
            if var is None or var.value is None:
                raise EnforceNotMet(f"variable {name!r} is not initialised; run the startup program first")
            declared = self.step.desc.blocks[0].vars[name]
            value = var.value if isinstance(var.value, jax.Array) else np.asarray(var.value)
            shape = declared.shape
            if shape is not None and (len(shape) != value.ndim or any(d not in (-1, s) for d, s in zip(shape, value.shape, strict=True))):
                raise EnforceNotMet(
                    f"variable {name!r} holds a value of shape {list(value.shape)} in the scope, but the program declares {list(shape)}"
                )
            values[name] = value
        return values, tuple((n, tuple(v.shape), str(v.dtype)) for n, v in values.items())

    # -- running ---------------------------------------------------------------------------------------------------

    def function(self, many: bool = False, checked: bool = False) -> Any:
        """The jitted ``(mutable, constant, feed, seed, step) -> (mutable, extra, fetches[, finite])``.

        many: `feed` holds one more leading dimension, scanned over. checked: report which outputs are finite.
        """
        kind = (many, checked)
        if kind not in self._jitted:
            body = self._many if many else self._checked if checked else self._one
            donate = () if checked else (0,)
            self._jitted[kind] = jax.jit(body, donate_argnums=donate)
        return self._jitted[kind]

    @staticmethod
    def signature(fn: Any, feed: Mapping[str, Any]) -> Any:
        """What a compiled function is particular to, beside the state's types."""
        return (fn, *(v.shape for v in feed.values()))

    def _state(self, mutable: Any, constant: Any) -> dict[str, Any]:
        assert self._layouts is not None
        return {**self._layouts[0].unpack(mutable), **self._layouts[1].unpack(constant)}

    def _split(self, state: Mapping[str, Any], constant: Any) -> tuple[list[Any], dict[str, Any]]:
        """The mutable group as it travels on, and the variables that the step made for the first time."""
        assert self._layouts is not None
        taken = {id(v) for v in jax.tree.leaves(constant)}
        own: dict[str, Any] = {}
        for name in self.written:
            if name in state:
                # Two names may not share one buffer: the next step donates it.
                own[name] = jnp.copy(state[name]) if id(state[name]) in taken else state[name]
                taken.add(id(state[name]))
        mutable = self._layouts[0]
        known = {*mutable.singles, *(n for p in mutable.packs for n in p.names)}
        return mutable.pack(own), {n: v for n, v in own.items() if n not in known}

    def _key(self, seed: Any, step: Any) -> Any:
        return jax.random.fold_in(jax.random.key(seed), step) if self.random else None

    def _one(self, mutable: Any, constant: Any, feed: Any, seed: Any, step: Any) -> Any:
        self.recompiles.add(feed)
        state, fetched = self.step(self._state(mutable, constant), feed, self._key(seed, step))
        return *self._split(state, constant), fetched

    def _many(self, mutable: Any, constant: Any, feeds: Any, seed: Any, step: Any) -> Any:
        def body(carry: Any, feed: Any) -> Any:
            arrays, count = carry
            state, fetched = self.step(self._state(arrays, constant), feed, self._key(seed, count))
            arrays, extra = self._split(state, constant)
            return (arrays, count + 1), (extra, fetched)

        (arrays, _), (extra, fetched) = jax.lax.scan(body, (mutable, jnp.asarray(step, jnp.int64)), feeds)
        return arrays, {n: v[-1] for n, v in extra.items()}, fetched

    def _checked(self, mutable: Any, constant: Any, feed: Any, seed: Any, step: Any) -> Any:
        self.watched: list[tuple[OpDesc, str]] = []
        finite: list[Any] = []

        def watch(op: OpDesc, env: Mapping[str, Any]) -> None:
            for name in op.writes:
                value = env.get(name)
                if value is not None and getattr(value, "dtype", None) is not None and jnp.issubdtype(value.dtype, jnp.floating):
                    self.watched.append((op, name))
                    finite.append(jnp.isfinite(value).all())

        state, fetched = self.step(self._state(mutable, constant), feed, self._key(seed, step), watch)
        return *self._split(state, constant), fetched, finite

    def refuse_nan(self, finite: Sequence[Any]) -> None:
        """Raises NanInfError for the first output that is not finite."""
        for (op, name), good in zip(self.watched, finite, strict=True):
            if not bool(good):
                place = f" ({op.loc})" if op.loc else ""
                raise NanInfError(f"op '{op.type}'{place} wrote NaN or infinity to {name!r}: {text.op_text(op)}")
