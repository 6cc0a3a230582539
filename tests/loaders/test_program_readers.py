"""Readers within programs: passes until EOFException, sequences, errors by sentences, programs as
1.8.5 writes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import FeedError, FluidTypeError, FluidValueError
from fluidjax.ir.proto import from_bytes, to_bytes
from fluidjax.ir.text import parse, to_text
from fluidjax.ir.verify import verify

BATCHES = [[(np.full(2, i, "float32"), i) for i in (n, n + 1)] for n in (0, 2, 4)]


@pytest.fixture
def net() -> Any:
    """A reader of rows [2] and labels, and the sum of both."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        reader = layers.py_reader(
            capacity=4, shapes=[(-1, 2), (-1, 1)], dtypes=["float32", "int64"]
        )
        x, label = layers.read_file(reader)
        return (
            main,
            startup,
            reader,
            layers.reduce_sum(x) + layers.reduce_sum(layers.cast(label, "float32")),
        )


def test_ops_and_variables_are_those_of_paddle(net: Any) -> None:
    """As 1.8.5 prints them; and such programs are well formed, and come back from text and from
    Paddle's format.
    """
    main, startup, *_ = net
    (made,) = startup.global_block().ops
    assert made.input("blocking_queue") == ["lod_tensor_blocking_queue_0"] and made.output(
        "Out"
    ) == ["create_py_reader_0"]
    wanted = {
        "dtypes": [5, 3],
        "lod_levels": [0, 0],
        "ranks": [2, 2],
        "shape_concat": [-1, 2, -1, 1],
        "need_check_feed": [0, 0],
    }
    assert {n: list(made.attr(n)) for n in wanted} == wanted
    buffer, read = main.global_block().ops[:2]
    assert (buffer.type, buffer.input("UnderlyingReader"), buffer.output("Out")) == (
        "create_double_buffer_reader", ["create_py_reader_0"], ["double_buffer_0"])  # fmt: skip
    assert (read.type, read.input("Reader"), read.output("Out")) == (
        "read", ["double_buffer_0"], ["read_file_0.tmp_0", "read_file_0.tmp_1"])  # fmt: skip
    for program in (main, startup):
        verify(program.desc)
        assert parse(to_text(program.desc)) == program.desc
        verify(from_bytes(to_bytes(program.desc)))


def test_passes_until_the_end(net: Any) -> None:
    main, startup, reader, total = net
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    with pytest.raises(FluidValueError, match="no source of data"):
        reader.start()
    reader.decorate_paddle_reader(lambda: iter(BATCHES))
    with pytest.raises(
        FluidValueError, match=r"'read_file_0.tmp_0' comes from a reader .* call its start\(\)"
    ):
        exe.run(main, fetch_list=[total])
    for _ in range(2):
        reader.start()
        found = []
        with pytest.raises(fluid.core.EOFException):
            while True:
                found.append(float(exe.run(main, fetch_list=[total])[0]))
        reader.reset()
        assert found == [3.0 * (n + n + 1) for n in (0, 2, 4)]
    reader.decorate_tensor_provider(
        lambda: iter([[np.ones((3, 2), "float64"), np.ones((3, 1), "int64")]])
    )
    reader.start()
    with pytest.raises(FeedError, match=r"read_file_0\.tmp_0"):
        exe.run(main, fetch_list=[total])
    reader.reset()


@pytest.mark.parametrize("fed", [{}, {"z": np.ones((2, 1), "float32")}])
def test_each_device_takes_a_batch_of_its_own(fed: Any, monkeypatch: Any) -> None:
    """Of 1.8.5's two devices, that take three batches, one takes the first and the other the
    second, and the third is left.
    """
    monkeypatch.setenv("CPU_NUM", "2")
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        reader = layers.py_reader(
            capacity=4, shapes=[(-1, 2), (-1, 1)], dtypes=["float32", "int64"]
        )
        x, _ = layers.read_file(reader)
        z = fluid.data("z", [None, 1])
        total = layers.reduce_sum(layers.elementwise_add(x, z) if fed else x, keep_dim=True)
    reader.decorate_paddle_reader(lambda: iter(BATCHES))
    reader.start()
    exe = fluid.Executor(fluid.CPUPlace())
    program = fluid.CompiledProgram(main).with_data_parallel()
    more = 4 if fed else 0  # one row of z for each device, beside two rows of two
    assert exe.run(program, feed=fed, fetch_list=[total])[0].ravel().tolist() == [
        2 + more,
        10 + more,
    ]
    with pytest.raises(fluid.core.EOFException):
        exe.run(program, feed=fed, fetch_list=[total])


def test_sequences_and_variables_like_others() -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        given = fluid.data("x", [None, 1], "float32", lod_level=1)
        reader = layers.create_py_reader_by_data(2, [given], name="train", use_double_buffer=False)
        x = layers.read_file(layers.double_buffer(reader, name="ahead"))
        total = layers.sequence_pool(x, "sum")
    assert (x.shape, x.lod_level, [op.output("Out") for op in main.global_block().ops[:1]]) == (
        (-1, 1),
        1,
        [["ahead"]],
    )
    place = fluid.CPUPlace()
    reader.decorate_batch_generator(
        lambda: iter([[fluid.create_lod_tensor(np.ones((3, 1), "float32"), [[1, 2]], place)]])
    )
    reader.start()
    (found,) = fluid.Executor(place).run(main, fetch_list=[total])
    assert found.reshape(-1).tolist() == [1, 2]
    reader.reset()


