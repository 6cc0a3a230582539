"""The public names of real Paddles and their signatures, as tests/tools/record_api.py recorded
them.

The recordings cover the whole static graph of Paddle 1.8.5, and the names of 2.6.2's static mode
outside of ``paddle.fluid``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

FLUID, LATER = "1.8.5", "2.6.2"


class Recorded(NamedTuple):
    """One name. kind: "function", "class", "module" or "value"; arguments: (name, default as text,
    "" without one).
    """

    version: str
    kind: str
    arguments: tuple[tuple[str, str], ...] | None
    methods: tuple[str, ...]


@cache
def modules(version: str) -> Mapping[str, Mapping[str, Recorded]]:
    """Module -> name -> its recording."""
    raw = json.loads(
        gzip.decompress((Path(__file__).parent / f"paddle_{version}.json.gz").read_bytes())
    )
    return {
        module: {name: _row(version, *row) for name, row in rows.items()}
        for module, rows in raw.items()
    }


def _row(
    version: str, kind: str, arguments: list[list[str]] | None, methods: list[str]
) -> Recorded:
    return Recorded(
        version,
        kind,
        None if arguments is None else tuple((n, d) for n, d in arguments),
        tuple(methods),
    )


def find(path: str) -> Recorded | None:
    """The recording of a dotted name. A name is recorded under only one of its paths, so shorter
    paths are tried too.

    Names below ``paddle.fluid`` are those of 1.8.5; others of 2.6.2, else of 1.8.5.
    """
    parts = path.split(".")
    name = parts.pop()
    versions = (FLUID,) if parts[:2] == ["paddle", "fluid"] else (LATER, FLUID)
    while parts:
        for version in versions:
            found = modules(version).get(".".join(parts), {}).get(name)
            if found is not None:
                return found
        parts.pop()
    return None
