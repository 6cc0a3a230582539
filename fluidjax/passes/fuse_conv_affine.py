"""Folding of per-channel scales and shifts of any kind into the convolution or matrix product
before them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir.desc import ProgramDesc
from .affine import AFFINE, activation
from .base import Note, Params, Pass, Rewrite, did, refused, register
from .certificate import Certificate
from .fold import Folder, Found, examine
from .linear import LINEAR
from .match import Refused, Values


@register
@dataclass(frozen=True)
class FuseConvAffine(Pass):
    """Fold runs of per-channel scales and shifts after a linear op into it.

    They are elementwise_mul, elementwise_add, scale, affine_channel, batch_norm and inplace_abn.
    The operands must be constants, per channel or one for all. The activation of an inplace_abn
    stays, and ends the run. A single addition is already a bias and stays. If the folded shift is
    zero, no addition is written. A remaining scale of channels is noted with the reason.
    """

    name: ClassVar[str] = "fuse_conv_affine"
    probe: bool = True

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        values = Values(desc, keep)
        folder = Folder(values, params, suffix="_folded", probe=self.probe)
        refusals: list[Note] = []
        notes: list[Note] = []
        for at, op in enumerate(values.ops):
            if op.type not in LINEAR:
                continue
            found, note = _longest(values, params, at)
            refusals += note
            if found is not None:
                folder.fold(found, add_zero=False)
                notes.append(
                    did(op, f"took in {', '.join(values.ops[i].type for i in found.ops[1:])}")
                )
        certificate = Certificate(str(self), tuple(folder.folds), tuple(refusals))
        return Rewrite(folder.result(), folder.made, (*notes, *refusals), certificate)


def _longest(values: Values, params: Params, at: int) -> tuple[Found | None, list[Note]]:
    """The longest foldable run after the linear op at `at`, and why the next affine op cannot be
    folded.
    """
    positions, best = [at], None
    gives = LINEAR[values.ops[at].type].gives
    while True:
        value = values.given(positions[-1], gives)
        readers = values.readers(value)
        behind = values.ops[readers[0]] if readers else None
        if behind is None or behind.type not in AFFINE or activation(values.ops[positions[-1]]):
            break
        link = AFFINE[behind.type][1]
        if value[0] not in behind.input(link.takes):
            break
        positions.append(readers[0])
        try:
            best = examine(values, params, positions)
        except Refused as exc:
            worth = behind.type != "elementwise_add" and _constant(values, positions[-1])
            return _useful(values, best), [refused(behind, str(exc))] if worth else []
        gives = link.gives
    return _useful(values, best), []


def _constant(values: Values, at: int) -> bool:
    """Whether an op combines a value with a parameter, so that a refusal deserves a note."""
    return any(values.constant(n) for n in values.ops[at].reads)


def _useful(values: Values, found: Found | None) -> Found | None:
    """The run, unless it is a single addition, which a fold would leave as it is."""
    if found is None or [values.ops[at].type for at in found.ops[1:]] == ["elementwise_add"]:
        return None
    return found
