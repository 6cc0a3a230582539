"""How hard XLA tries when it compiles a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import jax
import jaxlib

KNOW_ALL = ("0.10.2",)  # versions of jaxlib whose XLA knows every option that stands here
# What makes XLA order a step for the least memory; it has the choice on the CPU alone.
MEMORY_OPTIMIZED = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
YNNPACK = "xla_cpu_experimental_ynn_fusion_type"  # what XLA:CPU gives to that library
# What makes XLA's convolutions and products read turned filters (lower/layout.py) as they lie: on the CPU, where its YNNPACK kernels copy
# them first. For filters that are not turned those are the faster ones.
READS_TURNED = {YNNPACK: ""}
# Loops over elements as kernels of the library, which have vectors and are compiled already. Convolutions then are not its own.
ELEMENTWISE = "LIBRARY_FUSION_TYPE_ELTWISE"
IN_LIBRARY = {YNNPACK: f"LIBRARY_FUSION_TYPE_DOT,LIBRARY_FUSION_TYPE_REDUCE,{ELEMENTWISE}"}


@dataclass(frozen=True)
class Effort:
    """packs: whether small state may travel packed, which makes calls shorter and compiling longer. joins: whether updates of small
    parameters run at once (lower/updates.py), which makes compiling shorter where XLA tries little. stage: a step of
    at least twice as many equations is compiled in stages of about so many, which is sooner done on several cores (of smaller ones, what
    is the same for each stage counts). slow_loops: whether those over elements have no vectors. wanted: options of XLA.
    """

    name: str
    packs: bool
    joins: bool = False
    stage: int | None = None
    slow_loops: bool = False
    wanted: Mapping[str, Any] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """Those of the options that this XLA knows."""
        return known(self.wanted)


def known(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Those of these options that this XLA knows."""
    options = tuple(wanted.items())
    if jaxlib.__version__ in KNOW_ALL or _known(options):
        return dict(options)
    return {name: value for name, value in options if _known(((name, value),))}


@cache
def _known(options: tuple[tuple[str, Any], ...]) -> bool:
    """XLA's options come and go; a compilation with one that it does not know fails. All are tried at once first, for it takes 15 ms."""
    try:
        jax.jit(lambda: 0).lower().compile(compiler_options=dict(options))
    except jax.errors.JaxRuntimeError:
        return False
    return True


OPTIMISED = Effort("optimised", packs=True)
QUICK = Effort(
    "quick", packs=False, joins=True, stage=2000, slow_loops=True,
    wanted={"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False},
)  # fmt: skip
# As quick as is possible where loops over elements run in vectors: those of QUICK take ten to thirty times as long.
QUICK_WITH_FAST_LOOPS = replace(QUICK, stage=600, slow_loops=False, wanted={**QUICK.wanted, "xla_backend_optimization_level": 1})
# The same for steps whose loops are long: those over elements are a library's. Of the few that are left those with vectors are soon
# compiled, XLA's other emitters turn arrays faster, and ordered for memory a step has fewer new pages (ResNet-32 0.35 s for 0.38; of an
# optimised one on two cores, which has more to do at once, no fewer).
QUICK_IN_LIBRARY = replace(QUICK, wanted={**QUICK.wanted, **IN_LIBRARY})
QUICK_WITH_FAST_LOOPS_IN_LIBRARY = replace(
    QUICK_WITH_FAST_LOOPS, stage=1200, wanted={"xla_backend_optimization_level": 1, **IN_LIBRARY, **MEMORY_OPTIMIZED}
)
OPTIMISED_IN_LIBRARY = replace(OPTIMISED, wanted=IN_LIBRARY)
# What only has to be laid out: the same buffers, the least code.
LAID_OUT = replace(QUICK, name="laid out", stage=None)