@pytest.mark.parametrize(
    "wrong", ["capacity", "dtypes", "list", "source", "reader", "twice", "unread"]
)
def test_what_does_not_fit_is_told(wrong: str) -> None:
    sentences = {"capacity": "needs a capacity", "dtypes": "as many dtypes", "list": "a list of variables", "source": "a function",
                 "reader": "read_file", "twice": "is read from already", "unread": "nothing reads from this reader"}  # fmt: skip
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        pytest.raises((FluidTypeError, FluidValueError), match=sentences[wrong]),
    ):
        if wrong == "list":
            layers.create_py_reader_by_data(2, fluid.data("x", [1]))  # type: ignore[arg-type]
        if wrong == "reader":
            layers.read_file(fluid.data("x", [1]))
        reader = layers.py_reader(
            0 if wrong == "capacity" else 2,
            [(-1, 1)],
            ["float32"] * (2 if wrong == "dtypes" else 1),
        )
        if wrong == "source":
            reader.decorate_paddle_reader([1])  # type: ignore[arg-type]
        for _ in range(2 if wrong == "twice" else 0):
            layers.read_file(reader)
        reader.decorate_paddle_reader(lambda: iter(BATCHES))
        reader.start()


# What 1.8.5 holds in the schedule's counter, and in one of the script's own, after each of three
# passes over four batches.
COUNTED = {
    "plain": ([4, 9, 14], [10, 20, 30]),
    "compiled": ([3, 7, 11], [8, 16, 24]),
    "parallel": ([3, 7, 11], [8, 16, 24]),
}


@pytest.mark.parametrize("kind", ["py_reader", "PyReader", "DataLoader"])
@pytest.mark.parametrize("how", COUNTED)
def test_the_run_that_meets_the_end_is_counted_as_185_counts_it(how: str, kind: str) -> None:
    """A program counts runs before it reads; a CompiledProgram reads first. Nothing else of that
    run is left.
    """
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        if kind == "py_reader":
            reader: Any = layers.py_reader(8, [[-1, 2], [-1, 1]], ["float32", "float32"])
            x, y = layers.read_file(reader)
        else:
            x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 1])
            make = fluid.io.PyReader if kind == "PyReader" else fluid.io.DataLoader.from_generator
            reader = make(feed_list=[x, y], capacity=8, iterable=False)
        loss = layers.mean(layers.square_error_cost(layers.fc(x, 1, param_attr="w"), y))
        rate = layers.exponential_decay(0.1, 1, 0.5)
        layers.autoincreased_step_counter("mine", begin=1, step=2)
        fluid.optimizer.SGD(rate).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        program = (
            fluid.CompiledProgram(fluid.default_main_program())
            if how != "plain"
            else fluid.default_main_program()
        )
        if how == "parallel":
            program = program.with_data_parallel(loss_name=loss.name, places=fluid.cpu_places(1))
        batches = [[np.ones((2, 2), "float32"), np.ones((2, 1), "float32")]] * 4
        give = {
            "py_reader": "decorate_tensor_provider",
            "PyReader": "decorate_batch_generator",
            "DataLoader": "set_batch_generator",
        }[kind]
        getattr(reader, give)(lambda: iter(batches))
        found, rates = [], []
        scope = fluid.global_scope()
        for _ in range(3):
            reader.start()
            with pytest.raises(fluid.core.EOFException):
                while True:
                    rates.append(exe.run(program, fetch_list=[rate])[0].item())
                    weight = np.array(scope.find_var("w").get_tensor())
            assert np.array_equal(np.array(scope.find_var("w").get_tensor()), weight)
            found.append(
                [
                    int(np.array(scope.find_var(n).get_tensor())[0])
                    for n in ("@LR_DECAY_COUNTER@", "mine")
                ]
            )
            reader.reset()
    counter, mine = COUNTED[how]
    assert found == [list(pair) for pair in zip(counter, mine, strict=True)]
    skipped = 5 if how == "plain" else 4
    assert rates == pytest.approx(
        [0.1 * 0.5 ** (k * skipped + i) for k in range(3) for i in range(4)], rel=1e-5
    )


@pytest.mark.parametrize("devices", [1, 2])
def test_what_is_read_into_a_persistable_variable_stays(devices: int) -> None:
    """As scripts of BERT's time write it: ``for v in graph_vars: v.persistable = True``, the labels
    among them.
    """
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        reader = layers.py_reader(8, [[-1, 2], [-1, 1], [-1, 1]], ["float32", "int64", "int64"])
        x, label, unread = layers.read_file(reader)
        label.persistable = unread.persistable = True
        total = layers.reduce_sum(x) + layers.reduce_sum(layers.cast(label, "float32"))
        exe = fluid.Executor(fluid.CPUPlace())
        program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
            places=fluid.cpu_places(devices)
        )
        batches = [
            [np.ones((n, 2), "float32"), np.full((n, 1), n), np.full((n, 1), 10 * n)]
            for n in (3, 3, 2, 2)
        ]
        reader.decorate_tensor_provider(lambda: iter(batches))
        reader.start()
        got = [
            exe.run(program if devices > 1 else None, fetch_list=[total, label])
            for _ in range(4 // devices)
        ]
        assert [v.reshape(-1).tolist() for v, _ in got] == (
            [[15.0], [15.0], [8.0], [8.0]] if devices == 1 else [[15.0] * 2, [8.0] * 2]
        )
        assert got[-1][1].reshape(-1).tolist() == [2] * (2 * devices)
        held = [
            np.array(fluid.global_scope().find_var(v.name).get_tensor()).reshape(-1).tolist()
            for v in (label, unread)
        ]
        assert held == [[2, 2], [20, 20]]
        reader.reset()
