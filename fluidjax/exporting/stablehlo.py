"""A program as StableHLO: a file that only JAX reads, and a JSON file with its names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..base.dtypes import JAX_ONLY, numpy_dtype
from ..errors import FeedError, FluidValueError, ParseError, UnsupportedError, near
from ..ir.desc import FrozenMap, VarDesc
from ..ir.dims import bare, bounded
from ..lower.step import Step
from ..saved.arrays import read_arrays
from ..saved.files import Pieces, read_file, write_files
from ..saved.vars import files_of
from ..tracing.dynamic import scope_of, text_of
from .report import ExportError, ExportReport, Lack
from .subject import Shapes, Subject, checked_sizes

PLATFORMS = ("cpu", "cuda", "tpu", "rocm")
STATES = ("baked", "arguments")
VERSION = 1
MOST = 1 << 20  # bytes of the JSON
CALLS_BACK = b"callback"  # in code that calls Python by an address


@dataclass(frozen=True)
class Made:
    """The result of jax.export for a program: the values of persistent variables, those of them
    that are arguments, and their names.
    """

    exported: Any
    values: Mapping[str, np.ndarray]
    kept: tuple[str, ...]

    @property
    def inputs(self) -> Sequence[Any]:
        """The types of the feeds."""
        return list(self.exported.in_avals[len(self.kept) :])


def made_of(
    subject: Subject, path: Path, format: str, shapes: Shapes, platforms: Sequence[str], apart: bool
) -> Made:
    """A function of (the state if it is `apart`, the feeds). Raises ExportError for a program that
    works only in this process.
    """
    for name in platforms:
        if name not in PLATFORMS:
            raise FluidValueError(
                f"there is no platform {name!r}{near(name, PLATFORMS)}; there are {PLATFORMS}"
            )
    step = Step(subject.desc, subject.fetches)
    values = {n: np.asarray(subject.params[n]) for n in step.reads}
    sizes = _sizes(subject, shapes)
    kept = tuple(sorted(values)) if apart else ()

    def run(*given: Any) -> list[Any]:
        own = dict(zip(kept, given, strict=False))
        fed = dict(zip(subject.feeds, given[len(kept) :], strict=True))
        found = step({n: own.get(n, v) for n, v in values.items()}, fed, None)[1]
        return [jax.numpy.asarray(v) for v in found]

    report = ExportReport(str(path), format)
    lacks = [
        Lack(f"input '{n}'", 1, "it is sequences", "export it as ONNX, or pad it in the program")
        for n in subject.feeds
        if subject.var(n).lod_level and n not in shapes
    ]
    if lacks:
        raise ExportError(ExportReport(str(path), format, lacks=tuple(lacks)))
    with jax.enable_x64(True):
        types = [jax.ShapeDtypeStruct(values[n].shape, values[n].dtype) for n in kept]
        types += _types(subject, sizes)
        try:
            made = jax.export.export(jax.jit(run), platforms=list(platforms))(*types)
        except Exception as error:  # JAX's errors have no common class
            raise _lacking(report, error, sizes) from error
    if made.ordered_effects or made.unordered_effects or CALLS_BACK in made.mlir_module_serialized:
        lack = Lack("the program", 1, "it has effects on this process, or calls Python")
        raise ExportError(ExportReport(str(path), format, lacks=(lack,)))
    return Made(made, values, kept)


def report_of(
    subject: Subject, path: Path, format: str, inputs: Sequence[Mapping[str, Any]],
    outputs: Sequence[Mapping[str, Any]], size: int, notes: Sequence[str],
) -> ExportReport:  # fmt: skip
    """The report for a program that became one module of StableHLO."""
    kinds: dict[str, int] = {}
    for op in subject.desc.blocks[0].ops:
        if op.type not in ("feed", "fetch"):
            kinds[op.type] = kinds.get(op.type, 0) + 1
    return ExportReport(
        str(path),
        format,
        FrozenMap({k: (n, ("StableHLO",)) for k, n in kinds.items()}),
        nodes=1,
        inputs=tuple(map(line, inputs)),
        outputs=tuple(map(line, outputs)),
        size=size,
        notes=tuple(notes),
    )


def to_stablehlo(
    subject: Subject, path: Path, shapes: Shapes, platforms: Sequence[str], state: str
) -> ExportReport:
    """Write PATH, PATH.json and, if the state is passed as arguments, PATH.state. Raises
    ExportError for a program that works only in this process.
    """
    if state not in STATES:
        raise FluidValueError(f"state is {state!r}{near(state, STATES)}; it is one of {STATES}")
    _needs_flatbuffers()
    found = made_of(subject, path, "stablehlo", shapes, platforms, state == "arguments")
    made, kept = found.exported, found.kept
    with jax.enable_x64(True):
        code = bytes(made.serialize())
    inputs = [
        tensor_metadata(n, t, text_of) for n, t in zip(subject.feeds, found.inputs, strict=True)
    ]
    outputs = [tensor_metadata(n, t) for n, t in zip(subject.fetches, made.out_avals, strict=True)]
    beside = {
        "format": "fluidjax stablehlo",
        "version": VERSION,
        "jax": jax.__version__,
        "calling_convention": made.calling_convention_version,
        "platforms": list(made.platforms),
        "sha256": hashlib.sha256(code).hexdigest(),
        "state": [tensor_metadata(n, t) for n, t in zip(kept, made.in_avals, strict=False)],
        "inputs": inputs,
        "outputs": outputs,
    }
    files: dict[str, Pieces] = {}
    if kept:
        stored = {n: v.view(_stored(v.dtype)) for n, v in found.values.items()}
        files[f"{path.name}.state"] = files_of(stored, "all")["all"]
    text = json.dumps(beside, indent=1).encode()
    files |= {path.name: lambda: [code], f"{path.name}.json": lambda: [text]}
    write_files(path.parent, files)
    note = f"for {', '.join(made.platforms)}; JAX reads it for at least six months"
    return report_of(subject, path, "stablehlo", inputs, outputs, len(code), [note])


def _needs_flatbuffers() -> None:
    if find_spec("flatbuffers") is None:
        raise UnsupportedError(
            "StableHLO files are written and read with the package flatbuffers:"
            " pip install 'fluidjax[export]'"
        )


def _lacking(
    report: ExportReport, error: Exception, sizes: Mapping[str, Sequence[Any]]
) -> ExportError:
    said = " ".join(str(error).split())[:300]
    is_open = any(not isinstance(n, int) for shape in sizes.values() for n in shape)
    remedy = (
        "fix the open sizes by shapes={...}, or say what they are at least, as 'h>=32' does"
        if is_open
        else ""
    )
    lack = Lack("the program", 1, f"it cannot be traced so: {said}", remedy)
    return ExportError(ExportReport(report.path, report.format, lacks=(lack,)))


def _sizes(subject: Subject, shapes: Shapes) -> dict[str, list[int | str]]:
    """For each input, a number or a word for every axis."""
    found = checked_sizes(subject, shapes)
    for i, (name, sizes) in enumerate(found.items()):
        found[name] = [
            n if n != "" else "batch" if a == 0 else f"d{i}_{a}" for a, n in enumerate(sizes)
        ]
    return found


def _types(subject: Subject, sizes: Mapping[str, Sequence[int | str]]) -> list[Any]:
    scope = scope_of(n for each in sizes.values() for n in each if isinstance(n, str))
    found = []
    for name in subject.feeds:
        text = ", ".join(bare(str(n)) for n in sizes[name])
        shape = jax.export.symbolic_shape(f"({text},)" if text else "()", scope=scope)
        found.append(jax.ShapeDtypeStruct(shape, numpy_dtype(subject.var(name).dtype or "float32")))
    return found


def tensor_metadata(name: str, aval: Any, text: Callable[[Any], str] = str) -> dict[str, Any]:
    """Name, dtype and sizes of an input or an output. text: of an open size."""
    shape = [n if isinstance(n, int) else text(n) for n in aval.shape]
    return {"name": name, "dtype": str(aval.dtype), "shape": shape}


def line(tensor: Mapping[str, Any]) -> str:
    """The same in the form of a report."""
    return f"{tensor['name']} {tensor['dtype']}[{', '.join(str(n) for n in tensor['shape'])}]"


@dataclass(frozen=True, eq=False)
class Loaded:
    """An exported program: ``loaded({"x": array})`` gives the outputs by name.

    inputs, outputs: the name, dtype and sizes of each, with words for open sizes. state: the
    persistent values, if they are arguments; you can pass another state instead.
    """

    inputs: tuple[Mapping[str, Any], ...]
    outputs: tuple[Mapping[str, Any], ...]
    state: Mapping[str, np.ndarray]
    exported: Any

    def __call__(
        self, feed: Mapping[str, Any], state: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Run it. Raises FeedError for names, dtypes and shapes that it does not take."""
        names = [i["name"] for i in self.inputs]
        if unknown := [n for n in feed if n not in names]:
            raise FeedError(
                f"it takes {', '.join(names)}, not {unknown[0]!r}{near(unknown[0], names)}"
            )
        if missing := [n for n in names if n not in feed]:
            raise FeedError(f"input {missing[0]!r} is missing; it takes {', '.join(names)}")
        held = self.state if state is None else state
        if lacking := [n for n in self.state if n not in held]:
            raise FeedError(f"the state lacks {lacking[0]!r}")
        given = [np.asarray(held[n]) for n in self.state]
        for each in self.inputs:
            value = feed[each["name"]]
            if not each["dtype"].startswith("key<"):  # a random key is no array of NumPy's
                value = np.asarray(value)
            fits = len(value.shape) == len(each["shape"]) and all(
                bounded(n)[1] <= m if isinstance(n, str) else n == m
                for n, m in zip(each["shape"], value.shape, strict=True)
            )
            if str(value.dtype) != each["dtype"] or not fits:
                raise FeedError(
                    f"input {each['name']!r} is {value.dtype}{list(value.shape)}; it takes {line(each)}"
                )
            given.append(value)
        with jax.enable_x64(True):
            try:
                made = self.exported.call(*given)
            except ValueError as error:
                raise FeedError(f"it does not take these: {error}") from None
        return dict(zip((o["name"] for o in self.outputs), made, strict=True))


