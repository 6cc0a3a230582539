"""What is known of a kind of device: how small state is packed, and where its memory is. Tuning for
a compiler is behind xla_cpu/policy.py.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Packing:
    """What it costs that each array of the state travels by itself, as measured, beside what a step
    does in any case.

    array: seconds that an array adds to a call. bytes, flops: a second, at which a step moves its
    large state and computes products. noticed: share of the step's time below which the cost of the
    calls does not matter: on a GPU all of it, for calls are made while the steps before them run.
    numbers: single numbers are packed in any case: on a GPU each that a step writes, as the powers
    of Adam's betas, is a kernel or two of its own.
    """

    array: float
    bytes: float
    flops: float
    noticed: float
    numbers: bool = False


@dataclass(frozen=True)
class Tuning:
    """packs: when small state travels in one array (state/buffers.py); None: never. hosted: what
    lies in the device's memory lies in the host's, so that nothing is won by bringing it there.
    """

    packs: Packing | None = None
    hosted: bool = False


_CPU = Tuning(Packing(1.4e-6, 10e9, 30e9, 0.05), hosted=True)
_GPU = Tuning(packs=Packing(3.4e-6, 4e12, 1e14, 1.0, numbers=True))
_OTHERS = Tuning()


def tuning(platform: str) -> Tuning:
    """What is done on a platform, as JAX names it: "cpu", "gpu" or "cuda", "tpu"."""
    return {"cpu": _CPU, "gpu": _GPU, "cuda": _GPU}.get(platform, _OTHERS)
