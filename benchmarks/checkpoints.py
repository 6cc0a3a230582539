"""The least memory to which flax models' training steps come, and what half of it costs: by
fluid.fit_memory, and by the best of five policies of jax.checkpoint around each block.

Bytes are temporaries of the compiled step, as XLA's memory_analysis tells them. Times are those of
a step over those of the same step under jax.jit. ``python -m benchmarks.checkpoints NAME`` prints
the rows of one model.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

import fluidjax as fluid
from fluidjax.errors import FluidValueError

from .page import Table, shown
from .timing import interleaved

HALF = "of,as it is MB,within half MB,time over jit,policy MB,policy's time over jit".split(",")
COLUMNS = "of,as it is MB,fit_memory MB,policy MB,best policy,over it,ulp,policy ulp".split(",")
POLICIES: dict[str, Any] = {
    "everything_saveable": jax.checkpoint_policies.everything_saveable,
    "nothing_saveable": jax.checkpoint_policies.nothing_saveable,
    "dots_saveable": jax.checkpoint_policies.dots_saveable,
    "dots_with_no_batch_dims_saveable": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "none, each block": None,
}


class Dense(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        width = x.shape[-1]
        return x + nn.Dense(width)(nn.gelu(nn.Dense(2 * width)(nn.LayerNorm()(x))))


class Attention(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = x + nn.MultiHeadDotProductAttention(4)(nn.LayerNorm()(x))
        return Dense()(x)


class Mixed(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        y = nn.LayerNorm()(x).swapaxes(1, 2)
        return Dense()(x + nn.Dense(x.shape[1])(nn.gelu(nn.Dense(32)(y))).swapaxes(1, 2))


class Convolved(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        y = nn.relu(nn.GroupNorm(4)(nn.Conv(x.shape[-1], (3, 3), use_bias=False)(x)))
        return nn.relu(x + nn.GroupNorm(4)(nn.Conv(x.shape[-1], (3, 3), use_bias=False)(y)))


class Next(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        c = x.shape[-1]
        y = nn.LayerNorm()(nn.Conv(c, (7, 7), feature_group_count=c)(x))
        return x + nn.Dense(c)(nn.gelu(nn.Dense(4 * c)(y)))


class Gated(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        y, c = nn.RMSNorm()(x), x.shape[-1]
        return x + nn.Dense(c)(nn.silu(nn.Dense(2 * c)(y)) * nn.Dense(2 * c)(y))


@dataclass(frozen=True)
class Model:
    """So many blocks of a kind between two dense layers."""

    name: str
    block: type[nn.Module]
    shape: tuple[int, ...]
    width: int
    depth: int = 6


MODELS = {
    "mlp": Model("MLP with residuals", Dense, (512, 64), 64, 8),
    "transformer": Model("transformer", Attention, (16, 64, 32), 64, 4),
    "mixer": Model("MLP-Mixer", Mixed, (16, 64, 32), 64),
    "resnet": Model("ResNet with group norms", Convolved, (8, 16, 16, 3), 16),
    "convnext": Model("ConvNeXt", Next, (8, 16, 16, 3), 16),
    "gated": Model("gated layers", Gated, (512, 64), 64, 8),
}


class Net(nn.Module):
    model: Model
    policy: Any = None
    remat: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        block = nn.remat(self.model.block, policy=self.policy) if self.remat else self.model.block
        x = nn.Dense(self.model.width)(x)
        for i in range(self.model.depth):
            x = block(name=f"block_{i}")(x)
        return nn.Dense(10)(x.reshape(x.shape[0], -1, x.shape[-1]).mean(1))


TX = optax.sgd(0.1, 0.9)


def step(net: Net) -> Callable[..., Any]:
    def train(params: Any, opt_state: Any, x: Any, y: Any) -> Any:
        def loss(p: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(net.apply(p, x), y).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = TX.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    return train


def jitted(fn: Any) -> Any:
    return jax.jit(fn, donate_argnums=(0, 1))


def figures(fn: Any, given: Any) -> Any:
    found = jitted(fn).lower(*given).compile().memory_analysis()
    assert found is not None
    return found


def arguments(model: Model) -> Any:
    """Parameters, the optimizer's state, a batch and its labels."""
    x = jax.random.normal(jax.random.key(0), model.shape)
    y = jnp.arange(model.shape[0]) % 10
    params = Net(model).init(jax.random.key(1), x)
    return params, TX.init(params), x, y


