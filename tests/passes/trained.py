"""Programs with parameters that are not trivial, to rewrite and to run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import fluidjax as fluid
from fluidjax.lower.step import Step
from tests.nets import fresh


@dataclass
class Net:
    """A test-mode program, the scope with its parameters, a feed, and the name of its output."""

    program: fluid.Program
    scope: fluid.Scope
    feed: dict[str, np.ndarray]
    out: str
    training: fluid.Program

    @property
    def params(self) -> dict[str, np.ndarray]:
        return {n: self.scope.get(n) for n in self.scope.local_var_names()}

    def run(
        self, program: Any = None, fetch: list[str] | None = None, scope: Any = None
    ) -> list[np.ndarray]:
        """Values of `fetch` (default the output) by the literal meaning of the ops, without any
        compiled step.
        """
        desc = getattr(program, "desc", program) or self.program.desc
        params = {
            n: np.asarray((scope or self.scope).get(n))
            for n in (scope or self.scope).local_var_names()
        }
        names = tuple(fetch or [self.out])
        return [np.asarray(v) for v in Step(desc, names, literal=True)(params, self.feed)[1]]


def randomise(scope: fluid.Scope, seed: int = 0) -> None:
    """Positive, irregular values in every float variable, so that no fold is an identity."""
    rng = np.random.RandomState(seed)
    for name in scope.local_var_names():
        value = scope.get(name)
        if value.dtype.kind == "f":
            scope.var(name).set(
                (rng.uniform(0.2, 1.0, value.shape) * rng.choice([1, 1, -1], value.shape)).astype(
                    value.dtype
                )
            )


def net(
    build: Callable[[Any], Any],
    shape: tuple[int, ...] = (3, 6, 6),
    seed: int = 0,
    for_test: bool = True,
) -> Net:
    """The network that `build` makes of an input [2, *shape]; variances are positive."""
    with fresh(seed) as (main, startup):
        x = fluid.data("x", [None, *shape])
        out = build(x)
    scope = fluid.Scope()
    fluid.Executor().run(startup, scope=scope)
    randomise(scope, seed)
    for op in main.global_block().ops:
        for name in op.input("Variance") if op.type in ("batch_norm", "inplace_abn") else ():
            scope.var(name).set(np.abs(scope.get(name)))
    feed = {"x": np.random.RandomState(seed + 1).standard_normal((2, *shape)).astype("float32")}
    return Net(main.clone(for_test=True) if for_test else main, scope, feed, out.name, main)
