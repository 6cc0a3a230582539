"""DataLoader: batches on the device, checked before they get there, by a thread that ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import jax
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FeedError, FluidTypeError, FluidValueError

CPU = fluid.CPUPlace()


@pytest.fixture
def xy():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield fluid.data("x", [None, 2], "float32"), fluid.data("y", [None, 1], "int64")


def samples():
    for i in range(5):
        yield np.full(2, i, "float32"), np.array([i], "int64")


def loader(xy, **options):
    return fluid.io.DataLoader.from_generator(feed_list=list(xy), capacity=2, **options)


def values(feeds):
    return [feed["y"].ravel().tolist() for group in feeds for feed in group]


def ours():
    return [t for t in threading.enumerate() if t.name.startswith("fluidjax")]


def test_samples_become_batches_on_the_device(xy):
    made = loader(xy).set_sample_generator(samples, batch_size=2, places=CPU)
    batches = list(made())
    assert [type(b) for b in batches] == [list, list] and values(batches) == [[0, 1], [2, 3]]
    feed = batches[0][0]
    assert all(
        isinstance(v, fluid.LoDTensor) and isinstance(v.array(), jax.Array) for v in feed.values()
    )
    assert {n: (v.dtype.name, v.shape) for n, v in feed.items()} == {
        "x": ("float32", (2, 2)),
        "y": ("int64", (2, 1)),
    }
    assert values(made()) == [[0, 1], [2, 3]]  # again, from the first batch
    made.set_sample_generator(samples, batch_size=2, drop_last=False, places=[CPU])
    assert values(made) == [[0, 1], [2, 3], [4]]


def test_sample_lists_and_batches(xy):
    def lists():
        yield [(np.ones(2), [1]), (np.ones(2), [2])]

    def batches():
        yield np.ones((3, 2), "float32"), np.arange(3)[:, None]

    assert values(loader(xy).set_sample_list_generator(lists, CPU)()) == [[1, 2]]
    assert values(loader(xy).set_batch_generator(batches, CPU)()) == [[0, 1, 2]]


def test_a_group_for_each_place(xy):
    made = loader(xy).set_sample_generator(samples, batch_size=1, places=[CPU, CPU])
    assert [len(g) for g in made()] == [2, 2]
    made = loader(xy, drop_last=False).set_sample_generator(
        samples, batch_size=1, places=[CPU, CPU]
    )
    assert [len(g) for g in made()] == [2, 2, 1]


def test_return_list_and_no_double_buffer(xy):
    made = loader(xy, return_list=True, use_double_buffer=False).set_sample_generator(
        samples, batch_size=2, places=CPU
    )
    group = next(iter(made))
    assert [v.shape for v in group[0]] == [(2, 2), (2, 1)] and isinstance(
        group[0][0].array(), np.ndarray
    )


def test_next(xy):
    made = loader(xy).set_sample_generator(samples, batch_size=2, places=CPU)
    assert values([next(made), made.next()]) == [[0, 1], [2, 3]]
    with pytest.raises(StopIteration):
        next(made)
    assert values([next(made)]) == [[0, 1]]
    del made


def test_the_executor_takes_a_batch(xy):
    total = fluid.layers.reduce_sum(xy[0])
    exe = fluid.Executor(CPU)
    made = loader(xy).set_sample_generator(samples, batch_size=2, places=CPU)
    program = xy[0].block.program
    assert [exe.run(program, feed=data, fetch_list=[total])[0].item() for data in made()] == [
        2.0,
        10.0,
    ]


def test_a_generator_may_fill_its_array_anew(xy):
    buffer = np.zeros((1, 2), "float32")

    def batches():
        for i in range(4):
            buffer[:] = i
            yield buffer, np.array([[i]])

    made = loader(xy).set_batch_generator(batches, CPU)
    assert [data[0]["x"][0, 0].item() for data in made()] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (
            (np.ones((2, 2)), np.ones((2, 1), "int64")),
            "feed 'x' is float64, but the program declares float32",
        ),
        (
            (np.ones((2, 3), "float32"), np.ones((2, 1), "int64")),
            r"feed 'x' has shape \[2, 3\], but the program declares \[-1, 2\]",
        ),
        (
            (np.ones((2, 2), "float32"),),
            "a batch holds 1 arrays, but the feed_list has 2 variables: 'x', 'y'",
        ),
        ({"x": 1}, "a batch is a tuple or list of arrays for 'x', 'y', not a dict"),
    ],
)
def test_bad_batches_are_refused_by_name(xy, batch, message):
    made = loader(xy).set_batch_generator(lambda: iter([batch]), CPU)
    with pytest.raises(FeedError, match=message):
        list(made())


@pytest.mark.parametrize("on_device", [False, True])
def test_a_label_out_of_range_is_caught_on_the_host(xy, on_device):
    made = loader(xy)  # before the network, as scripts write it
    fluid.layers.cross_entropy(fluid.layers.softmax(xy[0]), xy[1])
    label = np.array([[1], [2]])
    with jax.enable_x64(True):
        label = jax.numpy.asarray(label) if on_device else label
    made.set_batch_generator(lambda: iter([(np.ones((2, 2), "float32"), label)]), CPU)
    with pytest.raises(
        FeedError,
        match=r"feed 'y' is the label of op 'cross_entropy2'.*0 <= value < 2, but it holds 2",
    ):
        list(made())


def test_the_generators_error_arrives_after_its_batches(xy):
    def broken():
        yield from samples()
        raise KeyError("boo")

    seen = []
    with pytest.raises(
        fluid.core.EnforceNotMet, match="the reader of a DataLoader raised KeyError: 'boo'"
    ) as error:
        for data in loader(xy).set_sample_generator(broken, batch_size=2, places=CPU)():
            seen.append(data)
    cause = error.value.__cause__
    assert (
        len(seen) == 2
        and isinstance(cause, KeyError)
        and "broken" in [f.name for f in traceback.extract_tb(cause.__traceback__)]
    )
    assert not ours()


def test_leaving_the_loop_stops_the_thread(xy):
    closed = []

    def endless():
        try:
            while True:
                yield np.ones((1, 2), "float32"), np.ones((1, 1), "int64")
        finally:
            closed.append(1)

    for _data in loader(xy).set_batch_generator(endless, CPU)():
        break
    assert closed == [1] and not ours()


@pytest.mark.slow
def test_an_iteration_that_is_open_at_exit_makes_no_noise():
    script = (
        "import numpy as np, fluidjax as fluid\n"
        "def batches():\n"
        "    while True: yield np.ones((1, 2), 'float32'),\n"
        "loader = fluid.io.DataLoader.from_generator([fluid.data('x', [None, 2])], 2)\n"
        "it = iter(loader.set_batch_generator(batches, fluid.CPUPlace()))\n"
        "print(next(it)[0]['x'].shape)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(fluid.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("(1, 2)\n", "")


def test_it_reads_ahead_but_not_further_than_its_capacity(xy):
    read = []

    def batches():
        for i in range(50):
            read.append(i)
            yield np.ones((1, 2), "float32"), np.ones((1, 1), "int64")

    it = iter(loader(xy).set_batch_generator(batches, CPU)())
    next(it)
    limit = time.monotonic() + 60
    while len(read) < 3 and time.monotonic() < limit:
        time.sleep(0.01)
    time.sleep(0.1)
    assert 3 <= len(read) <= 4  # one taken, two waiting, one in hand
    it.close()


def test_without_feed(xy):
    """iterable=False: the program reads by itself."""
    program = xy[0].block.program
    made = loader(xy, iterable=False).set_sample_generator(samples, batch_size=2)
    total = fluid.layers.reduce_sum(xy[0])
    exe = fluid.Executor(CPU)
    with pytest.raises(FluidValueError, match=r"'x' comes from a reader .*; call its start\(\)"):
        exe.run(program, fetch_list=[total])
    for _epoch in range(2):
        made.start()
        seen = []
        with pytest.raises(fluid.core.EOFException):
            while True:
                seen.append(exe.run(program, fetch_list=[total])[0].item())
        assert seen == [2.0, 10.0]
        with pytest.raises(fluid.core.EOFException):
            exe.run(program, fetch_list=[total])
        made.reset()
    made.start()
    with pytest.raises(FluidValueError, match=r"started before; call reset\(\) first"):
        made.start()
    made.reset()
    made.reset()
    assert not ours()
    with pytest.raises(FluidTypeError, match="not iterable"):
        iter(made)


def test_pyreader(xy):
    made = fluid.io.PyReader(feed_list=list(xy), capacity=4)
    made.decorate_sample_generator(samples, 2, places=CPU)
    assert values(made()) == [[0, 1], [2, 3]]
    made.decorate_sample_list_generator(fluid.io.batch(samples, 3), CPU)
    assert values(made()) == [[0, 1, 2], [3, 4]]
    made.decorate_batch_generator(lambda: iter([(np.ones((1, 2), "float32"), [[7]])]), CPU)
    assert values(made()) == [[7]]


def test_bad_arguments(xy):
    make = fluid.io.DataLoader.from_generator
    with pytest.raises(FluidValueError, match="needs a capacity"):
        make(feed_list=list(xy))
    with pytest.raises(FluidValueError, match="needs a feed_list"):
        make(capacity=2)
    with pytest.raises(
        FluidValueError, match="places cannot be None when the DataLoader is iterable"
    ):
        loader(xy).set_sample_generator(samples, batch_size=2)
    with pytest.raises(FluidValueError, match="has no source of data yet"):
        list(loader(xy)())
    with pytest.raises(
        FluidTypeError, match=r"start\(\) cannot be called when the DataLoader is iterable"
    ):
        loader(xy).start()
    with pytest.raises(
        FluidTypeError, match=r"reset\(\) cannot be called when the DataLoader is iterable"
    ):
        loader(xy).reset()
    with pytest.raises(
        FluidTypeError, match="takes a function that returns a generator, not generator"
    ):
        loader(xy).set_batch_generator(samples(), CPU)
    with pytest.raises(FluidValueError, match="batch_size should be a positive integer"):
        loader(xy).set_sample_generator(samples, batch_size=0, places=CPU)
    with pytest.raises(FluidTypeError, match=r"DatasetFactory\(\)\.create_dataset"):
        fluid.io.DataLoader.from_dataset(None, CPU)


def test_sequences():
    """A variable with a lod_level gets LoDTensors, which the executor takes as they are."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        words = fluid.data("words", [None, 1], "int64", lod_level=1)
        total = fluid.layers.sequence_pool(fluid.layers.cast(words, "float32"), "sum")
    make = fluid.io.DataLoader.from_generator
    batches = make(feed_list=[words], capacity=2).set_sample_generator(
        lambda: iter([([1, 2],), ([3],), ([4, 5, 6],)]), 2, False, CPU
    )
    exe = fluid.Executor(CPU)
    assert [exe.run(main, feed, [total])[0].tolist() for feed in batches()] == [[[3], [3]], [[15]]]
