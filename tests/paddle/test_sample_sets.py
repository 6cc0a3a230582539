"""paddle.io's data sets of data sets: their samples are those of plain lists."""

from __future__ import annotations

import numpy as np
import pytest

from fluidjax.errors import FluidError
from fluidjax.paddle import io

A, B = np.arange(12.0).reshape(6, 2), np.arange(6)
SET = io.TensorDataset([A, B])


class Stream(io.IterableDataset):
    def __iter__(self):
        return iter([1, 2])


def test_samples_are_those_of_lists() -> None:
    assert len(SET) == 6 and SET[4][1] == 4 and SET[4][0].tolist() == [8, 9]
    both = io.ComposeDataset([SET, io.Subset(SET, [5, 4, 3, 2, 1, 0])])
    assert [(int(s[1]), int(s[3])) for s in (both[i] for i in range(len(both)))] == list(
        zip(B, B[::-1], strict=True)
    )
    more = io.ConcatDataset([SET, io.Subset(SET, [2, 0])])
    assert [int(more[i][1]) for i in (0, 5, 6, 7, -1, -8)] == [0, 5, 2, 0, 0, 0] and len(more) == 8
    assert list(io.ChainDataset([Stream(), Stream()])) == [1, 2, 1, 2]
    batches = [
        [np.asarray(v).tolist() for v in parts]
        for (parts,) in io.DataLoader(io.Subset(SET, [3, 1, 2]), batch_size=2)
    ]
    assert batches == [[[[6, 7], [2, 3]], [3, 1]], [[[4, 5]], [2]]]


@pytest.mark.parametrize(
    ("lengths", "sizes"), [([4, 2], [4, 2]), ([0.5, 0.5], [3, 3]), ([0.4, 0.3, 0.3], [3, 2, 1])]
)
def test_random_parts_are_disjoint(lengths, sizes) -> None:
    np.random.seed(3)
    parts = io.random_split(SET, lengths)
    assert [len(p) for p in parts] == sizes and sorted(
        int(p[i][1]) for p in parts for i in range(len(p))
    ) == list(range(6))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: io.TensorDataset([A, B[:2]]), "as many rows each"),
        (lambda: io.ComposeDataset([SET, io.Subset(SET, [0])]), "one length, not of"),
        (lambda: io.ConcatDataset([]), "one data set or more"),
        (lambda: io.ConcatDataset([Stream()]), "not of Stream"),
        (lambda: io.ConcatDataset([SET])[6], "has no sample 6"),
        (lambda: io.random_split(SET, [1, 2]), "sum to 3"),
    ],
)
def test_refused(made, message) -> None:
    with pytest.raises(FluidError, match=message):
        made()
