"""Writes a program as an ONNX file, or reports everything that ONNX lacks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..base.dtypes import numpy_dtype
from ..errors import FluidValueError
from ..ir.desc import FrozenMap, ProgramDesc, VarDesc
from ..ir.dims import bare
from ..ops.registry import REGISTRY
from ..ops.traits import Sequences
from .onnx_file import LARGE, OPSETS, checked, model_of, onnx, write
from .program import Exporter, _lengths
from .report import ExportError, ExportReport, Lack, gathered
from .subject import Shapes, Subject, checked_sizes
from .tidy import tidy
from .values import Lacking, Value


def to_onnx(
    subject: Subject, path: Path, opset: int, shapes: Shapes, apart: bool | None
) -> ExportReport:
    """Write a program as ONNX. Raises ExportError with the whole report if something is not
    supported.
    """
    onnx()
    if type(opset) is not int or opset not in OPSETS:
        raise FluidValueError(
            f"opset {opset!r} is not written; there are {OPSETS[0]} to {OPSETS[-1]}"
        )
    sizes = checked_sizes(subject, shapes)
    exporter = Exporter(subject.desc, subject.params, opset)
    open_sizes: dict[str, dict[int, str]] = {}
    lacks: list[Lack] = []
    for name in subject.feeds:
        var = subject.var(name)
        if var.kind != "LOD_TENSOR" or var.dtype is None or var.shape is None:
            lacks.append(Lack(f"input '{name}'", 1, f"it is {var.kind}, no array"))
            continue
        _input(exporter, var, sizes[name], name in shapes, open_sizes, len(subject.feeds) == 1)
    exporter.run(subject.desc.blocks[0].ops)
    exporter.outputs(subject.fetches)
    lacks += gathered(exporter.lacks)
    became = {
        kind: (count[""], tuple(n for n in count if n)) for kind, count in exporter.became.items()
    }
    report = ExportReport(str(path), "onnx", FrozenMap(became), lacks=tuple(lacks))
    if lacks:
        raise ExportError(report)
    g = exporter.graph
    tidy(g)
    size = sum(a.nbytes for a in g.names.constants.values())
    beside = path.name + ".data" if apart or (apart is None and size > LARGE) else None
    try:
        model, writer = model_of(g, path.stem, open_sizes, {}, beside)
    except Lacking as lack:
        raise ExportError(replace(report, lacks=(Lack("elements", 1, lack.why),))) from None
    model, objections = checked(model)
    if objections:
        raise ExportError(replace(report, lacks=tuple(objections)))
    written = write(path, model, writer)
    return replace(
        report,
        nodes=len(g.nodes),
        inputs=tuple(_described(v, open_sizes) for v in g.inputs),
        outputs=tuple(_described(v, {}, g.names.called.get(v.name)) for v in g.outputs),
        size=written,
        notes=(f"the constants are in {beside}",) if beside else (),
    )


def _input(
    exporter: Exporter, var: VarDesc, sizes: list[int | str], wished: bool, open_sizes: dict[str, dict[int, str]],
    alone: bool,
) -> None:  # fmt: skip
    name, dtype = var.name, str(numpy_dtype(var.dtype or "float32"))
    if var.lod_level and not wished and _knows_sequences(exporter.desc):
        _ragged(exporter, var, dtype, open_sizes)
        return
    given = exporter.given(name, dtype, tuple(n if isinstance(n, int) else -1 for n in sizes))
    exporter.graph.names.open_axes += [
        (bare(text), given, i) for i, text in enumerate(var.dims or ()) if text
    ]
    open_sizes[name] = {
        i: bare(n) or ("batch" if i == 0 and alone else f"{name}.{i}")
        for i, n in enumerate(sizes)
        if isinstance(n, str)
    }


def _knows_sequences(desc: ProgramDesc) -> bool:
    """Whether any op reads lengths; otherwise a variable declared with lengths is an ordinary
    array.
    """
    return any(
        isinstance(REGISTRY[op.type].traits.rows, Sequences)
        for block in desc.blocks
        for op in block.ops
        if op.type in REGISTRY
    )


def _ragged(
    exporter: Exporter, var: VarDesc, dtype: str, open_sizes: dict[str, dict[int, str]]
) -> None:
    """An input of sequences: padded rows [sequences, longest, ...], and the length of each
    sequence.
    """
    from .onnx_ops.sequences import rows_of

    name, rest = var.name, tuple((var.shape or ())[1:])
    padded = exporter.given(name, dtype, (-1, -1, *rest))
    open_sizes[name] = {0: f"{name}.sequences", 1: f"{name}.longest"} | {
        i + 2: f"{name}.{i + 1}" for i, n in enumerate(rest) if n < 0
    }
    lengths = []
    for level in range(var.lod_level):
        lengths_name = _lengths(name, level, var.lod_level)
        each = exporter.given(lengths_name, "int64", (-1,))
        inner = level == var.lod_level - 1
        open_sizes[lengths_name] = {0: f"{name}.sequences" if inner else f"{lengths_name}.0"}
        lengths.append(each)
    g = exporter.graph
    g.base = f"{name}/rows"
    exporter.values[name] = rows_of(g, padded, lengths[-1]).ragged(lengths)


def _described(
    value: Value, open_sizes: Mapping[str, Mapping[int, str]], name: str | None = None
) -> str:
    sizes = open_sizes.get(value.name, {})
    shape = ", ".join(
        sizes.get(i, "?") if n < 0 else str(n) for i, n in enumerate(value.shape or ())
    )
    return f"{name or value.name} {value.dtype}[{shape}]"
