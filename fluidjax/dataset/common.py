"""The location of data sets: ``~/.cache/paddle/dataset/<name>`` as in Paddle, or below
$PADDLE_DATASET_HOME. Nothing is downloaded.
"""

from __future__ import annotations

import glob
import hashlib
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import FluidError, FluidTypeError, FluidValueError
from ..saved import pickles

VARIABLE = "PADDLE_DATASET_HOME"
_USUAL = str(Path("~/.cache/paddle/dataset").expanduser())
DATA_HOME = os.environ.get(VARIABLE) or _USUAL
_AT_IMPORT = DATA_HOME


class MissingFileError(FluidError, FileNotFoundError):
    """A data set's file is missing; the text names the file and the folder for it."""


def data_home() -> Path:
    """The folder with one folder for each data set: DATA_HOME if a script has set it, else from the
    current environment.
    """
    if DATA_HOME != _AT_IMPORT:
        return Path(DATA_HOME).expanduser()
    return Path(os.environ.get(VARIABLE) or _USUAL).expanduser()


def folder(name: str) -> Path:
    """The folder of one data set; it need not exist."""
    return data_home() / name


def find(name: str, *spellings: str, md5: str | None = None) -> Path:
    """A file of a data set, under the first of these names that exists.

    md5: of the published file, for the message. Raises MissingFileError, which names the folder for
    it: nothing is downloaded.
    """
    place = folder(name)
    for spelling in spellings:
        if (place / spelling).is_file():
            return place / spelling
    raise MissingFileError(
        f"data set {name!r} needs the file {spellings[0]}"
        + (f" (or {', '.join(spellings[1:])})" if len(spellings) > 1 else "")
        + (f", md5 {md5} as published," if md5 else "")
        + f" in the folder {place}: put it there, or set {VARIABLE} to the folder above {name!r};"
        " nothing is downloaded"
    )


def md5file(fname: str | Path) -> str:
    """The MD5 sum of a file, in hexadecimal digits."""
    with open(fname, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def download(url: str, module_name: str, md5sum: str, save_name: str | None = None) -> str:
    """The path of an existing file with this MD5 sum. Raises MissingFileError, and FluidValueError
    for another sum.

    Its name is `save_name`, or the last part of the URL, which is not contacted.
    """
    path = find(module_name, save_name or url.split("/")[-1], md5=md5sum)
    found = md5file(path)
    if found != md5sum:
        raise FluidValueError(
            f"{path} is another file than {url}: its md5 is {found}, not {md5sum}; nothing is"
            " downloaded"
        )
    return str(path)


def split(
    reader: Callable[[], Iterable[Any]],
    line_count: int,
    suffix: str = "%05d.pickle",
    dumper: Any = pickle.dump,
) -> None:
    """Write a reader's samples into files of `line_count` samples, the first of one more, named by
    ``suffix % number``.

    dumper: writes a list to a file, as pickle.dump and json.dump do. Raises FluidTypeError if it
    cannot be called.
    """
    if not callable(dumper):
        raise FluidTypeError(
            f"split takes a dumper that can be called, not {type(dumper).__name__}"
        )
    lines: list[Any] = []
    number = 0
    for i, sample in enumerate(reader()):
        lines.append(sample)
        if i >= line_count and i % line_count == 0:
            _dump(dumper, lines, suffix % number)
            lines, number = [], number + 1
    if lines:
        _dump(dumper, lines, suffix % number)


def _dump(dumper: Any, lines: list[Any], name: str) -> None:
    with open(name, "wb" if dumper is pickle.dump else "w") as file:
        dumper(lines, file)


def cluster_files_reader(
    files_pattern: str, trainer_count: int, trainer_id: int, loader: Any = pickles.load
) -> Callable[[], Iterator[Any]]:
    """A reader of the samples in every trainer_count-th file that fits a pattern, in the order of
    their names.

    loader: reads a list from a file that `split` wrote; default one that reads pickles of numbers,
    texts, arrays, and lists, tuples and dicts of these, and refuses all others. Raises
    FluidTypeError if it cannot be called.
    """
    if not callable(loader):
        raise FluidTypeError(
            f"cluster_files_reader takes a loader that can be called, not {type(loader).__name__}"
        )

    def reader() -> Iterator[Any]:
        for name in sorted(glob.glob(files_pattern))[trainer_id::trainer_count]:
            with open(name, "rb" if loader in (pickles.load, pickle.load) else "r") as file:
                yield from loader(file)

    return reader


__all__ = [
    "DATA_HOME",
    "MissingFileError",
    "cluster_files_reader",
    "data_home",
    "download",
    "find",
    "folder",
    "md5file",
    "split",
]