def load_exported(path: str | Path) -> Loaded:
    """Load the files of ``fluid.export(..., format="stablehlo")``, to be run by JAX.

    Raises FluidValueError for missing files, ParseError for files that are damaged or not such an
    export, UnsupportedError if flatbuffers is not installed. Nothing in the files is Python; code
    that would call Python is refused.
    """
    _needs_flatbuffers()
    where = Path(path)
    text, code = read_file(f"{where}.json"), read_file(where)
    try:
        beside = json.loads(text) if len(text) <= MOST else None
    except (ValueError, RecursionError):
        beside = None
    if not isinstance(beside, dict) or beside.get("format") != "fluidjax stablehlo":
        raise ParseError(f"'{where}.json' does not describe an export of fluidjax")
    if beside.get("version") != VERSION:
        raise ParseError(
            f"'{where}.json' is of version {beside.get('version')!r}; {VERSION} is read"
        )
    if hashlib.sha256(code).hexdigest() != beside.get("sha256"):
        raise ParseError(
            f"{str(where)!r} is damaged: its checksum is not the one in '{where}.json'"
        )
    if CALLS_BACK in code:
        raise ParseError(f"{str(where)!r} calls Python, which no export of fluidjax does")
    parts = [_described(beside, part, where) for part in ("inputs", "outputs", "state")]
    try:
        exported = jax.export.deserialize(bytearray(code))
        count = len(exported.in_avals), len(exported.out_avals)
    except Exception as error:  # a damaged file may cause any error in its reader
        raise ParseError(f"{str(where)!r} is not StableHLO that this JAX reads: {error}") from None
    if count != (len(parts[2]) + len(parts[0]), len(parts[1])):
        raise ParseError(f"'{where}.json' describes other inputs and outputs than the code has")
    state = _state(where, parts[2], exported.in_avals)
    return Loaded(parts[0], parts[1], state, exported)


