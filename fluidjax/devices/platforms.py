"""Facts about each kind of device: how small state is packed, and where its memory is. Tuning for a
compiler is behind xla_cpu/policy.py.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Packing:
    """The measured cost of passing each array of the state by itself, compared with the step's
    other work.

    array: seconds that an array adds to a call. bytes, flops: bytes of large state that a step
    moves, and operations of its products, per second. noticed: the share of the step's time below
    which the cost of the calls does not matter; on a GPU all of it, because calls are made while
    earlier steps run. numbers: pack single numbers in any case; on a GPU each number that a step
    writes, such as the powers of Adam's betas, takes a kernel or two.
    """

    array: float
    bytes: float
    flops: float
    noticed: float
    numbers: bool = False


@dataclass(frozen=True)
class Tuning:
    """packs: the costs by which small state is packed into one array (state/buffers.py); None means
    never. hosted: the device's memory is the host's, so copying arrays to the device gains nothing.
    """

    packs: Packing | None = None
    hosted: bool = False


_CPU = Tuning(Packing(1.4e-6, 10e9, 30e9, 0.05), hosted=True)
_GPU = Tuning(packs=Packing(3.4e-6, 4e12, 1e14, 1.0, numbers=True))
_OTHERS = Tuning()


def tuning(platform: str) -> Tuning:
    """The tuning for a platform by JAX's name: "cpu", "gpu" or "cuda", "tpu"."""
    return {"cpu": _CPU, "gpu": _GPU, "cuda": _GPU}.get(platform, _OTHERS)
