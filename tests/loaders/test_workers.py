"""Processes that read: DataLoader over data sets, multiprocess_reader, and a job's share of the
batches.
"""

from __future__ import annotations

import json
import multiprocessing.connection
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.contrib.reader import distributed_batch_reader
from fluidjax.errors import EnforceNotMet, FeedError, FluidError, FluidTypeError, FluidValueError
from fluidjax.loaders.loader import DataLoader
from fluidjax.loaders.processes import Worker, WorkerDied, WorkerTraceback
from fluidjax.paddle.io import BatchSampler, Dataset, IterableDataset, get_worker_info
from tests.forked import Popen

CPU = fluid.CPUPlace()


class Samples(Dataset):
    """Sample i is [i, i], i; number `broken` does what `harm` does."""

    def __init__(self, count=5, broken=-1, harm=None):
        self.count, self.broken, self.harm = count, broken, harm

    def __getitem__(self, i):
        if i == self.broken:
            self.harm()
        return np.full(2, i, "float32"), np.array([i])

    def __len__(self):
        return self.count


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, 7, step):
            yield np.array([i])


def boo():
    raise KeyError("boo")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def xy():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield fluid.data("x", [None, 2], "float32"), fluid.data("y", [None, 1], "int64")


def children():
    """Processes of this one that are there."""
    text = Path(f"/proc/{os.getpid()}/task/{threading.get_native_id()}/children").read_text()
    return [
        p
        for p in text.split()
        if "fluidjax" not in p and "Z" not in Path(f"/proc/{p}/stat").read_text().split(")")[1][:3]
    ]


def numbers(loader):
    return [np.asarray(group[0]["y"]).ravel().tolist() for group in loader]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_batches(xy, workers):
    before = children()
    loader = fluid.io.DataLoader(
        Samples(), feed_list=list(xy), places=CPU, batch_size=2, num_workers=workers
    )
    assert len(loader) == 3 and numbers(loader) == numbers(loader()) == [[0, 1], [2, 3], [4]]
    assert {n: (v.dtype.name, v.shape) for n, v in next(iter(loader))[0].items()} == {
        "x": ("float32", (2, 2)),
        "y": ("int64", (2, 1)),
    }
    lists = DataLoader(
        Samples(),
        list(xy),
        CPU,
        return_list=True,
        batch_size=2,
        drop_last=True,
        num_workers=workers,
    )
    first = next(iter(lists))
    assert [v.shape for v in (first if workers else first[0])] == [(2, 2), (2, 1)]  # as in 1.8.5
    two = DataLoader(Samples(), list(xy), [CPU, CPU], batch_size=2, num_workers=workers)
    assert [len(group) for group in two] == [2]  # the last batch has no other beside it
    bare = DataLoader(
        Samples(), return_list=True, batch_size=3, num_workers=workers, collate_fn=len
    )
    assert list(bare) == ([3, 2] if workers else [[3], [2]])
    sampler = BatchSampler(indices=[4, 0], batch_size=1)
    assert numbers(DataLoader(Samples(), list(xy), batch_sampler=sampler, num_workers=workers)) == [
        [4],
        [0],
    ]
    stream = DataLoader(
        Stream(), return_list=True, batch_size=2, num_workers=workers, drop_last=True
    )
    found = [(b if workers else b[0])[0].ravel().tolist() for b in stream]
    assert found == ([[0, 2], [1, 3], [4, 6]] if workers else [[0, 1], [2, 3], [4, 5]])
    assert children() == before


def test_samplers():
    np.random.seed(0)
    shuffled = BatchSampler(Samples(), shuffle=True, batch_size=2)
    first, second = ([i for batch in shuffled for i in batch] for _ in range(2))
    order = list(range(5))
    np.random.seed(0)
    np.random.shuffle(order)
    assert first == order and sorted(second) == [0, 1, 2, 3, 4] and len(shuffled) == 3
    assert [*BatchSampler(indices=(1, 2, 3), batch_size=2, drop_last=True)] == [[1, 2]]
    for wrong, told in (
        ({}, "a dataset or indices"), ({"indices": 5}, "list or tuple"), ({"dataset": [1]}, "paddle.io.Dataset with a length"),
        ({"indices": [1], "batch_size": 0}, "positive"), ({"indices": [1], "shuffle": 1}, "True or False"),
    ):  # fmt: skip
        with pytest.raises(FluidError, match=told):
            BatchSampler(**wrong)
    for call in (lambda: Dataset()[0], lambda: len(Dataset()), lambda: iter(IterableDataset())):
        with pytest.raises(NotImplementedError, match=r"Dataset has no __\w+__"):
            call()
    with pytest.raises(FluidTypeError, match="whose length is unknown"):
        len(DataLoader(Stream(), return_list=True))


