"""Readers and DataLoaders that tell where they stand, and go on from there."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.core import EOFException
from fluidjax.errors import FluidTypeError, FluidValueError
from fluidjax.io import Position, batch, buffered, chain, resumable, shuffle, xmap_readers


def numbers(n: int = 10) -> Any:
    return lambda: iter(range(n))


def make(kind: str) -> Any:
    """A reader of batches of shuffled numbers, in one of several ways."""
    source = shuffle(numbers(), 7, seed=4)
    if kind == "buffered":
        source = buffered(source, 3)
    if kind == "mapped":
        source = xmap_readers(lambda i: i, source, 2, 4, order=True)
    if kind == "chained":
        source = chain(source, shuffle(buffered(numbers(3), 2), 9, seed=8))
    return batch(source, 3)


class Loader:
    """The same through a DataLoader, with batches as lists of numbers."""

    def __init__(self, source: Any, iterable: bool) -> None:
        self.main, self.exe = fluid.Program(), fluid.Executor(fluid.CPUPlace())
        with fluid.program_guard(self.main):
            self.x = fluid.data("x", [None], "int64")
            self.y = fluid.layers.scale(self.x, 1.0)
        self.loader = fluid.io.DataLoader.from_generator([self.x], capacity=2, iterable=iterable)
        self.loader.set_batch_generator(
            lambda: ((np.array(b),) for b in source()), fluid.CPUPlace() if iterable else None
        )
        self.iterable = iterable

    @property
    def position(self) -> Position:
        return self.loader.position

    def resume(self, position: Position) -> None:
        self.loader.resume(position)

    def __call__(self) -> Any:
        if self.iterable:
            yield from ([int(i) for i in data[0]["x"]] for data in self.loader())
            return
        self.loader.start()
        try:
            while True:
                yield self.exe.run(self.main, fetch_list=[self.y])[0].tolist()
        except EOFException:
            pass
        finally:
            self.loader.reset()


def wrapped(how: str, source: Any) -> Any:
    return resumable(source) if how == "reader" else Loader(source, how == "iterable")


def passes(reader: Any, count: int) -> list[Any]:
    return [list(reader()) for _ in range(count)]


@pytest.mark.first(4)
@pytest.mark.parametrize("kind", ["plain", "buffered", "mapped", "chained"])
@pytest.mark.parametrize("how", ["reader", "iterable", "started"])
def test_going_on_gives_what_would_have_come(how: str, kind: str) -> None:
    whole = passes(wrapped(how, make(kind)), 3)
    assert len({str(one) for one in whole}) == 3  # every pass has an order of its own
    assert len({str(sorted(i for b in one for i in b)) for one in whole}) == 1
    flat = [b for one in whole for b in one]
    each = len(whole[0])
    for cut in (0, 1, each - 1, each, each + 2, 2 * each):
        first = wrapped(how, make(kind))
        items = (b for one in itertools.count() for b in first())
        assert [next(items) for _ in range(cut)] == flat[:cut]
        position = first.position
        items.close()
        assert position.epoch * each + position.batches == cut
        rest = wrapped(how, make(kind))
        rest.resume(position)
        found = [b for _ in range(3 - position.epoch) for b in rest()]
        assert found == flat[cut:]
        assert rest.position == Position(3, 0)


def test_a_loop_that_is_left_ends_its_pass() -> None:
    reader = resumable(batch(numbers(), 2))
    assert next(iter(reader())) == [0, 1]
    assert (reader.position, reader.epoch) == (Position(0, 1), 0)
    assert next(iter(reader())) == [0, 1]
    assert reader.position == Position(1, 1)
    assert len(list(reader())) == 5
    assert reader.position == Position(3, 0)


def test_shuffle_without_a_seed_draws_from_random_as_before() -> None:
    random.seed(1)
    expected = list(range(10))
    random.shuffle(expected)
    random.seed(1)
    assert list(shuffle(numbers(), 100)()) == expected


def test_shuffle_with_a_seed_counts_its_own_passes_and_leaves_random_alone() -> None:
    state = random.getstate()
    one, two = shuffle(numbers(), 100, seed=3), shuffle(numbers(), 100, seed=3)
    found = [list(one()) for _ in range(3)]
    assert found == [list(two()) for _ in range(3)] and len({str(f) for f in found}) == 3
    assert list(shuffle(numbers(), 100, seed=4)()) != found[0]
    assert random.getstate() == state


def test_going_on_in_a_pass_needs_a_seed() -> None:
    for how in ("reader", "iterable"):
        reader = wrapped(how, batch(buffered(shuffle(numbers(), 5), 2), 2))
        reader.resume(Position(1, 0))  # between passes there is nothing to repeat
        assert len(list(reader())) == 5
        reader.resume(Position(1, 2))
        with pytest.raises(FluidValueError, match="give shuffle a seed"):
            list(reader())


def test_what_is_refused() -> None:
    with pytest.raises(FluidTypeError, match="resumable takes a reader"):
        resumable([1, 2])  # type: ignore[arg-type]
    with pytest.raises(FluidTypeError, match="resume takes a Position, not int"):
        resumable(numbers()).resume(3)  # type: ignore[arg-type]
    with pytest.raises(FluidValueError, match="a number of batches from 0, not -1"):
        Position(0, -1)
    with pytest.raises(FluidTypeError, match="shuffle's seed is a whole number or None, not str"):
        shuffle(numbers(), 3, seed="1")  # type: ignore[arg-type]
