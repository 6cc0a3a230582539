"""Two programs side by side: their printed lines, paired, and within a pair the words that
differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from ..ir import show, walk
from ..ir.desc import ProgramDesc
from .frame import count, esc, fold, fragment, table
from .shown import Shown

CONTEXT = 2  # equal lines that are shown around a difference
_ALIKE = 0.6  # similarity of two lines that are shown side by side
# pairs of lines that are compared for similarity; in longer parts lines are paired by position
_COMPARED = 400
_WORDS = re.compile(r"[\w.@/$-]+|\s+|.")

Pair = tuple[str | None, str | None]


@dataclass(frozen=True)
class ProgramDiff(Shown):
    """The difference of two programs: str() as unified diff lines, in notebooks side by side. False
    if they are equal.
    """

    before: ProgramDesc
    after: ProgramDesc
    names: tuple[str, str] = ("before", "after")

    def __bool__(self) -> bool:
        return self.before != self.after

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        changed = ", ".join(f"{kind} {a} -> {b}" for kind, (a, b) in self.counts().items())
        return f"<ProgramDiff: {changed or ('as many ops of each type' if self else 'equal')}>"

    @cached_property
    def text(self) -> str:
        """Unified diff lines of the printed programs; empty if they are equal."""
        return show.diff(self.before, self.after, self.names)

    def counts(self) -> dict[str, tuple[int, int]]:
        """Op type -> (how many before, after), where the two differ."""
        old, new = (
            Counter(op.type for _, op in walk.ops(desc)) for desc in (self.before, self.after)
        )
        return {
            kind: (old[kind], new[kind]) for kind in sorted(old | new) if old[kind] != new[kind]
        }

    def _repr_html_(self) -> str:
        return fragment(self.html(), script=False)

    def html(self) -> str:
        """The same without the frame, as a part of something larger."""
        if not self:
            return "<p>The programs are equal.</p>"
        parts = list(_parts(*show.both(self.before, self.after)))
        gone = sum(1 for p in parts for old, new in p.pairs if old is not None and not p.equal)
        made = sum(1 for p in parts for old, new in p.pairs if new is not None and not p.equal)
        rows = [(kind, a, b) for kind, (a, b) in self.counts().items()]
        head = (
            f"<p>{count(gone, 'line')} of {esc(self.names[0])}, {count(made, 'line')} of"
            f" {esc(self.names[1])} differ</p>"
        )
        kinds = table(rows, ("op type", *self.names), {1, 2}) if rows else ""
        return (
            head
            + kinds
            + "".join(self._shown(p, i == 0, i == len(parts) - 1) for i, p in enumerate(parts))
        )

    def _shown(self, part: _Part, first: bool, last: bool) -> str:
        if not part.equal:
            return self._table(part)
        lines = [old or "" for old, _ in part.pairs]
        if len(lines) <= 2 * CONTEXT + 1:
            return _lines(lines)
        head = [] if first else lines[:CONTEXT]
        tail = [] if last else lines[-CONTEXT:]
        inner = lines[len(head) : len(lines) - len(tail)]
        return _lines(head) + fold(count(len(inner), "equal line"), _lines(inner)) + _lines(tail)

    def _table(self, part: _Part) -> str:
        head = "".join(f'<th scope="col">{esc(name)}</th>' for name in self.names)
        rows = "".join(_row(old, new) for old, new in part.pairs)
        return f'<table class="fj-diff"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


@dataclass(frozen=True)
class _Part:
    """Consecutive lines that are equal, or that differ."""

    equal: bool
    pairs: list[Pair]


def _parts(old: list[str], new: list[str]) -> Iterator[_Part]:
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield _Part(True, [(line, line) for line in old[i:j]])
        else:
            yield _Part(False, list(_paired(old[i:j], new[k:m])))


def _paired(old: list[str], new: list[str]) -> Iterator[Pair]:
    """Equal lines side by side, in their order; any other line alone."""
    if old and new and len(old) * len(new) > _COMPARED:
        at = min(len(old), len(new))
        yield from zip(old[:at], new[:at], strict=True)
        old, new = old[at:], new[at:]
    elif old and new:
        ratio, i, j = max(
            (_likeness(a, b), -i, -j) for i, a in enumerate(old) for j, b in enumerate(new)
        )
        if ratio >= _ALIKE:
            yield from _paired(old[:-i], new[:-j])
            yield old[-i], new[-j]
            yield from _paired(old[1 - i :], new[1 - j :])
            return
    yield from ((line, None) for line in old)
    yield from ((None, line) for line in new)


def _likeness(a: str, b: str) -> float:
    matcher = SequenceMatcher(None, _WORDS.findall(a), _WORDS.findall(b), autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= _ALIKE else 0.0


def _row(old: str | None, new: str | None) -> str:
    if old is None or new is None:
        left = "<td></td>" if old is None else f'<td class="gone"><del>{esc(old)}</del></td>'
        right = "<td></td>" if new is None else f'<td class="made"><ins>{esc(new)}</ins></td>'
        return f"<tr>{left}{right}</tr>"
    words = _WORDS.findall(old), _WORDS.findall(new)
    left = right = ""
    for tag, i, j, k, m in SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        a, b = esc("".join(words[0][i:j])), esc("".join(words[1][k:m]))
        left += a if tag == "equal" else f"<del>{a}</del>" if a else ""
        right += b if tag == "equal" else f"<ins>{b}</ins>" if b else ""
    return f'<tr><td class="gone part">{left}</td><td class="made part">{right}</td></tr>'


def _lines(lines: list[str]) -> str:
    return f'<pre class="fj-same">{esc(chr(10).join(lines))}</pre>' if lines else ""
