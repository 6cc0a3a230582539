"""The shape that concat and its like declare does not hang on the order of their inputs; the shapes
are those of Paddle 1.8.5.
"""

from __future__ import annotations

import itertools

import pytest

from fluidjax import layers

from ..nets import fresh

SHAPES = [(-1, -1), (-1, 10), (7, -1), (7, 10)]


def declared(make: object, shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    with fresh():
        found = [
            layers.data(f"x{k}", list(s), append_batch_size=False) for k, s in enumerate(shapes)
        ]
        return tuple(make(found).shape)


@pytest.mark.parametrize("shapes", [*itertools.product(SHAPES, repeat=2)])
def test_what_one_input_knows_the_output_knows(shapes: tuple[tuple[int, ...], ...]) -> None:
    known = tuple(max(sizes) for sizes in zip(*shapes, strict=True))
    joined = [-1 if -1 in sizes else sum(sizes) for sizes in zip(*shapes, strict=True)]
    assert declared(lambda x: layers.concat(x, 0), shapes) == (joined[0], known[1])
    assert declared(lambda x: layers.concat(x, -1), shapes) == (known[0], joined[1])
    assert declared(lambda x: layers.elementwise_add(*x), shapes) == known
    assert declared(lambda x: layers.sums(x), shapes) == known
    assert declared(lambda x: layers.stack(x), shapes) == (2, *known)


def test_a_layer_follows() -> None:
    with fresh() as (main, _):
        a, b = (
            layers.data(n, s, append_batch_size=False)
            for n, s in (("a", [-1, -1]), ("b", [-1, 10]))
        )
        layers.fc(layers.concat([a, b], 0), 3, param_attr="w")
    assert main.global_block().var("w").shape == (10, 3)
