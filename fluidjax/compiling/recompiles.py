"""Counts how often a program is compiled again, and finds the feed that is the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.flags import flag
from ..base.loc import warn
from ..ops.fixed import Fixed
from ..ops.ragged import Ragged
from .reasons import Reasons

SPECIALISATIONS = 16  # more values of a feed that decides sizes cause a warning


class Recompiles:
    """Counts the feed signatures that one program was compiled for, and warns once when there are
    too many.

    Buckets of padded sequences do not count, because there are only few. The values of a feed that
    decides sizes are counted separately from the signatures.
    """

    def __init__(self) -> None:
        self.seen: dict[tuple[Any, ...], None] = {}
        self._counted: dict[tuple[Any, ...], None] = {}
        self.warned = False
        self.mixes = ""  # the op that needs exact sizes of ragged feeds
        # feed that decides sizes -> the first op whose sizes it decides, in words
        self.deciders: dict[str, str] = {}
        self._values: dict[str, set[Fixed]] = {}
        self.reasons = Reasons()

    def runs_exactly(self, why: str) -> None:
        """Note that ragged feeds are not padded any more."""
        self.mixes = why

    def add(self, feed: Mapping[str, Any]) -> None:
        for name, value in feed.items():
            if isinstance(value, Fixed):
                self._specialised(name, value)
        traits = [
            (trait, _few(v, trait)) for n, v in sorted(feed.items()) for trait in _traits(n, v)
        ]
        values = tuple(v for v in feed.values() if isinstance(v, Fixed))
        self.seen[(*(trait for trait, _ in traits), *values)] = None
        self._counted[tuple(trait for trait, few in traits if not few)] = None
        limit = flag("FLAGS_recompile_warning")
        if len(self._counted) > limit and not self.warned:
            self.warned = True
            warn(
                f"one program was compiled for more than {limit} different feeds:"
                f" {self._changing()} keeps changing; pad the feeds to a few sizes{self.mixes}",
                RuntimeWarning,
            )

    def _specialised(self, name: str, value: Fixed) -> None:
        values = self._values.setdefault(name, set())
        values.add(value)
        if len(values) == SPECIALISATIONS + 1:  # exactly once: later counts are higher
            warn(
                f"one program was compiled for more than {SPECIALISATIONS} values of the feed"
                f" {name!r}, which decides a size of {self.deciders.get(name, '')}; feed a few"
                " sizes only, or pad to them",
                RuntimeWarning,
            )

    def _changing(self) -> str:
        values: dict[str, set[Any]] = {}
        for signature in self._counted:
            for name, shape, dtype in signature:
                values.setdefault(name, set()).add((shape, dtype))
        name = max(values, key=lambda n: len(values[n]))
        if name.startswith((_LENGTHS, _SEQUENCES)):
            return name
        shapes = [s for s, _ in values[name]]
        if len({len(s) for s in shapes}) > 1:
            return f"the rank of {name}"
        dims = [i for i in range(len(shapes[0])) if len({s[i] for s in shapes}) > 1]
        return (
            f"dimension {', '.join(map(str, dims))} of {name}" if dims else f"the dtype of {name}"
        )


_LENGTHS = "the longest sequence of "
_SEQUENCES = "the number of sequences of "


def _few(value: Any, trait: tuple[Any, ...]) -> bool:
    """Whether a trait of a feed is a bucket."""
    return (
        isinstance(value, Ragged)
        and value.padded
        and not (trait[0].startswith(_SEQUENCES) and value.alive is None and not value.bare)
    )


def _traits(name: str, value: Any) -> list[tuple[str, tuple[Any, ...], str]]:
    """The traits of a feed that a compilation depends on: (description, sizes, dtype)."""
    if not isinstance(value, Ragged):
        return [(repr(name), tuple(value.shape), str(value.dtype))]
    sequences = tuple(level.shape[0] - 1 for level in value.offsets)
    return [
        (repr(name), tuple(value.rows.shape), str(value.dtype)),
        (f"{_SEQUENCES}{name!r}", sequences, ""),
        (f"{_LENGTHS}{name!r}", (value.longest, value.key), ""),
    ]
