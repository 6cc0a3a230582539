"""The options with which XLA:CPU compiles a step.

One set of options serves most steps: an optimisation level and emitters with which compilation is
short and steps are as fast as with XLA's defaults (the table of whole scripts in
docs/benchmarks.md). Steps with long loops over elements, or made of matrix products (cost.py), get
other options. A whole script to step 100 takes, with these options and with XLA's own, 2.5 and 3.5
CPU seconds (LeNet), 5.6 and 8.1 (a ragged LSTM), 8.7 and 9.3 (a small ResNet), 13.8 and 14.7 (a
transformer), on two cores of an Intel Xeon (2026-11-30).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

import jax
import jaxlib

KNOW_ALL = ("0.10.2",)  # versions of jaxlib whose XLA knows every option below
# Makes XLA order a step for the least memory; only the CPU has this option. Every step is ordered
# so, because the system need not clear memory that the step does not touch. In ms, by XLA's default
# order and by this one: a ragged LSTM's step 31 and 19, PP-OCRv4 rec on eight images 124 and 82;
# other nets are as fast.
MEMORY_OPTIMIZED = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
YNNPACK = "xla_cpu_experimental_ynn_fusion_type"  # the fusions that XLA:CPU gives to YNNPACK
# YNNPACK does not get the convolutions: it runs them in one thread, and the filter's gradient takes
# it twice the CPU time besides. In ms on two cores, by XLA's default and without them (64 to 64
# channels, 3x3, 32 images of 32x32): output 20 and 11, filter's gradient 74 and 21.
ORDINARY: Mapping[str, Any] = {
    "xla_backend_optimization_level": 1,
    "xla_cpu_use_fusion_emitters": False,
    YNNPACK: "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_REDUCE",
}
# XLA's newer emitters make fewer and faster loops over elements. In nets of matrix products they
# compile as fast: an MLP's step takes 0.95 ms instead of 1.42, a transformer's 53 instead of 60.
# The first step of a LeNet, a ragged LSTM or a deep net of thin layers takes 0.2 to 2 s more with
# them, and gains nothing.
FUSED: Mapping[str, Any] = {
    "xla_backend_optimization_level": 1,
    "xla_cpu_use_fusion_emitters": True,
    YNNPACK: "LIBRARY_FUSION_TYPE_DOT,LIBRARY_FUSION_TYPE_REDUCE",
}
# Loops over elements as kernels of the library, which are vectorised and compiled already. The
# library does not get the convolutions.
IN_LIBRARY: Mapping[str, Any] = {
    "xla_backend_optimization_level": 1,
    YNNPACK: "LIBRARY_FUSION_TYPE_DOT,LIBRARY_FUSION_TYPE_REDUCE,LIBRARY_FUSION_TYPE_ELTWISE",
}
# The library gets products alone. With reductions it is given a mean and everything before it, also
# the last product, which then takes 2.9 ms instead of 0.8 in MobileNet-v1.
ALONE: Mapping[str, Any] = {**ORDINARY, YNNPACK: "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"}
# The same buffers with the least code generation.
LAID_OUT: Mapping[str, Any] = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
}


def left_open(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The options that the environment's XLA_FLAGS do not set."""
    said = os.environ.get("XLA_FLAGS", "")
    return {name: value for name, value in wanted.items() if f"--{name}=" not in said}


def known(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The options that this XLA knows."""
    options = tuple(wanted.items())
    if jaxlib.__version__ in KNOW_ALL or _known(options):
        return dict(options)
    return {name: value for name, value in options if _known(((name, value),))}


@cache
def _known(options: tuple[tuple[str, Any], ...]) -> bool:
    """XLA's options change between versions, and a compilation with an unknown option fails. All
    are tried together first, because each trial takes 15 ms.
    """
    try:
        jax.jit(lambda: 0).lower().compile(compiler_options=dict(options))
    except jax.errors.JaxRuntimeError:
        return False
    return True
