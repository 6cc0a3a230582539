"""What bounds predictions on a CPU: XLA's own convolutions and products, each by itself, beside
onnxruntime's and torch's.

The sizes are those of MobileNet-v1 and ResNet-50 at 224x224 and batch 1. XLA has channels last, as
our steps hold them, the others channels first, as their models have them; a 1x1 convolution is a
product for XLA, as in our steps, which compute depthwise ones in a way of their own. One thread,
CPU time.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fluidjax.ops import convolution
from fluidjax.ops.convolution_geometry import Geometry
from fluidjax.xla_cpu.policy import choose

from .beside import PYTHONS
from .convolutions import compiled, milliseconds

SCRIPT = Path(__file__).parent / "peers" / "kernels.py"
PEERS = ("onnxruntime", "torch")


@dataclass(frozen=True)
class Kernel:
    """A convolution of x [N, C, H, W] with w [O, C / groups, h, w], padded by half a filter; with
    two axes, the product x w.
    """

    x: tuple[int, ...]
    w: tuple[int, ...]
    stride: int = 1

    @property
    def groups(self) -> int:
        return self.x[1] // self.w[1] if len(self.x) > 2 else 1

    @property
    def pad(self) -> int:
        return self.w[-1] // 2 if len(self.x) > 2 else 0

    @property
    def name(self) -> str:
        if len(self.x) == 2:
            return f"product, {self.x[0]}x{self.x[1]} with {self.w[0]}x{self.w[1]}"
        kind = f"{self.w[2]}x{self.w[3]}" + (", depthwise" if self.groups > 1 else "")
        return f"{kind}, {self.x[1]} to {self.w[0]}, {self.x[2]}x{self.x[3]}" + (
            f", stride {self.stride}" if self.stride > 1 else ""
        )


def _one(inputs: int, outputs: int, side: int, stride: int = 1) -> Kernel:
    return Kernel((1, inputs, side, side), (outputs, inputs, 1, 1), stride)


def _three(channels: int, side: int, stride: int = 1) -> Kernel:
    return Kernel((1, channels, side, side), (channels, channels, 3, 3), stride)


def _depthwise(channels: int, side: int, stride: int = 1) -> Kernel:
    return Kernel((1, channels, side, side), (channels, 1, 3, 3), stride)


KERNELS = {
    "ResNet-50": (
        _three(64, 56), _three(128, 28), _three(256, 14), _three(512, 7), _one(64, 256, 56), _one(128, 512, 28),
        _one(1024, 256, 14), _one(512, 2048, 7), Kernel((1, 2048), (2048, 1000)),
    ),
    "MobileNet-v1": (
        _one(32, 64, 112), _one(128, 128, 56), _one(256, 256, 28), _one(512, 512, 14), _one(1024, 1024, 7),
        _depthwise(32, 112), _depthwise(128, 56), _depthwise(128, 56, 2), _depthwise(512, 14), _depthwise(1024, 7),
        Kernel((1, 1024), (1024, 1000)),
    ),
}  # fmt: skip


def xla(kernel: Kernel, x: Any, w: Any) -> jax.Array:
    """The kernel on x with channels last and w as [h, w, C / groups, O]."""
    if len(kernel.x) == 2:
        return x @ w
    if kernel.pad == 0 and kernel.stride == 1:
        return jnp.einsum("nhwc,co->nhwo", x, w[0, 0])
    pads, names = ((kernel.pad,) * 2,) * 2, ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, w, (kernel.stride,) * 2, pads, dimension_numbers=names, feature_group_count=kernel.groups
    )


def ours(kernel: Kernel, x: Any, w: Any) -> jax.Array:
    """The same in the way in which our steps compute it; w as steps hold it, [O, C / groups, h, w]
    but for depthwise filters.
    """
    if len(kernel.x) == 2:
        return x @ w
    shape = kernel.x[0], *kernel.x[2:], kernel.x[1]
    geo = Geometry(
        shape, kernel.w, (kernel.stride,) * 2, ((kernel.pad,) * 2,) * 2, (1, 1), kernel.groups, True
    )
    w = w.transpose(3, 2, 0, 1) if kernel.groups > 1 else w
    return convolution.output(geo, x, w, choose("cpu").target)


def arguments(kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
    """x and w as `xla` takes them."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape, np.float32) for shape in (kernel.x, kernel.w))
    return (
        (x, w) if x.ndim == 2 else (x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy())
    )


def measured(kernel: Kernel) -> list[float]:
    """CPU ms of XLA's kernel and of ours."""
    sides = zip((xla, ours), both(kernel), strict=True)
    return milliseconds(
        [
            compiled(partial(function, kernel), tuple(map(jnp.asarray, args)))[0]
            for function, args in sides
        ]
    )


def both(kernel: Kernel) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The arguments of `xla` and of `ours`."""
    x, w = arguments(kernel)
    return (x, w), (x, w.transpose(3, 2, 0, 1).copy() if w.ndim > 2 and kernel.groups == 1 else w)


def theirs(side: str, kernels: Sequence[Kernel]) -> tuple[str, list[float]] | None:
    """A peer's version, and its CPU ms; None where it is not installed."""
    if not PYTHONS[side].exists():
        return None
    cases = json.dumps([[k.x, k.w, k.stride, k.pad, k.groups] for k in kernels])
    one = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    found = subprocess.run(
        [str(PYTHONS[side]), str(SCRIPT), side, cases],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **one},
        check=False,
    )
    if found.returncode:
        return None
    version, *_, times = found.stdout.splitlines()
    return version, json.loads(times)


def table() -> None:
    """CPU ms of each kernel, and behind a peer's how many times as long XLA's takes, and ours."""
    before = os.sched_getaffinity(0)
    # one thread for everybody: what a peer runs in inherits it
    os.sched_setaffinity(0, {min(before)})
    try:
        _table([k for kernels in KERNELS.values() for k in kernels])
    finally:
        os.sched_setaffinity(0, before)


def _table(kernels: Sequence[Kernel]) -> None:
    print(
        "\nBare kernels, batch 1: CPU ms, one core, medians; in brackets XLA's over it, ours"
        " over it"
    )
    peers = []
    for side in PEERS:
        found = theirs(side, kernels)
        print(
            f"  {side} is not there; make bench-peers installs it"
            if found is None
            else f"  {found[0]}"
        )
        peers += [found] if found is not None else []
    print(
        f"{'kernel':<46}{'XLA:CPU':>10}{'ours':>10}"
        + "".join(f"{version.split()[0]:>24}" for version, _ in peers)
    )
    for i, kernel in enumerate(kernels):
        a, b = measured(kernel)
        beside = "".join(f"{f'{t[i]:.3f} ({a / t[i]:.2f}, {b / t[i]:.2f})':>24}" for _, t in peers)
        print(f"{kernel.name:<46}{a:>10.3f}{b:>10.3f}{beside}", flush=True)