@pytest.mark.slow
def test_errors_of_workers(xy):
    before = children()

    def read(dataset, seen, **more):
        for group in DataLoader(dataset, list(xy), CPU, num_workers=2, **more):
            seen.append(np.asarray(group[0]["y"]).item())

    seen = []
    with pytest.raises(EnforceNotMet, match="KeyError: 'boo'") as error:
        read(Samples(9, 4, boo), seen)
    cause = error.value.__cause__
    assert seen == [0, 1, 2, 3] and isinstance(cause, KeyError)
    assert isinstance(cause.__cause__, WorkerTraceback) and "in boo" in str(cause.__cause__)
    with pytest.raises(
        WorkerDied, match=r"worker 0 of the DataLoader \(process \d+\) was ended by SIGKILL"
    ):
        read(Samples(9, 4, die), [])
    with pytest.raises(WorkerDied, match="ended with status 3"):
        read(Samples(9, 4, lambda: os._exit(3)), [])
    with pytest.raises(EnforceNotMet, match=r"TimeoutError: .*gave nothing for 0\.1 seconds"):
        read(Samples(9, 1, lambda: time.sleep(60)), [], timeout=0.1)
    with pytest.raises(EnforceNotMet, match="KeyError: 1"):
        read(Samples(), [], worker_init_fn=lambda n: {0: 0}[n])
    with pytest.raises(RuntimeError, match="Odd: it"):

        class Odd(Exception):  # cannot be sent: nobody finds a class within a function
            pass

        def odd():
            raise Odd("it")

        read(Samples(9, 1, odd), [])
    with pytest.raises(FeedError, match="feed 'y' is float64"):
        read(Samples(), [], collate_fn=lambda s: [np.ones((1, 2), "float32"), np.ones((1, 1))])
    with pytest.raises(FluidValueError, match="fields of a batch's samples differ in shape"):
        list(DataLoader(Ragged(), return_list=True, batch_size=2))
    for _ in DataLoader(Samples(50), list(xy), CPU, num_workers=2):
        break
    assert children() == before and not [
        t for t in threading.enumerate() if t.name.startswith("fluidjax-")
    ]


class Ragged(Samples):
    def __getitem__(self, i):
        return (np.zeros(i + 1),)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"dataset": [1, 2]},
            "takes a paddle.io.Dataset, not list; for a generator there is from_generator",
        ),
        ({}, "needs a feed_list"),
        ({"return_list": True, "num_workers": -1}, "numbers from 0"),
        (
            {"return_list": True, "batch_sampler": BatchSampler(indices=[0]), "shuffle": True},
            "do not pass them as well",
        ),
        ({"dataset": Stream(), "return_list": True, "shuffle": True}, "its own order"),
        ({"dataset": Stream(), "return_list": True, "batch_size": 0}, "positive"),
    ],
)
def test_bad_arguments(wrong, message):
    with pytest.raises(FluidError, match=message):
        DataLoader(**{"dataset": Samples(), **wrong})


def counting(n, harm=None):
    def reader():
        for i in range(n):
            yield n, i
        if harm:
            harm()

    return reader


def test_what_workers_send():
    """Large arrays come whole and writable; dead in the middle of one is dead; what was sent before
    an end comes, and why it ended.
    """
    whole = np.arange(600_000, dtype=np.int32).reshape(600, 1000)
    sent = [
        whole,
        whole.T,
        whole[::2, ::3],
        whole[:0],
        whole[0],
        {"x": np.arange(9000.0).astype("c16")},
    ]

    def work(sender):
        sender.send(sent)
        sender.send(sent)  # more than is on its way at once

    def fail(sender):
        sender.send(1)
        raise KeyError("boo")

    worker = Worker(work, "the worker")
    try:
        for got, want in zip(worker.take(), sent, strict=True):
            for a, b in zip(
                *(list(v.values()) if isinstance(v, dict) else [v] for v in (got, want)),
                strict=True,
            ):
                np.testing.assert_array_equal(a, b)
                assert a.dtype == b.dtype and a.flags.writeable
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(WorkerDied, match=r"the worker \(process \d+\) was ended by SIGKILL"):
            worker.take()
    finally:
        worker.close()
    worker = Worker(fail, "the worker")
    try:
        multiprocessing.connection.wait([worker.ends()[1]])  # it has ended, and is asked for more
        worker.send(2)
        assert worker.take() == 1
        with pytest.raises(KeyError, match="boo"):
            worker.take()
    finally:
        worker.close()


