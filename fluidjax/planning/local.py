"""One rank's step, traced on types: its work, the bytes of its values, and the inputs of its
collectives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc
from ..lower.checks import Objections
from ..lower.step import Step
from ..memory.live import Peak, timeline
from ..memory.sizes import Lengths, Shapes, Sizes, arguments, nbytes
from .work import Work, count


@dataclass(frozen=True)
class Local:
    """A step on `batch` samples. types: of every variable of block 0, by name. objects: whether an
    op may object while it runs.

    peak: the op with the most live bytes when each variable takes memory of its own.
    """

    batch: int | None
    work: Work
    types: Mapping[str, Any]
    feeds: int
    objects: bool
    peak: Peak

    @property
    def activations(self) -> int:
        """The bytes of temporary values at the peak: activations and gradients."""
        return self.peak.by_kind["activations"] + self.peak.by_kind["gradients"]


def local(
    desc: ProgramDesc,
    fetches: tuple[str, ...],
    batch: int | None,
    feed_shapes: Mapping[str, Sequence[int]],
    lengths: Lengths | None = None,
) -> Local:
    """The step of one rank on so many samples; -1 in a feed's shape is the batch. lengths: of
    sequences in ragged feeds.

    Raises what memory.sizes.arguments raises for sizes that are not known, and what ops raise for
    shapes that do not fit.
    """
    step = Step(desc, fetches)
    shapes: Shapes = {
        n: [batch if d == -1 and batch else d for d in shape] for n, shape in feed_shapes.items()
    }
    given = arguments(step, batch, shapes, lengths)
    types: dict[str, Any] = {}
    written: dict[int, dict[str, int]] = {}
    word: list[Any] = []

    def watch(op: OpDesc, env: Mapping[str, Any]) -> None:
        names = walk.writes_with_subblocks(step.desc, op) if op.blocks else op.writes
        found = {name: env[name] for name in names if name in env}
        types.update((name, _types(value)) for name, value in found.items())
        written[op.uid] = {name: nbytes(value) for name, value in found.items()}

    def run(state: Any, feed: Any) -> Any:
        new, values, objection = step.run(
            state, feed, jax.random.key(0) if step.random else None, Objections(), watch
        )
        word.append(objection)
        return new, values

    with jax.enable_x64(True):
        traced = jax.make_jaxpr(run)(dict(given.state), dict(given.feed))
    held = {**given.state, **given.feed}
    _, peak = timeline(step, Sizes({n: nbytes(v) for n, v in held.items()}, written))
    feeds = sum(map(nbytes, given.feed.values()))
    return Local(
        batch, count(traced), {**held, **types}, feeds, not isinstance(word[0], np.ndarray), peak
    )


def _types(value: Any) -> Any:
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), np.result_type(leaf)), value
    )
