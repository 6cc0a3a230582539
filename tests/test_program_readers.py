"""Readers within programs: passes until EOFException, sequences, errors by sentences, programs as 1.8.5 writes them."""

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
        reader = layers.py_reader(capacity=4, shapes=[(-1, 2), (-1, 1)], dtypes=["float32", "int64"])
        x, label = layers.read_file(reader)
        return main, startup, reader, layers.reduce_sum(x) + layers.reduce_sum(layers.cast(label, "float32"))


def test_ops_and_variables_are_those_of_paddle(net: Any) -> None:
    """As 1.8.5 prints them; and such programs are well formed, and come back from text and from Paddle's format."""
    main, startup, *_ = net
    (made,) = startup.global_block().ops
    assert made.input("blocking_queue") == ["lod_tensor_blocking_queue_0"] and made.output("Out") == ["create_py_reader_0"]
    wanted = {"dtypes": [5, 3], "lod_levels": [0, 0], "ranks": [2, 2], "shape_concat": [-1, 2, -1, 1], "need_check_feed": [0, 0]}
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
    with pytest.raises(FluidValueError, match=r"'read_file_0.tmp_0' comes from a reader .* call its start\(\)"):
        exe.run(main, fetch_list=[total])
    for _ in range(2):
        reader.start()
        found = []
        with pytest.raises(fluid.core.EOFException):
            while True:
                found.append(float(exe.run(main, fetch_list=[total])[0]))
        reader.reset()
        assert found == [3.0 * (n + n + 1) for n in (0, 2, 4)]
    reader.decorate_tensor_provider(lambda: iter([[np.ones((3, 2), "float64"), np.ones((3, 1), "int64")]]))
    reader.start()
    with pytest.raises(FeedError, match=r"read_file_0\.tmp_0"):
        exe.run(main, fetch_list=[total])
    reader.reset()


@pytest.mark.parametrize("fed", [{}, {"z": np.ones((2, 1), "float32")}])
def test_each_device_takes_a_batch_of_its_own(fed: Any, monkeypatch: Any) -> None:
    """Of 1.8.5's two devices, that take three batches, one takes the first and the other the second, and the third is left."""
    monkeypatch.setenv("CPU_NUM", "2")
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        reader = layers.py_reader(capacity=4, shapes=[(-1, 2), (-1, 1)], dtypes=["float32", "int64"])
        x, _ = layers.read_file(reader)
        z = fluid.data("z", [None, 1])
        total = layers.reduce_sum(layers.elementwise_add(x, z) if fed else x, keep_dim=True)
    reader.decorate_paddle_reader(lambda: iter(BATCHES))
    reader.start()
    exe = fluid.Executor(fluid.CPUPlace())
    program = fluid.CompiledProgram(main).with_data_parallel()
    more = 4 if fed else 0  # one row of z for each device, beside two rows of two
    assert exe.run(program, feed=fed, fetch_list=[total])[0].ravel().tolist() == [2 + more, 10 + more]
    with pytest.raises(fluid.core.EOFException):
        exe.run(program, feed=fed, fetch_list=[total])


def test_sequences_and_variables_like_others() -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        given = fluid.data("x", [None, 1], "float32", lod_level=1)
        reader = layers.create_py_reader_by_data(2, [given], name="train", use_double_buffer=False)
        x = layers.read_file(layers.double_buffer(reader, name="ahead"))
        total = layers.sequence_pool(x, "sum")
    assert (x.shape, x.lod_level, [op.output("Out") for op in main.global_block().ops[:1]]) == ((-1, 1), 1, [["ahead"]])
    place = fluid.CPUPlace()
    reader.decorate_batch_generator(lambda: iter([[fluid.create_lod_tensor(np.ones((3, 1), "float32"), [[1, 2]], place)]]))
    reader.start()
    (found,) = fluid.Executor(place).run(main, fetch_list=[total])
    assert found.reshape(-1).tolist() == [1, 2]
    reader.reset()


@pytest.mark.parametrize("wrong", ["capacity", "dtypes", "list", "source", "reader", "twice", "unread"])
def test_what_does_not_fit_is_told(wrong: str) -> None:
    sentences = {"capacity": "needs a capacity", "dtypes": "as many dtypes", "list": "a list of variables", "source": "a function",
                 "reader": "read_file", "twice": "is read from already", "unread": "nothing reads from this reader"}  # fmt: skip
    with fluid.program_guard(fluid.Program(), fluid.Program()), pytest.raises((FluidTypeError, FluidValueError), match=sentences[wrong]):
        if wrong == "list":
            layers.create_py_reader_by_data(2, fluid.data("x", [1]))  # type: ignore[arg-type]
        if wrong == "reader":
            layers.read_file(fluid.data("x", [1]))
        reader = layers.py_reader(0 if wrong == "capacity" else 2, [(-1, 1)], ["float32"] * (2 if wrong == "dtypes" else 1))
        if wrong == "source":
            reader.decorate_paddle_reader([1])  # type: ignore[arg-type]
        for _ in range(2 if wrong == "twice" else 0):
            layers.read_file(reader)
        reader.decorate_paddle_reader(lambda: iter(BATCHES))
        reader.start()
