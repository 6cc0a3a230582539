"""fluid.evaluator: what adds up over runs in variables of the scope; the numbers are those of
Paddle 1.8.5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidjax as fluid

from .nets import fresh

FED = {"hyp": [1, 2, 3, 4], "ref": [1, 3, 3, 4], "found": [0, 1, 2, 3], "label": [0, 1, 0, 1]}


def sentences(ids: list[int]) -> Any:
    """Two of two ids each."""
    return fluid.create_lod_tensor(np.array(ids, "int64")[:, None], [[2, 2]], fluid.CPUPlace())


def test_edit_distance_and_chunks_add_up_until_they_are_reset() -> None:
    with fresh() as (main, startup):
        hyp, ref, found, label = (fluid.data(n, [None, 1], "int64", lod_level=1) for n in FED)
        with pytest.warns(DeprecationWarning, match="use fluid.metrics"):
            distance, chunks = (
                fluid.evaluator.EditDistance(hyp, ref),
                fluid.evaluator.ChunkEvaluator(found, label, "IOB", 2),
            )
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        for _ in range(2):
            distance.reset(exe)
            chunks.reset(exe)
            for _ in range(2):
                exe.run(
                    main,
                    feed={n: sentences(ids) for n, ids in FED.items()},
                    fetch_list=[*distance.metrics, *chunks.metrics],
                )
            with fluid.program_guard(main):
                # mean distance; sentences with an error
                assert [v.item() for v in distance.eval(exe)] == [0.25, 0.5]
                # precision, recall, F1
                assert [v.item() for v in chunks.eval(exe)] == [0.5, 0.5, 0.5]
