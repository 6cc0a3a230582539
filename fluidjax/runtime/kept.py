"""Traces of steps in the compilation cache's folder, so that a process which finds one does not
trace (docs/compile-cache.md).
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from .compile_cache import CACHE, label, used
from .compiled import Compiled
from .kind import Kind
from .trace_key import trace_key
from .traces import Trace

SUFFIX = "-trace"


@dataclass(frozen=True)
class Keeping:
    """Where the trace of a call is kept. known: the objections that had a number before the call
    was traced.
    """

    path: Path
    known: int

    @staticmethod
    def of(compiled: Compiled, kind: Kind, args: Sequence[Any]) -> Keeping | None:
        """None where traces are not kept, or not this one."""
        folder = CACHE.folder
        if folder is None or not jax.config.values["jax_enable_compilation_cache"]:
            return None
        key = trace_key(compiled, kind, args)
        name = label(op.type for op in compiled.step.ops)
        return (
            None
            if key is None
            else Keeping(folder / f"{name}-{key}{SUFFIX}", len(compiled.objections.told))
        )

    def read(self, compiled: Compiled) -> Trace | None:
        """What an earlier process left, whose objections have their numbers here now. A damaged
        entry is removed, and said once.
        """
        try:
            content = self.path.read_bytes()
            with contextlib.suppress(OSError):  # of a folder for reading alone
                used(self.path)
        except OSError:
            return None
        try:
            found = Trace.read(content)
            compiled.objections.adopt(compiled.step.desc, found.told)
        except (ValueError, KeyError):
            CACHE.damaged(self.path)
            return None
        return found

    def told(self, compiled: Compiled) -> list[tuple[int, int, str]]:
        """What the trace can object to that had no number before."""
        return [
            (n, uid, sentence)
            for n, (uid, sentence) in list(compiled.objections.told.items())[self.known :]
        ]

    def write(self, trace: Trace) -> None:
        """Leave it for other processes; whoever reads meanwhile finds all of it or nothing. What
        cannot be written is let be.
        """
        if not CACHE.writes:
            return
        part = self.path.with_name(f".{self.path.name}-{uuid.uuid4().hex}")
        try:
            part.write_bytes(trace.written())
            os.replace(part, self.path)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
