"""Rewrites of programs: functions from a frozen desc to a frozen desc, one pass per module.

A module registers its pass, and no list names it: importing this package imports all its modules.
``run("inference,fuse_batch_norm,dce", desc, params, keep=[...])`` runs passes by name; ``PASSES``
holds them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

from ..ir.desc import ProgramDesc
from . import base
from .base import PASSES, Note, Params, Pass, PassResult, Pipeline, Rewrite, did, refused, register
from .certificate import Certificate, Fold
from .match import Refused, Values, chain
from .memory_plan import MemoryPlan
from .pipeline import as_pass, parse

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def run(
    pas: Pass | str, desc: ProgramDesc, params: Params | None = None, keep: Iterable[str] = ()
) -> PassResult:
    """Run a pass, a pipeline, or the text of one, on a program; see base.run."""
    return base.run(as_pass(pas), desc, params, keep)


__all__ = [
    "PASSES", "Certificate", "Fold", "MemoryPlan", "Note", "Params", "Pass", "PassResult", "Pipeline", "Refused", "Rewrite", "Values",
    "as_pass", "chain", "did", "parse", "refused", "register", "run",
]  # fmt: skip
