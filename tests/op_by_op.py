"""Running op by op, without compiling: delete_var ops are honoured, and what is held in memory can
be measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax

from fluidjax.ir.desc import OpDesc
from fluidjax.lower.step import Step
from fluidjax.ops.checking import WORD
from fluidjax.ops.registry import control, traits
from fluidjax.ops.traits import Runs


@dataclass(frozen=True, eq=False)
class OpByOp(Step):
    """A step that runs every op of block 0 in order, as Fluid's executor did; call it outside jit.

    Nothing is left out as unneeded, so all that any op reads must be fed. Gradient ops recompute
    their forward op, so no values are held besides the named ones.
    """

    literal: bool = True

    @cached_property
    def ops(self) -> tuple[OpDesc, ...]:
        """All ops but those that only the host can run; delete_var is one that this step runs
        itself.
        """
        return tuple(
            op
            for op in self.desc.blocks[0].ops
            if traits(op.type).runs is not Runs.HOST or control(op.type).lower
        )

    def measured(
        self, state: Mapping[str, Any], feed: Mapping[str, Any], key: jax.Array | None = None
    ) -> tuple[dict[str, Any], list[Any], list[int]]:
        """Run, and say after every op how many bytes the named arrays hold (an array of two names
        counts once).

        An op's results are there when its bytes are counted, and its inputs still are; so the
        largest figure is the peak. Parameters count as soon as the step begins, and a replaced one
        no more. Raises what a step raises.
        """
        held: list[int] = []
        state, fetched = self(state, feed, key, lambda op, env: held.append(_bytes(env)))
        return state, fetched, held


def _bytes(env: Mapping[str, Any]) -> int:
    arrays = {
        id(leaf): leaf
        for name, value in env.items()
        if name != WORD
        for leaf in jax.tree.leaves(value)
    }
    return sum(leaf.nbytes for leaf in arrays.values())
