"""What programs with loops, sequences and searches may be given wrongly: one sentence each, and the
scope as it was.

What else is refused stands beside what it is about: tests/lower/test_checks.py (ids, entries and labels
that only a running step knows), tests/lower/test_while.py, tests/lower/test_conditional.py,
tests/lower/test_static_rnn.py, tests/partition/test_cuts.py (Ctrl-C), tests/lower/test_py_func.py,
tests/test_lod_tensor.py, tests/sizes/test_ways.py (sizes that are enormous, many specialisations).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers
from fluidjax.errors import EnforceNotMet, FeedError, FluidError, FluidValueError, ShapeError
from fluidjax.ir import edit
from fluidjax.layers import control_flow
from tests.lower.test_checks import looped, number
from tests.nets import fresh

CPU = fluid.CPUPlace()
Net = Callable[[], tuple[Any, dict[str, Any]]]
BEAMS = [[1, 1], [1, 1]]


def ones(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.ones(shape, dtype)


def ragged(*lengths: int, width: int = 3, dtype: str = "float32") -> fluid.LoDTensor:
    return fluid.create_lod_tensor(ones(sum(lengths), width, dtype=dtype), [list(lengths)], CPU)


def rows(name: str = "x", width: int = 3) -> Any:
    return fluid.data(name, [None, width])


def sequences(name: str = "q", width: int = 3) -> Any:
    return fluid.data(name, [None, width], lod_level=1)


# -- loops and arrays ------------------------------------------------------------------------------


def entry_before_any() -> Any:
    """In a loop of which nobody knows how often it runs."""
    x, n, out = (
        fluid.data("x", [2]),
        fluid.data("n", [1], "int64"),
        layers.fill_constant([2], "float32", 0.0),
    )
    array, i = layers.create_array("float32"), number(0)
    going = layers.less_than(i, n)
    with layers.While(going).block():
        layers.assign(layers.array_read(array, i) + x, out)
        layers.increment(i)
        layers.less_than(i, n, cond=going)
    return out, {"x": ones(2), "n": np.array([2])}


def entry_of_two() -> Any:
    x = fluid.data("x", [2])
    return layers.array_length(layers.array_write(x, layers.fill_constant([2], "int64", 0))), {
        "x": ones(2)
    }


def entry_below_none() -> Any:
    return layers.array_length(layers.array_write(fluid.data("x", [2]), number(-1))), {"x": ones(2)}


def unequal_entries() -> Any:
    x = fluid.data("x", [2])
    array = layers.array_write(x, number(0))
    layers.array_write(layers.concat([x, x]), number(1), array=array)
    return layers.tensor_array_to_tensor(array, axis=0, use_stack=True)[0], {"x": ones(2)}


def condition_grows() -> Any:
    """One boolean at first, two behind the first iteration."""
    x, i = fluid.data("x", [2]), number(0)
    out, going = layers.scale(x, 1.0), layers.less_than(i, number(2))
    with layers.While(going).block():
        layers.assign(out * 2.0, out)
        layers.increment(i)
        layers.assign(layers.less_than(layers.concat([i, i]), number(2)), going)
    return out, {"x": ones(2)}


def python_within(function: Callable[[Any], Any]) -> Net:
    """A Python function in a loop."""

    def net() -> Any:
        x, main = fluid.data("x", [2]), fluid.default_main_program()
        out = layers.scale(x, 1.0)

        def body(i: Any) -> None:
            seen = main.current_block().create_var(name="seen", shape=[2], dtype="float32")
            layers.assign(layers.py_func(function, out, seen), out)

        looped(3, body)
        return out, {"x": ones(2)}

    return net


def raising(value: Any) -> Any:
    if value.sum() > 5:
        raise KeyError("of the user")
    return value * 2


def size(kind: str) -> Net:
    def net() -> Any:
        n = fluid.data("n", [1], "int32")
        out = {"filled": lambda: layers.fill_constant([n, 2], "float32", 1.0), "repeated": lambda: layers.expand(rows(), [n, 1]),
               "reshaped": lambda: layers.reshape(rows(), [n, 3])}[kind]()  # fmt: skip
        return out, {"n": np.array([-3], "int32")} | ({} if kind == "filled" else {"x": ones(2, 3)})

    return net


# -- sequences -------------------------------------------------------------------------------------


def uncovered() -> Any:
    value = ragged(2, 3)
    value.set(ones(4, 3), CPU)
    return layers.sequence_pool(sequences(), "sum"), {"q": value}


def dynamic(begin: Any = None, second: Any = None, kept: Any = None) -> Any:
    """A DynamicRNN over the sequences q, which it adds up."""
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(sequences())
        before = rnn.memory(shape=[3]) if begin is None else rnn.memory(init=begin)
        more = [rnn.step_input(second)] if second is not None else []
        after = layers.sums(
            [word, before, *more, *([rnn.static_input(kept)] if kept is not None else [])]
        )
        rnn.update_memory(before, after)
        rnn.output(after)
    return layers.sequence_pool(rnn(), "sum")


def table() -> Any:
    return control_flow.lod_rank_table(sequences())


def put_together(*numbers: int) -> Net:
    """Entries of so many rows, by a table of two sequences of lengths 2 and 1."""

    def net() -> Any:
        x, ranks, array = rows(), table(), None
        for t, n in enumerate(numbers):
            array = layers.array_write(layers.slice(x, [0], [0], [n]), number(t), array=array)
        return layers.sequence_pool(control_flow.array_to_lod_tensor(array, ranks), "sum"), {
            "q": ragged(2, 1),
            "x": ones(3, 3),
        }

    return net


def split(mask: np.ndarray, wide: bool = False) -> Net:
    def net() -> Any:
        x = rows()
        both = layers.IfElse(fluid.data("mask", [None, mask.shape[1]], str(mask.dtype)))
        with both.true_block():
            both.output(layers.concat([both.input(x)] * (2 if wide else 1), 1))
        with both.false_block():
            both.output(layers.scale(both.input(x), 2.0))
        return both()[0], {"x": ones(2, 3), "mask": mask}

    return net


# -- searches --------------------------------------------------------------------------------------


def search(
    beam_size: int = 2,
    scores: Any = (None, 3),
    ids: Any = (None, 3),
    prefixes: int = 2,
    level: int = 0,
    lod: bool = True,
) -> Net:
    def net() -> Any:
        one = (None, 1)
        kinds = {
            "pre_ids": ("int64", one),
            "pre_scores": ("float32", one),
            "ids": ("int64", ids),
            "scores": ("float32", scores),
        }
        given = [
            fluid.data(name, list(shape), dtype, lod_level=2)
            for name, (dtype, shape) in kinds.items()
        ]
        out = layers.beam_search(*given, beam_size, 1, level=level)[0]
        feed = {}
        for name, (dtype, shape) in kinds.items():
            count = prefixes if name.startswith("pre") else 2
            value = ones(*(count if n is None else n for n in shape), dtype=dtype)
            feed[name] = fluid.create_lod_tensor(value, [[1] * count] * 2, CPU) if lod else value
        return out, feed

    return net


def read_off(steps: tuple[int, int], beam_size: int = 2) -> Net:
    """beam_search_decode of so many entries of ids and of scores."""

    def net() -> Any:
        kinds = [
            fluid.data(n, [None, 1], t, lod_level=2)
            for n, t in (("ids", "int64"), ("scores", "float32"))
        ]
        arrays: list[Any] = [None, None]
        for k, count in enumerate(steps):
            for t in range(count):
                arrays[k] = layers.array_write(kinds[k], number(t), array=arrays[k])
        feed = {
            v.name: fluid.create_lod_tensor(ones(2, 1, dtype=t), BEAMS, CPU)
            for v, t in zip(kinds, ("int64", "float32"), strict=True)
        }
        return layers.beam_search_decode(*arrays, beam_size, 1)[0], feed

    return net


def decoder(beam_size: int = 2, end: int = 1) -> Net:
    def net() -> Any:
        scores = lambda h: layers.fc(h, 5, num_flatten_dims=2)  # noqa: E731
        words = lambda ids: fluid.embedding(ids, [5, 4])  # noqa: E731
        made = layers.BeamSearchDecoder(layers.GRUCell(6), 0, end, beam_size, words, scores)
        return layers.dynamic_decode(made, inits=rows("h", 6), max_step_num=2)[0], {"h": ones(2, 6)}

    return net


def tree(shape: tuple[int, ...], parent: int) -> Net:
    def net() -> Any:
        ids, parents = (
            fluid.data("ids", [2, 2, 2], "int64"),
            fluid.data("parents", list(shape), "int64"),
        )
        out = layers.gather_tree(ids, parents + 0 if parent > 5 else parents)
        return out, {"ids": np.zeros((2, 2, 2), "int64"), "parents": np.full(shape, parent)}

    return net


HERE = r"\(tests/lower/test_bad_input.py:\d+\)"
BAD: dict[str, tuple[Net, type[Exception], str]] = {
    "an entry before any is written": (entry_before_any, EnforceNotMet, "reads entry 0 of 'array_0.out', which nothing has written"),
    "two numbers of an entry": (entry_of_two, EnforceNotMet, r"takes one integer as I, but '.*' has the shape \[2\]"),
    "an entry below 0": (entry_below_none, EnforceNotMet, "takes entry -1 of an array"),
    "entries of two shapes": (unequal_entries, EnforceNotMet, r"stacks entries of one shape, but entry 1 of '.*' has the shape \[4\] "),
    "a condition that grows": (condition_grows, EnforceNotMet, rf"op 'while' {HERE} takes one boolean .* is bool of shape \[2\]"),
    "a function that raises": (python_within(raising), KeyError, "of the user"),
    "a function of another shape": (python_within(lambda v: v[:1]), EnforceNotMet, rf"{HERE} returns float32 of shape \[1\] for 'seen'"),
    "filled, -3 rows": (size("filled"), ShapeError, "holds no negative number, .* follows from the feed 'n'"),
    "repeated -3 times": (size("repeated"), ShapeError, r"\[-3, 1\] holds a negative number; .* follows from the feed 'n'"),
    "reshaped to -3 rows": (size("reshaped"), ShapeError, r"may hold one -1 and no other negative number; .* the feed 'n'"),
    "a LoD that does not cover its rows": (uncovered, FeedError, "level 0 ends at 5, but there are 4 rows"),
    "no LoD": (lambda: (dynamic(), {"q": ones(3, 3)}), EnforceNotMet, "input X of op 'lod_rank_table' holds no LoD"),
    "states of other sequences": (lambda: (dynamic(rows()), {"q": ragged(2, 1), "x": ones(3, 3)}), EnforceNotMet,
                                  "a row for each of the 2 sequences of the rank table, but it has 3"),
    "static rows of other sequences": (lambda: (dynamic(kept=rows()), {"q": ragged(2, 1), "x": ones(3, 3)}), EnforceNotMet,
                                       "a row for each of the 2 sequences of the rank table, but it has 3"),
    "steps of other lengths": (lambda: (dynamic(second=sequences("s")), {"q": ragged(2, 1), "s": ragged(1, 2)}), EnforceNotMet,
                               rf"op 'lod_tensor_to_array' {HERE} takes the sequences of 's' apart by a rank table of sequences of other"),
    "a level that is not there": (lambda: (control_flow.max_sequence_len(control_flow.lod_rank_table(sequences(), level=1)),
                                           {"q": ragged(2, 1)}), EnforceNotMet, "takes level 1 of a LoD that has 1"),
    "entries of too many rows": (put_together(3, 1), EnforceNotMet, "takes entries of 2 rows at most, one a sequence, but one has 3"),
    "an entry with a row too many": (put_together(2, 2), EnforceNotMet, rf"op 'array_to_lod_tensor' {HERE} puts the entries of '.*' tog"),
    "an entry with a row too few": (put_together(1, 1), EnforceNotMet, r"of the 2 sequences of a rank table, but .* the shape \[1, 3\]"),
    "too few entries": (put_together(2), EnforceNotMet, "a rank table that has other numbers of rows at these times"),
    "too many entries": (put_together(2, 1, 1), EnforceNotMet, "a rank table that has other numbers of rows at these times"),
    "a mask of three rows": (split(ones(3, 1, dtype="bool")), FeedError, "takes a mask of 3 rows, but 'x' has 2"),
    "a wide mask": (split(ones(2, 2, dtype="bool")), EnforceNotMet, r"one boolean a row, \[N, 1\], but 'mask' is bool of shape \[2, 2\]"),
    "a mask of numbers": (split(ones(2, 1, dtype="int64")), EnforceNotMet, r"one boolean a row, \[N, 1\], but 'mask' is int64"),
    "sides of two widths": (split(np.array([[True], [False]]), wide=True), EnforceNotMet, r"merges rows of float32 \[6\] and .* \[3\]"),
    "no beams": (search(0), ShapeError, "a beam_size of 1 or more, not 0"),
    "scores of three dimensions": (search(scores=(None, 3, 1)), ShapeError, r"takes scores \[rows, K\] and ids of the same shape"),
    "ids of another width": (search(ids=(None, 2)), ShapeError, r"not \[-1, 3\] and \[-1, 2\]"),
    "other prefixes than scores": (search(prefixes=3), EnforceNotMet, rf"{HERE} takes pre_ids with a row for each of scores, but it has 3"),
    "a level of scores that is not there": (search(level=2), EnforceNotMet, "takes a level from 0 to 1 here, not 2"),
    "scores without sources": (search(lod=False), EnforceNotMet, "input scores of op 'beam_search' holds no LoD"),
    "more scores than ids": (read_off((1, 2)), EnforceNotMet, "takes as many Scores as Ids, not 2 entries beside 1"),
    "read off no beams": (read_off((1, 1), 0), FluidValueError, "beam_search_decode's beam_size is an int, 1 or more, not 0"),
    "a decoder of no beams": (decoder(-2), FluidValueError, "BeamSearchDecoder's beam_size is an int, 1 or more, not -2"),
    "an end that is not a word": (decoder(end=9), FluidValueError, "BeamSearchDecoder's end_token is an id from 0 to 4, not 9"),
    "parents of another shape": (tree((2, 2, 3), 0), ShapeError, r"takes Ids and Parents \[T, B, W\] of one shape, not \[2, 2, 2\] and"),
    "a fed parent that is not there": (tree((2, 2, 2), 5), FeedError, "which expects 0 <= value < 2, but it holds 5"),
    "a parent that is not there": (tree((2, 2, 2), 6), EnforceNotMet, "expects 0 <= parent < 2, but gets 6"),
}  # fmt: skip


OF_NO_OP = {
    "of the user",
    "level 0 ends at 5, but there are 4 rows",
    "BeamSearchDecoder's beam_size is an int, 1 or more, not -2",
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BAD)
def test_refused_in_one_sentence_and_the_scope_as_it_was(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    net, error, sentence = BAD[name]
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.unique_name.guard(),
        fluid.scope_guard(fluid.Scope()),
    ):
        with pytest.raises(error, match=sentence) as raised:
            out, feed = net()
            counter = layers.autoincreased_step_counter()
            exe = fluid.Executor(CPU)
            exe.run(fluid.default_startup_program())
            exe.run(feed=feed, fetch_list=[out, counter], return_numpy=False)
        assert not isinstance(raised.value, FluidError) or "\n" not in str(raised.value)
        text = "".join([str(raised.value), *getattr(raised.value, "__notes__", ())])
        assert re.search(r"tests/lower/test_bad_input.py:\d+", text) or sentence in OF_NO_OP, text
        kept = fluid.global_scope().find_var("@STEP_COUNTER@")
        assert kept is None or np.array(kept.get_tensor()).item() == 0


def test_sequences_of_no_rows() -> None:
    """They are in no time of a DynamicRNN, and pools give zero; even where no sequence has a row."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        found = [
            dynamic(),
            *(
                layers.sequence_pool(fluid.default_main_program().global_block().var("q"), k)
                for k in ("max", "last")
            ),
        ]
        exe = fluid.Executor(CPU)
        for lengths in ((0, 2, 0), (0, 0, 0)):
            sums, most, last = exe.run(feed={"q": ragged(*lengths)}, fetch_list=found)
            steps = np.array(lengths, "float32")[:, None] * ones(1, 3)
            np.testing.assert_array_equal(sums, steps * (steps + 1) / 2)
            np.testing.assert_array_equal(most, steps > 0)
            np.testing.assert_array_equal(last, steps > 0)


