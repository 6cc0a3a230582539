"""Both sides of a place run on random inputs: the ops of JAX's, and those of Fluid's that are to
replace them.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...base.dtypes import numpy_dtype
from ...ir import dims
from ...ir.desc import FrozenMap, OpDesc, VarDesc
from ..match import Refused
from .place import Place, evaluate

TOLERANCE = 1e-5


@dataclass(frozen=True)
class Raised:
    """One place. rule: what it was taken for. op: the last op of JAX's; by: those of Fluid's that
    stand there.

    error: the greatest difference on random inputs over the scale of the result; 0 where every bit
    is the same.
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
    """What raise_to_fluid did. places: what was raised, each with its error. left: the ops of
    JAX's that stay, each with the reason.
    """

    places: tuple[Raised, ...]
    left: tuple[str, ...]

    @property
    def error(self) -> float:
        """The greatest of all."""
        return max((p.error for p in self.places), default=0.0)

    def __str__(self) -> str:
        exact = sum(p.error == 0 for p in self.places)
        head = (
            f"raise_to_fluid: {len(self.places)} places raised, {exact} exact, the others within"
            f" {self.error:.1e}; {len(self.left)} ops stay"
        )
        return "\n".join([head, *(f"  {line}" for line in self.left)])


class Trials:
    """Measures places; equal ones (of the same ops and types) once."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params = params
        self._known: dict[Any, float] = {}

    def error(self, place: Place) -> float:
        """The difference of both sides. Raises Refused where it is more than rounding."""
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
        """The ops of JAX's between what the new ops read and the output."""
        stop, found = set(place.reads), dict[int, OpDesc]()
        stack = [place.out.name]
        first = True
        while stack:
            name = stack.pop()
            op = place.source.makers.get(name)
            if op is None or (name in stop and not first) or op.uid in found:
                continue
            first = False
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
        given = {n: self._random(place.var(n)) for n in names}
        desc = place.source.desc
        block = desc.blocks[0]
        wider = replace(block, vars=FrozenMap({**place.source.vars, **place.made}))
        both = replace(desc, blocks=(wider, *desc.blocks[1:]))
        try:
            a = evaluate(both, old, given, place.out.name)
            b = evaluate(both, place.ops, given, place.out.name)
        except Refused:
            raise
        except Exception as error:
            raise Refused(f"it does not run: {next(iter(str(error).splitlines()), '')}") from error
        if a.shape != b.shape or a.dtype != b.dtype:
            raise Refused(f"it gives {b.dtype}{list(b.shape)}, not {a.dtype}{list(a.shape)}")
        if a.tobytes() == b.tobytes():
            return 0.0
        a, b = a.astype(np.float64), b.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        scale = max(float(np.abs(a[np.isfinite(a)]).max(initial=0.0)), 1e-30)
        apart = np.where(same, 0.0, np.abs(a - b)) / scale
        return float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))

    def _random(self, var: VarDesc) -> np.ndarray:
        value = self.params.get(var.name)
        if value is not None:
            return np.asarray(value)
        assert var.shape is not None and var.dtype is not None
        words = sorted({w for text in var.dims if text for w in dims.symbols(text)})
        known = {w: 2 + zlib.crc32(w.encode()) % 3 for w in words}
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
        return np.asarray(draw.randn(*shape), kind)
