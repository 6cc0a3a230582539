"""Leaves out gradient ops that are unwanted, or that nothing connects to the targets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set

from .draft import Draft, forward_name


def drop_unwanted(drafts: list[Draft], no_grad: set[str]) -> list[Draft]:
    """Leave out ops that only write or only read unwanted gradients; zero-fill the unwanted
    gradients that a kept op reads.

    Adds to `no_grad` what the ops would have written.
    """
    kept = []
    for d in drafts:
        if not d.writes or no_grad.issuperset(d.writes):
            continue
        if d.gradients_read and no_grad.issuperset(d.gradients_read):
            no_grad.update(d.writes)
            continue
        kept.append(d)
    result: list[Draft] = []
    for d in kept:
        for name in d.gradients_read:
            if name in no_grad:
                result.append(
                    Draft("fill_zeros_like", {"X": [forward_name(name)]}, {"Out": [name]})
                )
        result.append(d)
    return result


def drop_unconnected(drafts: list[Draft], known: Set[str], wanted: Set[str]) -> list[Draft]:
    """Leave out drafts that depend only on values that neither the forward ops (`known`) nor
    gradient ops compute.

    If all drafts are of this kind they are kept: a loss that is a parameter's scale has only such
    ops. Drafts that lead to the gradient of a variable of `wanted` are kept too; Paddle drops them.
    """
    readers, inputs, outputs = _graph(drafts)
    parts = [_dependents_of(head, readers, inputs, outputs) for head in _heads(drafts, known)]
    gone = set().union(*parts)
    if len(gone) < len(drafts):
        asked = {
            i for i, d in enumerate(drafts) if not wanted.isdisjoint(map(forward_name, d.writes))
        }
        gone -= {i for part in parts if part & asked for i in part}
    return (
        drafts if len(gone) == len(drafts) else [d for i, d in enumerate(drafts) if i not in gone]
    )


Version = tuple[str, int]  # a name, and how often it was written before


def _graph(
    drafts: Sequence[Draft],
) -> tuple[dict[Version, list[int]], list[list[Version]], list[list[Version]]]:
    """The readers of every value, and the values that each draft reads and writes."""
    written: dict[str, int] = defaultdict(int)
    readers: dict[Version, list[int]] = defaultdict(list)
    inputs: list[list[Version]] = []
    outputs: list[list[Version]] = []
    for i, d in enumerate(drafts):
        inputs.append([(n, written[n]) for n in d.reads])
        for value in inputs[-1]:
            readers[value].append(i)
        for n in d.writes:
            written[n] += 1
        outputs.append([(n, written[n]) for n in d.writes])
    return readers, inputs, outputs


def _heads(drafts: Sequence[Draft], known: Set[str]) -> list[int]:
    """Drafts that read neither known values nor outputs of earlier drafts."""
    seen, found = set(known), []
    for i, d in enumerate(drafts):
        if d.reads and seen.isdisjoint(d.reads):
            found.append(i)
        seen.update(d.writes)
    return found


def _dependents_of(
    head: int,
    readers: dict[Version, list[int]],
    inputs: list[list[Version]],
    outputs: list[list[Version]],
) -> set[int]:
    """The drafts that depend on `head`, if they depend on nothing else; otherwise none."""
    ready, found, queue = set(inputs[head]), {head}, [head]
    while queue:
        i = queue.pop(0)
        if not ready.issuperset(inputs[i]):
            return set()
        queue += [r for value in outputs[i] for r in readers[value] if r not in found]
        found.update(queue)
        ready.update(outputs[i])
    return found
