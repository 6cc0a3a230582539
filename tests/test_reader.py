"""Readers: what Paddle 1.8.5 yields (recorded), threads that end, errors that arrive."""

from __future__ import annotations

import json
import random
import threading
import time
from pathlib import Path

import pytest

from fluidjax.errors import FluidTypeError, FluidValueError
from fluidjax.loaders import decorators as r
from fluidjax.loaders.channel import Background

RECORDED = json.loads((Path(__file__).parent / "data" / "feeding_1.8.5.json").read_text())[
    "readers"
]


def count(n, start=0):
    return lambda: iter(range(start, start + n))


CASES = {
    "shuffle": lambda: r.shuffle(count(10), 4),
    "map_readers": lambda: r.map_readers(lambda a, b: a * b, count(4), count(5, 1)),
    "chain": lambda: r.chain(count(2), count(2, 5)),
    "compose": lambda: r.compose(count(2), r.map_readers(lambda a: (a, -a), count(2))),
    "compose unaligned": lambda: r.compose(count(2), count(3), check_alignment=False),
    "buffered": lambda: r.buffered(count(5), 2),
    "firstn": lambda: r.firstn(count(5), 3),
    "xmap": lambda: r.xmap_readers(lambda v: v * v, count(8), 3, 4, order=True),
    "batch": lambda: r.batch(count(5), 2),
    "batch drop_last": lambda: r.batch(count(5), 2, drop_last=True),
}


@pytest.mark.parametrize("case", RECORDED)
def test_as_recorded(case):
    random.seed(7)
    reader = CASES[case]()
    assert [list(v) if isinstance(v, tuple) else v for v in reader()] == RECORDED[case]
    assert len(list(reader())) == len(RECORDED[case])  # a reader can be read again


def test_compose_not_aligned():
    with pytest.raises(
        r.ComposeNotAligned, match="outputs of readers are not aligned: reader 0 of 2 ends before"
    ) as error:
        list(r.compose(count(2), count(3))())
    assert isinstance(error.value, ValueError)
    assert list(r.compose(lambda: iter([None, 1]), count(2))()) == [(None, 0), (1, 1)]


def test_cache_reads_once():
    reads = []

    def reader():
        reads.append(1)
        yield from range(3)

    cached = r.cache(reader)
    assert [*cached(), *cached()] == [0, 1, 2, 0, 1, 2] and len(reads) == 1


def test_xmap_without_order_yields_everything():
    def slow(v):
        time.sleep(0.001 * (v % 3))
        return v * v

    assert sorted(r.xmap_readers(slow, count(20), 4, 5)()) == [v * v for v in range(20)]


def broken():
    yield 1
    raise KeyError("lost")


@pytest.mark.parametrize(
    "make",
    [lambda: r.buffered(broken, 2), lambda: r.xmap_readers(lambda v: v, broken, 2, 2, order=True)],
)
def test_an_error_of_the_reader_arrives(make):
    samples = make()()
    with pytest.raises(KeyError, match="lost") as error:
        list(samples)
    assert "broken" in [entry.name for entry in error.traceback]


def test_an_error_of_the_mapper_arrives():
    samples = r.xmap_readers(lambda v: 1 // (v - 2), count(5), 2, 2, order=True)()
    assert next(samples) == -1
    with pytest.raises(ZeroDivisionError):
        list(samples)


def ours():
    return [t for t in threading.enumerate() if t.name.startswith("fluidjax")]


@pytest.mark.parametrize(
    "make", [r.buffered, lambda reader, n: r.xmap_readers(lambda v: v, reader, 2, n)]
)
def test_no_thread_stays_behind(make):
    closed = []

    def endless():
        try:
            while True:
                yield 1
        finally:
            closed.append(1)

    before = len(ours())
    for _sample in make(endless, 3)():
        break
    del _sample
    assert len(ours()) == before and closed == [1]
    make(endless, 3)()  # never read: no thread begins
    assert len(ours()) == before


def test_the_buffer_is_bounded():
    read = []

    def reader():
        for i in range(100):
            read.append(i)
            yield i

    samples = r.buffered(reader, 3)()
    next(samples)
    time.sleep(0.05)
    assert len(read) <= 5  # three waiting, one in hand, one being read
    samples.close()


def test_background_gives_the_end_again():
    background = Background(count(1), 2, "fluidjax-test")
    assert [background.next() for _ in range(3)] == [(0, True), (None, False), (None, False)]
    background.close()


def test_bad_arguments():
    with pytest.raises(
        FluidValueError, match="batch_size should be a positive integer, but got batch_size=0"
    ):
        r.batch(count(3), 0)
    with pytest.raises(
        FluidValueError, match="xmap_readers' process_num is a positive number, not 0"
    ):
        r.xmap_readers(abs, count(3), 0, 1)
    with pytest.raises(
        FluidTypeError,
        match="shuffle takes readers, functions that return an iterable of samples, not list",
    ):
        r.shuffle([1, 2], 2)