def _described(beside: Mapping[str, Any], part: str, where: Path) -> tuple[Mapping[str, Any], ...]:
    found = beside.get(part)
    for each in found if isinstance(found, list) else [None]:
        fits = (
            isinstance(each, dict)
            and isinstance(each.get("name"), str)
            and isinstance(each.get("dtype"), str)
            and isinstance(each.get("shape"), list)
            and all(type(n) is str or (type(n) is int and n >= 0) for n in each["shape"])
        )
        if not fits:
            raise ParseError(f"'{where}.json' says nothing that is understood of its {part}")
    return tuple(found or ())


def _state(
    where: Path, described: Sequence[Mapping[str, Any]], avals: Sequence[Any]
) -> dict[str, np.ndarray]:
    if not described:
        return {}
    dtypes = {t["name"]: a.dtype for t, a in zip(described, avals, strict=False)}
    wanted = {
        t["name"]: VarDesc(t["name"], tuple(a.shape), str(_stored(a.dtype))) for t, a in zip(described, avals, strict=False)
    }  # fmt: skip
    found = read_arrays(wanted, str(where.parent), f"{where.name}.state")
    for name, var in wanted.items():
        array = found.get(name)
        if array is None or array.shape != var.shape or str(array.dtype) != var.dtype:
            raise ParseError(
                f"'{where}.state' has not the {var.dtype}{list(var.shape or ())} '{name}'"
            )
    return {name: np.asarray(found[name]).view(dtype) for name, dtype in dtypes.items()}


def _stored(dtype: Any) -> np.dtype[Any]:
    """The dtype in a file of Paddle's: numbers that it lacks lie there as integers of their size."""
    name = np.dtype(dtype).name
    return np.dtype(f"int{8 * dtype.itemsize}" if name in JAX_ONLY else dtype)