def best_policy(model: Model, given: Any) -> tuple[str, int]:
    """The policy of the least temporaries, and these."""
    peers = {n: step(Net(model, p, True)) for n, p in POLICIES.items()}
    found = {n: int(figures(fn, given).temp_size_in_bytes) for n, fn in peers.items()}
    return min(found.items(), key=lambda item: item[1])


def row(name: str) -> list[str]:
    model = MODELS[name]
    given = arguments(model)
    plain = step(Net(model))
    whole = figures(plain, given).temp_size_in_bytes
    best, theirs = best_policy(model, given)
    traced = fluid.trace(plain, *given)
    fitted = least(traced)
    ours = fitted.budget_report.chosen.figures.temporaries
    expected = jax.jit(plain)(*given)
    again = jax.jit(step(Net(model, POLICIES[best], True)))(*given)
    apart = [
        max(map(ulps, jax.tree.leaves(found), jax.tree.leaves(expected)))
        for found in (fitted.jit()(*jax.tree.map(jnp.copy, given)), again)
    ]
    cells = [f"{n / 1e6:.3f}" for n in (whole, ours, theirs)]
    return [model.name, *cells, best, f"{ours / theirs:.3f}", *(f"{n:.2f}" for n in apart)]


def half(name: str) -> list[str]:
    """A step within half of its temporaries."""
    model = MODELS[name]
    given = arguments(model)
    plain = step(Net(model))
    whole = figures(plain, given)
    always = whole.argument_size_in_bytes + whole.output_size_in_bytes - whole.alias_size_in_bytes
    fitted: Any = fluid.fit_memory(
        fluid.trace(plain, *given), int(always + whole.temp_size_in_bytes / 2)
    )
    best, theirs = best_policy(model, given)
    ours = fitted.budget_report.chosen.figures.temporaries
    peer = jitted(step(Net(model, POLICIES[best], True)))
    times = [over_jit(fn, jitted(plain), given) for fn in (fitted.jit(), peer)]
    cells = [f"{n / 1e6:.3f}" for n in (whole.temp_size_in_bytes, ours, theirs)]
    return [model.name, *cells[:2], f"{times[0]:.2f}", cells[2], f"{times[1]:.2f}"]


def over_jit(fn: Callable[..., Any], plain: Callable[..., Any], given: Any) -> float:
    def training(fn: Callable[..., Any]) -> Callable[[], Any]:
        state, batch = jax.tree.map(jnp.copy, given[:2]), given[2:]

        def run() -> Any:
            nonlocal state
            *state, loss = fn(*state, *batch)
            return loss

        return run

    return interleaved(training(fn), training(plain), jax.block_until_ready).ratio


def least(traced: fluid.Traced) -> Any:
    """The step within the least budget that there is."""
    try:
        return fluid.fit_memory(traced, 1)
    except FluidValueError as error:
        (number,) = re.findall(r"least that was found is ([\d,]+)", str(error))
    return fluid.fit_memory(traced, int(number.replace(",", "")))


def ulps(found: Any, expected: Any) -> float:
    """The greatest difference in units in the last place of the array's scale. Zero but for
    rounding (a bias of keys, whose gradient is none) counts as zero on both sides.
    """
    a, b = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    scale = float(np.abs(b).max(initial=0.0))
    if max(scale, float(np.abs(a).max(initial=0.0))) < 1e-8:
        return 0.0
    return float(np.abs(a - b).max(initial=0.0) / (np.finfo(np.float32).eps * scale))


def table() -> list[Table]:
    title = "The least temporaries of a training step: fluid.fit_memory beside jax.checkpoint"
    widths = [26, 15, 15, 12, 34, 9, 7, 12]
    dear = "The same steps within half of their temporaries; jax.checkpoint by its best policy"
    return [
        shown("checkpoints", title, COLUMNS, map(row, MODELS), widths=widths),
        shown("checkpoints_half", dear, HALF, map(half, MODELS), widths=[26, 15, 16, 15, 12, 24]),
    ]


if __name__ == "__main__":
    for cells in (row(sys.argv[1]), half(sys.argv[1])):
        print(*cells, sep="  ")
