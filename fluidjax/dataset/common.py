"""Where data sets lie: ``~/.cache/paddle/dataset/<name>`` as in Paddle, or below $PADDLE_DATASET_HOME."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import FluidError

VARIABLE = "PADDLE_DATASET_HOME"


class MissingFileError(FluidError, FileNotFoundError):
    """A data set's file is not there; the text says which one to put where."""


def data_home() -> Path:
    """The folder that holds a folder for each data set."""
    return Path(os.environ.get(VARIABLE) or "~/.cache/paddle/dataset").expanduser()


def folder(name: str) -> Path:
    """The folder of one data set; it need not exist."""
    return data_home() / name


def find(name: str, *spellings: str) -> Path:
    """A file of a data set, by the first of these names that is there.

    Raises MissingFileError saying where to put it: nothing is downloaded.
    """
    place = folder(name)
    for spelling in spellings:
        if (place / spelling).is_file():
            return place / spelling
    raise MissingFileError(
        f"data set {name!r} needs the file {spellings[0]}"
        + (f" (or {', '.join(spellings[1:])})" if len(spellings) > 1 else "")
        + f" in the folder {place}: put it there, or set {VARIABLE} to the folder above {name!r}; nothing is downloaded"
    )


__all__ = ["MissingFileError", "data_home", "find", "folder"]
