"""Steps with ops that call Python functions, which may raise. A run waits for such a step, and
donates nothing to it.
"""

from __future__ import annotations

import logging
from typing import Any

import jax

from ..ir import walk
from ..lower.step import Step
from ..ops import py_functions
from ..ops.registry import control


def may_raise(step: Step) -> bool:
    """Whether an op of the step, or of a block of it, calls Python, which may raise."""
    below = walk.below(step.desc, step.ops)
    return any(control(op.type).may_raise for op in (*step.ops, *below))


class _NotTwice(logging.Filter):
    """Drops JAX's log of an exception that a callback raised: the user gets the exception
    itself.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return record.exc_info is None or not py_functions.raised_by_one(record.exc_info[1])


logging.getLogger("jax._src.callback").addFilter(_NotTwice())


def ended(fn: Any, *args: Any) -> Any:
    """The results of a step that calls Python, waited for. Raises what the function raised, with
    its own traceback.
    """
    py_functions.raised()
    try:
        return jax.block_until_ready(fn(*args))
    except Exception:
        found = py_functions.raised()
        if found is None:
            raise
        raise found from None
