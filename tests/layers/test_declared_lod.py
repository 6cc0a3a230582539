"""Which lod_level a layer's output is declared with: what Paddle 1.8.5 declares, given rows with
one level beside a plain [4, 3].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers

from ..nets import fresh

DECLARED: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "sum, right": (1, lambda x, y: x + y),
    "sum, left": (0, lambda x, y: y + x),
    "comparison": (1, lambda x, y: layers.equal(x, y)),
    "quotient": (1, lambda x, y: layers.cumsum(layers.elementwise_div(x, y, axis=0))),
    "loss of labels": (1, lambda x, y: layers.sigmoid_cross_entropy_with_logits(x, y)),
    "sums": (0, lambda x, y: layers.sums([y, x])),
    "sums, rows first": (1, lambda x, y: layers.sums([x, y])),
    "product": (1, lambda x, y: layers.matmul(x, layers.slice(y, [0], [0], [3]))),
    "rows taken": (0, lambda x, y: layers.slice(x, [0], [0], [2])),
    "rows taken by index": (0, lambda x, y: x[1:]),
    "columns taken": (1, lambda x, y: layers.slice(x, [1], [0], [2])),
    "columns taken first": (1, lambda x, y: layers.slice(x, [1, 0], [0, 0], [2, 2])),
    "column by index": (1, lambda x, y: x[:, 1]),
    "strides of rows": (1, lambda x, y: layers.strided_slice(x, [0], [0], [2], [1])),
    "axes exchanged": (0, lambda x, y: layers.transpose(x, [1, 0])),
    "axis in front": (0, lambda x, y: layers.unsqueeze(x, [0])),
    "axis behind": (1, lambda x, y: layers.unsqueeze(x, [1])),
    "rows gathered": (0, lambda x, y: layers.gather(x, layers.zeros([3], "int64"))),
    "one part of all rows": (0, lambda x, y: layers.split(x, [-1], dim=0)[0]),
    "parts of columns": (1, lambda x, y: layers.split(x, [1, 2], dim=1)[0]),
    "costs beside drawn classes": (0, lambda x, y: layers.nce(x, layers.zeros([4, 1], "int64"), 5)),
    "total of columns": (1, lambda x, y: layers.reduce_sum(x, 1)),
    "total of rows": (0, lambda x, y: layers.reduce_sum(x, 0, keep_dim=True)),
}


@pytest.mark.once
@pytest.mark.parametrize("name", DECLARED)
def test_levels_are_paddles(name: str) -> None:
    level, form = DECLARED[name]
    with fresh():
        assert (
            form(fluid.data("x", [-1, 3], lod_level=1), fluid.data("y", [4, 3])).lod_level == level
        )


def test_an_id_is_one_of_the_rows_that_there_are() -> None:
    """A DynamicRNN with an init of known size declares as many rows, as in 1.8.5; how many there
    are, sequences say.
    """
    with fresh() as (main, _):
        rnn = layers.DynamicRNN()
        with rnn.block():
            row = rnn.step_input(fluid.data("x", [-1, 2], lod_level=1))
            memory = rnn.memory(init=fluid.data("init", [2, 2]))
            new = layers.elementwise_add(memory, row)
            rnn.update_memory(memory, new)
            rnn.output(new)
        taken = layers.gather(rnn(), fluid.data("ids", [1], "int64"))
    x = fluid.create_lod_tensor(np.ones((4, 2), "float32"), [[1, 3]], fluid.CPUPlace())
    feed = {"x": x, "init": np.zeros((2, 2), "float32"), "ids": np.array([3])}
    assert fluid.Executor().run(main, feed=feed, fetch_list=[taken])[0].tolist() == [[3, 3]]
    with pytest.raises(fluid.FluidError, match="0 <= "):
        fluid.Executor().run(main, feed={**feed, "ids": np.array([4])}, fetch_list=[taken])


def test_of_several_inputs_the_first_gives_its_lod() -> None:
    """What a step gives has the LoD that is declared; a center_loss takes that of its features."""
    with fresh() as (main, startup):
        x, y = fluid.data("x", [-1, 3], lod_level=1), fluid.data("y", [-1, 3])
        label = fluid.data("label", [-1, 1], "int64")
        fetched = [
            form([one, other])
            for one, other in ((x, y), (y, x))
            for form in (
                layers.sums,
                lambda v: layers.concat(v, 1),
                lambda v: layers.stack(v, 1),
                lambda v: layers.fc(v, 2),
            )
        ]
        fetched += [layers.center_loss(v, label, 2, 0.1, None) for v in (x, y)]
    exe, rows = fluid.Executor(), np.ones((5, 3), "float32")
    exe.run(startup)
    feed = {
        "x": fluid.create_lod_tensor(rows, [[2, 3]], fluid.CPUPlace()),
        "y": rows,
        "label": np.ones((5, 1), "int64"),
    }
    found = [
        v.recursive_sequence_lengths()
        for v in exe.run(main, feed=feed, fetch_list=fetched, return_numpy=False)
    ]
    assert found == [[[2, 3]]] * 4 + [[]] * 4 + [[[2, 3]], []]
    assert [len(lod) for lod in found] == [v.lod_level for v in fetched]


@pytest.mark.once
@pytest.mark.parametrize(("level", "step"), [(1, 0), (2, 1)])
def test_a_step_has_a_level_less(level: int, step: int) -> None:
    """Within a DynamicRNN, and a level more behind it."""
    with fresh():
        rnn = layers.DynamicRNN()
        with rnn.block():
            word = rnn.step_input(fluid.data("x", [-1, 3], lod_level=level))
            plain, ragged = (
                rnn.static_input(fluid.data("s", [-1, 3])),
                rnn.static_input(fluid.data("l", [-1, 3], lod_level=1)),
            )
            memory = rnn.memory(shape=[3], value=0.0)
            new = layers.fc([word, memory, plain], 3)
            rnn.update_memory(memory, new)
            rnn.output(new)
        found = [v.lod_level for v in (word, plain, ragged, memory, new, rnn())]
    assert found == [step, 0, 1, 0, step, level]


@pytest.mark.parametrize(
    ("form", "shape", "lod"),
    [
        (lambda x: layers.split(x, [4], dim=0)[0], [4, 2], []),
        (lambda x: layers.split(x, 2, dim=1)[0], [4, 1], [[3, 1]]),
        (lambda x: layers.nce(x, layers.zeros([4, 1], "int64"), 5), [4, 1], []),
        (lambda x: layers.uniform_random_batch_size_like(x, [-1, 3]), [4, 3], []),
        (lambda x: layers.gaussian_random_batch_size_like(x, [-1, 3]), [4, 3], []),
        (
            lambda x: layers.uniform_random_batch_size_like(x, [3, -1], output_dim_idx=1),
            [3, 4],
            [],
        ),
        (lambda x: layers.fill_constant_batch_size_like(x, [-1, 3], "float32", 1.0), [2, 3], []),
    ],
    ids=["rows whole", "columns", "nce", "uniform", "gaussian", "uniform, other dim", "constant"],
)
def test_what_has_a_lod_is_paddles(form: Any, shape: list[int], lod: list[list[int]]) -> None:
    """As 1.8.5 gives them of four rows in two sequences: what is drawn has a row for each row, a
    constant one for each sequence.
    """
    with fresh() as (_, startup):
        out = form(fluid.data("x", [-1, 2], lod_level=1))
        exe = fluid.Executor()
        exe.run(startup)
        x = fluid.create_lod_tensor(np.ones((4, 2), "float32"), [[3, 1]], fluid.CPUPlace())
        (got,) = exe.run(feed={"x": x}, fetch_list=[out], return_numpy=False)
    assert (list(got.shape()), got.recursive_sequence_lengths()) == (shape, lod)


def test_a_dynamic_rnn_takes_the_name_of_an_increment() -> None:
    """As in 1.8.5, whose next one is the second."""
    with fresh():
        rnn = layers.DynamicRNN()
        with rnn.block():
            rnn.output(rnn.step_input(fluid.data("x", [-1, 3], lod_level=1)))
        behind = layers.increment(fluid.data("steps", [1]), in_place=False)
    assert behind.name == "increment_1.tmp_0"
