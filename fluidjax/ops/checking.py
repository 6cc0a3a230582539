"""How ops reject values of their inputs, which only a running step knows; lower/checks.py describes
the whole mechanism.

    @op(outs="Out", refuses=too_long)

    def too_long(inputs, attrs):  # values by slot, as the op gets them; all attributes
        yield inputs["Length"].max() > inputs["X"].shape[1], f"takes lengths up to {n}, but gets
        {VALUE}", inputs["Length"].max()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

WORD = "@OBJECTION@"  # the variable that holds the step's report
VALUE = "{value}"  # in a sentence: the value that is objected to

# (a boolean scalar: whether it holds, the sentence after "op 'type' (line)", an integer that it
# shows)
Objection = tuple[Any, str, Any]
Refuses = Callable[[Mapping[str, Any], Mapping[str, Any]], Iterable[Objection]]
