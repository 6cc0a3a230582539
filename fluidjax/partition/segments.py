"""One segment of a partitioned program, as a compiled function of the values that it reads."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from ..base.loc import user_line
from ..base.progress import waiting
from ..compiling.cache import CACHE, label, named
from ..compiling.compilations import Compilation, types_of
from ..compiling.reasons import differences
from ..ir.desc import OpDesc
from ..ir.text import op_called
from ..lower.checks import Objections
from ..lower.env import Context, Env
from ..lower.pairing import pair_gradients
from ..lower.step import run_op
from ..ops.checking import WORD
from ..ops.concrete import SMALL
from ..ops.fixed import Fixed
from ..ops.missing import MISSING
from ..ops.ragged import Ragged, trimmed
from ..ops.registry import traits
from ..ops.tensor_array import Stacked
from .cuts import Cuts, Piece


class Segment:
    """A segment, compiled for every form of its values. Known constants are passed and returned as
    Fixed.

    log: called with each compilation.
    """

    def __init__(
        self, piece: Piece, cuts: Cuts, objections: Objections, log: Callable[[Compilation], None]
    ) -> None:
        self.piece, self._cuts, self._objections, self._log = piece, cuts, objections, log
        self._forms: list[Mapping[str, str]] = []  # the forms that it was compiled for
        self._traced_at: float | None = None
        self._meanwhile = contextlib.ExitStack()  # set during a call
        self._pairs = pair_gradients(piece.ops)
        self._varying = cuts.varying
        self.deciding = _deciding(piece.ops[0]) if piece.ops[0].uid in cuts.reasons else frozenset()
        self._exact = piece.ops[0].uid in cuts.reasons
        self._fixed: dict[str, tuple[Any, Fixed]] = {}
        name = label(op.type for op in piece.ops)
        CACHE.mend(name)
        self._run = jax.jit(named(self._traced, name))

    def serves(self, other: Segment) -> bool:
        """Whether it computes the same as another segment of the same ops."""
        mine, its = ((s.piece.reads, s.piece.results, s._exact, s._varying) for s in (self, other))
        return mine == its

    def run(self, env: Env, key: Any, path: tuple[int, ...]) -> None:
        """Run the ops on the values of `env`. key: the step's random key. path: the iterations of
        the loops around it.
        """
        given = {n: self._given(n, env[n], env) for n in self.piece.reads if n in env}
        made, word = self._called(
            given,
            env.get(MISSING, {}),
            env[WORD],
            key,
            np.array(path, np.int32) if key is not None else None,
        )
        for name in self.piece.results:
            if name in made:
                env[name] = _there(made[name])
            else:
                env.pop(name, None)
        if word is not None:
            env[WORD], env[MISSING] = word

    def _called(self, given: Mapping[str, Any], *others: Any) -> Any:
        """The function's results. A compilation for the call is shown while it runs, and
        reported.
        """
        began, self._traced_at = time.perf_counter(), None
        with contextlib.ExitStack() as self._meanwhile:
            made = self._run(given, *others)
        if self._traced_at is not None:
            self._log(
                self._report(given, self._traced_at - began, time.perf_counter() - self._traced_at)
            )
        return made

    def _report(self, given: Mapping[str, Any], trace: float, compile: float) -> Compilation:
        forms = types_of(given)
        first = self.piece.ops[0]
        found = min(
            (list(differences(forms, old)) for old in reversed(self._forms)),
            key=len,
            default=["the first run"],
        )
        self._forms.append(forms)
        what = f"segment of {len(self.piece.ops)} ops from {op_called(first)}"
        reason = f"{what}: {'; '.join(found) or 'its values have another form'}"
        return Compilation(
            "segment",
            self.piece.results,
            forms,
            trace,
            0.0,
            compile,
            reason=reason,
            line=user_line(),
        )

    def _given(self, name: str, value: Any, env: Env) -> Any:
        if isinstance(value, Ragged) and value.padded and self._exact:
            env[name] = value = trimmed(value)
        if name in self.deciding and not isinstance(value, Ragged):
            return self._constant(name, np.asarray(value))
        if (
            isinstance(value, np.ndarray)
            and value.size <= SMALL
            and value.dtype.kind in "iub"
            and name not in self._varying
        ):
            return self._constant(name, value)
        return value

    def _constant(self, name: str, value: np.ndarray) -> Fixed:
        last = self._fixed.get(name)
        if last is None or last[0] is not value:
            last = self._fixed[name] = value, Fixed(value)
        return last[1]

    def _traced(
        self, given: Mapping[str, Any], missing: Any, word: Any, key: Any, path: Any
    ) -> Any:
        self._meanwhile.enter_context(
            waiting(f"compiling a segment of {len(self.piece.ops):,} ops")
        )
        step = self._cuts.step
        env: Env = {n: v.array if isinstance(v, Fixed) else v for n, v in given.items()}
        env.update({WORD: word, MISSING: missing} if missing else {WORD: word})
        for at in range(0 if key is None else path.shape[0]):
            key = jax.random.fold_in(key, path[at])
        ctx: Context = step.context(key, self._objections)
        for op in self.piece.ops:
            run_op(op, env, ctx, self._pairs.get(op.uid, ()))
        made = {n: _known(env[n]) for n in self.piece.results if n in env}
        watched = bool(ctx.objected) or bool(missing) or MISSING in env
        self._traced_at = time.perf_counter()
        return made, (env[WORD], env.get(MISSING, {})) if watched else None


def _deciding(op: OpDesc) -> frozenset[str]:
    """The inputs that decide the sizes of the op's outputs."""
    sizes, chosen = traits(op.type).sizes, traits(op.type).chosen
    needed = [op.input(slot)[i] for slot, i in sizes.needed(op)] if sizes is not None else []
    return frozenset(
        (
            *needed,
            *(
                n
                for slot in (chosen.slots if chosen is not None and chosen.exact else ())
                for n in op.input(slot)
            ),
        )
    )


def _known(value: Any) -> Any:
    return Fixed(value) if isinstance(value, np.ndarray) and value.dtype.kind in "iub" else value


def _there(value: Any) -> Any:
    if isinstance(value, Fixed):
        return value.array
    return (
        replace(value, written=np.asarray(value.written)) if isinstance(value, Stacked) else value
    )
