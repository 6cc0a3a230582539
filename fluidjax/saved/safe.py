"""safetensors: saves the values of a program by name in one file that other frameworks read."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import safetensors
from safetensors.numpy import save as to_bytes

from ..base.dtypes import numpy_dtype
from ..errors import ParseError
from ..graph.program import Program
from ..state.scope import Scope
from .files import read_file, write_files
from .values import Difference, as_program, collect, descs, is_persistable, store

_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64", "F16": "float16",
    "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
}  # fmt: skip


def save_safetensors(path: str, program: Program | None = None, scope: Scope | None = None) -> None:
    """Save all persistable variables of a program in one safetensors file.

    program: default the default main program. scope: default global_scope(). Raises EnforceNotMet
    for variables without a value. The old file stays until the new one is whole.
    """
    wanted = descs(as_program(program), filter(is_persistable, as_program(program).list_vars()))
    arrays = {
        n: np.ascontiguousarray(a).reshape(a.shape)
        for n, a in collect(sorted(wanted), scope).items()
    }
    data = to_bytes(arrays)
    write_files(Path(path).parent, {Path(path).name: lambda: [data]})


def load_safetensors(
    path: str, program: Program | None = None, scope: Scope | None = None, partial: bool = False
) -> Difference | None:
    """Load a safetensors file into the persistable variables of a program; by name, strict unless
    `partial`.

    Raises FluidValueError if the file cannot be read, ParseError if it is damaged, LoadError
    listing what does not fit.
    """
    wanted = descs(as_program(program), filter(is_persistable, as_program(program).list_vars()))
    difference = store(
        wanted, read_safetensors(read_file(path), str(path)), repr(str(path)), partial, scope
    )
    return difference if partial else None


def read_safetensors(data: bytes, source: str) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file by name. Raises ParseError, which names the source."""
    try:
        entries = safetensors.deserialize(data)
    except safetensors.SafetensorError as error:
        raise ParseError(f"{source}: {error}") from None
    found = {}
    for name, entry in entries:
        if entry["dtype"] not in _DTYPES:
            raise ParseError(
                f"{source}: {name!r} has dtype {entry['dtype']}, which Fluid does not have"
            )
        dtype, shape = numpy_dtype(_DTYPES[entry["dtype"]]), entry["shape"]
        if math.prod(shape) * dtype.itemsize != len(entry["data"]):
            raise ParseError(f"{source}: {name!r} has {len(entry['data'])} bytes for shape {shape}")
        try:
            found[name] = np.frombuffer(bytes(entry["data"]), dtype).reshape(shape).copy()
        except ValueError as error:
            raise ParseError(f"{source}: {name!r}: {error}") from None
    return found
