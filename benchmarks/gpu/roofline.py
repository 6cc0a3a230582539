"""What the card can do: products of matrices, and copies. Other cases tell their share of it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from .bench import Side, choose, timed
from .records import Found

KINDS = {
    "bf16": (jnp.bfloat16, "default"),
    "f32": (jnp.float32, "default"),
    "f32 exact": (jnp.float32, "highest"),
}


def roofline() -> Iterator[Found]:
    """Teraflops a second of square products, terabytes a second that a copy reads and writes."""
    size, length = choose(8192, 256), choose(1 << 30, 1 << 16)
    sides = []
    for name, (dtype, precision) in KINDS.items():
        a, b = (jax.random.normal(jax.random.key(k), (size, size), dtype) for k in (1, 2))
        multiply = jax.jit(lambda ab, precision=precision: jnp.matmul(*ab, precision=precision))
        sides.append(Side(name, multiply, (a, b)))
    more = jax.random.normal(jax.random.key(3), (length,), jnp.float32)
    sides.append(Side("copy", jax.jit(lambda x: -x), more))
    for side in sides:
        side.prepare()
    yield {}
    best = {name: min(each) for name, each in timed(sides, turns=5).items()}
    a, b = (np.random.default_rng(k).standard_normal((512, 512)).astype(np.float32) for k in (1, 2))
    exact, errors = a.astype(np.float64) @ b, {}
    for name, (dtype, precision) in KINDS.items():
        got = np.asarray(
            jnp.matmul(jnp.asarray(a, dtype), jnp.asarray(b, dtype), precision=precision)
        ).astype(np.float64)
        errors[name] = np.linalg.norm(got - exact) / np.linalg.norm(exact)
    found = {f"{name} tflops": 2 * size**3 / best[name] / 1e12 for name in KINDS}
    yield {
        **found,
        "copy tb_s": 8 * length / best["copy"] / 1e12,
        "errors": errors,
        "stats": jax.devices()[0].memory_stats(),
    }


def machine() -> Found:
    """The card and the versions."""
    import flax
    import jaxlib
    import optax

    device = jax.devices()[0]
    versions = {m.__name__: m.__version__ for m in (jax, jaxlib, flax, optax, np)}
    memories = sorted(m.kind for m in device.addressable_memories())
    said = {
        "device": device.device_kind,
        "platform": device.platform,
        "client": str(device.client.platform_version),
        "memories": memories,
    }
    return {
        **said,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
    }


def versions() -> Iterator[Found]:
    """What stands at the head of the results."""
    yield {}
    yield machine()
