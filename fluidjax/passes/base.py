"""Passes, and how they are run: verified before and after, timed, counted, compared.

    @register
    @dataclass(frozen=True)
    class DropAssign(Pass):
        \"\"\"Remove assign ops that copy a variable to itself.\"\"\"

        name: ClassVar[str] = "drop_assign"

        def rewrite(self, desc, params, keep):
            ops = [op for op in desc.blocks[0].ops if op.type != "assign" or op.input("X") !=
            op.output("Out")] return Rewrite(edit.replace_ops(desc, 0, ops))

    result = run(DropAssign(), desc, keep=["loss"])

A pass is a value: its fields are its options. It maps (desc, params, keep) to a new desc and the
parameters that it made, and changes nothing else; `keep` names the variables to fetch, and a pass
must not change a kept value.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from ..base.dtypes import KEYS
from ..errors import FluidError, FluidValueError, PassError, near, note
from ..ir import show, walk
from ..ir.desc import OpDesc, ProgramDesc
from ..ir.verify import verify
from ..look.shown import Shown
from ..ops.registry import lookup
from . import pairs

Params = Mapping[str, Any]  # name -> array of a persistable variable


@dataclass(frozen=True, slots=True)
class Note:
    """One change of a pass, or one refusal: the op, its place in the user's script, and the change
    or the reason.
    """

    op: str
    what: str
    loc: str | None = None
    refused: bool = False

    def __str__(self) -> str:
        where = f" ({self.loc})" if self.loc else ""
        return f"{'refused' if self.refused else 'done'}: {self.op}{where}: {self.what}"


def did(op: OpDesc, what: str) -> Note:
    """A note that something was done at `op`."""
    return Note(_short(op), what, op.loc)


def refused(op: OpDesc, why: str) -> Note:
    """A note that `op` was not changed, and why."""
    return Note(_short(op), why, op.loc, refused=True)


def _short(op: OpDesc) -> str:
    main = next(
        (op.output(slot)[0] for slot in ("Out", "Output", "Y") if op.output(slot)),
        next(iter(op.writes), None),
    )
    return f"op '{op.type}'" + (f" -> {main}" if main is not None else "")


@dataclass(frozen=True)
class Rewrite:
    """The result of a pass. params: the parameters that it made, by name (new names only)."""

    desc: ProgramDesc
    params: Params = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    certificate: Any = None


@dataclass(frozen=True)
class Pass:
    """A rewrite of a program. Subclasses are frozen dataclasses with a `name`, a docstring, and
    `rewrite`.
    """

    name: ClassVar[str] = ""

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        """The rewritten program.

        desc: verified. params: values of persistable variables, as far as they are known. keep:
        names whose final values must not change (fetches); persistable variables are always kept.
        """
        raise NotImplementedError

    def __str__(self) -> str:
        given = [
            f"{f.name}={v!r}"
            for f in fields(self)
            if f.repr and (v := getattr(self, f.name)) != f.default
        ]
        return self.name + (f"({', '.join(given)})" if given else "")


PASSES: dict[str, type[Pass]] = {}


def register(cls: type[Pass]) -> type[Pass]:
    """Class decorator: register a pass by its name, for pipelines in text form and ``fluidjax
    passes``.

    Raises FluidValueError for a pass without a name or docstring, or a name that another pass has.
    """
    if not cls.name or not cls.__doc__:
        raise FluidValueError(f"pass {cls.__name__} needs a name and a docstring")
    known = PASSES.get(cls.name)
    if known is not None and (known.__module__, known.__qualname__) != (
        cls.__module__,
        cls.__qualname__,
    ):
        raise FluidValueError(
            f"there is a pass {cls.name!r} already ({known.__module__}.{known.__qualname__})"
        )
    PASSES[cls.name] = cls
    return cls


def find(name: str) -> type[Pass]:
    """The registered pass of a name. Raises FluidValueError with the nearest name."""
    if name not in PASSES:
        raise FluidValueError(
            f"there is no pass {name!r}{near(name, PASSES)}; there are {', '.join(sorted(PASSES))}"
        )
    return PASSES[name]


@dataclass(frozen=True)
class PassResult(Shown):
    """The result of running a pass.

    desc: the new program. before: the old one. params: new parameters by name. changed: whether
    anything differs. seconds: time of the rewrite without the verification. parts: the results of a
    pipeline's passes.
    """

    title: str
    before: ProgramDesc
    desc: ProgramDesc
    params: Params
    notes: tuple[Note, ...]
    certificate: Any
    changed: bool
    seconds: float
    parts: tuple[PassResult, ...] = ()

    @property
    def refusals(self) -> tuple[Note, ...]:
        """The notes about refusals."""
        return tuple(n for n in self.notes if n.refused)

    @property
    def certificates(self) -> tuple[Any, ...]:
        """The certificates of this pass or of a pipeline's passes."""
        found = [c for part in self.parts for c in part.certificates]
        return tuple(found if self.certificate is None else [self.certificate, *found])

    def counts(self) -> dict[str, tuple[int, int]]:
        """Op type -> (number before, after), if the two differ."""
        old, new = count_ops(self.before), count_ops(self.desc)
        return {
            kind: (old[kind], new[kind]) for kind in sorted(old | new) if old[kind] != new[kind]
        }

    def diff(self) -> str:
        """The difference of the two printed programs, as unified diff lines."""
        return show.diff(self.before, self.desc)

    def __str__(self) -> str:
        head = (
            f"{self.title}: {'changed' if self.changed else 'no change'},"
            f" {self.seconds * 1e3:.1f} ms"
        )
        lines = [head, *(f"  {kind}: {a} -> {b}" for kind, (a, b) in self.counts().items())]
        if self.parts:
            lines += ["  " + line for part in self.parts for line in str(part).splitlines()]
        else:
            lines += [f"  {n}" for n in self.notes]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from ..look.rewrites import result_html

        return result_html(self)


