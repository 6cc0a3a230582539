"""The gradient ops that differentiate exactly the computation of an earlier forward op, so that
both share one pullback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.desc import EMPTY, OpDesc
from ..ops.registry import GRAD, HINTS, lookup


def pair_gradients(ops: Sequence[OpDesc]) -> dict[int, tuple[OpDesc, ...]]:
    """Forward op uid -> gradient ops whose versioned inputs prove that they differentiate that very
    computation.
    """
    if not any(lookup(op.type).derived for op in ops):
        return {}
    version: dict[str, int] = {}
    seen: dict[Any, int] = {}
    pairs: dict[int, list[OpDesc]] = {}
    for op in ops:
        definition = lookup(op.type)
        if definition.derived:
            uid = seen.get(_signature(op, lookup(definition.forward or ""), version, None))
            if uid is not None:
                pairs.setdefault(uid, []).append(op)
        before = {name: version.get(name, 0) for name in op.reads}
        for name in op.writes:
            version[name] = version.get(name, 0) + 1
        if definition.grad is not None and not op.blocks and lookup(definition.grad.type).derived:
            seen[_signature(op, definition, before, version)] = op.uid
    return {uid: tuple(found) for uid, found in pairs.items()}


def _signature(
    op: OpDesc, forward: Any, before: Mapping[str, int], after: Mapping[str, int] | None
) -> Any:
    """The properties on which a gradient op and its forward op must agree: attributes, and the
    versioned names of the slots taken.

    For the forward op (`after` given), inputs have their version before it, outputs that after it.
    """
    outputs = {s.name for s in forward.outputs}
    taken = []
    for slot, origin in forward.grad.takes.items():
        if origin.endswith(GRAD):
            continue
        if after is None:
            names, version = op.inputs.get(slot, ()), before
        elif origin in outputs:
            names, version = op.outputs.get(origin, ()), after
        else:
            names, version = op.inputs.get(origin, ()), before
        taken.append((origin, tuple((n, version.get(n, 0)) for n in names if n != EMPTY)))
    attrs = frozenset((k, v) for k, v in op.attrs.items() if k not in HINTS)
    return forward.type, frozenset(taken), attrs
