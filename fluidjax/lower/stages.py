"""A traced step as several functions that follow each other, so that they can be compiled at once on several cores.

What is divided is the list of equations that tracing left: into stages of about as many, each cut where the fewest bytes are alive
near there. The division follows from the equations alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from jax.extend.core import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun

NEAR = 8  # a cut is moved by up to this part of a stage
_NAMED = DebugInfo("jit", "stage", None, None)


@dataclass(frozen=True)
class Stage:
    """Some equations as a function of arrays. Values are numbered over the whole step.

    takes, makes: the numbers of its arguments and its results; types: of the arguments. drops: what no later stage takes.
    donates: positions of arguments that its results may overwrite.
    """

    function: Callable[..., Any]
    takes: tuple[int, ...]
    types: tuple[Any, ...]
    makes: tuple[int, ...]
    drops: tuple[int, ...]
    donates: tuple[int, ...]


@dataclass(frozen=True)
class Stages:
    """All of them in their order. Values 0, 1, ... are the step's arguments and then `consts`. results: what the step returns."""

    stages: tuple[Stage, ...]
    consts: tuple[Any, ...]
    results: tuple[int, ...]


def divided(traced: Any, count: int, donated: int) -> Stages | None:
    """A traced function in `count` stages; None if it has effects, whose order a division might change.

    traced: what jax.stages.Traced.jaxpr is. donated: how many of its first arguments its first results may overwrite, each its own.
    """
    return None if traced.effects else _Division(traced, count).stages(donated)


def whole(traced: Any) -> Stages | None:
    """A traced function as the only stage, which takes all arguments; None if it has effects, which tie it to its process."""
    if traced.effects:
        return None
    types = [v.aval for v in traced.jaxpr.invars]
    taken, made = range(len(types)), range(len(types), len(types) + len(traced.jaxpr.outvars))
    stage = Stage(jaxpr_as_fun(traced), tuple(taken), tuple(types), tuple(made), (), ())
    return Stages((stage,), (), tuple(made))


