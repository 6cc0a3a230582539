"""What only a running step can object to: one sentence with the op and the line, and the scope as
it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import EnforceNotMet
from fluidjax.layers.branches import select_input

# -> (what is fetched, a good feed, a bad one, the sentence about that)
Net = Callable[[], tuple[Any, Any, Any, str]]


def number(value: int, dtype: str = "int64") -> Any:
    return layers.fill_constant([1], dtype, value)


def looped(count: int, body: Callable[[Any], None]) -> None:
    """body(i) for i = 0, 1, ... as long as i < count and the data, which nobody knows, allow."""
    i, n = number(0), number(count)
    going = layers.less_than(i, n)
    with layers.While(going).block():
        body(i)
        layers.increment(i)
        layers.less_than(i, n, cond=going)


def computed_ids() -> Any:
    ids = fluid.data("ids", [3, 1], "int64")
    out = layers.reduce_sum(layers.embedding(ids * 2, [6, 2]), dim=1)
    good, bad = np.array([[0], [1], [2]]), np.array([[0], [-1], [3]])
    return (
        out,
        {"ids": good},
        {"ids": bad},
        r"op 'lookup_table' \(.*\) expects 0 <= ids < 6, but gets -2",
    )


def ids_in_a_loop() -> Any:
    ids, out = fluid.data("ids", [3], "int64"), layers.fill_constant([1, 4], "float32", 0.0)

    def body(i: Any) -> None:
        one = layers.gather(ids, layers.cast(i, "int32"))
        layers.assign(out + layers.one_hot(layers.reshape(one, [1, 1]), 4), out)

    looped(3, body)
    return (
        out,
        {"ids": np.array([0, 3, 1])},
        {"ids": np.array([0, 3, 4])},
        r"op 'one_hot' \(.*\) expects 0 <= index < 4, but gets 4",
    )


def ids_in_a_branch_alone() -> Any:
    """The branch that is not taken objects to nothing."""
    ids, x = fluid.data("ids", [2, 1], "int64"), fluid.data("x", [1], "float32")
    taken = layers.less_than(number(0, "float32"), x)
    out = layers.cond(
        taken, lambda: layers.one_hot(ids, 4), lambda: layers.fill_constant([2, 4], "float32", 0.0)
    )
    bad = np.array([[0], [9]])
    return (
        out,
        {"ids": bad, "x": -np.ones(1, "float32")},
        {"ids": bad, "x": np.ones(1, "float32")},
        "expects 0 <= index < 4, but gets 9",
    )


def labels() -> Any:
    label, p = fluid.data("label", [2, 1], "int64"), fluid.data("p", [2, 3], "float32")
    out, half = layers.cross_entropy(p, label - 1), np.full((2, 3), 0.5, "float32")
    feeds = [{"label": np.array([[1], [k]]), "p": half} for k in (3, 4)]
    return out, *feeds, "expects 0 <= label < 3, but gets 3"


def element() -> Any:
    x, i = fluid.data("x", [3, 2], "float32"), fluid.data("i", [1], "int32")
    feeds = [{"x": np.ones((3, 2), "float32"), "i": np.array([k], "int32")} for k in (-3, 3)]
    return x[i], *feeds, "takes element 3 of axis 0, which has 3"


def selected() -> Any:
    m, a = fluid.data("m", [1], "int32"), fluid.data("a", [2], "float32")
    out, one = select_input([a, a * 2.0], m), np.ones(2, "float32")
    feeds = [{"m": np.array([k], "int32"), "a": one} for k in (1, 2)]
    return out, *feeds, "chooses among 2 variables, but 'm' is 2"


def entry_of_an_array() -> Any:
    """By a number that is fed, within a loop and before it."""
    k, x = fluid.data("k", [1], "int64"), fluid.data("x", [2], "float32")
    array = layers.array_write(x, number(0))
    layers.array_write(x * 2.0, number(2), array=array)
    first, out = layers.array_read(array, k), layers.fill_constant([2], "float32", 0.0)
    looped(2, lambda i: layers.assign(out + layers.array_read(array, k + i * 0), out))
    value = np.ones(2, "float32")
    feeds = [{"k": np.array([k]), "x": value} for k in (2, 1)]
    return out + first, *feeds, "reads entry 1 of '.*', which nothing has written"


def asserted() -> Any:
    x = fluid.data("x", [2], "float32")
    layers.Assert(layers.reduce_all(layers.less_than(x, layers.ones_like(x))), [x])
    return (
        x * 2.0,
        {"x": np.zeros(2, "float32")},
        {"x": np.ones(2, "float32")},
        r"op 'assert' \(.*\) asserts '.*', which does not hold",
    )


def rows(*lengths: int) -> fluid.LoDTensor:
    return fluid.create_lod_tensor(
        np.arange(sum(lengths), dtype="float32").reshape(-1, 1), [list(lengths)], fluid.CPUPlace()
    )


def sliced_sequences() -> Any:
    x = fluid.data("x", [None, 1], "float32", lod_level=1)
    at, size = fluid.data("at", [2, 1], "int64"), fluid.data("size", [2, 1], "int64")
    out = layers.sequence_pool(layers.sequence_slice(x, at, size), "sum")
    feeds = [
        {"x": rows(3, 2), "at": np.array([[0], [1]]), "size": np.array([[3], [n]])} for n in (1, 2)
    ]
    return (
        out,
        *feeds,
        "takes rows of each sequence, but Offset and Length name others of sequence 1",
    )


def unpadded() -> Any:
    x, n = fluid.data("x", [2, 3, 1], "float32"), fluid.data("n", [2], "int64")
    out, value = (
        layers.sequence_pool(layers.sequence_unpad(x, n * 1), "sum"),
        np.ones((2, 3, 1), "float32"),
    )
    return (
        out,
        {"x": value, "n": np.array([3, 1])},
        {"x": value, "n": np.array([1, 4])},
        "takes lengths from 0 to 3, but gets 4",
    )


NETS = [
    computed_ids, ids_in_a_loop, ids_in_a_branch_alone, labels, element, selected, entry_of_an_array, asserted, sliced_sequences, unpadded,
]  # fmt: skip


@pytest.mark.parametrize("net", NETS, ids=lambda net: net.__name__)
def test_refused_and_the_scope_as_it_was(net: Net) -> None:
    """The step counts its runs; a run that is refused leaves the count, and the next goes on as if
    it had not been.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        out, good, bad, sentence = net()
        counter = layers.autoincreased_step_counter()
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(fluid.default_startup_program(), scope=scope)
        first = exe.run(feed=good, fetch_list=[out, counter], scope=scope)
        with pytest.raises(EnforceNotMet, match=sentence) as raised:
            exe.run(feed=bad, fetch_list=[out, counter], scope=scope)
        assert any(
            note.startswith("in op: ") for note in raised.value.__notes__
        ) and "\n" not in str(raised.value)
        second = exe.run(feed=good, fetch_list=[out, counter], scope=scope)
        np.testing.assert_array_equal(first[0], second[0])
        assert (int(first[1]), int(second[1])) == (1, 2)


