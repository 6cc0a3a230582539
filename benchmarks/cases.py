"""The benchmark cases: one model on both sides, its optimizer and its batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flax.linen as nn
import jax
import optax

import fluidjax as fluid

from . import data, flax_models, fluid_models


@dataclass(frozen=True)
class Case:
    """`network` appends the Fluid layers, `model` is its flax twin; `optimizers` gives (Fluid's,
    optax's).
    """

    name: str
    network: Callable[[], Any]
    model: Callable[[], nn.Module]
    optimizers: Callable[[], tuple[Any, optax.GradientTransformation]]
    feed: Callable[[], dict[str, Any]]


def adam() -> tuple[Any, optax.GradientTransformation]:
    return fluid.optimizer.Adam(1e-3), optax.adam(1e-3)


def momentum() -> tuple[Any, optax.GradientTransformation]:
    return fluid.optimizer.Momentum(1e-2, 0.9), optax.sgd(1e-2, momentum=0.9)


CASES = (
    Case(
        "MLP 784-512-512-10, Adam, batch 256",
        fluid_models.mlp,
        flax_models.MLP,
        adam,
        lambda: data.vectors(256, 784, 10),
    ),
    Case(
        "LeNet + batch_norm, Adam, batch 64",
        fluid_models.lenet,
        flax_models.LeNet,
        adam,
        lambda: data.images(64, 28, 1),
    ),
    Case(
        "ResNet-18, 32x32, Momentum, batch 32",
        fluid_models.resnet18,
        flax_models.ResNet18,
        momentum,
        lambda: data.images(32, 32, 3),
    ),
    Case(
        "transformer, 2 layers, Adam, batch 8",
        fluid_models.transformer,
        flax_models.Encoder,
        adam,
        lambda: data.sequences(8, 128, 256, 10),
    ),
    Case(
        "embedding + softmax words, Adam, batch 64",
        fluid_models.word_model,
        flax_models.WordModel,
        adam,
        lambda: data.words(64, 4, 2000),
    ),
)


def cost(
    exe: fluid.Executor, program: fluid.Program, scope: fluid.Scope, feed: dict[str, Any]
) -> dict[str, float]:
    """flops and bytes accessed, as XLA counts them, of the one step that `exe` has compiled for
    `program`.
    """
    (compiled,) = exe.compiled_steps(program)
    with jax.enable_x64(True):
        args = (*compiled.bind(scope).arrays, compiled.plan.check_feed(feed), 0, 0)
        return compiled.function().lower(*args).compile().cost_analysis()


class Ours:
    """A case as a Fluid program behind an Executor."""

    def __init__(self, case: Case) -> None:
        self.feed = case.feed()
        self.main, self.startup, self.loss = fluid_models.build(case.network, case.optimizers()[0])
        self.scope = fluid.Scope()
        self.exe = fluid.Executor()
        self.exe.run(self.startup, scope=self.scope)

    def run(self) -> Any:
        return self.exe.run(
            self.main, feed=self.feed, fetch_list=[self.loss], scope=self.scope, return_numpy=False
        )[0]

    def cost(self) -> dict[str, float]:
        return cost(self.exe, self.main, self.scope, self.feed)


class Theirs:
    """The hand-written step of a case."""

    def __init__(self, case: Case) -> None:
        self.feed = case.feed()
        self.state, self.step = flax_models.training(case.model(), case.optimizers()[1], self.feed)

    def run(self) -> Any:
        self.state, loss = self.step(self.state, self.feed)
        return loss

    def cost(self) -> dict[str, float]:
        return self.step.lower(self.state, self.feed).compile().cost_analysis()