class _Division:
    def __init__(self, traced: Any, count: int) -> None:
        whole = traced.jaxpr
        self.consts = tuple(traced.consts)
        self.inputs: list[Var] = [*whole.invars, *whole.constvars]
        self.outputs: list[Any] = list(whole.outvars)
        needed = _needed(whole.eqns, self.outputs)
        self.free = _free(needed)  # made of no argument: every stage that reads such a value makes it itself
        body = [e for e in needed if not self.free.keys() >= set(e.outvars)]
        cuts = _cuts(body, set(self.outputs_read()), count)
        self.parts = [body[a:b] for a, b in pairwise(cuts)]
        self.made = {v: s for s, part in enumerate(self.parts) for e in part for v in e.outvars}

    def outputs_read(self) -> list[Var]:
        return [v for v in self.outputs if not isinstance(v, Literal)]

    def stages(self, donated: int) -> Stages:
        first = {v: i for i, v in reversed(list(enumerate(self.outputs))) if not isinstance(v, Literal) and v in self.made}
        inner = [v for v in self.made if v not in first]
        ends = len(self.inputs)
        numbers = {v: i for i, v in enumerate(self.inputs)}
        numbers.update({v: ends + i for v, i in first.items()})
        numbers.update({v: ends + len(self.outputs) + i for i, v in enumerate(inner)})
        functions, last = self._functions(numbers)
        stages = []
        for at, (jaxpr, makes) in enumerate(functions):
            takes = [numbers[v] for v in jaxpr.invars]
            drops = [n for n in takes if last[n] == at and not ends <= n < ends + len(self.outputs)]
            own = {n for n in drops if n < donated and ends + n in makes}
            given = [i for i, n in enumerate(takes) if n in own]
            function, types = jaxpr_as_fun(ClosedJaxpr(jaxpr, [])), [v.aval for v in jaxpr.invars]
            stages.append(Stage(function, tuple(takes), tuple(types), tuple(makes), tuple(drops), tuple(given)))
        return Stages(tuple(stages), self.consts, tuple(range(ends, ends + len(self.outputs))))

    def _functions(self, numbers: dict[Var, int]) -> tuple[list[tuple[Any, list[int]]], dict[int, int]]:
        """Each stage's equations with the numbers of its results, and the stage that takes a value last."""
        ends, wanted, found, last = len(self.inputs), set[Var](), [], dict[int, int]()
        for at in reversed(range(len(self.parts))):
            own = {v for e in self.parts[at] for v in e.outvars}
            # one result for every place among the step's, so that each is an array of its own
            places = [i for i, v in enumerate(self.outputs) if self._stage_of(v) == at]
            onward = [v for v in own & wanted if numbers[v] >= ends + len(self.outputs)]
            onward.sort(key=numbers.__getitem__)
            outs = [*(self.outputs[i] for i in places), *onward]
            eqns = self._with_free(self.parts[at], outs)
            local = {v for e in eqns for v in e.outvars}
            read = dict.fromkeys(v for v in [*(v for e in eqns for v in e.invars), *outs] if not isinstance(v, Literal) and v not in local)
            for v in read:
                last.setdefault(numbers[v], at)
            wanted = (wanted - own) | read.keys()
            makes = [*(ends + i for i in places), *(numbers[v] for v in onward)]
            found.append((Jaxpr([], list(read), outs, eqns, debug_info=_NAMED), makes))
        return found[::-1], last

    def _stage_of(self, output: Any) -> int:
        """The stage that returns this: that which makes it; the last one, of what none makes."""
        last = len(self.parts) - 1
        return last if isinstance(output, Literal) else self.made.get(output, last)

    def _with_free(self, part: Sequence[JaxprEqn], outs: Sequence[Any]) -> list[JaxprEqn]:
        todo = [v for v in [*(v for e in part for v in e.invars), *outs] if not isinstance(v, Literal)]
        used: dict[int, JaxprEqn] = {}
        while todo:
            found = self.free.get(todo.pop())
            if found is not None and found[0] not in used:
                used[found[0]] = found[1]
                todo += [v for v in found[1].invars if not isinstance(v, Literal)]
        return [*(used[i] for i in sorted(used)), *part]


def _needed(eqns: Sequence[JaxprEqn], outputs: Sequence[Any]) -> list[JaxprEqn]:
    wanted = {v for v in outputs if not isinstance(v, Literal)}
    kept = []
    for e in reversed(eqns):
        if not wanted.isdisjoint(e.outvars):
            kept.append(e)
            wanted.update(v for v in e.invars if not isinstance(v, Literal))
    return kept[::-1]


def _free(eqns: Sequence[JaxprEqn]) -> dict[Var, tuple[int, JaxprEqn]]:
    """Values that depend on no argument, with the place of their equation."""
    found: dict[Var, tuple[int, JaxprEqn]] = {}
    for i, e in enumerate(eqns):
        if all(isinstance(v, Literal) or v in found for v in e.invars):
            found.update((v, (i, e)) for v in e.outvars)
    return found


def _cuts(body: Sequence[JaxprEqn], outputs: set[Var], count: int) -> list[int]:
    """Where the stages begin, and the end of the last."""
    alive, total = [0], 0
    last = {v: i for i, e in enumerate(body) for v in e.invars if not isinstance(v, Literal)}
    made = {v for e in body for v in e.outvars}
    for i, e in enumerate(body):
        total += sum(_bytes(v) for v in e.outvars if v in last and v not in outputs)
        ended = {v for v in e.invars if not isinstance(v, Literal) and v in made and v not in outputs and last[v] == i}
        total -= sum(map(_bytes, ended))
        alive.append(total)
    length = len(body) // count
    near = length // NEAR
    inner = [min(range(k * length - near, k * length + near + 1), key=alive.__getitem__) for k in range(1, count)]
    return [0, *inner, len(body)]


def _bytes(v: Var) -> int:
    aval: Any = v.aval
    return math.prod(getattr(aval, "shape", ())) * getattr(getattr(aval, "dtype", None), "itemsize", 0)
