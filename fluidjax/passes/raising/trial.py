"""Trials on random inputs of both sides of a conversion: JAX's ops, and the Fluid ops that replace
them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from ...base.dtypes import numpy_dtype
from ...ir import dims
from ...ir.desc import FrozenMap, OpDesc, VarDesc
from ...lower.open import closed, closed_op, open_attrs
from ..match import Refused
from .place import Place, Source, evaluate

TOLERANCE = 1e-5
# no precision beyond that of a dtype, which one side could have and the other not
EXACT = {"xla_allow_excess_precision": False}
SCALES = (1.0, 40.0)  # scales of the inputs: exponentials saturate at the greater one


Given = Mapping[str, Any]


@dataclass(frozen=True)
class Raised:
    """One conversion. rule: its rule. op: the last op of JAX's; by: Fluid's replacements.

    error: the greatest difference on random inputs over the scale of the result; 0 if all bits are
    equal.
    """

    rule: str
    op: str
    by: tuple[str, ...]
    error: float
    loc: str | None = None

    def __str__(self) -> str:
        how = "exact" if self.error == 0 else f"error {self.error:.1e}"
        return f"{self.rule}: {self.op} -> {', '.join(self.by)}: {how}"


@dataclass(frozen=True)
class RaisingCertificate:
    """The record of raise_to_fluid. places: the conversions, each with its error. left: the
    remaining ops of JAX's, each with the reason.
    """

    places: tuple[Raised, ...]
    left: tuple[str, ...]

    @property
    def error(self) -> float:
        """The greatest error."""
        return max((p.error for p in self.places), default=0.0)

    def __str__(self) -> str:
        exact = sum(p.error == 0 for p in self.places)
        head = (
            f"raise_to_fluid: {len(self.places)} places raised, {exact} exact, the others within"
            f" {self.error:.1e}; {len(self.left)} ops stay"
        )
        return "\n".join([head, *(f"  {line}" for line in self.left)])


class Trials:
    """Measures conversions; equal ones (with the same ops and types) once."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params = params
        self._known: dict[Any, float] = {}

    def error(self, place: Place) -> float:
        """The difference of both sides. Raises Refused if it is more than rounding."""
        old = self._slice(place)
        key = self._key(place, old)
        if key not in self._known:
            self._known[key] = self._measured(place, old)
        if not self._known[key] <= TOLERANCE:
            raise Refused(
                f"on random inputs {', '.join(o.type for o in place.ops)} differs by"
                f" {self._known[key]:.1e} of the scale"
            )
        return self._known[key]

    def _slice(self, place: Place) -> list[OpDesc]:
        """JAX's ops between the new ops' inputs and the output."""
        stop, found = set(place.reads), dict[int, OpDesc]()
        stack = [*place.op.reads]
        found[place.op.uid] = place.op
        while stack:
            name = stack.pop()
            op = place.source.makers.get(name)
            if op is None or name in stop or op.uid in found:
                continue
            found[op.uid] = op
            stack += op.reads
        ordered = [op for op in place.source.desc.blocks[0].ops if op.uid in found]
        return ordered

    def _key(self, place: Place, old: list[OpDesc]) -> Any:
        """Ops with their names by order of first use, and the types and the statistics' values."""
        number: dict[str, int] = {}

        def named(op: OpDesc) -> Any:
            return (
                op.type,
                tuple(
                    (s, tuple(number.setdefault(n, len(number)) for n in names))
                    for held in (op.inputs, op.outputs)
                    for s, names in sorted(held.items())
                ),
                repr(sorted((k, v) for k, v in op.attrs.items() if k not in ("op_role", "op_namescope"))),
            )  # fmt: skip

        ops = tuple(map(named, (*old, *place.ops)))
        types = tuple((place.var(n).shape, place.var(n).dtype, place.var(n).dims) for n in number if n != "@EMPTY@")  # fmt: skip
        return ops, types

    def _measured(self, place: Place, old: list[OpDesc]) -> float:
        written = {n for op in old for n in op.writes}
        names = dict.fromkeys(
            [*place.reads, *(n for op in old for n in op.reads if n not in written)]
        )
        desc = place.source.desc
        wider = replace(desc.blocks[0], vars=FrozenMap({**place.source.vars, **place.made}))
        blocks = (wider, *desc.blocks[1:], *place.source.blocks, *place.blocks)
        both = replace(desc, blocks=blocks)
        texts = {
            text
            for block in both.blocks
            for var in block.vars.values()
            for text in var.dims
            if text
        }
        for op in (op for block in both.blocks for op in block.ops):
            for name in open_attrs(op):
                held = op.attrs[name]
                texts |= {held} if isinstance(held, str) else set(held)
        known, numbers = _sizes(texts), place.source.numbers
        both = closed(both, known)
        before = closed(desc, known) if numbers else both
        olds, news = ([closed_op(o, known) for o in ops] for ops in (old, place.ops))

        def sides(given: Given, raised: Given) -> Any:
            return (
                evaluate(before, olds, given, place.needed),
                evaluate(both, news, raised, place.needed),
            )

        run = jax.jit(sides, compiler_options=EXACT)
        return max(self._apart(place, run, names, scale) for scale in SCALES)

    def _apart(self, place: Place, run: Any, names: Iterable[str], scale: float) -> float:
        given = {n: self._given(place.source, n, place.var(n), scale) for n in names}
        numbers = place.source.numbers
        try:
            with jax.enable_x64(True):
                olds, news = run(_shaped(given, numbers, ()), _shaped(given, numbers, (1,)))
        except Refused:
            raise
        except Exception as error:
            raise Refused(f"it does not run: {next(iter(str(error).splitlines()), '')}") from error
        return max(
            _difference(a.reshape(1) if n in numbers else a, b)
            for n, a, b in zip(
                place.needed, map(np.asarray, olds), map(np.asarray, news), strict=True
            )
        )

    def _given(self, source: Source, name: str, var: VarDesc, scale: float) -> np.ndarray:
        """The value of a variable that depends on the state alone, a random value for any other."""
        if name in source.makers and source.stored(name):
            ops, stack = dict[int, OpDesc](), [name]
            while stack:
                op = source.makers.get(stack.pop())
                if op is not None and op.uid not in ops:
                    ops[op.uid] = op
                    stack += op.reads
            ordered = [op for op in source.desc.blocks[0].ops if op.uid in ops]
            read = {n: self.params.get(n) for op in ordered for n in op.reads}
            if all(v is not None for n, v in read.items() if n not in source.makers):
                known = {n: v for n, v in read.items() if v is not None}
                return np.asarray(evaluate(source.desc, ordered, known, [name])[0])
        value = self.params.get(name)
        return self._random(var, scale) if value is None else np.asarray(value)

    def _random(self, var: VarDesc, scale: float) -> np.ndarray:
        assert var.shape is not None and var.dtype is not None
        known = _sizes(text for text in var.dims if text)
        texts = var.dims or ("",) * len(var.shape)
        shape = [
            dims.value(text, known) if text else max(n, 1)
            for n, text in zip(var.shape, texts, strict=True)
        ]
        draw = np.random.RandomState(zlib.crc32(repr((shape, var.dtype, var.name)).encode()))
        kind = np.dtype(numpy_dtype(var.dtype))
        if kind.kind == "b":
            return draw.rand(*shape) < 0.5
        if kind.kind in "iu":
            return draw.randint(0, 2, shape).astype(kind)
        return np.asarray(draw.randn(*shape) * scale, kind)


def _shaped(
    given: Mapping[str, np.ndarray], numbers: Set[str], shape: tuple[int, ...]
) -> dict[str, np.ndarray]:
    return {n: v.reshape(shape) if n in numbers else v for n, v in given.items()}


def _sizes(texts: Iterable[str]) -> dict[str, int]:
    """A size for every name in these texts; equal names get equal sizes."""
    least: dict[str, int] = {}
    for text in texts:
        for word in dims.symbols(text):
            least[word] = max(least.get(word, 0), dims.bounded(text)[1])
    return {w: low + 2 + zlib.crc32(w.encode()) % 3 for w, low in least.items()}


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    """The greatest difference over the scale of `a`; 0 if all bits are equal. Raises Refused."""
    if a.shape != b.shape or a.dtype != b.dtype:
        raise Refused(f"it gives {b.dtype}{list(b.shape)}, not {a.dtype}{list(a.shape)}")
    if a.tobytes() == b.tobytes():
        return 0.0
    a, b = a.astype(np.float64), b.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    scale = max(float(np.abs(a[np.isfinite(a)]).max(initial=0.0)), 1e-30)
    apart = np.where(same, 0.0, np.abs(a - b)) / scale
    return float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))
