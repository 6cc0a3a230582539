"""load, load_combine, save, save_combine: tensors in Paddle's files, read and written while a
program runs.

The contents of a file are unknown until it is read, so a program is cut at these ops and Python
runs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...base.dtypes import name_of, numpy_dtype
from ...errors import EnforceNotMet, FluidValueError, LoadError, NotOneStep, UnsupportedError
from ...ir.desc import VarDesc
from ..control_interface import Call, ControlOp
from ..ragged import Ragged, trimmed
from ..registry import Attr, control_op
from ..selected import SelectedRows
from ..traits import Runs

if TYPE_CHECKING:
    from ...saved.stream import Tensor


def _path(call: Call) -> Path:
    """The file. Raises NotOneStep within a compiled step, FluidValueError without a path."""
    if not call.hosted:
        raise NotOneStep(
            f"op '{call.op.type}' is about a file, so Python runs it between compiled segments"
        )
    given = call.op.attrs["file_path"]
    if not given:
        raise FluidValueError(f"op '{call.op.type}' needs the attribute file_path, which is empty")
    return Path(str(given))


def _half(call: Call, kind: str, array: np.ndarray) -> np.ndarray:
    return (
        array.astype(np.float16)
        if call.op.attrs.get(kind, False) and array.dtype.kind == "f"
        else array
    )


# -- reading ---------------------------------------------------------------------------------------


def load(call: Call) -> None:
    """Out = the tensor of the file."""
    from ...saved.files import reading
    from ...saved.stream import Tensor, read_one

    path, (name,) = _path(call), call.op.output("Out")
    with reading(path) as file:
        tensor = read_one(file, str(path))
    seek, shape = int(call.op.attrs.get("seek", -1)), tuple(call.op.attrs.get("shape", ()))
    if seek >= 0:
        tensor = Tensor(_part(tensor.array, seek, shape, path))
    _give(call, name, tensor, path)


def load_combine(call: Call) -> None:
    """Out = the tensors of the file, in its order."""
    from ...saved.files import reading
    from ...saved.stream import read_many

    if call.op.attrs.get("model_from_memory", False):
        raise UnsupportedError(
            "op 'load_combine' reads files, not bytes (model_from_memory); save them to a file and"
            " name that"
        )
    path, names = _path(call), call.op.output("Out")
    with reading(path) as file:
        tensors = read_many(file, names, str(path))
    for name in names:
        _give(call, name, tensors[name], path)


def _part(array: np.ndarray, seek: int, shape: tuple[int, ...], path: Path) -> np.ndarray:
    """The elements for a shape, beginning at element number `seek`."""
    count = int(np.prod(shape))
    if seek + count > array.size:
        raise LoadError(
            f"op 'load' takes {count} elements from number {seek} on, but {str(path)!r} has"
            f" {array.size}"
        )
    return array.reshape(-1)[seek : seek + count].reshape(shape)


def _give(call: Call, name: str, tensor: Tensor, path: Path) -> None:
    """Store a value. Raises LoadError if it does not fit the variable's declaration."""
    array, var = (
        _half(call, "load_as_fp16", tensor.array),
        next((b.vars[name] for b in call.desc.blocks if name in b.vars), None),
    )
    half = call.op.attrs.get("load_as_fp16", False)
    if var is not None and not _fits(var, array, half):
        declared = f"{list(var.shape or ())} of {name_of(var.dtype)}"
        raise LoadError(
            f"{str(path)!r} has {list(array.shape)} of {array.dtype.name} for {name!r}, which is"
            f" declared as {declared}"
        )
    if not tensor.lod:
        call.env[name] = array
        return
    offsets = tuple(np.array(level, np.int32) for level in tensor.lod)
    call.env[name] = Ragged(
        array,
        offsets,
        tuple(int(np.diff(level).max(initial=0)) for level in offsets),
        ("file", tensor.lod),
    )


