"""What tracing left of a step, as a value that can be written and read: its StableHLO, and how the
results are nested.

A step that was traced here and one that was read from a file are compiled from the same value, so
they have the same executables.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass
from typing import Any

import jax

from .exported import Exported, NotExported

MAGIC = b"fluidjax trace 2\n"


@dataclass(frozen=True)
class Results:
    """What a call returns: as many arrays of the state, new variables by name, as many fetches, and
    whether there is a word.
    """

    state: int
    created: tuple[str, ...]
    fetches: int
    word: bool

    @staticmethod
    def of(out_info: Any) -> Results:
        """Given the types of the results. Raises NotExported where a fetch is more than an array."""
        state, created, fetches, word = out_info
        found = Results(len(state), tuple(created), len(fetches), word is not None)
        if jax.tree.structure(out_info) != found.tree():
            raise NotExported("a fetch is no plain array")
        return found

    def tree(self) -> Any:
        """How they are nested."""
        found = (
            [0] * self.state,
            dict.fromkeys(self.created, 0),
            [0] * self.fetches,
            0 if self.word else None,
        )
        return jax.tree.structure(found)


@dataclass(frozen=True)
class Trace:
    """code: the step as a function of arrays. nested: what it returns.

    told: the sentences that its word can speak of (lower/checks.py): number, uid of the op,
    sentence.
    """

    code: Exported
    nested: Results
    told: tuple[tuple[int, int, str], ...]

    def written(self) -> bytes:
        """As a file holds it: what it is, a checksum, and the rest compressed: a JSON text with its
        length before it, and the code.
        """
        nested = self.nested.state, self.nested.created, self.nested.fetches, self.nested.word
        types = {"takes": self.code.takes, "makes": self.code.makes, "kept": self.code.kept}
        text = json.dumps({**types, "nested": nested, "told": self.told}).encode()
        rest = zlib.compress(b"".join([len(text).to_bytes(8, "little"), text, self.code.code]), 1)
        return MAGIC + hashlib.sha256(rest).digest() + rest

    @staticmethod
    def read(content: bytes) -> Trace:
        """The inverse of `written`. Raises ValueError for anything else."""
        start = len(MAGIC) + hashlib.sha256().digest_size
        rest = content[start:]
        if (
            content[: len(MAGIC)] != MAGIC
            or hashlib.sha256(rest).digest() != content[len(MAGIC) : start]
        ):
            raise ValueError("no trace, or a damaged one")
        try:
            return _read(zlib.decompress(rest))
        except (zlib.error, KeyError, TypeError, IndexError, AttributeError) as reason:
            raise ValueError(f"no trace: {reason}") from reason


def _read(data: bytes) -> Trace:
    end = 8 + int.from_bytes(data[:8], "little")
    head = json.loads(data[8:end])
    takes, makes = ([(tuple(shape), dtype) for shape, dtype in head[n]] for n in ("takes", "makes"))
    state, created, fetches, word = head["nested"]
    code = Exported(tuple(takes), tuple(makes), tuple(head["kept"]), data[end:])
    nested = Results(int(state), tuple(created), int(fetches), bool(word))
    return Trace(code, nested, tuple((n, uid, text) for n, uid, text in head["told"]))
