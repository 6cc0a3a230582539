"""LAC's segmentation model, saved by Paddle 1.6: ragged batches give the very tags of Paddle 1.8.5."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid

DATA = Path(__file__).parents[1] / "data/models"
BATCHES = np.load(DATA / "lac_batches.npz")


@pytest.fixture(scope="module")
def lac() -> Iterator[Any]:
    """A function from ids and sentence lengths to (tags, lod), and its executor."""
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        program, (words,), targets = fluid.io.load_inference_model(str(DATA / "lac_seg/model"), exe)

        def tag(ids: np.ndarray, lengths: list[int]) -> tuple[np.ndarray, list[list[int]]]:
            tensor = fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace())
            (out,) = exe.run(program, feed={words: tensor}, fetch_list=targets, return_numpy=False)
            return np.array(out), out.lod()

        yield tag, exe, program


def test_reference(lac: Any) -> None:
    ref = np.load(DATA / "lac_ref.npz")
    lengths = ref["lod"].tolist()
    tags, lod = lac[0](ref["ids"], lengths)
    assert (tags == ref["out"]).all() and tags.shape == ref["out"].shape
    assert lod == [[0, *np.cumsum(lengths).tolist()]]


@pytest.mark.first(1)
@pytest.mark.parametrize("number", range(5))
def test_recorded_batches(lac: Any, number: int) -> None:
    lengths = BATCHES[f"{number}/lengths"].tolist()
    tags, _ = lac[0](BATCHES[f"{number}/ids"], lengths)
    assert (tags == BATCHES[f"{number}/tags"]).all()


@pytest.mark.slow
def test_each_sentence_by_itself_gives_the_same(lac: Any) -> None:
    """What stands beside a sentence, and the padding behind it, changes nothing."""
    lengths = BATCHES["1/lengths"].tolist()
    ids, tags = BATCHES["1/ids"], BATCHES["1/tags"]
    at = 0
    for n in lengths:
        assert (lac[0](ids[at : at + n], [n])[0] == tags[at : at + n]).all()
        at += n


@pytest.mark.slow
def test_varied_sentences_compile_few_programs(lac: Any) -> None:
    """Sentences of 1 to 64 words, one at a time: at most 2 log2(64 / 8) + 2 programs."""
    tag, exe, program = lac
    rng = np.random.RandomState(1)
    tag(rng.randint(0, 8224, (1, 1)), [1])  # the first run makes the step, whatever test is first
    seen = exe.compiled_steps(program)[0].recompiles.seen
    before = len(seen) - 1
    for n in rng.permutation(64)[:40] + 1:
        tags, lod = tag(rng.randint(0, 8224, (n, 1)), [int(n)])
        assert tags.shape == (n, 1) and lod == [[0, int(n)]]
    assert len(seen) - before <= 8
