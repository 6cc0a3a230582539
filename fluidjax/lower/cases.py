"""Cases that only assign constants become one table look-up.

A learning rate that falls at a thousand steps (`piecewise_decay`) is a Switch with a thousand
cases. If the conditions depend only on comparisons of one number with constants, the assigned
values are a function of that number alone, constant on each interval between two of the constants.
The values are therefore computed here for every interval, and the step looks up the interval.

The intervals are numbered: below the first constant, at it, between it and the second, and so on;
the last is nan. A comparison of the number with a constant is one of the intervals' numbers.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..base.dtypes import enum_of, name_of, numpy_dtype
from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc, VarDesc
from ..ops.build import OpBuilder
from ..ops.fill import scalar
from ..ops.registry import lookup

LEAST = 4  # least number of cases for a table
MOST = 1 << 13  # largest number of constants, and of table elements for each of them
_FIELDS = {
    "bool": "bool_values",
    "int32": "int32_values",
    "int64": "int64_values",
    "float32": "fp32_values",
}
# Comparison -> NumPy's, and the same one with its sides exchanged.
_COMPARISONS: Mapping[str, tuple[Any, str]] = {
    "less_than": (np.less, "greater_than"), "less_equal": (np.less_equal, "greater_equal"),
    "greater_than": (np.greater, "less_than"), "greater_equal": (np.greater_equal, "less_equal"),
    "equal": (np.equal, "equal"), "not_equal": (np.not_equal, "not_equal"),
}  # fmt: skip
_LOGIC: Mapping[str, Any] = {
    "logical_and": np.bitwise_and, "logical_or": np.bitwise_or,
    "logical_xor": np.bitwise_xor, "logical_not": np.bitwise_not,
}  # fmt: skip
_APART = 1.0  # larger float32 numbers that differ do so by more than the tolerance of `equal`


class Looked(NamedTuple):
    """Ops with look-ups in place of cases, and the uids of those whose integers are in range by
    construction.
    """

    ops: tuple[OpDesc, ...]
    sure: frozenset[int] = frozenset()


class Condition(NamedTuple):
    """A comparison of `subject` with a constant, or logic of conditions about one subject."""

    subject: str
    kind: str
    constant: Any = None
    parts: tuple[str, ...] = ()


@dataclass
class Chain:
    """Cases about one subject: their positions, and the assignments of each."""

    subject: str
    cases: list[tuple[int, str, Mapping[str, np.ndarray]]] = field(
        default_factory=list
    )  # position, condition, constants by name
    outs: set[str] = field(default_factory=set)


def looked_up(desc: ProgramDesc, ops: Sequence[OpDesc]) -> Looked:
    """`ops` of block 0 with a look-up in place of each convertible chain of cases."""
    if sum(op.type == "conditional_block" for op in ops) < LEAST:
        return Looked(tuple(ops))
    done = next(
        (looked for known, given, looked in tuple(_RECENT) if known is desc and given is ops), None
    )
    if done is None:
        done = _searched(desc, ops)
        _RECENT.append((desc, ops, done))
    return done


# Several steps are made from one program, for its checks and for its runs.
_RECENT: deque[tuple[ProgramDesc, Sequence[OpDesc], Looked]] = deque(maxlen=2)


def _searched(desc: ProgramDesc, ops: Sequence[OpDesc]) -> Looked:
    found = _Search(desc, ops)
    tables = [
        (chain, table) for chain in found.chains() if (table := found.table(chain)) is not None
    ]
    if not tables:
        return Looked(tuple(ops))
    build, sure = OpBuilder.after(desc), set[int]()
    gone = {at for chain, _ in tables for at, *_ in chain.cases}
    instead = {
        chain.cases[-1][0]: _written(build, found, chain, table, sure) for chain, table in tables
    }
    kept = (instead.get(at, [] if at in gone else [op]) for at, op in enumerate(ops))
    return Looked(tuple(op for each in kept for op in each), frozenset(sure))


@dataclass
class _Table:
    """The results of a chain. rows: name -> the row of its value in each interval; -1: the old
    value. values: name -> the rows.
    """

    bounds: np.ndarray
    rows: dict[str, np.ndarray]
    values: dict[str, np.ndarray]


class _Search:
    def __init__(self, desc: ProgramDesc, ops: Sequence[OpDesc]) -> None:
        self.desc, self.ops, self.vars = desc, ops, desc.blocks[0].vars
        self.reads = [walk.reads_with_subblocks(desc, op) for op in ops]
        self.writes = [walk.writes_with_subblocks(desc, op) for op in ops]
        self.writers = Counter(name for names in self.writes for name in names)
        self.first: dict[str, int] = {}  # where each name is first written
        for at, names in enumerate(self.writes):
            for name in names:
                self.first.setdefault(name, at)
        self.constants = {
            op.output("Out")[0]: value for op in ops if (value := self._constant(op)) is not None
        }
        self.conditions: dict[str, Condition] = {}
        for at, op in enumerate(ops):
            if (found := self._condition(at, op)) is not None:
                self.conditions[op.output("Out")[0]] = found

    @cached_property
    def scopes(self) -> set[str]:
        """Names that some op reads: a case whose scope is among them is differentiated."""
        return {name for names in self.reads for name in names}

    def chains(self) -> Iterable[Chain]:
        """Runs of cases about one subject, between which no other op reads or writes their
        variables.
        """
        open_: dict[str, Chain] = {}
        done = []
        for at, op in enumerate(self.ops):
            case = self._case(op) if op.type == "conditional_block" else None
            subject = None if case is None else self.conditions[op.input("Cond")[0]].subject
            for other, chain in list(open_.items()):
                if other != subject and not (
                    chain.outs.isdisjoint(self.reads[at]) and chain.outs.isdisjoint(self.writes[at])
                ):
                    done.append(open_.pop(other))
            if case is not None and subject is not None:
                chain = open_.setdefault(subject, Chain(subject))
                chain.cases.append((at, op.input("Cond")[0], case))
                chain.outs.update(case)
        return [chain for chain in (*done, *open_.values()) if len(chain.cases) >= LEAST]

    def table(self, chain: Chain) -> _Table | None:
        """The results of a chain of cases as a table; None if they cannot be one."""
        needed = {name for _, name, _ in chain.cases}
        for name, found in reversed(self.conditions.items()):
            needed.update(found.parts if name in needed else ())
        conditions = {n: c for n, c in self.conditions.items() if n in needed}
        bounds = np.unique([c.constant for c in conditions.values() if not c.parts])
        if not 0 < len(bounds) <= MOST:
            return None
        holds, count = _intervals(conditions, bounds)
        table = _Table(bounds, {}, {})
        for out in chain.outs:
            rows, values = np.full(count, -1), list[np.ndarray]()
            for _, condition, case in chain.cases:
                if out in case:
                    rows[np.unpackbits(holds[condition], count=count) > 0] = len(values)
                    values.append(case[out])
            if not self._fits(out, values, keeps=bool((rows < 0).any()), before=chain.cases[0][0]):
                return None
            table.rows[out], table.values[out] = rows, np.stack(values)
        return table

    def _fits(self, out: str, values: Sequence[np.ndarray], keeps: bool, before: int) -> bool:
        """Whether these values of a variable can be rows of a table.

        keeps: in some interval no case is true, so the variable keeps its old value, which must
        exist.
        """
        var = self.vars.get(out)
        first = values[0]
        equal_forms = all(v.shape == first.shape and v.dtype == first.dtype for v in values)
        if (
            var is None
            or not equal_forms
            or (var.shape, var.dtype) != (first.shape, first.dtype.name)
            or var.dtype not in _FIELDS
        ):
            return False
        there = var.persistable or (
            self.first[out] < before and not self.ops[self.first[out]].blocks
        )
        return first.size * len(values) <= MOST and (there or not keeps)

    def _constant(self, op: OpDesc) -> np.ndarray | None:
        """The constant output of an op without inputs, if no other op writes its name."""
        return (
            _value(op)
            if op.type in _CONSTANT
            and len(op.output("Out")) == 1
            and self.writers[op.output("Out")[0]] == 1
            else None
        )

    def _condition(self, at: int, op: OpDesc) -> Condition | None:
        if op.type not in _COMPARISONS and op.type not in _LOGIC:
            return None
        names, outs = (*op.input("X"), *op.input("Y")), op.output("Out")
        if (
            len(names) != (1 if op.type == "logical_not" else 2)
            or len(outs) != 1
            or self.writers[outs[0]] != 1
        ):
            return None
        if op.type in _LOGIC:
            parts = [self.conditions.get(n) for n in names]
            subjects = {None if part is None else part.subject for part in parts}
            subject = subjects.pop() if len(subjects) == 1 else None
            return None if subject is None else Condition(subject, op.type, parts=names)
        x, y = names
        if y in self.constants and x not in self.constants:
            return self._comparison(at, x, op.type, self.constants[y])
        if x in self.constants and y not in self.constants:
            return self._comparison(at, y, _COMPARISONS[op.type][1], self.constants[x])
        return None

    def _comparison(
        self, at: int, subject: str, kind: str, constant: np.ndarray
    ) -> Condition | None:
        var = self.vars.get(subject)
        settled = self.writers[subject] == 0 or (
            self.writers[subject] == 1 and self.first[subject] < at
        )
        if (
            not settled
            or var is None
            or not _is_number(var)
            or constant.size != 1
            or var.dtype != constant.dtype.name
        ):
            return None
        number = constant.reshape(())
        if not np.isfinite(number) or (
            kind in ("equal", "not_equal") and number.dtype.kind == "f" and abs(number) < _APART
        ):
            return None
        return Condition(subject, kind, number[()])

    def _case(self, op: OpDesc) -> dict[str, np.ndarray] | None:
        """The assignments of a block that only assigns constants; None for any other block."""
        cond = op.input("Cond")
        if (
            len(cond) != 1
            or len(op.blocks) != 1
            or cond[0] not in self.conditions
            or not op.attrs.get("is_scalar_condition", False)
        ):
            return None
        if any(scope in self.scopes for scope in op.output("Scope")):
            return None
        block = self.desc.blocks[op.blocks[0]]
        here: dict[str, np.ndarray] = {}
        for inside in block.ops:
            value: np.ndarray | None = None
            if inside.type in _CONSTANT:
                value = _value(inside)
            elif inside.type == "assign" and len(inside.input("X")) == 1:
                (name,) = inside.input("X")
                value = here.get(name, None if name in block.vars else self.constants.get(name))
            if value is None or len(inside.output("Out")) != 1:
                return None
            here[inside.output("Out")[0]] = value
        return {name: value for name, value in here.items() if name not in block.vars}


_CONSTANT = frozenset({"fill_constant", "assign_value"})


def _value(op: OpDesc) -> np.ndarray | None:
    """The value of a constant; None if tensors decide it, or if it cannot be computed."""
    if any(op.inputs.values()):
        return None
    try:
        if math.prod(op.attrs["shape"]) > MOST:
            return None
        if op.type == "fill_constant":
            dtype = numpy_dtype(name_of(op.attrs["dtype"]))
            return np.full(
                op.attrs["shape"], scalar(op.attrs["value"], op.attrs["str_value"], dtype), dtype
            )
        return np.asarray(lookup(op.type)({}, op.attrs)["Out"])
    except Exception:  # the op raises the error when it runs
        return None


def _is_number(var: VarDesc) -> bool:
    plain = (
        var.kind == "LOD_TENSOR"
        and not var.lod_level
        and var.dtype in ("int32", "int64", "float32")
    )
    return plain and var.shape is not None and all(n == 1 for n in var.shape)


def _intervals(
    conditions: Mapping[str, Condition], bounds: np.ndarray
) -> tuple[dict[str, np.ndarray], int]:
    """For each condition whether it is true in each interval, as packed bits, and the number of
    intervals. The conditions follow their parts.
    """
    numbers = np.arange(2.0 * len(bounds) + 1)
    if bounds.dtype.kind == "f":
        numbers = np.append(numbers, np.nan)
    found: dict[str, np.ndarray] = {}
    for name, condition in conditions.items():
        if condition.parts:
            found[name] = _LOGIC[condition.kind](*(found[part] for part in condition.parts))
        else:
            at = 2 * np.searchsorted(bounds, condition.constant) + 1
            found[name] = np.packbits(_COMPARISONS[condition.kind][0](numbers, at))
    return found, len(numbers)


def _written(
    build: OpBuilder, found: _Search, chain: Chain, table: _Table, sure: set[int]
) -> list[OpDesc]:
    """The ops that look up the results of a chain."""
    origin, x = found.ops[chain.cases[-1][0]], chain.subject
    made: list[OpDesc] = []

    def add(kind: str, inputs: Mapping[str, Any], out: str | None = None, /, **attrs: Any) -> str:
        name = out or f"{x}@CASES@{origin.uid}@{len(made)}"
        made.append(build.op(kind, inputs, {"Out": name}, None, origin, **attrs))
        return name

    def constant(value: np.ndarray) -> str:
        kind = value.dtype.name
        return add(
            "assign_value",
            {},
            shape=value.shape,
            dtype=enum_of(kind),
            **{_FIELDS[kind]: tuple(value.reshape(-1).tolist())},
        )

    def counted(condition: str) -> str:
        return add(
            "reduce_sum",
            {
                "X": add(
                    "cast", {"X": condition}, in_dtype=enum_of("bool"), out_dtype=enum_of("int32")
                )
            },
            keep_dim=True,
        )

    x = add("reshape", {"X": x}, shape=(1,))
    bounds = constant(table.bounds)
    parts = [counted(add(kind, {"X": bounds, "Y": x})) for kind in ("less_than", "less_equal")]
    if table.bounds.dtype.kind == "f":
        nan = counted(add("logical_not", {"X": add("less_equal", {"X": x, "Y": x})}))
        parts.append(add("scale", {"X": nan}, scale=float(2 * len(table.bounds) + 1)))
    interval = add("sum", {"X": parts})

    def taken(values: str, index: str) -> str:
        name = add("gather", {"X": values, "Index": index})
        sure.add(made[-1].uid)
        return name

    for out, rows in table.rows.items():
        values, shape = constant(table.values[out]), table.values[out].shape[1:]
        keeps = bool((rows < 0).any()) or found.vars[out].persistable
        # as the last row; state is read even if some case is always true, because it must exist
        if keeps:
            values = add(
                "concat", {"X": [values, add("reshape", {"X": out}, shape=(1, *shape))]}, axis=0
            )
        numbers = np.where(rows < 0, len(table.values[out]), rows).astype("int32")
        add("reshape", {"X": taken(values, taken(constant(numbers), interval))}, out, shape=shape)
    return made
