"""Programs in the formats of other runtimes: ``fluid.export`` writes them, ``fluid.load_exported``
runs StableHLO files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FluidValueError, near
from .report import ExportError, ExportReport, Lack

if TYPE_CHECKING:
    from ..graph.program import Program
    from ..graph.variable import Variable
    from ..state.scope import Scope
    from ..tracing.traced import Traced
    from .stablehlo import Loaded
    from .subject import Shapes

FORMATS = ("onnx", "stablehlo", "savedmodel", "fluid", "text")
FOLDERS = ("savedmodel", "fluid")
SUFFIXES = {".onnx": "onnx", ".hlo": "stablehlo", ".txt": "text"}


def export(
    model: Program | Traced | str | os.PathLike[str],
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    feeds: Sequence[str] | None = None,
    fetches: Sequence[str | Variable] | None = None,
    scope: Scope | None = None,
    shapes: Shapes | None = None,
    opset: int = 17,
    external_data: bool | None = None,
    platforms: Sequence[str] = ("cpu", "cuda", "tpu"),
    state: str = "baked",
) -> ExportReport:
    """Write a program for another runtime, and report what each op became.

    model: a Program, a result of :func:`fluidjax.trace`, or the folder of a saved model. feeds,
    fetches: names (or variables) of the inputs and outputs; default those of its feed and fetch
    ops. scope: the scope of its parameters' values, default the global one. The program is written
    for prediction: test mode, without backward and updates, pruned to the fetches.

    format: None to use the file's suffix: ``.onnx``, ``.hlo`` for StableHLO, ``.txt`` for text. A
    name with another suffix needs a format.

    shapes: for inputs, a size for each axis: a number fixes an open size, a text names it, and may
    say what it is at least (``h>=32``), which some ops must know. An input
    with shapes is one array, even if the program declares lengths for it.

    format "onnx": opset 17 to 21, with the variables' names, open sizes as declared, and float32
    computed as float32. An input of sequences is padded rows [sequences, longest, ...] with a
    further input ``NAME.lengths``. external_data: store constants in ``PATH.data``; None: if the
    file would be larger than 2 GB.

    format "stablehlo": the output of jax.export, for these platforms, with its names in
    ``PATH.json``. state "baked" stores the parameters in the code, "arguments" in ``PATH.state``.
    Open sizes stay open if every op can be traced with them. Read by :func:`load_exported`, or by
    ``jax.export``.

    format "savedmodel", if TensorFlow is installed: a folder with the same code as one op, and the
    parameters as variables.

    format "fluid": a folder that Paddle 1.8.5 loads, with a file for each parameter. format "text":
    the program as it prints.

    Raises ExportError (an UnsupportedError) whose `report` names everything that the format lacks
    at once, with counts and the user's lines; then nothing is written, as with any other error, and
    an existing file does not change. Raises FluidValueError for unknown names, shapes, formats and
    opsets.
    """
    from .subject import subject_of

    where = Path(path)
    format = _format_of(where) if format is None else format
    if format not in FORMATS:
        raise FluidValueError(
            f"there is no format {format!r}{near(format, FORMATS)}; there are {', '.join(FORMATS)}"
        )
    if where.is_dir() and format not in FOLDERS:
        raise FluidValueError(f"cannot write {str(where)!r}: a folder has this name")
    subject = subject_of(model, feeds, fetches, scope)  # type: ignore[arg-type]
    if format == "onnx":
        from .to_onnx import to_onnx

        return to_onnx(subject, where, opset, shapes or {}, external_data)
    if format == "stablehlo":
        from .stablehlo import to_stablehlo

        return to_stablehlo(subject, where, shapes or {}, platforms, state)
    if format == "savedmodel":
        from .savedmodel import to_savedmodel

        return to_savedmodel(subject, where, shapes or {}, platforms)
    from .to_fluid import to_fluid, to_text

    return to_fluid(subject, where) if format == "fluid" else to_text(subject, where)


def _format_of(path: Path) -> str:
    """The format of a file's suffix."""
    found = SUFFIXES.get(path.suffix.lower())
    if found is None:
        raise FluidValueError(
            f"the name {path.name!r} does not say which format to write: let it end in"
            f" {', '.join(SUFFIXES)}, or give a format, one of {', '.join(FORMATS)}"
        )
    return found


def load_exported(path: str | os.PathLike[str]) -> Loaded:
    """Load the files of ``fluid.export(..., format="stablehlo")``: ``loaded({"x": array})`` gives
    the outputs by name, run by JAX without this package's ops.

    Raises FluidValueError for missing files, ParseError for files that are damaged or not such an
    export, UnsupportedError if flatbuffers is not installed. Nothing in the files is run as Python,
    and code that would call Python is refused.
    """
    from . import stablehlo

    return stablehlo.load_exported(Path(path))


def load_onnx(
    path: str | os.PathLike[str], scope: Scope | None = None
) -> tuple[Program, list[str], list[str]]:
    """An ONNX file as (program, names of the feeds, names of the outputs), for passes, budgets and
    the planner. Its constants go into a scope, default the global one.

    Names are kept. Nodes on small constants are computed during the import. Raises ExportError
    whose `report` names every node without an op here; ParseError for files that are damaged, or
    have their constants in another file; FluidValueError for a missing file. The scope does not
    change then.
    """
    from . import from_onnx, from_onnx_blocks, from_onnx_recurrent, from_onnx_shapes  # noqa: F401  (rules)

    return from_onnx.load_onnx(Path(path), scope)


__all__ = ["ExportError", "ExportReport", "Lack", "export", "load_exported", "load_onnx"]