@pytest.mark.slow
def test_multiprocess_reader():
    before = children()
    make = fluid.io.multiprocess_reader
    # 1.8.5's
    assert list(make([counting(2), counting(4)])()) == [
        [2, 0],
        [4, 0],
        [2, 1],
        [4, 1],
        [4, 2],
        [4, 3],
    ]
    assert sorted(make([counting(2), counting(4)], False)()) == [
        (2, 0),
        (2, 1),
        (4, 0),
        (4, 1),
        (4, 2),
        (4, 3),
    ]
    for fair in (True, False):
        with pytest.raises(
            ValueError, match="reader 1 of multiprocess_reader raised KeyError: 'boo'"
        ) as error:
            list(make([counting(2), counting(1, boo)], fair)())
        assert isinstance(error.value.__cause__, KeyError)
        with pytest.raises(WorkerDied, match="reader 0 of multiprocess_reader"):
            list(make([counting(1, die)], fair)())
    with pytest.raises(FluidValueError, match="gave None"):
        list(make([lambda: iter([None])])())
    for wrong in ([], [1], counting(1)):
        with pytest.raises(FluidTypeError, match="reader"):
            make(wrong)
    big = make([lambda: iter([np.zeros(10**6)] * 9)])()
    next(big)
    big.close()  # the process waits for room in the pipe
    assert children() == before


def test_ctrl_c_leaves_no_process(tmp_path):
    script = (
        "import os, signal, time, json, numpy as np, fluidjax as fluid\n"
        "from fluidjax.paddle.io import DataLoader, IterableDataset\n"
        # what a shell starts in the background ignores it
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Slow(IterableDataset):\n"
        "    def __iter__(self):\n"
        "        open(f'pid-{os.getpid()}', 'w').close()\n"
        "        yield np.zeros(1)\n"
        "        time.sleep(600)\n"
        "try:\n"
        "    for _ in DataLoader(Slow(), return_list=True, num_workers=2): open('begun',"
        " 'w').close()\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(fluid.__file__).parents[1])}
    process = Popen(
        [sys.executable, "-c", script], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True
    )
    limit = time.monotonic() + 60
    while (
        not ((tmp_path / "begun").exists() and len(list(tmp_path.glob("pid-*"))) == 2)
        and time.monotonic() < limit
    ):
        time.sleep(0.02)  # the first batch is there before the second worker has begun
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted\n"
    pids = [int(p.name[4:]) for p in tmp_path.glob("pid-*")]
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.slow
def test_ctrl_c_while_workers_are_started_or_ended(monkeypatch):
    """In the moment after a fork, and in the middle of ending them: no process stays, and the
    interrupt is heard.
    """
    before, process = children(), multiprocessing.get_context("fork").Process
    real_start, real_kill, seen = process.start, process.kill, []

    def then_interrupt(real):
        def run(self):
            real(self)
            seen.append(self.pid)
            if len(seen) == 1:
                os.kill(os.getpid(), signal.SIGINT)

        return run

    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for make in (
            lambda: iter(DataLoader(Stream(), return_list=True, num_workers=2)),
            lambda: fluid.io.multiprocess_reader([counting(2), counting(2)])(),
        ):
            for name, real in (("start", real_start), ("kill", real_kill)):
                seen.clear()
                monkeypatch.setattr(process, name, then_interrupt(real))
                with pytest.raises(KeyboardInterrupt):
                    for _ in make():
                        pass
                monkeypatch.undo()
                assert seen and children() == before
    finally:
        signal.signal(signal.SIGINT, old)


def test_a_trainers_share(monkeypatch, capsys):
    read = distributed_batch_reader(lambda: iter(range(7)))
    assert list(read()) == [0, 1, 2, 3, 4, 5, 6]
    for trainer, share in ((0, [0, 3]), (2, [2, 5])):
        monkeypatch.setenv("PADDLE_TRAINERS_NUM", "3")
        monkeypatch.setenv("PADDLE_TRAINER_ID", str(trainer))
        assert list(distributed_batch_reader(lambda: iter(range(7)))()) == share
        assert (
            capsys.readouterr().out
            == f"start data reader (trainers_num: 3, trainer_id: {trainer})\n"
        )
    for value, told in (
        ("3", "which count from 0"),
        ("x", "PADDLE_TRAINER_ID is a whole number, not 'x'"),
    ):
        monkeypatch.setenv("PADDLE_TRAINER_ID", value)
        with pytest.raises(FluidValueError, match=told):
            distributed_batch_reader(lambda: iter(()))
    with pytest.raises(FluidTypeError, match="takes a reader"):
        distributed_batch_reader(json)
