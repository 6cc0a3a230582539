"""Writes a program as Paddle's own files, or as text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from ..ir.desc import FrozenMap
from ..ir.text import to_text as printed
from ..saved.files import write_files, write_text
from ..saved.model import MODEL
from ..saved.vars import files_of
from .report import ExportError, ExportReport, gathered
from .subject import Subject


def _report(subject: Subject, path: Path, format: str, size: int) -> ExportReport:
    ops = [op for b in subject.desc.blocks for op in b.ops if op.type not in ("feed", "fetch")]
    kinds = Counter(op.type for op in ops)
    return ExportReport(
        str(path),
        format,
        FrozenMap({k: (n, (k,)) for k, n in kinds.items()}),
        nodes=len(ops),
        inputs=subject.feeds,
        outputs=subject.fetches,
        size=size,
    )


def to_fluid(subject: Subject, path: Path) -> ExportReport:
    """Write a folder with ``__model__`` and a file for each parameter. Raises ExportError for JAX's
    ops, which Paddle does not have.
    """
    found = [
        (op.type, "Paddle has no such op", "write the function with fluid.layers", op.loc or "")
        for block in subject.desc.blocks
        for op in block.ops
        if op.type.startswith("jax.")
    ]
    if found:
        raise ExportError(ExportReport(str(path), "fluid", lacks=gathered(found)))
    kept = [
        n
        for n, v in subject.desc.blocks[0].vars.items()
        if v.persistable and v.kind == "LOD_TENSOR" and n in subject.params
    ]
    arrays = {n: np.asarray(subject.params[n]) for n in sorted(kept)}
    data = subject.desc.serialize_to_string()
    files = {MODEL: lambda: [data], **(files_of(arrays, None) if arrays else {})}
    write_files(path, files)
    return _report(subject, path, "fluid", len(data) + sum(a.nbytes for a in arrays.values()))


def to_text(subject: Subject, path: Path) -> ExportReport:
    """Write the printed program."""
    text = printed(subject.desc)
    write_text(path, text)
    return _report(subject, path, "text", len(text.encode()))