def test_a_carried_value_that_changes_its_dtype() -> None:
    """Python drives the loop, and it is what it is, as in 1.8.5; 2 and 3 are not cut off to
    integers.
    """
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, n = fluid.data("x", [2], "int64"), number(3)
        body = lambda i, y: [i + 1, layers.cast(y, "float32") * 1.5]  # noqa: E731
        _, y = layers.while_loop(lambda i, y: layers.less_than(i, n), body, [number(0), x + 1])
        (found,) = fluid.Executor(CPU).run(feed={"x": np.array([1, 3])}, fetch_list=[y])
    np.testing.assert_array_equal(found, np.array([2, 4]) * np.float32(1.5) ** 3)


def test_entries_of_as_many_rows_as_go_on() -> None:
    """What the refused ones above should have been, with its gradient."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, ranks = rows(), table()
        x.stop_gradient = False
        array = layers.array_write(layers.slice(x, [0], [0], [2]), number(0))
        layers.array_write(layers.slice(x, [0], [2], [3]), number(1), array=array)
        out = control_flow.array_to_lod_tensor(array, ranks)
        (grad,) = fluid.gradients(layers.reduce_sum(layers.square(out)), [x])
        value = np.arange(9, dtype="float32").reshape(3, 3)
        got, slope = fluid.Executor(CPU).run(
            feed={"q": ragged(1, 2), "x": value}, fetch_list=[out, grad], return_numpy=False
        )
    np.testing.assert_array_equal(np.array(got), value[[1, 0, 2]])
    np.testing.assert_array_equal(np.array(slope), 2 * value)


def test_an_op_that_names_other_numbers_of_outputs_than_it_gives() -> None:
    with fluid.program_guard(fluid.Program()):
        block = fluid.default_main_program().global_block()
        x, y = fluid.data("x", [2, 3]), fluid.data("y", [3, 4])
        outputs = {
            "Out": [block.create_var(name="out")],
            "InnerCache": [block.create_var(name="cache")],
        }
        with pytest.raises(
            ShapeError,
            match=(
                r"op 'einsum' gives 2 InnerCache here, and its InnerCache names 1 \(at"
                r" .*test_bad_input.py"
            ),
        ):
            block.append_op(
                type="einsum",
                inputs={"Operands": [x, y]},
                outputs=outputs,
                attrs={"equation": "ij,jk->ik"},
            )


def test_a_list_that_lacks_a_tensor() -> None:
    """A spoiled file may leave one of concat's inputs out."""
    with fresh() as (main, _):
        x = fluid.data("x", [2, 3], dtype="float32")
        out = fluid.layers.concat([x * 2.0, x], axis=1)
    ops = [
        edit.rename_op(op, {op.input("X")[0]: "@EMPTY@"}) if op.type == "concat" else op
        for op in main.desc.blocks[0].ops
    ]
    spoiled = fluid.Program.from_desc(edit.replace_ops(main.desc, 0, ops))
    with pytest.raises(FluidError, match="not given"):
        fluid.Executor().run(spoiled, feed={"x": np.ones((2, 3), "float32")}, fetch_list=[out.name])
