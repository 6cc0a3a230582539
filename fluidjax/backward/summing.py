"""Sums a gradient to which several ops contribute: each contribution gets a name, and a ``sum`` op
adds them up.

The sum is placed before the first op that reads the gradient, or at the end if none does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from .draft import Draft, is_own


def add_up(drafts: list[Draft], block_idx: int) -> list[Draft]:
    """The drafts with ``sum`` ops; repeated gradients are ``x@GRAD@RENAME@block0@k``, k = 0, 1, ...
    in their order.
    """
    found = _Contributions(drafts, block_idx)
    for at, draft in enumerate(drafts):
        found.complete(draft.gradients_read, at)
        found.collect(draft, at)
    found.complete(list(found.names), len(drafts))
    return _in_order(drafts, found.sums)


class _Contributions:
    def __init__(self, drafts: list[Draft], block_idx: int) -> None:
        self.drafts = drafts
        self.block_idx = block_idx
        self.names: dict[str, list[str]] = defaultdict(list)  # gradient -> its contributions so far
        self.first: dict[str, int] = {}  # gradient -> the position of its first contribution
        self.renamed: dict[str, int] = defaultdict(int)
        self.sums: list[tuple[int, Draft]] = []

    def complete(self, gradients: Iterable[str], at: int) -> None:
        """Insert sums before position `at` for those of these gradients that have several
        contributions.
        """
        for name in gradients:
            if len(self.names[name]) > 1:
                self.sums.append(
                    (
                        at,
                        Draft(
                            "sum",
                            {"X": list(self.names[name])},
                            {"Out": [name]},
                            {"use_mkldnn": False},
                        ),
                    )
                )
                self.names[name] = [name]

    def collect(self, draft: Draft, at: int) -> None:
        """Rename the outputs of the draft at position `at` that are further contributions to a
        gradient.
        """
        reads = set(draft.reads)
        for names, i in draft.output_places():
            name = names[i]
            if not is_own(name) or name in reads:  # written in place: not a contribution
                continue
            if not self.names[name]:
                self.names[name], self.first[name] = [name], at
                continue
            if len(self.names[name]) == 1:
                self._rename_first(name, draft, (names, i), at)
            names[i] = self._fresh(name)
            self.names[name].append(names[i])

    def _rename_first(self, name: str, draft: Draft, place: tuple[list[str], int], at: int) -> None:
        """Rename the first contribution, which was `name` until now, because there is a second
        one.
        """
        new = self._fresh(name)
        for d in [*self.drafts[self.first[name] : at], *(s for _, s in self.sums)]:
            d.rename(name, new)
        for names, i in draft.output_places():
            if names is place[0] and i == place[1]:
                break
            if names[i] == name:
                names[i] = new
        self.names[name] = [new]

    def _fresh(self, name: str) -> str:
        self.renamed[name] += 1
        return f"{name}@RENAME@block{self.block_idx}@{self.renamed[name] - 1}"


def _in_order(drafts: list[Draft], sums: list[tuple[int, Draft]]) -> list[Draft]:
    """The drafts with every sum before the draft at its position; sums at one position in the order
    in which they were made.
    """
    at: dict[int, list[Draft]] = defaultdict(list)
    for where, draft in sums:
        at[where].append(draft)
    result: list[Draft] = []
    for i, draft in enumerate(drafts):
        result += [*at[i], draft]
    return result + at[len(drafts)]