def count_ops(desc: ProgramDesc) -> Counter[str]:
    """Op type -> the number of ops of all blocks with it."""
    return Counter(op.type for _, op in walk.ops(desc))


@dataclass(frozen=True)
class Pipeline(Pass):
    """Passes in order."""

    name: ClassVar[str] = "pipeline"
    passes: tuple[Pass, ...] = ()

    def __str__(self) -> str:
        return ",".join(map(str, self.passes))


def run(
    pas: Pass, desc: ProgramDesc, params: Params | None = None, keep: Iterable[str] = ()
) -> PassResult:
    """Run a pass, or a pipeline, on a program; no argument is changed.

    params: values of persistable variables. keep: names to fetch; inputs of the program's own fetch
    ops are always kept. The program is verified before and after.

    Raises FluidValueError for a kept name that the program lacks, VerifyError for a malformed
    program, PassError for one that a pass has broken; an error from a pass has the pass's name as a
    note.
    """
    params = {} if params is None else params
    wanted = kept(desc, keep)
    verify(desc, lookup)
    return _run(pas, desc, params, wanted)


def _run(pas: Pass, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> PassResult:
    if isinstance(pas, Pipeline):
        return _run_all(pas, desc, params, keep)
    start = time.perf_counter()
    try:
        result = pas.rewrite(desc, params, keep)
    except Exception as exc:
        raise note(exc, f"in pass {pas}")  # noqa: B904
    seconds = time.perf_counter() - start
    _check(pas, desc, result, params, keep)
    return PassResult(
        str(pas),
        desc,
        result.desc,
        result.params,
        result.notes,
        result.certificate,
        result.desc != desc,
        seconds,
    )


def _run_all(
    pipeline: Pipeline, desc: ProgramDesc, params: Params, keep: frozenset[str]
) -> PassResult:
    parts: list[PassResult] = []
    now = desc
    made: dict[str, Any] = {}
    for pas in pipeline.passes:
        part = _run(pas, now, {**params, **made} if made else params, keep)
        now, made = part.desc, {**made, **part.params}
        parts.append(part)
    mentioned = walk.mentions(now) | set(walk.persistables(now))
    return PassResult(
        str(pipeline), desc, now, {n: v for n, v in made.items() if n in mentioned},
        tuple(n for part in parts for n in part.notes), None, now != desc, sum(p.seconds for p in parts), tuple(parts),
    )  # fmt: skip


def _check(
    pas: Pass, before: ProgramDesc, result: Rewrite, params: Params, keep: frozenset[str]
) -> None:
    """Check the obligations of every pass: a well-formed program, the kept names, and new names for
    new values.
    """
    try:
        verify(result.desc, lookup)
    except FluidError as exc:
        raise PassError(f"pass {pas} broke the program: {exc}") from exc
    if result.desc != before and (fault := pairs.fault(before, result.desc)):
        raise PassError(f"pass {pas} broke the program: {fault}")
    gone = [n for n in sorted(keep) if result.desc.find_var(n) is None]
    if gone:
        raise PassError(f"pass {pas} removed {gone[0]!r}, which is to be kept")
    old = walk.persistables(before)
    clash = [n for n in result.params if n in params or n in old]
    if clash:
        raise PassError(
            f"pass {pas} gives a new value to {clash[0]!r}, which exists; a pass makes new names"
        )


def kept(desc: ProgramDesc, keep: Iterable[str]) -> frozenset[str]:
    """`keep` and the inputs of the program's fetch ops. Raises FluidValueError for a name that the
    program lacks.
    """
    if isinstance(keep, str):
        keep = (keep,)
    names = frozenset(keep)
    known = desc.blocks[0].vars
    for name in sorted(names):
        if name not in known:
            raise FluidValueError(
                f"there is no variable {name!r} to keep in the program{near(name, known)}"
            )
    return names | {n for op in desc.blocks[0].ops if op.type == "fetch" for n in op.reads}


def new_name(base: str, taken: Iterable[str] | Mapping[str, Any], *more: Any) -> str:
    """`base`, or ``base_1``, ``base_2``, ... if it is in one of the collections of taken names."""
    collections = (taken, *more)
    name, k = base, 0
    while any(name in names for names in collections):
        k += 1
        name = f"{base}_{k}"
    return name


def value_of(params: Params, name: str) -> np.ndarray | None:
    """The value of a parameter as a NumPy array; None if it is unknown, and for random keys, which
    are not such arrays.
    """
    value = params.get(name)
    unheld = value is None or str(getattr(value, "dtype", "")) in KEYS
    return None if unheld else np.asarray(value)


def values_of(params: Params, ops: Iterable[OpDesc]) -> dict[str, np.ndarray]:
    """The known values of these ops' inputs."""
    names = dict.fromkeys(n for op in ops for n in op.reads)
    return {n: value for n in names if (value := value_of(params, n)) is not None}


def with_options(pas: Pass, **options: Any) -> Pass:
    """`pas` with other options. Raises FluidValueError for one that it does not have."""
    known = {f.name for f in fields(pas)}
    for name in options:
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise FluidValueError(
                f"pass {pas.name!r} has no option {name!r}{near(name, known)}; it has {there}"
            )
    return replace(pas, **options)
