"""Gradients through a reshape in place.

`layers.reshape(x, shape, inplace=True)` changes the shape of x itself. Gradient ops of earlier
readers come after the reshape's gradient and read x by its name, but need x with its old shape.
From the reshape's gradient on, gradient ops therefore get x in the shape of x's gradient, and with
its LoD. All other ops get x reshaped, as in Fluid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ir.desc import EMPTY, OpDesc
from ..ops.definition import GRAD
from ..ops.ragged import Ragged, rows_of

# for a variable reshaped in place: a value with its former shape and LoD
Before = dict[str, Any]


def note_reshaped(op: OpDesc, env: Mapping[str, Any], before: Before) -> None:
    """If a gradient op turns a name's gradient into one of the same name with another shape,
    remember that one.
    """
    made = [n for n in op.writes if n != EMPTY]
    name = made[0].partition(GRAD)[0] if len(made) == 1 else EMPTY
    if {n.partition(GRAD)[0] for n in op.reads if GRAD in n} != {name}:
        return
    grad = env.get(made[0])
    shape, now = (getattr(rows_of(v), "shape", None) for v in (grad, env.get(name)))
    if (
        shape is not None
        and now is not None
        and shape != now
        and math.prod(shape) == math.prod(now)
    ):
        cells = np.broadcast_to(np.int8(0), shape)
        before[name] = grad.with_rows(cells) if isinstance(grad, Ragged) else cells


def as_before(op: OpDesc, inputs: dict[str, Any], before: Before) -> dict[str, Any]:
    """The inputs of a gradient op, with former shapes for those that were reshaped in place."""
    found = dict(inputs)
    for slot, names in op.inputs.items():
        rows = rows_of(found.get(slot))
        if len(names) == 1 and names[0] in before and hasattr(rows, "reshape"):
            was = before[names[0]]
            rows = rows.reshape(rows_of(was).shape)
            found[slot] = was.with_rows(rows) if isinstance(was, Ragged) else rows
    return found
