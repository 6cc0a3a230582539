"""What tracing left of a step, as a value: stages in StableHLO and how they hang together, which can be written and read.

A step that was traced here and one that was read from a file are compiled from the same value, so they have the same executables.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..lower.stages import Stage, Stages
from .exported import Exported, NotExported

MAGIC = b"fluidjax trace 1\n"
MOST_CONSTANTS = 1 << 24  # bytes
PLACES = ("takes", "makes", "drops", "donates", "weak")


@dataclass(frozen=True)
class Part:
    """A stage (lower/stages.py) whose function is exported. weak: which of its arguments have a weak type where they are the step's."""

    code: Exported
    takes: tuple[int, ...]
    makes: tuple[int, ...]
    drops: tuple[int, ...]
    donates: tuple[int, ...]
    weak: tuple[int, ...]

    def stage(self, made: int) -> Stage:
        """made: from which number on values are made by stages, whose types are never weak."""
        types = [
            jax.ShapeDtypeStruct(t.shape, t.dtype, weak_type=i in self.weak and n < made)
            for i, (n, t) in enumerate(zip(self.takes, self.code.types, strict=True))
        ]
        return Stage(lambda *given: self.code.function()(*given), self.takes, tuple(types), self.makes, self.drops, self.donates)


@dataclass(frozen=True)
class Results:
    """What a call returns: as many arrays of the state, new variables by name, as many fetches, and whether there is a word."""

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
        found = [0] * self.state, dict.fromkeys(self.created, 0), [0] * self.fetches, 0 if self.word else None
        return jax.tree.structure(found)


@dataclass(frozen=True)
class Trace:
    """parts: the stages, one for a step that is compiled whole. consts: values that are no arguments. results: their numbers.

    told: the sentences that its word can speak of (lower/checks.py): number, uid of the op, sentence.
    """

    parts: tuple[Part, ...]
    consts: tuple[np.ndarray, ...]
    results: tuple[int, ...]
    nested: Results
    told: tuple[tuple[int, int, str], ...]

    @staticmethod
    def of(stages: Stages, codes: Sequence[Exported], nested: Results, told: Sequence[tuple[int, int, str]]) -> Trace:
        """codes: of the stages. Raises NotExported where something else cannot be written down."""
        consts = tuple(map(np.asarray, stages.consts))
        if any(c.dtype.kind not in "biufc" for c in consts) or sum(c.nbytes for c in consts) > MOST_CONSTANTS:
            raise NotExported("its constants are many, or of a kind that is not kept")
        parts = []
        for code, s in zip(codes, stages.stages, strict=True):
            weak = tuple(i for i, t in enumerate(s.types) if t.weak_type)
            parts.append(Part(code, s.takes, s.makes, s.drops, s.donates, weak))
        return Trace(tuple(parts), consts, stages.results, nested, tuple(told))

    def stages(self) -> Stages:
        """The stages, whose functions are called while they are traced."""
        made = min(self.results, default=0)  # values from this number on are made
        return Stages(tuple(p.stage(made) for p in self.parts), self.consts, self.results)

    # -- as bytes --------------------------------------------------------------------------------------------------

    def written(self) -> bytes:
        """As a file holds it: what it is, a checksum, and the rest compressed: a JSON text with the lengths of what follows."""
        parts = [{**{n: getattr(p, n) for n in PLACES}, **_types(p.code), "bytes": len(p.code.code)} for p in self.parts]
        consts = [(c.dtype.str, c.shape) for c in self.consts]
        nested = self.nested.state, self.nested.created, self.nested.fetches, self.nested.word
        head = {"parts": parts, "consts": consts, "results": self.results, "nested": nested, "told": self.told}
        text = json.dumps(head).encode()
        blobs = [*(p.code.code for p in self.parts), *(c.tobytes() for c in self.consts)]
        rest = zlib.compress(b"".join([len(text).to_bytes(8, "little"), text, *blobs]), 1)
        return MAGIC + hashlib.sha256(rest).digest() + rest

    @staticmethod
    def read(content: bytes) -> Trace:
        """The inverse of `written`. Raises ValueError for anything else."""
        start = len(MAGIC) + hashlib.sha256().digest_size
        rest = content[start:]
        if content[: len(MAGIC)] != MAGIC or hashlib.sha256(rest).digest() != content[len(MAGIC) : start]:
            raise ValueError("no trace, or a damaged one")
        try:
            return _read(zlib.decompress(rest))
        except (zlib.error, KeyError, TypeError, IndexError, AttributeError) as reason:
            raise ValueError(f"no trace: {reason}") from reason


def _types(code: Exported) -> dict[str, Any]:
    return {"takes of": code.takes, "makes of": code.makes, "kept": code.kept}


def _read(data: bytes) -> Trace:
    at = 8 + int.from_bytes(data[:8], "little")
    head = json.loads(data[8:at])

    def following(size: int) -> bytes:
        nonlocal at
        found = data[at : at + size]
        at += size
        if len(found) != size:
            raise ValueError("it ends too soon")
        return found

    parts = []
    for told in head["parts"]:
        takes, makes = ([(tuple(shape), dtype) for shape, dtype in told[n]] for n in ("takes of", "makes of"))
        code = Exported(tuple(takes), tuple(makes), tuple(told["kept"]), following(told["bytes"]))
        parts.append(Part(code, *(tuple(told[n]) for n in PLACES)))
    consts = []
    for dtype, shape in head["consts"]:
        kind = np.dtype(dtype)
        consts.append(np.frombuffer(following(math.prod(shape) * kind.itemsize), kind).reshape(shape))
    state, created, fetches, word = head["nested"]
    nested = Results(int(state), tuple(created), int(fetches), bool(word))
    return Trace(tuple(parts), tuple(consts), tuple(head["results"]), nested, tuple((n, uid, text) for n, uid, text in head["told"]))
