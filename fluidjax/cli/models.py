"""Helpers of the commands on saved models: finding a model, loading it, and making an input for
it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.dtypes import numpy_dtype
from ..errors import FluidValueError
from ..graph.program import Program
from ..graph.variable import Variable
from ..lod_tensor import create_lod_tensor
from ..saved.files import read_file
from ..saved.model import load_values, locate, read_program
from ..state.scope import Scope, scope_guard

if TYPE_CHECKING:
    from ..executor import Executor


@dataclass
class Model:
    """A loaded model: its program, a scope of its own with the values, its inputs and its
    outputs.
    """

    path: Path
    values_file: str | None
    program: Program
    scope: Scope
    feeds: list[str]
    targets: list[Variable]

    def run(self, exe: Executor, program: Program, feed: dict[str, Any]) -> list[np.ndarray]:
        """The values of the targets, computed by the model's program or by one made from it; all
        rows of sequences.
        """
        names = [t.name for t in self.targets]
        found = exe.run(program, feed, names, scope=self.scope, return_numpy=False)
        return [np.asarray(value) for value in found]


def add_model(parser: argparse.ArgumentParser) -> None:
    """MODEL, --model-file, --params-file."""
    parser.add_argument(
        "model",
        type=Path,
        metavar="MODEL",
        help="a folder that a model was saved in, or the file of a program",
    )
    parser.add_argument("--model-file", metavar="NAME",
                        help="the program's file in the folder (default: __model__ or the one *.pdmodel), its name in an .npz")  # fmt: skip
    parser.add_argument(
        "--params-file",
        metavar="NAME",
        help="the one file of all values (default: beside a .pdmodel, else a file each)",
    )


def find(args: argparse.Namespace) -> tuple[Path, str | None]:
    """The program's file, and the name of the file with all values beside it (None: one file for
    each value).
    """
    path: Path = args.model
    if path.is_file():
        values = path.with_suffix(".pdiparams")
        found, beside = (
            path,
            values.name if path.suffix == ".pdmodel" and values.is_file() else None,
        )
    else:
        found, beside = locate(path, args.model_file)
        if (
            beside is None
            and found.suffix == ".pdmodel"
            and found.with_suffix(".pdiparams").is_file()
        ):
            beside = found.with_suffix(".pdiparams").name
    return found, args.params_file or beside


def open_program(args: argparse.Namespace) -> Program:
    """The program without its values."""
    path, _ = find(args)
    return read_program(
        _archived(path, args.model_file) if path.suffix == ".npz" else read_file(path), str(path)
    )[0]


def read_archive(
    path: Path, what: str, wanted: Callable[[list[str]], Iterable[str]]
) -> dict[str, Any]:
    """The wanted arrays of an .npz file. Raises FluidValueError if the file is not an archive."""
    import zipfile
    import zlib

    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return {n: archive[n] for n in wanted(archive.files)}
    except FluidValueError:
        raise
    except (
        OSError,
        ValueError,
        EOFError,
        AttributeError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise FluidValueError(
            f"{what} {str(path)!r} is not an .npz file of arrays: {error}"
        ) from None


def _archived(path: Path, name: str | None) -> bytes:
    """A program that an archive holds as an array of bytes."""

    def wanted(names: list[str]) -> list[str]:
        if name not in names:
            lacks = "" if name is None else f", and there is no {name!r} in it"
            raise FluidValueError(
                f"{str(path)!r} is an archive{lacks}: name its program with --model-file, one of"
                f" {', '.join(names[:20])}"
            )
        return [name]

    (array,) = read_archive(path, "the model", wanted).values()
    if array.dtype != np.uint8 or array.ndim != 1:
        raise FluidValueError(
            f"{name!r} in {str(path)!r} is not a program, which is an array of bytes, but"
            f" {array.dtype}{list(array.shape)}"
        )
    return bytes(array.tobytes())


def open_model(args: argparse.Namespace) -> Model:
    """The program and its values."""
    path, values = find(args)
    program, feeds, targets = read_program(read_file(path), str(path))
    scope = Scope()
    with scope_guard(scope):
        load_values(program, str(path.parent), values)
    return Model(path, values, program, scope, feeds, targets)


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """--batch, --shape."""
    parser.add_argument(
        "--batch",
        type=int,
        default=1,
        metavar="N",
        help="size of an unknown first dimension (default: 1)",
    )
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=2,3,32,32",
        help="the whole shape of an input",
    )


def _given(texts: list[str], feeds: list[str]) -> dict[str, tuple[int, ...]]:
    given = dict(_parsed(text) for text in texts)
    for name in given:
        if name not in feeds:
            raise FluidValueError(
                f"--shape {name}: the model has no such input; it has {', '.join(feeds) or 'none'}"
            )
    return given


def given_sizes(texts: list[str]) -> dict[str, tuple[int, ...]]:
    """The shapes that --shape gives, before the inputs are known."""
    return dict(_parsed(text) for text in texts)


def given_shapes(
    texts: list[str], program: Program, feeds: list[str]
) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs that --shape gives, with -1 for a first dimension that the program
    leaves open.
    """
    block = program.global_block()
    return {
        n: (-1, *s[1:]) if block.var(n).shape[:1] == (-1,) else s
        for n, s in _given(texts, feeds).items()
    }


def example(name: str, declared: Sequence[int]) -> str:
    """The option that gives all sizes of an input, with 32 for open sizes."""
    sizes = (n if n >= 0 else 32 if at else 1 for at, n in enumerate(declared))
    return f"--shape {name}={','.join(map(str, sizes))}"


def shapes(
    args: argparse.Namespace, program: Program, feeds: list[str]
) -> dict[str, tuple[int, ...]]:
    """The shape of every input. Raises FluidValueError for an input with unknown dimensions."""
    given = _given(args.shape, feeds)
    if args.batch < 1:
        raise FluidValueError(f"--batch is a positive number, not {args.batch}")
    found = {}
    for name in feeds:
        declared = program.global_block().var(name).shape
        shape = given.get(name) or tuple(
            args.batch if i == 0 and n < 0 else n for i, n in enumerate(declared)
        )
        if any(n < 0 for n in shape):
            raise FluidValueError(
                f"input {name!r} is declared as {list(declared)}; give its sizes, as in"
                f" {example(name, declared)}"
            )
        found[name] = shape
    return found


def _parsed(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, sizes = text.rpartition("=")
    try:
        shape = tuple(int(n) for n in sizes.split(","))
    except ValueError:
        shape = ()
    if not name or not shape or any(n < 1 for n in shape):
        raise FluidValueError(f"--shape {text!r} should look like image=1,3,640,640")
    return name, shape


ROWS = 10  # rows of a sequence of random numbers


def random_feed(
    program: Program, sizes: dict[str, tuple[int, ...]], seed: int = 0
) -> dict[str, Any]:
    """Standard normal numbers for float inputs, zeros for integers (id 0 is always in range). An
    input of sequences has as many sequences as its first size, each of ROWS rows.
    """
    rng = np.random.RandomState(seed)
    feed: dict[str, Any] = {}
    for name, shape in sizes.items():
        desc = program.global_block().var(name).desc
        dtype = numpy_dtype(desc.dtype or "float32")
        levels = desc.lod_level
        if levels:
            shape = (shape[0] * ROWS, *shape[1:])
        value = (
            rng.standard_normal(shape).astype(dtype)
            if dtype.kind == "f"
            else np.zeros(shape, dtype)
        )
        count = shape[0] // ROWS
        lengths = [[1] * count] * (levels - 1) + [[ROWS] * count]
        feed[name] = create_lod_tensor(value, lengths) if levels else value
    return feed
