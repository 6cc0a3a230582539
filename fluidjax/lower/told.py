"""What an error says of the op in which it was raised."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..errors import FluidError, NotOneStep, note
from ..ir import text
from ..ir.desc import OpDesc


@contextlib.contextmanager
def told(op: OpDesc) -> Iterator[None]:
    """Whatever is raised within tells the op's text and the user's line."""
    try:
        yield
    except FluidError as exc:
        if isinstance(exc, NotOneStep) and exc.uid is None:
            exc.uid = op.uid
        raise note(exc, _place(op)) from None
    except Exception as exc:
        raise note(exc, _place(op))  # noqa: B904 - the exception itself goes on


def _place(op: OpDesc) -> str:
    return f"in op: {text.op_text(op)}" + (f"  # {op.loc}" if op.loc else "")
