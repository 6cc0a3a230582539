"""The user's line in an op's ``op_callstack``, which Paddle writes into every op of a program that
it saves.

1.8.5 lists the innermost frame first, later Paddles the outermost; the innermost frame is Paddle's
own. The user's line is the innermost frame that is neither in Paddle nor in another installed
package (such as a decorator's).
"""

from __future__ import annotations

import re

ATTRIBUTE = "op_callstack"
_FRAME = re.compile(r'\s*File "(.+?)", line (\d+)')
_PADDLE = re.compile(r"(^|[/\\])paddle[/\\](\w+[/\\])*\w+\.py$")
_INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")


def user_line(stack: object) -> str | None:
    """``"train.py:31"``; None if no frame has it, and for anything but a call stack."""
    entries = stack if isinstance(stack, tuple) else ()
    frames = [
        m.groups() for entry in entries if isinstance(entry, str) and (m := _FRAME.match(entry))
    ]
    if frames and not _PADDLE.search(frames[0][0]):
        frames.reverse()
    own = [(file, line) for file, line in frames if not _PADDLE.search(file)]
    nearest = [(file, line) for file, line in own if not _INSTALLED.search(file)] or own
    return ":".join(nearest[0]) if nearest else None