def _fits(var: VarDesc, array: np.ndarray, half: bool) -> bool:
    if var.kind != "LOD_TENSOR":
        return False
    wanted = var.shape or array.shape  # (): no shape was declared
    same = len(wanted) == array.ndim and all(
        n in (-1, m) for n, m in zip(wanted, array.shape, strict=True)
    )
    return same and (half or var.dtype is None or numpy_dtype(var.dtype) == array.dtype)


# -- writing ---------------------------------------------------------------------------------------


def save(call: Call) -> None:
    """The file holds X, one tensor."""
    if call.op.output("kLookupTablePath"):
        raise UnsupportedError(
            "op 'save' with a kLookupTablePath writes what a pserver holds; use"
            " fluid.io.save_persistables"
        )
    _write(call)


def save_combine(call: Call) -> None:
    """The file holds all of X, one after another."""
    if call.op.attrs.get("save_to_memory", False):
        raise UnsupportedError(
            "op 'save_combine' writes files, not bytes (save_to_memory); name a file_path and read"
            " that"
        )
    _write(call)


def _write(call: Call) -> None:
    """Write all or nothing: the old file stays until the new one is complete."""
    from ...saved.files import write_files
    from ...saved.stream import write

    path, names = _path(call), call.op.input("X")
    if not call.op.attrs.get("overwrite", True) and path.exists():
        raise EnforceNotMet(
            f"op '{call.op.type}' does not overwrite {str(path)!r} (overwrite = False); remove it,"
            " or name another file"
        )
    tensors = [_taken(call, name) for name in names]

    def pieces() -> Iterator[bytes | memoryview]:
        for tensor in tensors:
            yield from write(tensor)

    write_files(path.parent, {path.name: pieces})


def _taken(call: Call, name: str) -> Tensor:
    from ...saved.stream import Tensor

    value = call.read(name)
    if isinstance(value, SelectedRows):
        raise UnsupportedError(
            f"op '{call.op.type}' writes tensors, but {name!r} is sparse (SELECTED_ROWS)"
        )
    if isinstance(value, Ragged) and value.bare:
        value = trimmed(value).rows
    lod: tuple[tuple[int, ...], ...] = ()
    if isinstance(value, Ragged):
        value = trimmed(value)
        lod, value = tuple(tuple(np.asarray(level).tolist()) for level in value.offsets), value.rows
    return Tensor(_half(call, "save_as_fp16", np.asarray(value)), lod)


_FILE = {"file_path": Attr("file_path", "STRING")}
_LOAD = {**_FILE, "load_as_fp16": Attr("load_as_fp16", "BOOLEAN", False)}
_SAVE = {
    **_FILE,
    "overwrite": Attr("overwrite", "BOOLEAN", True),
    "save_as_fp16": Attr("save_as_fp16", "BOOLEAN", False),
}

control_op(
    "load", outs="Out", attrs={**_LOAD, "seek": Attr("seek", "LONG", -1), "shape": Attr("shape", "LONGS", ())}, runs=Runs.STEP,
    doc="Out = the tensor of the file file_path; with seek from 0, the elements from there on, as many as shape has.",
    control=ControlOp(lower=load, may_raise=True),
)  # fmt: skip
control_op(
    "load_combine", outs="Out*", attrs={**_LOAD, "model_from_memory": Attr("model_from_memory", "BOOLEAN", False)}, runs=Runs.STEP,
    doc="Out = the tensors of the file file_path, in its order.", control=ControlOp(lower=load_combine, may_raise=True),
)  # fmt: skip
control_op(
    "save", ins="X", outs="kLookupTablePath?", attrs=_SAVE, runs=Runs.EFFECT,
    doc="X goes to the file file_path, or to the one that kLookupTablePath names.", control=ControlOp(lower=save, may_raise=True),
)  # fmt: skip
control_op(
    "save_combine", ins="X*", outs="Y?", attrs={**_SAVE, "save_to_memory": Attr("save_to_memory", "BOOLEAN", False)}, runs=Runs.EFFECT,
    doc="All of X goes to the file file_path, one tensor after the other.", control=ControlOp(lower=save_combine, may_raise=True),
)  # fmt: skip
