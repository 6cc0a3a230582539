"""Readers within programs: py_reader, create_py_reader_by_data, double_buffer, read_file.

A reader is a variable of kind READER with extra methods. The ops that make and read readers run
outside of a step: the executor gets the next batch from the program's readers, like from a
DataLoader that is not iterable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.dtypes import VarType, enum_of
from ..base.loc import located
from ..errors import FluidTypeError, FluidValueError
from ..graph.program import default_main_program, default_startup_program
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..unique_name import generate
from ._build import typed

Source = Callable[[], Any]
# (variables, capacity, double_buffer) -> a loader that feeds their program; fluidjax/__init__.py
# sets it
loader_maker: Any = None


class Stream:
    """The shared state of one reader's variables: the form of its batches, their source, and their
    consumer.
    """

    def __init__(self, capacity: int, kinds: Sequence[tuple[Any, Any, int]]) -> None:
        self.capacity, self.kinds = capacity, kinds
        self.source: tuple[str, Source] | None = None
        self.loader: Any = None

    def started(self) -> Any:
        """The loader. Raises FluidValueError if nothing reads from the reader, or it has no source."""
        if self.loader is None:
            raise FluidValueError(
                "nothing reads from this reader; call fluid.layers.read_file(reader) before it is"
                " started"
            )
        if self.source is None:
            raise FluidValueError(
                "this reader has no source of data yet; call decorate_paddle_reader or the like"
                " first"
            )
        how, source = self.source
        getattr(self.loader, how)(source)
        return self.loader


class Reader(Variable):
    """A variable that provides batches. A pass: start(), Executor.run until it raises
    core.EOFException, reset().
    """

    stream: Stream

    def decorate_sample_list_generator(self, reader: Source) -> None:
        """Read batches from `reader`, as lists of samples, such as paddle.batch makes."""
        self._decorate("set_sample_list_generator", reader)

    def decorate_batch_generator(self, reader: Source) -> None:
        """Read batches from `reader`, as lists with an array or LoDTensor for each variable."""
        self._decorate("set_batch_generator", reader)

    decorate_paddle_reader = decorate_sample_list_generator
    decorate_tensor_provider = decorate_batch_generator

    def _decorate(self, how: str, source: Source) -> None:
        if not callable(source):
            raise FluidTypeError(
                f"a reader takes a function that returns a generator, not {type(source).__name__}"
            )
        self.stream.source = how, source

    def start(self) -> None:
        """Begin reading, in a new thread. Raises FluidValueError if nothing reads from the reader,
        or it has no source.
        """
        self.stream.started().start()

    def reset(self) -> None:
        """Stop reading, so that start() can begin again from the first batch."""
        if self.stream.loader is not None:
            self.stream.loader.reset()


def _declared(block: Any, name: str, stream: Stream) -> Reader:
    var = block.create_var(name=name, type=VarType.READER, persistable=True, stop_gradient=True)
    reader = Reader.of(block, var.desc)
    reader.stream = stream
    block.vars[name] = reader
    return reader


def _made(
    capacity: int,
    kinds: Sequence[tuple[Any, Any, int]],
    checked: Sequence[int],
    name: str | None,
    double: bool,
) -> Reader:
    if int(capacity) <= 0:
        raise FluidValueError(
            f"a reader needs a capacity, the number of batches to read ahead, not {capacity!r}"
        )
    queue, made, buffer = (
        (
            generate("lod_tensor_blocking_queue"),
            generate("create_py_reader"),
            generate("double_buffer"),
        )
        if name is None
        else (f"{name}_queue", f"{name}_reader", f"{name}_double_buffer")
    )
    stream = Stream(int(capacity), kinds)
    startup = default_startup_program().current_block()
    out = startup.create_var(name=made, type=VarType.READER, persistable=True)
    attrs = {
        "shape_concat": [n for shape, _, _ in kinds for n in shape], "lod_levels": [level for _, _, level in kinds],
        "dtypes": [int(dtype) for _, dtype, _ in kinds], "need_check_feed": list(checked), "ranks": [len(s) for s, _, _ in kinds],
    }  # fmt: skip
    startup.append_op("create_py_reader", {"blocking_queue": [queue]}, {"Out": [out]}, attrs)
    reader = _declared(default_main_program().current_block(), made, stream)
    return double_buffer(reader, name=buffer) if double else reader


def _shape(shape: Sequence[int | None]) -> list[int]:
    return [-1 if n is None else int(n) for n in shape]


@located
def py_reader(
    capacity: int,
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[Any],
    lod_levels: Sequence[int] | None = None,
    name: str | None = None,
    use_double_buffer: bool = True,
) -> Reader:
    """A reader of batches with an array for each of `shapes`, which read_file turns into variables.

    capacity: the number of batches read ahead. lod_levels: default 0 for all. Raises
    FluidValueError if the lists differ in length.
    """
    levels = [0] * len(shapes) if lod_levels is None else lod_levels
    if not len(shapes) == len(dtypes) == len(levels):
        counts = f"{len(shapes)}, {len(dtypes)} and {len(levels)}"
        raise FluidValueError(
            f"py_reader takes as many dtypes and lod_levels as shapes, not {counts}"
        )
    kinds = [
        (_shape(s), enum_of(d), int(n)) for s, d, n in zip(shapes, dtypes, levels, strict=True)
    ]
    return _made(capacity, kinds, [0] * len(kinds), name, use_double_buffer)


@located
def create_py_reader_by_data(
    capacity: int,
    feed_list: list[Variable],
    name: str | None = None,
    use_double_buffer: bool = True,
) -> Reader:
    """A reader of batches for variables such as these, which fluid.data makes; see py_reader."""
    if not isinstance(feed_list, list):
        raise FluidTypeError(
            f"create_py_reader_by_data takes a list of variables, not {type(feed_list).__name__}"
        )
    kinds = [(_shape(v.shape), v.dtype, v.lod_level) for v in feed_list]
    return _made(
        capacity, kinds, [int(v.desc.need_check_feed) for v in feed_list], name, use_double_buffer
    )


@located
def double_buffer(reader: Variable, place: Any = None, name: str | None = None) -> Reader:
    """A new variable for the same reader. Batches are always transferred to the device ahead of
    their use.
    """
    typed(reader, "reader", Reader, "double_buffer")
    block = default_main_program().current_block()
    attrs = {} if place is None else {"place": str(place).upper()}
    name = name if name is not None else generate("create_double_buffer_reader")
    out = _declared(block, name, reader.stream)  # type: ignore[attr-defined]
    block.append_op(
        "create_double_buffer_reader", {"UnderlyingReader": [reader]}, {"Out": [out]}, attrs
    )
    return out


@located
def read_file(reader: Variable) -> Any:
    """The variables that receive the next batch of a reader in each run: one, or a list of them.

    Raises FluidValueError for a reader that is already read from, because every run takes one
    batch.
    """
    typed(reader, "reader", Reader, "read_file")
    stream: Stream = reader.stream  # type: ignore[attr-defined]
    if stream.loader is not None:
        raise FluidValueError(
            f"{reader.name!r} is read from already; use the variables that read_file gave"
        )
    helper = LayerHelper("read_file")
    outs = []
    for shape, dtype, level in stream.kinds:
        var = helper.create_variable_for_type_inference(dtype, True)
        var.change(shape=tuple(shape))
        var.lod_level = level
        outs.append(var)
    helper.append_op(type="read", inputs={"Reader": [reader]}, outputs={"Out": outs})
    stream.loader = loader_maker(outs, stream.capacity, True)
    return outs[0] if len(outs) == 1 else outs


__all__ = ["create_py_reader_by_data", "double_buffer", "py_reader", "read_file"]
