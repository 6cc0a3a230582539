"""Output of commands: tables that fit the terminal, long lines and values folded, colour on
terminals.

Output into a pipe or a file is never folded, shortened or coloured, so that other programs get all
of it. ``NO_COLOR`` (set to anything) turns colour off; ``COLUMNS`` is the width of the terminal.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence

STYLES = {"head": "1", "good": "32", "doubtful": "33", "bad": "31", "quiet": "2"}
NARROWEST = 8  # least characters of a column
LONG = 72  # longest list or string, in characters, that a terminal shows in full
_VALUES = re.compile(rf'\([^()\n]{{{LONG},}}\)|"[^"\n]{{{LONG},}}"')


def watched() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def width() -> int:
    """Characters of a line; 0 if stdout is not a terminal."""
    return max(40, shutil.get_terminal_size().columns) if watched() else 0


def coloured() -> bool:
    """Whether to use colour: on a terminal with colours, unless NO_COLOR is set."""
    return watched() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str) -> str:
    """`text` in one of STYLES, or unchanged without colour."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if coloured() and text else text


def say(text: object) -> None:
    """Print, with lines that are too long for the terminal folded between words."""
    print(folded(str(text), width()))


def folded(text: str, wide: int) -> str:
    """Lines of at most `wide` characters (0: unchanged); continuation lines are indented."""
    return text if not wide else "\n".join(_fold(line, wide) for line in text.split("\n"))


def _fold(line: str, wide: int) -> str:
    if len(line) <= wide:
        return line
    indent = len(line) - len(line.lstrip())
    inner = " " * min(indent + 4, wide // 2)
    made: list[str] = []
    left = line
    while len(left) > wide:
        start = len(inner) if made else indent
        at = left.rfind(" ", start + 1, wide + 1)
        at = at if at > start else wide
        made.append(left[:at].rstrip())
        left = inner + left[at:].lstrip()
    return "\n".join([*made, left])


def shortened(text: str) -> str:
    """Cut lists and strings after LONG characters if stdout is a terminal."""
    return _VALUES.sub(_cut, text) if watched() else text


def _cut(match: re.Match[str]) -> str:
    found = match[0]
    return f"{found[: LONG - 1]}…{found[-1]}"


def table(
    head: Sequence[str], rows: Iterable[Sequence[object]], numbers: Iterable[int] = ()
) -> str:
    """Columns below their names; `numbers` are right-aligned. If they are wider than the terminal,
    a table with fewer rows than columns is transposed, and then the widest columns are cut.
    """
    cells = [tuple(map(str, row)) for row in rows]
    right = set(numbers)
    whole = [tuple(head), *cells]
    room = width()
    if room and _wide(whole) > room and len(cells) < len(head):
        whole, right = list(zip(*whole, strict=True)), set(range(1, len(whole)))
        return _lines(whole, _sizes(whole, room), right, of_head=False)
    return _lines(whole, _sizes(whole, room), right, of_head=any(head))


def _wide(rows: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) + 2 for column in zip(*rows, strict=True)) - 2


def _sizes(rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """The characters of each column; the widest columns are narrowed until the table fits."""
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    while room and sum(sizes) + 2 * (len(sizes) - 1) > room and max(sizes) > NARROWEST:
        sizes[sizes.index(max(sizes))] -= 1
    return sizes


def _lines(
    rows: Sequence[Sequence[str]], sizes: Sequence[int], right: set[int], of_head: bool
) -> str:
    made = []
    for n, row in enumerate(rows):
        cut = [c if len(c) <= s else f"{c[: s - 1]}…" for c, s in zip(row, sizes, strict=True)]
        padded = [
            c.rjust(s) if i in right else c.ljust(s)
            for i, (c, s) in enumerate(zip(cut, sizes, strict=True))
        ]
        if not of_head:
            padded[0] = paint(padded[0], "head")
        line = "  ".join(padded).rstrip()
        made.append(paint(line, "head") if n == 0 and of_head else line)
    return "\n".join(made if of_head or any(rows[0]) else made[1:])