def test_many_steps_and_several_devices() -> None:
    """run_steps takes place as a whole or not at all; all devices keep their state where one
    objects, at once or in turn.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        ids = fluid.data("ids", [None, 1], "int64")
        loss = layers.reduce_mean(layers.embedding(ids * 2, [6, 2], param_attr="w"))
        fluid.optimizer.SGD(0.1).minimize(loss)
        main, exe, scope = fluid.default_main_program(), fluid.Executor(), fluid.Scope()
        exe.run(fluid.default_startup_program(), scope=scope)
        before = scope.get("w")
        good, bad = ({"ids": np.array([[k], [k], [1], [n]])} for k, n in ((0, 1), (2, 5)))
        with pytest.raises(EnforceNotMet, match="but gets 10"):
            exe.run_steps(main, [good, bad], [loss], scope=scope)
        np.testing.assert_array_equal(scope.get("w"), before)
        exe.run_steps(main, [good, good], [loss], scope=scope)
        after = scope.get("w")
        parallel = fluid.CompiledProgram(main).with_data_parallel(
            loss.name, places=fluid.cpu_places(2)
        )
        for uneven in (False, True):
            feed = {"ids": bad["ids"][uneven:]}
            with pytest.raises(EnforceNotMet, match="but gets 10"):
                exe.run(parallel, feed=feed, fetch_list=[loss], scope=scope)
            np.testing.assert_array_equal(scope.get("w"), after)
        assert not np.array_equal(after, before)


def test_a_pure_step_objects_where_it_is_run_op_by_op() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        out, _, bad, sentence = selected()
        step = fluid.step_fn(fluid.default_main_program(), [out])
    with pytest.raises(EnforceNotMet, match=sentence):
        step({}, bad)
