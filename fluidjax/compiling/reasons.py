"""Finds why a step was compiled: how it differs from the most similar earlier compilation of the
same program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ir.desc import ProgramDesc
from ..ops.fixed import Fixed
from ..ops.ragged import Ragged
from .compilations import Compilation
from .kind import Kind

SHOWN = 3  # op types, variables or values that one reason lists


@dataclass(frozen=True)
class MadeFor:
    """The key of an executable. state: variable -> type. feed: description of a feed -> its type or
    value.
    """

    desc: ProgramDesc
    fetches: tuple[str, ...]
    kind: Kind
    state: Mapping[str, str]
    feed: Mapping[str, str]


@dataclass
class Reasons:
    """All compilations of one program, also of executables that were dropped since, and their
    reasons.
    """

    origins: list[MadeFor] = field(default_factory=list)
    made: list[Compilation] = field(default_factory=list)

    def of(self, origin: MadeFor) -> str:
        """The reason for this compilation in a few words. The compilation is recorded."""
        found = _reason(origin, self.origins)
        self.origins.append(origin)
        return found


@dataclass(frozen=True)
class RecompileReport:
    """The compilations of a program, in order; str() shows the user's line, the time and the reason
    of each.
    """

    made: tuple[Compilation, ...]

    def __iter__(self) -> Iterator[Compilation]:
        return iter(self.made)

    def __len__(self) -> int:
        return len(self.made)

    def __str__(self) -> str:
        if not self.made:
            return "nothing was compiled of this program"
        what = "1 executable was" if len(self.made) == 1 else f"{len(self.made)} executables were"
        head = f"{what} compiled of this program, {sum(m.seconds for m in self.made):.2f} s in all:"
        return "\n".join(
            [
                head,
                *(
                    f"  {i}. {_where(m)}, {m.seconds:.2f} s: {m.reason}"
                    for i, m in enumerate(self.made, 1)
                ),
            ]
        )

    __repr__ = __str__


def _where(made: Compilation) -> str:
    return made.line or "at no line of a script"


def fed(feed: Any) -> dict[str, str]:
    """The part of an executable's key that a feed decides, by name and, if there are several ranks,
    by rank.
    """
    if isinstance(feed, tuple):
        return {
            f"{what} of rank {r}": value
            for r, one in enumerate(feed)
            for what, value in fed(one).items()
        }
    return {what: value for name, value in feed.items() for what, value in _traits(name, value)}


def types(shapes: Mapping[str, Any]) -> dict[str, str]:
    """The types of variables as text."""
    return {name: f"{v.dtype}{list(v.shape)}" for name, v in shapes.items()}


def _traits(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Fixed):
        numbers = value.array.reshape(-1).tolist()
        shown = ", ".join(map(str, numbers[:SHOWN])) + (", ..." if len(numbers) > SHOWN else "")
        yield (
            f"feed {name!r}, which decides a size,",
            f"{value.array.dtype}{list(value.array.shape)} of {shown}",
        )
    elif isinstance(value, Ragged):
        yield f"the room for rows of feed {name!r}", f"{value.rows.dtype}{list(value.rows.shape)}"
        yield (
            f"the number of sequences of feed {name!r}",
            _numbers([level.shape[0] - 1 for level in value.offsets]),
        )
        yield f"the longest sequence of feed {name!r}", _numbers(value.longest)
        yield f"the group of feeds with the offsets of {name!r}", str(value.key)
    else:
        yield f"feed {name!r}", f"{value.dtype}{list(value.shape)}"


def _numbers(values: Sequence[int]) -> str:
    return " and ".join(map(str, values))


def _reason(new: MadeFor, before: Sequence[MadeFor]) -> str:
    if not before:
        return "the first run"
    found = min((list(_differences(new, old)) for old in reversed(before)), key=len)
    return (
        "; ".join(found)
        or "compiled again, because the executable for the same feeds was dropped: types of the "
        "state changed, or more executables were made than are kept"
    )


def _differences(new: MadeFor, old: MadeFor) -> Iterator[str]:
    """The differences, in words."""
    if new.desc is not old.desc and new.desc != old.desc:
        yield f"the program was changed: {_changed(old.desc, new.desc)}"
    if new.fetches != old.fetches:
        yield f"it fetches {_listed(new.fetches)}, before {_listed(old.fetches)}"
    if new.kind is not old.kind:
        yield f"it runs {_KINDS[new.kind]}, before {_KINDS[old.kind]}"
    yield from differences(new.state, old.state)
    yield from _by_name(new.feed, old.feed, str)


_KINDS = {
    Kind.ONE: "one step", Kind.MANY: "many steps in one call", Kind.TURNS: "the ranks in turns",
    Kind.CHECKED: "one step that is checked for values that are not finite",
    Kind.CHECKED_TURNS: "the ranks in turns, checked for values that are not finite",
}  # fmt: skip


def differences(new: Mapping[str, str], old: Mapping[str, str]) -> Iterator[str]:
    """The variables whose types differ, in words."""
    return _by_name(new, old, "variable {!r}".format)


def _by_name(new: Mapping[str, str], old: Mapping[str, str], called: Any) -> Iterator[str]:
    changed = [n for n in (*new, *(n for n in old if n not in new)) if new.get(n) != old.get(n)]
    for name in changed[:SHOWN]:
        yield f"{called(name)} is {new.get(name, 'absent')}, before {old.get(name, 'absent')}"
    if len(changed) > SHOWN:
        yield f"and {len(changed) - SHOWN} more"


def _changed(old: ProgramDesc, new: ProgramDesc) -> str:
    """How many ops of each type were added or removed."""
    counts = [Counter(op.type for block in desc.blocks for op in block.ops) for desc in (old, new)]
    by = {kind: counts[1][kind] - counts[0][kind] for kind in sorted(counts[0] | counts[1])}
    changes = [f"{abs(n)} {kind} {'more' if n > 0 else 'fewer'}" for kind, n in by.items() if n]
    more = f" and {len(changes) - SHOWN} types more" if len(changes) > SHOWN else ""
    return ", ".join(changes[:SHOWN]) + more if changes else "ops of the same types, otherwise"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    return shown or "nothing"
