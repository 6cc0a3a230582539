"""Numbers of sequences that vary go up to a bucket: few programs, and what is computed is what it
was.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers

from ..nets import fresh

COUNTS = (1, 2, 3, 5)  # the first two as they are, the others as 8


def sentences() -> Any:
    """A CRF, and a class for each sentence beside labels without a LoD."""
    word, tag = (fluid.data(n, [None, 1], "int64", lod_level=1) for n in ("word", "tag"))
    out = layers.embedding(word, [9, 3])
    classes = layers.softmax(layers.sequence_last_step(out))
    return layers.mean(
        layers.linear_chain_crf(out, tag, fluid.ParamAttr(name="crf"))
    ) + layers.mean(layers.cross_entropy(classes, fluid.data("label", [None, 1], "int64")))


def counting() -> Any:
    """An op that must know how many sequences there are."""
    word = fluid.data("word", [None, 1], "int64", lod_level=1)
    pooled = layers.sequence_pool(layers.embedding(word, [9, 2]), "sum")
    return layers.mean(layers.matmul(pooled, pooled, transpose_x=True))


def batch(count: int, main: Any) -> dict[str, Any]:
    rng = np.random.RandomState(count)
    lengths = (1 + np.arange(count) % 2).tolist()
    given = {
        n: fluid.create_lod_tensor(
            rng.randint(0, 3, (sum(lengths), 1)), [lengths], fluid.CPUPlace()
        )
        for n in ("word", "tag")
    }
    given["label"] = rng.randint(0, 3, (count, 1))
    return {n: v for n, v in given.items() if main.global_block().has_var(n)}


def trained(net: Any, anew: bool) -> tuple[list[Any], int]:
    """Losses of steps on batches of COUNTS sentences, and how many programs; anew: an executor for
    each, which sees one number.
    """
    with fresh() as (main, startup):
        main.random_seed = startup.random_seed = 5
        loss = net()
        fluid.optimizer.SGD(0.5).minimize(loss)
    scope, found = fluid.Scope(), []
    exe = fluid.Executor()
    exe.run(startup, scope=scope)
    for count in COUNTS:
        exe = fluid.Executor() if anew else exe
        found.append(exe.run(main, feed=batch(count, main), fetch_list=[loss], scope=scope)[0])
    return found, len(exe.compilations(main))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("net", "programs"), [(sentences, 3), (counting, 4)], ids=lambda v: getattr(v, "__name__", v)
)
def test_varied_numbers_of_sequences_share_programs(net: Any, programs: int) -> None:
    got, made = trained(net, False)
    want, _ = trained(net, True)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)
    assert made == programs


@pytest.mark.first(1)
@pytest.mark.parametrize(("goes_on", "programs"), [(False, 1), (True, 2)])
def test_the_longest_sequence_counts_only_where_an_op_looks_at_it(
    goes_on: bool, programs: int
) -> None:
    """Batches of as many rows, of which one has a long sequence: one program for pools, two for a
    CRF.
    """
    with fresh() as (main, startup):
        word = fluid.data("word", [None, 1], "int64", lod_level=1)
        out = layers.embedding(word, [9, 3])
        classes = layers.sequence_pool(
            layers.sequence_softmax(layers.reduce_sum(out, 1, keep_dim=True)), "max"
        )
        loss = layers.mean(classes) + (
            layers.mean(layers.linear_chain_crf(out, word, fluid.ParamAttr(name="crf")))
            if goes_on
            else 0.0
        )
        fluid.optimizer.SGD(0.5).minimize(loss)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    for lengths in ([8, 8], [15, 1]):
        ids = np.arange(16)[:, None] % 3
        exe.run(
            main,
            feed={"word": fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace())},
            fetch_list=[loss],
            scope=scope,
        )
    assert len(exe.compilations(main)) == programs
