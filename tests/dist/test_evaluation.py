"""Evaluation on several devices: all samples are delivered, however many there are; as in 1.8.5
(tried there).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.dist.spmd.parallel import DeviceCountError

from ..nets import fresh


def rows(count: int, first: int = 0) -> np.ndarray:
    return np.arange(first, first + 2 * count, dtype="float32").reshape(count, 2)


class Net:
    def __init__(self, devices: int, train: bool = False) -> None:
        with fresh(1) as (main, startup):
            self.x = fluid.data("x", [None, 2])
            self.out = fluid.layers.scale(self.x, 2.0)
            self.loss = fluid.layers.mean(fluid.layers.fc(self.x, 1))
            if train:
                fluid.optimizer.SGD(0.1).minimize(self.loss)
        self.main, self.scope, self.exe = main, fluid.Scope(), fluid.Executor(fluid.CPUPlace())
        self.exe.run(startup, scope=self.scope)
        loss = self.loss.name if train else None
        self.several = fluid.CompiledProgram(main).with_data_parallel(
            loss_name=loss, places=fluid.cpu_places(devices)
        )

    def run(self, feed: Any, fetches: Any = None, **more: Any) -> list[Any]:
        return self.exe.run(
            self.several,
            feed=feed,
            fetch_list=fetches or [self.out, self.loss],
            scope=self.scope,
            **more,
        )


# devices, sizes of what is fed, and of the parts that run
FEEDS: list[tuple[int, Any, list[int]]] = [
    (2, 1, [1]), (4, 3, [1, 1, 1]), (4, 5, [2, 2, 1]), (4, 6, [2, 2, 2]), (3, 4, [2, 2]), (4, 8, [2, 2, 2, 2]), (2, [2], [2]),
    (4, [4], [4]), (4, [2, 1], [2, 1]), (4, [2, 2, 2], [2, 2, 2]),
]  # fmt: skip


@pytest.mark.first(4)
@pytest.mark.parametrize(("devices", "fed", "parts"), FEEDS)
def test_fewer_devices_run_where_there_is_too_little_for_all(
    devices: int, fed: Any, parts: list[int]
) -> None:
    net = Net(devices)
    feed = [{"x": rows(n)} for n in fed] if isinstance(fed, list) else {"x": rows(fed)}
    whole = np.concatenate([f["x"] for f in feed]) if isinstance(feed, list) else feed["x"]
    out, loss = net.run(feed)
    np.testing.assert_array_equal(out, whole * 2)
    assert loss.shape == (len(parts),)
    each = net.run(feed, return_merged=False)[0]
    assert [len(part) for part in each] == parts
    weight = net.scope.get("fc_0.w_0")
    at = np.cumsum([0, *parts])
    want = [(whole[a:b] @ weight).mean() for a, b in pairwise(at)]
    np.testing.assert_allclose(loss, want, rtol=1e-5)
    assert net.run({"x": rows(2 * devices)})[0].shape == (2 * devices, 2)  # and all of them again


@pytest.mark.parametrize("iterable", [True, False])
@pytest.mark.parametrize(
    ("drop_last", "train", "want"),
    [(False, False, [8, 8, 4]), (True, False, [8, 8]), (True, True, [8, 8])],
)
def test_a_loader_delivers_what_is_left(
    iterable: bool, drop_last: bool, train: bool, want: list[int]
) -> None:
    net = Net(2, train)
    loader = fluid.io.DataLoader.from_generator(
        [net.x], 4, iterable=iterable, use_double_buffer=False, drop_last=drop_last
    )
    batches = [[rows(4, 8 * k)] for k in range(5)]
    loader.set_batch_generator(lambda: iter(batches), places=fluid.cpu_places(2))
    for _ in range(2):
        found = []
        if iterable:
            found = [net.run(feed)[0] for feed in loader()]
        else:
            loader.start()
            with pytest.raises(fluid.core.EOFException):
                while True:
                    found.append(net.run(None)[0])
            loader.reset()
        assert [len(f) for f in found] == want
        np.testing.assert_array_equal(np.concatenate(found), rows(20)[: sum(want)] * 2)


def test_training_wants_something_for_every_device() -> None:
    net = Net(2, train=True)
    for feed in ({"x": rows(1)}, [{"x": rows(2)}]):
        with pytest.raises(DeviceCountError):
            net.run(feed)
    with pytest.raises(DeviceCountError, match="a list of 3 dicts, but there are 2 devices"):
        Net(2).run([{"x": rows(1)}] * 3)


def test_sequences() -> None:
    with fresh() as (main, _):
        x = fluid.data("x", [None, 2], lod_level=1)
        out = fluid.layers.sequence_pool(x, "sum")
    several = fluid.CompiledProgram(main).with_data_parallel(places=fluid.cpu_places(4))
    fed = fluid.create_lod_tensor(rows(6), [[1, 3, 2]], fluid.CPUPlace())
    (got,) = fluid.Executor().run(several, feed={"x": fed}, fetch_list=[out])
    np.testing.assert_array_equal(
        got, [rows(6)[:1].sum(0), rows(6)[1:4].sum(0), rows(6)[4:].sum(0)]
    )
