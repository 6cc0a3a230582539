"""One step of a beam search: ordinary scores, ended prefixes, sources that end, ties, fewer
candidates than beams.
"""

import numpy as np

from ..sample import Sample, f32, ints, positive

END = 9
TWO = [[2, 2], [1, 1, 1, 1]]


def step(lod, scores, ids="some", pre=None, rows=None, end=END, **attrs):
    """rows: how many candidates Paddle selects; of none NumPy shows neither shape nor dtype"""
    count = sum(lod[-1])
    before = np.arange(1, count + 1) if pre is None else np.array(pre)
    inputs = {
        "pre_ids": before.reshape(-1, 1).astype("int64"),
        "pre_scores": -positive(count, 1),
        "scores": scores,
    }
    if ids is not None:
        inputs["ids"] = (
            ints(*scores.shape, high=end + 1) if isinstance(ids, str) else np.array(ids, "int64")
        )
    made = dict(level=0, beam_size=2, end_id=end)
    made.update(attrs)
    return Sample(
        "beam_search",
        inputs,
        made,
        ["selected_ids", "selected_scores", "parent_idx"],
        lod={slot: lod for slot in inputs},
        rows={s: rows for s in ("selected_ids", "selected_scores", "parent_idx")},
        paddle=rows > 0,
        note="" if rows else "nothing is selected",
    )


def ties(*values):
    """rows of few distinct scores"""
    return np.array(values, "float32")


EQUAL = np.zeros((4, 3), "float32")
STEEP = ties([1, 2, 2], [2, 1, 2], [0, 0, 0], [0, 0, 1])

SAMPLES = [
    step(TWO, f32(4, 3), rows=4),
    step([[1, 1], [1, 1]], f32(2, 5), rows=6, beam_size=3),
    step([[2, 2], [1, 2, 0, 1]], f32(4, 3), rows=4),
    step([[3, 1], [2, 1, 1, 2]], f32(6, 4), rows=8, beam_size=4),
    step(TWO, f32(4, 3), pre=[1, END, END, 4], rows=4),
    step(TWO, f32(4, 3), pre=[END, END, 3, 4], rows=2),
    step(TWO, f32(4, 3), pre=[END, END, END, END], rows=0),
    step(TWO, f32(4, 2), pre=[1, END, 3, 4], rows=7, beam_size=4),
    step(TWO, positive(4, 3), rows=4, is_accumulated=False),
    step(TWO, positive(4, 3), pre=[1, END, 3, 4], rows=4, is_accumulated=False),
    step(TWO, f32(4, 6), ids=None, rows=6, beam_size=3, end=5),
    step(TWO, f32(4, 3), rows=8, beam_size=2, level=1),
    step([[2, 2]], f32(4, 3), rows=4),
    step(TWO, EQUAL, ids=np.arange(12).reshape(4, 3), rows=4),
    step(TWO, EQUAL, ids=np.arange(12).reshape(4, 3), rows=6, beam_size=3),
    step(TWO, EQUAL, ids=np.arange(12).reshape(4, 3), rows=8, beam_size=4),
    step(TWO, EQUAL, ids=np.arange(12).reshape(4, 3), rows=2, beam_size=1),
    step(TWO, STEEP, ids=np.arange(12).reshape(4, 3), rows=4),
    step(TWO, STEEP, ids=np.arange(12).reshape(4, 3), rows=6, beam_size=3),
    step(TWO, STEEP, ids=np.arange(12).reshape(4, 3), rows=10, beam_size=5),
    step([[1], [1]], ties([1, 1, 2, 1, 1]), ids=[[0, 1, 2, 3, 4]], rows=2),
    step([[1], [1]], ties([1, 1, 1, 2, 0]), ids=[[0, 1, 2, 3, 4]], rows=3, beam_size=3),
    step([[1], [1]], ties([1, 1, 1, 2, 1]), ids=[[0, 1, 2, 3, 4]], rows=3, beam_size=3),
    step([[2], [1, 1]], ties([1, 1, 1], [0, 1, 0]), ids=[[0, 1, 2], [3, 4, 5]], rows=2),
    step(
        [[2], [1, 1]], ties([1, 1, 1], [0, 2, 0]), ids=[[0, 1, 2], [3, 4, 5]], rows=3, beam_size=3
    ),
    step(
        TWO,
        ties([-np.inf] * 3, [-np.inf, 0, -np.inf], [-np.inf] * 3, [1, -np.inf, 1]),
        pre=[1, 2, END, 4],
        rows=6,
        beam_size=3,
    ),
    step(TWO, np.round(f32(4, 8) * 2) / 2, rows=6, beam_size=3),
    step(TWO, np.round(f32(4, 8)), pre=[1, END, 3, 4], rows=10, beam_size=5),
    step([[2, 0, 1], [1, 1, 1]], f32(3, 3), rows=4),
]
