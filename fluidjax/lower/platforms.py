"""What a step is made like on a kind of device: all that was tuned for XLA's CPU backend is asked
for here, and nowhere else.

XLA:CPU is one compiler among several. It computes images with their channels last, has filters in
an order of its own, and gives loops to a library. None of that holds on a GPU, where cuDNN and XLA
choose layouts by themselves and what a step costs is not what a call costs. So elsewhere nothing of
it applies until it was measured there; on a GPU that is so of small state that is packed.

Beside this, ops have ways of their own for the CPU (`lax.platform_dependent`: ops/convolution.py,
ops/extremes.py), which are chosen when a step is lowered.
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
    """channels_last: images are held so, whatever the program says (layout.py). turns: filters that
    only a prediction reads are turned between steps, and large batches are predicted some samples
    at a time (by_samples.py). options: XLA has options for a step (runtime/compiler_options.py).
    packs: when small state travels in one array (runtime/state_buffers.py); None: never. waits: an
    update waits, where a program is compiled for memory, until nothing reads the old parameter
    (last_readers.py): XLA decides where values lie before it orders the work. hosted: what lies in
    the device's memory lies in the host's, so that nothing is won by bringing it there.
    """

    channels_last: bool = False
    turns: bool = False
    options: bool = False
    packs: Packing | None = None
    waits: bool = False
    hosted: bool = False


_CPU = Tuning(
    channels_last=True, turns=True, options=True, packs=Packing(1.4e-6, 10e9, 30e9, 0.05), waits=True, hosted=True,
)  # fmt: skip
_GPU = Tuning(packs=Packing(3.4e-6, 4e12, 1e14, 1.0, numbers=True))
_OTHERS = Tuning()


def tuning(platform: str) -> Tuning:
    """What is done on a platform, as JAX names it: "cpu", "gpu" or "cuda", "tpu"."""
    return {"cpu": _CPU, "gpu": _GPU, "cuda": _GPU}.get(platform, _OTHERS)
