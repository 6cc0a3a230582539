"""The collectives of a compiled step, read from its text, to check a plan against."""

from __future__ import annotations

import math
import re
from collections import Counter

from .links import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER, SEND

_KINDS = {k: k for k in (ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL)} | {
    "collective-permute": SEND
}
_CALL = re.compile(rf"^\s*(?:ROOT )?\S+ = (.*?) ({'|'.join(_KINDS)})(-start)?\(", re.M)
_ARRAY = re.compile(r"\b(pred|[a-z]+(\d+)\w*)\[([\d,]*)\]")


def payload(text: str, ranks: int) -> dict[str, int]:
    """Bytes by kind of the collectives over all ranks in a compiled module's text,
    `compiled.as_text()`.

    Bytes of a collective are the larger of what a rank gives and gets, as in Row.payload: a
    reduce-scatter's result times the ranks. A collective in a loop counts once.
    """
    found = Counter[str]()
    for types, name, starts in _CALL.findall(text):
        arrays = [_bytes(*m.groups()) for m in _ARRAY.finditer(types)]
        # the operands are before the results, counters of the runtime behind them
        if starts and name != ALL_REDUCE:
            operands = len(arrays) // 2
            arrays = arrays[operands : 2 * operands] if name == ALL_GATHER else arrays[1:2]
        kind = _KINDS[name]
        found[kind] += sum(arrays) * (ranks if kind == REDUCE_SCATTER else 1)
    return dict(found)


def _bytes(dtype: str, bits: str | None, shape: str) -> int:
    each = 8 if dtype == "pred" else int(bits or 0)
    return math.prod(int(n) for n in shape.split(",") if n) * each // 8
