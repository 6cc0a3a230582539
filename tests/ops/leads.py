"""Which samples `make test` runs, also in the second environment: another Python and jax, with
XLA's ordinary effort (docs/testing.md).

What these change, they change for an op as such: the first sample of its kind shows it. The others
are slow (tests/choice.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

import numpy as np

from .sample import Sample


def op_and_dtypes(sample: Sample) -> Hashable:
    """The op, and which dtypes its inputs have."""
    arrays = (array for slot in sample.inputs for _, array in sample.variables(slot))
    return sample.op, frozenset(np.asarray(a).dtype for a in arrays)


def leads(cases: Mapping[str, Sample], kind: Callable[[Sample], Hashable]) -> frozenset[str]:
    """The name of the first case of each kind."""
    found: dict[Hashable, str] = {}
    for name, sample in cases.items():
        found.setdefault(kind(sample), name)
    return frozenset(found.values())


def foremost(names: Iterable[str], leads: frozenset[str] | set[str]) -> list[str]:
    """The leads and then the others: they are compiled two dozen together, and a run of leads alone
    compiles no others.
    """
    return sorted(names, key=lambda name: name not in leads)
