"""The options with which XLA:CPU compiles a step.

One set of options serves most steps: the level of optimisation and the emitters at which compiling
is short and steps are as fast as with XLA's defaults (the table of whole scripts in
docs/benchmarks.md). Others suit steps of whose loops over elements or products more is known
(cost.py).
A whole script to step 100 takes, with these options and with XLA's own, 2.1 and 3.0 CPU seconds
(LeNet), 6.2 and 7.6 (a ragged LSTM), 7.5 and 8.2 (a small ResNet), 11.8 and 11.0 (a transformer).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

import jax
import jaxlib

KNOW_ALL = ("0.10.2",)  # versions of jaxlib whose XLA knows every option that stands here
# What makes XLA order a step for the least memory; it has the choice on the CPU alone.
# A step that is not counted before it runs is ordered so too: memory that it does not touch need not
# be cleared by the system. In ms, by XLA's own order and by this one: a ragged LSTM's step 31 and
# 19, PP-OCRv4 rec on eight images 124 and 82; other nets are as fast.
MEMORY_OPTIMIZED = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
YNNPACK = "xla_cpu_experimental_ynn_fusion_type"  # what XLA:CPU gives to that library
ORDINARY: Mapping[str, Any] = {
    "xla_backend_optimization_level": 1,
    "xla_cpu_use_fusion_emitters": False,
}
# Loops over elements by XLA's newer emitters: fewer and faster ones. In nets of products alone they
# are compiled as fast: an MLP's step takes 0.95 ms for 1.42, a transformer's 53 for 60. Of a LeNet,
# a ragged LSTM and a deep net of thin layers the first step takes 0.2 to 2 s more, for nothing.
FUSED: Mapping[str, Any] = {
    "xla_backend_optimization_level": 1,
    "xla_cpu_use_fusion_emitters": True,
}
# Loops over elements as kernels of the library, which have vectors and are compiled already.
# Convolutions then are not its own.
IN_LIBRARY: Mapping[str, Any] = {
    "xla_backend_optimization_level": 1,
    YNNPACK: "LIBRARY_FUSION_TYPE_DOT,LIBRARY_FUSION_TYPE_REDUCE,LIBRARY_FUSION_TYPE_ELTWISE",
}
# Each product and convolution as a kernel of its own. XLA's choice joins a mean with all that is
# before it, the last product too, which then takes 2.9 ms for 0.8 in MobileNet-v1.
ALONE: Mapping[str, Any] = {
    **ORDINARY,
    YNNPACK: "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION",
}
# The same buffers, the least code.
LAID_OUT: Mapping[str, Any] = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
}


def left_open(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Those of these options of which the environment's XLA_FLAGS say nothing."""
    said = os.environ.get("XLA_FLAGS", "")
    return {name: value for name, value in wanted.items() if f"--{name}=" not in said}


def known(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Those of these options that this XLA knows."""
    options = tuple(wanted.items())
    if jaxlib.__version__ in KNOW_ALL or _known(options):
        return dict(options)
    return {name: value for name, value in options if _known(((name, value),))}


@cache
def _known(options: tuple[tuple[str, Any], ...]) -> bool:
    """XLA's options come and go; a compilation with one that it does not know fails. All are tried
    at once first, for it takes 15 ms.
    """
    try:
        jax.jit(lambda: 0).lower().compile(compiler_options=dict(options))
    except jax.errors.JaxRuntimeError:
        return False
    return True
