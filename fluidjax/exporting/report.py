"""The result of an export, op by op, and what the format lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import UnsupportedError
from ..ir.desc import FrozenMap

LINES = 3  # listed places of a missing op


@dataclass(frozen=True)
class Lack:
    """Something that the format does not support. what: an op type, or another feature; count: how
    often; why: one clause; remedy: what would help; places: the user's lines.
    """

    what: str
    count: int
    why: str
    remedy: str = ""
    places: tuple[str, ...] = ()

    def __str__(self) -> str:
        at = f" at {', '.join(self.places[:LINES])}" if self.places else ""
        more = f" and {len(self.places) - LINES} more" if len(self.places) > LINES else ""
        help_ = f"; {self.remedy}" if self.remedy else ""
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.what}{times}: {self.why}{at}{more}{help_}"


@dataclass(frozen=True)
class ExportReport:
    """The result of an export or import.

    path, format: the file. ops: op type -> (number of ops, their nodes). nodes: the number of nodes
    in the file. inputs, outputs: as text. lacks: what the format does not support; then nothing was
    written. notes: for the file's reader. read: whether the file was imported.
    """

    path: str
    format: str
    ops: Mapping[str, tuple[int, tuple[str, ...]]] = field(default_factory=FrozenMap)
    nodes: int = 0
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    size: int = 0
    notes: tuple[str, ...] = ()
    lacks: tuple[Lack, ...] = ()
    read: bool = False

    def __str__(self) -> str:
        if self.lacks:
            count = sum(lack.count for lack in self.lacks)
            whose, done = ("the file", "loaded") if self.read else ("the program", "written")
            lines = [f"{self.format} lacks {count} of what {whose} does; nothing was {done}"]
            return "\n".join([*lines, *(f"  {lack}" for lack in self.lacks)])
        head = f"{self.path}: {self.format}, {self.nodes} nodes, {self.size:,} bytes"
        lines = [head, f"  takes {'; '.join(self.inputs)}", f"  gives {'; '.join(self.outputs)}"]
        wide = max((len(kind) for kind in self.ops), default=0)
        for kind, (count, nodes) in sorted(self.ops.items(), key=lambda item: -item[1][0]):
            lines.append(f"  {count:5} {kind:{wide}}  {' '.join(nodes) or 'nothing'}")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values for JSON."""
        return {
            "path": self.path,
            "format": self.format,
            "nodes": self.nodes,
            "size": self.size,
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "ops": {k: {"count": n, "nodes": list(v)} for k, (n, v) in self.ops.items()},
            "notes": list(self.notes),
            "lacks": [
                {"what": lack.what, "count": lack.count, "why": lack.why, "remedy": lack.remedy, "places": list(lack.places)}
                for lack in self.lacks
            ],
        }  # fmt: skip


class ExportError(UnsupportedError):
    """A format lacks something that a program uses. report: the whole report."""

    def __init__(self, report: ExportReport) -> None:
        super().__init__(str(report))
        self.report = report


def gathered(found: Sequence[tuple[str, str, str, str]]) -> tuple[Lack, ...]:
    """Lacks from (what, why, remedy, place), equal ones as one."""
    counts = Counter((what, why, remedy) for what, why, remedy, _ in found)
    return tuple(
        Lack(what, n, why, remedy, tuple(dict.fromkeys(p for *key, p in found if p and tuple(key) == (what, why, remedy))))
        for (what, why, remedy), n in counts.most_common()
    )  # fmt: skip
