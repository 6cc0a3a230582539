"""Groups of ops under one name, and the number of groups that one graph shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

MOST = 24  # boxes of one graph
# a nameless group at least this many times smaller than the whole is not replaced by its parts
LARGE = 8
FEWEST = 8  # a graph with fewer boxes shows the parts of its groups too, if there is room


@dataclass(frozen=True)
class Group:
    """Ops of one block under one name. parts: groups within it; none for a single op.

    kind: how further folding treats it: "op"; "series", one part after another; "parallel", parts
    that do not depend on each other; "block", which has a name of its own; "run", one thing n
    times. digest: equal for groups of the same ops, connected in the same way. block: whose ops
    these are. body: of a single op, the groups of the blocks that it runs.
    """

    name: str
    ops: tuple[int, ...]
    parts: tuple[Group, ...] = ()
    kind: str = "block"
    digest: int = 0
    block: int = 0
    body: tuple[Group, ...] = ()

    @property
    def opens(self) -> bool:
        """Whether its parts may replace it."""
        return self.kind in ("series", "parallel")


def together(name: str, parts: Sequence[Group], kind: str = "block") -> Group:
    """Several groups as one; a single group is returned unchanged."""
    if len(parts) == 1:
        return parts[0]
    ops = tuple(sorted(i for part in parts for i in part.ops))
    return Group(name, ops, tuple(parts), kind, hash((kind, *(p.digest for p in parts))))


def fitted(parts: Sequence[Group], kind: str = "series") -> tuple[Group, ...]:
    """A list of FEWEST to MOST parts if possible: the largest parts are replaced by their own
    parts, and too many parts are joined; the same within each part. kind: the kind of the parent
    group; a run keeps its parts.
    """
    shown = list(parts)
    total = sum(len(g.ops) for g in shown if g.opens)
    while True:
        few = len(shown) < FEWEST and kind != "run"
        able = [g for g in shown if len(g.parts) > 1 and (few or _is_replaceable(g, total))]
        # first the parts without a name of their own, the largest first
        for g in sorted(able, key=lambda g: (not g.opens, -len(g.ops))):
            if len(shown) - 1 + len(g.parts) <= MOST or len(shown) == 1:
                at = shown.index(g)
                shown[at : at + 1] = g.parts
                break
        else:
            break
    return tuple(
        replace(g, parts=fitted(g.parts, g.kind)) if g.parts else g for g in _joined(shown)
    )


def _is_replaceable(group: Group, total: int) -> bool:
    return group.opens and len(group.ops) * LARGE > total


def _joined(groups: list[Group]) -> list[Group]:
    """At most MOST parts: consecutive ones are joined, evenly."""
    while len(groups) > MOST:
        each = min(MOST, -(-len(groups) // MOST))
        groups = [_span(groups[i : i + each]) for i in range(0, len(groups), each)]
    return groups


def _span(groups: list[Group]) -> Group:
    first, last = groups[0].name, groups[-1].name
    same = all(g.name == first for g in groups)
    return together(f"{first} × {len(groups)}" if same else f"{first} … {last}", groups)


def leaves(group: Group) -> Iterator[Group]:
    """The single ops of a group, as boxes show them."""
    if group.parts:
        for part in group.parts:
            yield from leaves(part)
    else:
        yield group
