"""Startup programs in fresh processes: run by the Executor, compiled as one step, and a jitted flax
init beside them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import fluidjax as fluid

from . import flax_models, fluid_models
from .cases import adam
from .page import Table, shown

CASES = {
    "MLP 784-512-512-10": (fluid_models.mlp, flax_models.MLP, (1, 784)),
    "ResNet-32": (fluid_models.resnet32, flax_models.ResNet32, (1, 32, 32, 3)),
    "500 random parameters": (fluid_models.many_parameters, flax_models.ManyParameters, (1, 8)),
}
SLOW = 20.0  # seconds: what takes longer is measured once


def _executor(name: str) -> Callable[[], Any]:
    _, startup, _ = fluid_models.build(CASES[name][0], adam()[0])
    exe, scope = fluid.Executor(), fluid.Scope()

    def run() -> Any:
        exe.run(startup, scope=scope)
        return [scope.find_var(n).value for n in scope.local_var_names()]

    return run


def _compiled(name: str) -> Callable[[], Any]:
    _, startup, _ = fluid_models.build(CASES[name][0], adam()[0])
    return lambda: jax.jit(fluid.init_fn(startup))(jax.random.key(1))


def _flax(name: str) -> Callable[[], Any]:
    _, model, shape = CASES[name]

    def init(key: Any) -> Any:
        variables = model().init(key, jnp.zeros(shape))
        return variables, adam()[1].init(variables["params"])

    return lambda: jax.jit(init)(jax.random.key(1))


SIDES = {"Executor": _executor, "compiled": _compiled, "flax": _flax}


def one(side: str, name: str) -> None:
    """Print the seconds on the clock and of the processor that one side takes in this process, from
    the built program on.
    """
    run = SIDES[side](name)
    clock, cpu = time.perf_counter(), time.process_time()
    jax.block_until_ready(run())
    print(time.perf_counter() - clock, time.process_time() - cpu)


def _measured(side: str, name: str) -> tuple[float, float]:
    environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "0"}
    code = f"from benchmarks.startup import one; one({side!r}, {name!r})"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout
    clock, cpu = map(float, out.split()[-2:])
    return clock, cpu


def table() -> list[Table]:
    """Cold startups: medians of three fresh processes in turn."""

    def row(name: str) -> list[str]:
        times: dict[str, list[tuple[float, float]]] = {side: [] for side in SIDES}
        for _ in range(3):
            for side, found in times.items():
                if not found or found[0][0] < SLOW:
                    found.append(_measured(side, name))
        medians = [
            [statistics.median(kind) for kind in zip(*found, strict=True)]
            for found in times.values()
        ]
        return [name, *(f"{clock:.2f} / {cpu:.2f}" for clock, cpu in medians)]

    title = "Startup program, cold (seconds on the clock / of the processor)"
    return [
        shown(
            "startup",
            title,
            ["model", "Executor.run", "as one step", "jitted flax init"],
            map(row, CASES),
        )
    ]
