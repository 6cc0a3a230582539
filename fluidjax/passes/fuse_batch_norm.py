"""Fold test-mode batch_norm into the convolution or matrix product before it (Fluid's
InferenceTranspiler).

    (W x + c - mean) / sqrt(variance + epsilon) * scale + bias  =  (a W) x + (a (c - mean) + bias)

with a = scale / sqrt(variance + epsilon). The stages are those of Fluid's documentation: an
elementwise_add is inserted if there is no bias, the parameters are folded, the batch_norm is
removed, its readers read the addition, and unused variables are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir.desc import ProgramDesc
from .affine import AFFINE, RESHAPES, THROUGH, batch_norm, refuse_training
from .base import Note, Params, Pass, Rewrite, did, refused, register
from .certificate import Certificate
from .fold import Folder, examine
from .linear import LINKS
from .match import Refused, Values, chain

NORMS = frozenset(kind for kind, (read, _) in AFFINE.items() if read is batch_norm)
_THROUGH = {kind: THROUGH[kind] for kind in ("elementwise_add", *NORMS, *RESHAPES)}


@register
@dataclass(frozen=True)
class FuseBatchNorm(Pass):
    """Fold every test-mode batch_norm into the conv2d, conv3d, their transposed kinds, mul, matmul
    or fc before it.

    An addition of a constant per channel may be between them, and reshapes that keep the channels an
    axis of their own (Paddle's Conv1D before a norm); the weight may be shared: folded weights get
    new names. The activation of an inplace_abn stays. Every remaining batch_norm is
    noted with the reason. `probe` measures each fold on a random input; the certificate holds the
    figures.
    """

    name: ClassVar[str] = "fuse_batch_norm"
    probe: bool = True

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        values = Values(desc, keep)
        folder = Folder(values, params, probe=self.probe)
        used: set[int] = set()
        refusals: list[Note] = []
        # From the end, so that a norm after a norm takes both.
        for at in reversed(range(len(values.ops))):
            op = values.ops[at]
            if op.type not in NORMS or at in used:
                continue
            try:
                refuse_training(op)
                positions = chain(values, at, _THROUGH, LINKS)
                if not used.isdisjoint(positions):
                    raise Refused("what it follows is folded with another op")
                folder.fold(examine(values, params, positions))
                used.update(positions)
            except Refused as exc:
                refusals.append(refused(op, str(exc)))
        folder.folds.reverse()
        refusals.reverse()
        notes = (
            *(
                did(values.ops[at], "folded into the op before it")
                for at in sorted(used)
                if values.ops[at].type in NORMS
            ),
            *refusals,
        )
        return Rewrite(
            folder.result(),
            folder.made,
            notes,
            Certificate(str(self), tuple(folder.folds), tuple(refusals)),
        )
