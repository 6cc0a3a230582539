"""Writes a program as TensorFlow's SavedModel: StableHLO in one op, with the parameters as its
variables.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..base.dtypes import numpy_dtype
from ..errors import UnsupportedError
from ..saved.files import Pieces, write_files
from .report import ExportError, ExportReport, Lack
from .stablehlo import made_of, report_of, tensor_metadata
from .subject import Shapes, Subject


def to_savedmodel(
    subject: Subject, path: Path, shapes: Shapes, platforms: Sequence[str]
) -> ExportReport:
    """Write a folder whose signature "serving_default" has the program's inputs and outputs.

    Raises ExportError for a program that works only in this process, UnsupportedError if TensorFlow
    is not installed.
    """
    if find_spec("tensorflow") is None:
        raise UnsupportedError(
            "a SavedModel is written by TensorFlow: pip install tensorflow-cpu; other runtimes read"
            " format='onnx' and format='stablehlo'"
        )
    import tensorflow as tf
    from tensorflow.compiler.tf2xla.python import xla

    made = made_of(subject, path, "savedmodel", shapes, platforms, True)
    exported = made.exported
    names = called(subject.feeds)
    inputs = [tensor_metadata(names[n], t) for n, t in zip(subject.feeds, made.inputs, strict=True)]
    outputs = [
        tensor_metadata(n, t) for n, t in zip(subject.fetches, exported.out_avals, strict=True)
    ]
    holder = tf.Module()
    holder.state = [tf.Variable(made.values[n], trainable=False) for n in made.kept]

    def run(**fed: Any) -> dict[str, Any]:
        found = xla.call_module(
            (*(v.read_value() for v in holder.state), *(fed[names[n]] for n in subject.feeds)),
            version=exported.calling_convention_version,
            module=exported.mlir_module_serialized,
            Tout=[numpy_dtype(o["dtype"]) for o in outputs],
            Sout=[_sizes(o["shape"]) for o in outputs],
            platforms=[p.upper() for p in exported.platforms],
        )
        return dict(zip(subject.fetches, found, strict=True))

    types = {
        i["name"]: tf.TensorSpec(_sizes(i["shape"]), numpy_dtype(i["dtype"]), i["name"])
        for i in inputs
    }
    holder.run = tf.function(run, autograph=False)
    signature = holder.run.get_concrete_function(**types)
    if says := _unread(tf, signature, inputs):
        lack = Lack("the program", 1, f"TensorFlow {tf.__version__} does not read its code: {says}", "try a later one")  # fmt: skip
        raise ExportError(ExportReport(str(path), "savedmodel", lacks=(lack,)))
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(holder, folder, signatures={"serving_default": signature})
        found = sorted(p for p in Path(folder).rglob("*") if p.is_file())
        files = {p.relative_to(folder).as_posix(): _pieces(p) for p in found}
        write_files(path, files)
        size = sum(p.stat().st_size for p in found)
    notes = [
        f"one XlaCallModule, for {', '.join(exported.platforms)}",
        *(f"input {n!r} is called {own!r}" for n, own in names.items() if n != own),
    ]
    return report_of(subject, path, "savedmodel", inputs, outputs, size, notes)


def called(names: Sequence[str]) -> dict[str, str]:
    """The names of inputs in the signature, in which a name has only letters, digits and
    underscores.
    """
    found: dict[str, str] = {}
    for name in names:
        own = re.sub(r"\W", "_", name, flags=re.ASCII)
        while own in found.values():
            own += "_"
        found[name] = own
    return found


def _unread(tf: Any, signature: Any, inputs: Sequence[Mapping[str, Any]]) -> str:
    """The reason why TensorFlow's own reader of StableHLO, which may be older than JAX's writer,
    refuses the code; "" if it accepts it. The reader works at run time, so the code is run on
    zeros.
    """
    zeros = {i["name"]: np.zeros([n or 1 for n in _sizes(i["shape"])], i["dtype"]) for i in inputs}
    try:
        signature(**{n: tf.constant(v) for n, v in zeros.items()})
    except tf.errors.OpError as error:
        found = re.search(r"Cannot deserialize computation: (.*)", error.message)
        return found[1] if found else ""  # otherwise these sizes do not fit
    return ""


def _sizes(shape: Sequence[Any]) -> list[int | None]:
    return [n if isinstance(n, int) else None for n in shape]


def _pieces(path: Path) -> Pieces:
    return lambda: [path.read_bytes()]
