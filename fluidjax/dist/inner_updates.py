"""Updates within a block (minimize in a case of cond or Switch), which rewrites for several
processes or devices do not support.
"""

from __future__ import annotations

from ..errors import UnsupportedError
from ..ir import walk
from ..ir.desc import ProgramDesc
from ..ops.registry import traits


def refuse_inner_updates(desc: ProgramDesc, who: str) -> None:
    """Raises UnsupportedError for an optimizer's op in a block: ranks may take different cases, and
    would wait for each other.
    """
    for idx, op in walk.ops(desc):
        if idx and traits(op.type).update is not None:
            raise UnsupportedError(
                f"{who} takes no program that updates parameters within a block, as op '{op.type}'"
                f" ({op.loc}) does: the cases that the ranks take may differ, and then their"
                " gradients have no sum; call minimize outside of cond and Switch"
            )
