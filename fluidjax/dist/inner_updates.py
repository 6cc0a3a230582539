"""Updates that rewrites for several processes or devices do not support: within a block (minimize
in a case of cond or Switch), and of a traced step that differentiates by itself.
"""

from __future__ import annotations

from ..errors import UnsupportedError
from ..ir import edit, walk
from ..ir.desc import ProgramDesc
from ..ops.registry import lookup, traits


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


def refuse_own_gradients(desc: ProgramDesc, who: str) -> None:
    """Raises UnsupportedError for a traced training step: no variable is known to be the gradient
    of a parameter, so nothing would be summed, and every rank would train by its own part.
    """
    ops, vars = desc.blocks[0].ops, desc.blocks[0].vars
    own = [op for op in ops if op.type.startswith("jax.") and lookup(op.type).forward is None]
    if not any(edit.role(op) & edit.BACKWARD for op in own):
        return
    for op in own:
        new = [n for n in op.writes if n in vars and vars[n].persistable]
        if edit.role(op) & edit.OPTIMIZE and new:
            raise UnsupportedError(
                f"{who} takes no traced step that differentiates by itself, as the one that writes"
                f" '{new[0]}' ({op.loc}) does: its gradients would not be summed over the ranks;"
                " trace the loss alone and call minimize, or give traced.step() arrays that"
                " jax.device_put has split over a mesh"
            )
