"""The record of a folding pass: for each fold the formula with its operands and the measured error,
for each refusal the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..ir.desc import OpDesc
from ..look.shown import Shown
from .affine import Affine
from .base import Note
from .probe import Error


@dataclass(frozen=True)
class Fold:
    """One fold. layer: the types of the ops that became one, with the name of their result.

    operands: the parameters of the affine ops. made: the new parameters. error: measured on a probe
    batch, None if the measurement was disabled.
    """

    layer: str
    result: str
    loc: str | None
    weight: str
    operands: tuple[str, ...]
    epsilon: tuple[float, ...]
    made: tuple[str, ...]
    error: Error | None

    @classmethod
    def of(
        cls,
        before: Sequence[OpDesc],
        after: Sequence[OpDesc],
        affine: Affine,
        weight: str,
        error: Error | None,
    ) -> Fold:
        """The fold of the ops `before` into the ops `after`."""
        old = {n for op in before for n in op.reads}
        written = {n for op in (*before, *after) for n in op.writes}
        made = tuple(n for op in after for n in op.reads if n not in old and n not in written)
        epsilon = tuple(float(op.attrs["epsilon"]) for op in before if "epsilon" in op.attrs)
        result = next(iter(after[-1].writes))
        return cls(
            "+".join(op.type for op in before),
            result,
            before[0].loc,
            weight,
            affine.reads,
            epsilon,
            made,
            error,
        )

    @property
    def formula(self) -> str:
        """The formula, with the names of the operands."""
        eps = "".join(f", epsilon = {e:.9g}" for e in self.epsilon)
        return f"{self.made[0]} = a * {self.weight}, b from {', '.join(self.operands)}{eps}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "layer": self.layer, "result": self.result, "loc": self.loc, "weight": self.weight,
            "operands": list(self.operands), "epsilon": list(self.epsilon), "made": list(self.made),
            "error": None if self.error is None else self.error.to_dict(),
        }  # fmt: skip

    def __str__(self) -> str:
        where = f" ({self.loc})" if self.loc else ""
        error = "not measured" if self.error is None else str(self.error)
        return f"folded {self.layer} -> {self.result}{where}: {self.formula}; error {error}"


@dataclass(frozen=True)
class Certificate(Shown):
    """The folds and refusals of one run of a pass.

    The formula of every fold, channel by channel: a batch_norm is a = scale / sqrt(variance +
    epsilon), b = bias - mean * a; W' = a * W and b' = a * b0 + b, with b0 the old bias.
    """

    title: str
    folds: tuple[Fold, ...]
    refusals: tuple[Note, ...]

    @property
    def max_error(self) -> float | None:
        """The largest measured relative error."""
        errors = [f.error.relative for f in self.folds if f.error is not None]
        return max(errors, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        refusals = [{"op": n.op, "loc": n.loc, "why": n.what} for n in self.refusals]
        return {
            "pass": self.title,
            "folds": [f.to_dict() for f in self.folds],
            "refusals": refusals,
        }

    def __str__(self) -> str:
        worst = "" if self.max_error is None else f", largest relative error {self.max_error:.1e}"
        head = f"{self.title}: {len(self.folds)} folded, {len(self.refusals)} refused{worst}"
        return "\n".join(
            [head, *(f"  {f}" for f in self.folds), *(f"  {n}" for n in self.refusals)]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from ..look.rewrites import certificate_html

        return certificate_html(self)
