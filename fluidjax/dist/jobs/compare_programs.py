"""The comparison of all trainers' programs: a program's text, and the first difference of two
texts.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from dataclasses import replace
from itertools import zip_longest

from ...errors import ParseError
from ...ir.desc import FrozenMap, OpDesc, ProgramDesc
from ...ir.text import op_text, var_text

_TRAINER_ID = re.compile(r"\btrainer_id=\d+")
LARGEST = 256 << 20  # bytes of a program's text
# the reasons of a comparison, in words
NEW = "has new sizes in its feed, a new program or new state"
CHECKPOINT = "checkpoint of step "  # the beginning of a text about a checkpoint


def program_lines(desc: ProgramDesc, rank: int = -1) -> str:
    """One line per op of every block, then per variable: everything that must agree between
    trainers.

    It omits the random seed, an op's user line, its op_namescope (which counts earlier scopes),
    and, in the program of trainer `rank` of a parameter-server job, the id that
    DistributeTranspiler writes into names and attributes.
    """
    ops = [
        f"block {i}: {op_text(_unscoped(op), block.vars)}"
        for i, block in enumerate(desc.blocks)
        for op in block.ops
    ]
    variables = [
        f"block {i}: {var_text(var)}"
        for i, block in enumerate(desc.blocks)
        for var in block.vars.values()
    ]
    if rank >= 0:
        own = re.compile(rf"\.trainer_{rank}(?!\d)")
        ops = [_TRAINER_ID.sub("trainer_id=*", own.sub(".trainer_*", line)) for line in ops]
        variables = [own.sub(".trainer_*", line) for line in variables]
    return "\n".join([*ops, *sorted(variables)])


def _unscoped(op: OpDesc) -> OpDesc:
    if "op_namescope" not in op.attrs:
        return op
    return replace(op, attrs=FrozenMap({n: v for n, v in op.attrs.items() if n != "op_namescope"}))


def fingerprint(text: str) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def pack(text: str) -> str:
    """A text for a message."""
    return base64.b85encode(zlib.compress(text.encode(), 6)).decode()


def unpack(packed: object) -> str:
    """The unpacked text. Raises ParseError for any other data, or a text larger than LARGEST."""
    try:
        inflate = zlib.decompressobj()
        raw = inflate.decompress(base64.b85decode(str(packed)), LARGEST)
        text = raw.decode()
    except (ValueError, zlib.error):
        raise ParseError("this is not packed text") from None
    if not inflate.eof:
        raise ParseError(f"a packed text is cut off or longer than {LARGEST} bytes")
    return text


def first_difference(a: str, b: str) -> tuple[int, str, str]:
    """(number from 0, line of a, line of b) of the first lines that differ; an end counts as
    ``nothing``.
    """
    for i, (x, y) in enumerate(zip_longest(a.splitlines(), b.splitlines())):
        if x != y:
            return i, x if x is not None else "nothing", y if y is not None else "nothing"
    return -1, "", ""


class Comparison:
    """One comparison between `count` trainers: hashes first, and texts of two trainers where hashes
    differ.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.hashes: dict[int, str] = {}
        self.texts: dict[int, str] = {}
        self.steps: dict[int, int] = {}  # number of steps that a trainer had begun at its arrival
        self.whats: dict[int, str] = {}  # its action, in words
        self._asked = False

    def missed(self, rank: int, steps: int, ended: bool) -> str:
        """The error message if this trainer has continued or ended while another one waits for it
        here; "" if not.
        """
        if rank in self.hashes:
            return ""
        for other, n in self.steps.items():
            does, advice = (
                f"trainer {other} {self.whats[other]} before step {n + 1}",
                "every trainer has to do so",
            )
            if steps > n:
                advice = (
                    "all trainers need batches of equal sizes, and the same steps"
                    if self.whats[other] == NEW
                    else advice
                )
                return f"{does}, but trainer {rank} has begun that step without; {advice}"
            if ended:
                advice = (
                    "give all trainers the same number of batches"
                    if self.whats[other] == NEW
                    else advice
                )
                return (
                    f"{does}, but trainer {rank} ended after {steps} step{'s' * (steps != 1)};"
                    f" {advice}"
                )
        return ""

    @property
    def same(self) -> bool:
        """Whether all have arrived, and agree."""
        return len(self.hashes) == self.count and len(set(self.hashes.values())) == 1

    @property
    def odd(self) -> int:
        """The first trainer whose hash is not trainer 0's."""
        return next(rank for rank in sorted(self.hashes) if self.hashes[rank] != self.hashes[0])

    def wanted(self) -> tuple[int, ...]:
        """The trainers whose texts are needed now; each is asked once."""
        if self._asked or 0 not in self.hashes or len(set(self.hashes.values())) == 1:
            return ()
        self._asked = True
        return 0, self.odd

    def add_text(self, rank: int, packed: object) -> None:
        """Receive a text. Raises ParseError."""
        self.texts[rank] = unpack(packed)

    def difference(self) -> str:
        """The error message, once both texts are received; before that ""."""
        if len(self.texts) < 2:
            return ""
        (_, ours), (rank, theirs) = sorted(self.texts.items())[:2]
        _, a, b = first_difference(ours, theirs)
        what = (
            "feed batches of different sizes"
            if a.startswith("feed ") and b.startswith("feed ")
            else "run different programs"
        )
        if a.startswith(CHECKPOINT) or b.startswith(CHECKPOINT):
            what = "do not take the same checkpoint at the same time"
        return (
            f"trainer 0 and trainer {rank} {what}; the first difference: trainer 0 has {_short(a)},"
            f" trainer {rank} has {_short(b)}"
        )


def _short(line: str) -> str:
    return line if line == "nothing" else f"`{line if len(line) <= 400 else line[:400] + '...'}`"


__all__ = [
    "CHECKPOINT",
    "NEW",
    "Comparison",
    "fingerprint",
    "first_difference",
    "pack",
    "program_lines",
    "unpack",
]
