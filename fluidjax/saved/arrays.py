"""Saved arrays of a program's variables: one file each, or all in one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..base.progress import waiting
from ..errors import FluidTypeError, FluidValueError, MissingFileError
from ..ir.desc import VarDesc
from . import stream
from .files import reading, safe_name
from .values import filename as base_name


def read_arrays(
    wanted: Mapping[str, VarDesc], dirname: str | None, filename: str | bytes | None
) -> dict[str, np.ndarray]:
    """The saved arrays of these variables; variables without a file are left out.

    Raises FluidValueError if there is no such folder or combined file, ParseError for files that
    hold no tensors.
    """
    if dirname is None:
        if not isinstance(filename, bytes | bytearray):
            raise FluidValueError("The directory path and params cannot be None at the same time.")
        return _arrays(stream.read_many(bytes(filename), sorted(wanted), "the given bytes"))
    folder = Path(os.path.normpath(dirname))
    if not folder.is_dir():
        raise MissingFileError(f"There is no directory named {str(dirname)!r}")
    if filename is not None:
        if not isinstance(filename, str):
            raise FluidTypeError(f"filename is a string, not {type(filename).__name__}")
        path = folder / base_name(filename)
        with reading(path) as file:
            return _arrays(stream.read_many(file, sorted(wanted), str(path)))
    paths = {name: folder / safe_name(name) for name in wanted}
    found: dict[str, np.ndarray] = {}
    with waiting(lambda: f"reading variable {len(found):,} of {len(paths):,} from {str(folder)!r}"):
        for name, path in paths.items():
            if os.path.isfile(path):  # False also for a name that no file can have
                found[name] = read_array(path)
    return found


def read_array(path: Path) -> np.ndarray:
    """The array of a file that holds one tensor. Raises ParseError, which names the file, for
    anything else.
    """
    with reading(path) as file:
        return stream.read_one(file, str(path)).array


def _arrays(tensors: Mapping[str, stream.Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.array for name, tensor in tensors.items()}


__all__ = ["read_array", "read_arrays"]
