"""LoDTensor and what makes one, as Paddle 1.8.5 has them (facts looked up in it stand here as
literals).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import EnforceNotMet, FluidTypeError, FluidValueError

from .nets import fresh

ROWS = np.arange(5, dtype="float32")[:, None]


def tensor(lod=None, lengths=None, rows=ROWS):
    made = fluid.LoDTensor()
    made.set(rows, fluid.CPUPlace())
    if lod is not None:
        made.set_lod(lod)
    if lengths is not None:
        made.set_recursive_sequence_lengths(lengths)
    return made


def test_without_sequences():
    assert tensor().lod() == tensor().recursive_sequence_lengths() == []
    assert tensor().has_valid_recursive_sequence_lengths()
    assert (
        repr(tensor()) == "LoDTensor(float32[5, 1])"
        and repr(fluid.LoDTensor()) == "LoDTensor(empty)"
    )
    empty, held = fluid.LoDTensor(), fluid.Scope().var("a").get_tensor()  # what 1.8.5 says of them
    found = [(t.shape(), t._get_dims(), t._is_initialized()) for t in (empty, held, tensor())]
    assert found == [([0], [0], False), ([0], [0], False), ([5, 1], [5, 1], True)]


@pytest.mark.parametrize(
    ("lod", "lengths"),
    [
        ([[0, 2, 5]], [[2, 3]]),
        ([[0, 2], [0, 2, 5]], [[2], [2, 3]]),
        ([[0, 1, 2], [0, 2, 5]], [[1, 1], [2, 3]]),
        ([[0, 2, 2, 5]], [[2, 0, 3]]),
        ([[0, 0, 5]], [[0, 5]]),
        ([[0, 5]], [[5]]),
        ([], []),
    ],
)
def test_offsets_and_lengths(lod, lengths):
    for made in (
        tensor(lod=lod),
        tensor(lengths=lengths),
        tensor(lengths=[tuple(level) for level in lengths]),
    ):
        assert made.lod() == lod and made.recursive_sequence_lengths() == lengths
        assert made.has_valid_recursive_sequence_lengths()
    assert ("lod=" in repr(tensor(lod=lod))) == bool(lod)


@pytest.mark.parametrize(
    ("lod", "message"),
    [
        ([[0, 2, 4]], "level 0 ends at 4, but there are 5 rows"),
        ([[0, 2, 6]], "level 0 ends at 6, but there are 5 rows"),
        ([[1, 2, 5]], "the offsets of level 0 do not rise from 0"),
        ([[0, 3, 2, 5]], "the offsets of level 0 do not rise from 0"),
        ([[0]], "level 0 has no sequences"),
        ([[]], "level 0 has no sequences"),
        ([[0, 1], [0, 2, 5]], "level 0 ends at 1, but there are 2 sequences below it"),
        ([[0, 2], [0, 5]], "level 0 ends at 2, but there are 1 sequences below it"),
    ],
)
def test_invalid_lods_are_refused(lod, message):
    made = tensor(lod=[[0, 5]])
    with pytest.raises(
        EnforceNotMet, match=rf"^lod \[.*\] is not a LoD for this tensor: {message}$"
    ):
        made.set_lod(lod)
    assert made.lod() == [[0, 5]]


@pytest.mark.parametrize("lengths", [[[2, 2]], [[]], [[1], [2, 3]], [[2, 3, 1]]])
def test_invalid_lengths_are_refused(lengths):
    with pytest.raises(
        EnforceNotMet, match=r"^recursive_sequence_lengths \[.*\] is not a LoD for this tensor"
    ):
        tensor(lengths=lengths)


@pytest.mark.parametrize("lod", [5, [0, 2, 5], [[0, 1.5, 5]], [[0, -1, 5]], "x", [["0", "5"]]])
def test_what_is_no_list_of_lists_is_refused(lod):
    with pytest.raises(
        FluidTypeError, match="a list of lists of integers from 0, a list for each level"
    ):
        tensor(lod=lod)
    with pytest.raises(TypeError):
        tensor(lengths=lod)


def test_a_lod_may_come_first_and_may_stop_fitting():
    """As in 1.8.5: without rows any LoD is taken, and set() leaves it alone."""
    made = fluid.LoDTensor()
    made.set_lod([[0, 2, 5]])
    made.set(ROWS, None)
    assert made.lod() == [[0, 2, 5]] and made.has_valid_recursive_sequence_lengths()
    made.set(ROWS[:4], None)
    assert made.lod() == [[0, 2, 5]] and not made.has_valid_recursive_sequence_lengths()


def test_create_from_an_array_or_a_tensor():
    made = fluid.create_lod_tensor(ROWS, [[2, 3]], fluid.CPUPlace())
    assert made.lod() == [[0, 2, 5]] and np.array(made).tolist() == ROWS.tolist()
    again = fluid.create_lod_tensor(made, [[1], [5]], fluid.CPUPlace())
    assert again.lod() == [[0, 1], [0, 5]] and made.lod() == [[0, 2, 5]]
    assert fluid.create_lod_tensor(ROWS, [], None).lod() == []


@pytest.mark.parametrize(
    ("data", "lengths", "shape", "dtype"),
    [
        ([[1, 2], [3, 4, 5]], [[2, 3]], [5, 1], "int64"),
        ([[1.5, 2], [3, 4, 5]], [[2, 3]], [5, 1], "float64"),
        ([[[1, 2], [3, 4]], [[5, 6]]], [[2, 1]], [3, 2, 1], "int64"),
        ([[1, 2], []], [[2, 0]], [2, 1], "int64"),
    ],
)
def test_create_from_lists(data, lengths, shape, dtype):
    made = fluid.create_lod_tensor(data, lengths, fluid.CPUPlace())
    assert (made.recursive_sequence_lengths(), made.shape(), np.array(made).dtype) == (
        lengths,
        shape,
        dtype,
    )


@pytest.mark.parametrize(
    ("data", "lengths", "error", "message"),
    [
        (
            [[1, 2], [3, 4, 5]],
            [[2, 2]],
            FluidValueError,
            r"do not match: the lists of data are \[\[2, 3\]\] long, not \[\[2, 2\]\]; "
            "give a list for each sequence, or all rows as one array",
        ),
        ([[[1, 2], [3]], [[5, 6]]], [[2, 1], [2, 1, 2]], FluidValueError, "do not match"),
        ([[[1, 2], [3]]], [[2]], FluidValueError, "rows of different shapes or kinds"),
        (5, [[1]], FluidTypeError, "either a LoDTensor, a Numpy array or a list, not int"),
        ([1, 2], [[2]], FluidTypeError, "a list for each sequence"),
        (ROWS, [[2, 2]], EnforceNotMet, "level 0 ends at 4, but there are 5 rows"),
        (ROWS, [2, 3], FluidTypeError, "a list of lists of integers"),
    ],
)
def test_create_refuses(data, lengths, error, message):
    with pytest.raises(error, match=message):
        fluid.create_lod_tensor(data, lengths, fluid.CPUPlace())


def test_random_integers():
    made = fluid.create_random_int_lodtensor([[2, 300]], [3], fluid.CPUPlace(), low=0, high=3)
    values = np.array(made)
    assert made.lod() == [[0, 2, 302]] and values.shape == (302, 3) and values.dtype == "int64"
    assert set(np.unique(values)) == {0, 1, 2, 3}
    with pytest.raises(FluidTypeError, match="base_shape is a list, not tuple"):
        fluid.create_random_int_lodtensor([[2]], (3,), fluid.CPUPlace(), 0, 3)
    with pytest.raises(FluidValueError, match="has no level"):
        fluid.create_random_int_lodtensor([], [3], fluid.CPUPlace(), 0, 3)


def test_scope_variables_hold_lods():
    scope = fluid.Scope()
    held = scope.var("w").get_tensor()
    held.set(ROWS, fluid.CPUPlace())
    held.set_recursive_sequence_lengths([[4, 1]])
    assert scope.find_var("w").get_tensor().lod() == [[0, 4, 5]]
    with pytest.raises(EnforceNotMet, match="level 0 ends at 3, but there are 5 rows"):
        scope.find_var("w").get_tensor().set_lod([[0, 3]])


def test_what_a_run_hands_over_is_a_tensor() -> None:
    """Its accessors as 1.8.5 has them; it holds the device's array, and goes in again as a feed."""
    with fresh() as (main, _):
        x = fluid.layers.data("x", [3])
        out = fluid.layers.scale(x, 2.0)
        kinds = [fluid.layers.cast(x, kind) for kind in ("float64", "int64", "bool")]
    feed, exe = {"x": np.arange(6, dtype="float32").reshape(2, 3)}, fluid.Executor(fluid.CPUPlace())
    for _ in range(3):  # the long way, and the short one
        tensor, *others = exe.run(main, feed=feed, fetch_list=[out, *kinds], return_numpy=False)
    assert isinstance(tensor, fluid.LoDTensor) and isinstance(tensor.array(), jax.Array)
    assert tensor.shape() == [2, 3] and tensor.lod() == tensor.recursive_sequence_lengths() == []
    types = fluid.core.VarDesc.VarType
    assert [t._dtype() for t in (tensor, *others)] == [
        types.FP32,
        types.FP64,
        types.INT64,
        types.BOOL,
    ]
    assert (
        isinstance(tensor._place(), fluid.CPUPlace)
        and np.array(tensor[1]).tolist() == [6, 8, 10] == np.array(tensor[1:]).tolist()[0]
    )
    assert exe.run(main, feed={"x": tensor}, fetch_list=[out])[0].tolist() == [
        [0, 4, 8],
        [12, 16, 20],
    ]
    assert float(jax.numpy.sum(jax.block_until_ready(tensor).array())) == 30
    assert tensor._get_float_element(4) == 8 and others[0]._get_double_element(5) == 5
    tensor._set_float_element(4, 1.5)
    others[0]._set_double_element(0, 2.5)
    assert (
        np.asarray(tensor).tolist() == [[0, 2, 4], [6, 1.5, 10]]
        and np.asarray(others[0])[0, 0] == 2.5
    )
    with pytest.raises(EnforceNotMet, match="the tensor holds float32, and this is for float64"):
        tensor._get_double_element(0)
    for index in (6, -1):
        with pytest.raises(
            EnforceNotMet, match=f"the tensor has 6 elements, and there is none of number {index}"
        ):
            tensor._get_float_element(index)


def test_a_tensor_without_a_value_is_an_empty_array() -> None:
    """As in 1.8.5; scripts copy every variable of one scope to another so."""
    tensor, other = fluid.LoDTensor(), fluid.LoDTensor()
    assert np.array(tensor).dtype == "float64" and np.array(tensor).shape == (0,)
    other.set(np.array(tensor), fluid.CPUPlace())
    assert other.shape() == [0] and other._is_initialized() and not tensor._is_initialized()
    other._clear()
    assert not other._is_initialized()


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(3, 2), jnp.arange(6.0).reshape(3, 2)])
def test_a_loop_over_a_tensor_ends_after_its_rows(array):
    tensor = fluid.LoDTensor.of(array)
    rows = [np.array(row).ravel().tolist() for row in tensor]
    assert rows == [[0, 1], [2, 3], [4, 5]]
    assert np.array(tensor[1:9]).tolist() == [[2, 3], [4, 5]]
    for index in (3, -4):
        with pytest.raises(IndexError):
            tensor[index]
    assert fluid.LoDTensor().has_valid_recursive_sequence_lengths()


def test_lengths_may_be_ranges() -> None:
    tensor = fluid.LoDTensor(np.ones((3, 2)))
    tensor.set_recursive_sequence_lengths([range(1, 3)])
    assert tensor.lod() == [[0, 1, 3]]
    tensor.set_lod(np.array([[0, 2, 3]]))
    assert tensor.recursive_sequence_lengths() == [[2, 1]]


def handed_over(how):
    """What a DataFeeder or a loader gives for x = [[0, 1], [2, 3]], and how to feed it to a program
    that fetches x + 1.
    """
    rows = np.arange(4, dtype="float32").reshape(2, 2)
    with fluid.program_guard(fluid.Program()):
        x = fluid.data("x", [None, 2], "float32")
        plus, program = x + 1.0, fluid.default_main_program()
        if how == "feeder":
            feed = fluid.DataFeeder([x], fluid.CPUPlace()).feed([(row,) for row in rows])
            return feed["x"], feed, program, plus
        kind, as_list = how
        if kind == "reader":
            made = fluid.io.PyReader([x], capacity=2, return_list=as_list)
            made.decorate_batch_generator(lambda: iter([(rows,)]), fluid.CPUPlace())
        else:
            made = fluid.io.DataLoader.from_generator([x], capacity=2, return_list=as_list)
            made.set_sample_list_generator(
                lambda: iter([[(row,) for row in rows]]), fluid.CPUPlace()
            )
        (batch,) = list(made())
    return (
        (batch[0][0], {"x": batch[0][0]}, program, plus)
        if as_list
        else (batch[0]["x"], batch, program, plus)
    )


@pytest.mark.parametrize(
    "how",
    ["feeder", *((kind, as_list) for kind in ("reader", "loader") for as_list in (False, True))],
)
def test_what_feeders_and_loaders_give_is_a_tensor_and_an_array(how):
    """A LoDTensor's methods answer as 1.8.5's do; what NumPy and JAX do with arrays goes on."""
    got, feed, program, plus = handed_over(how)
    want = np.arange(4, dtype="float32").reshape(2, 2)
    assert (
        isinstance(got, fluid.LoDTensor)
        and got.shape() == [2, 2]
        and got.lod() == got.recursive_sequence_lengths() == []
    )
    assert got._dtype() == fluid.core.VarDesc.VarType.FP32 and type(got._place()) is fluid.CPUPlace
    assert (got.shape, got.ndim, got.dtype, len(got), got[1, 0]) == ((2, 2), 2, np.float32, 2, 2)
    for found in (
        np.array(got),
        got + 0,
        0 + got,
        got[:],
        list(got),
        jnp.asarray(got),
        jax.jit(lambda v: v)(got),
    ):
        np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(jax.jit(lambda v: got * v)(want), want * want)
    assert (
        np.sum(got) == got.sum() == 6
        and bool((got > -1).all())
        and f"{float(got[0, 1]):.1f}" == "1.0"
    )
    for _ in range(3):
        np.testing.assert_array_equal(
            fluid.Executor().run(program, feed=feed, fetch_list=[plus])[0], want + 1
        )
    with pytest.raises(AttributeError, match="no attribute"):
        got.no_such_name  # noqa: B018


def test_tensors_without_sequences_are_split_over_devices():
    """By a program that reads, too, where feeds are split before they are checked."""
    got, feed, program, plus = handed_over("feeder")
    both = fluid.CompiledProgram(program).with_data_parallel(places=fluid.cpu_places(2))
    np.testing.assert_array_equal(
        fluid.Executor().run(both, feed=feed, fetch_list=[plus])[0], np.array(got) + 1
    )


def test_tensors_and_numbers_of_a_scope_as_the_core_makes_them():
    scope = fluid.Scope()
    tensor = scope.var("t").get_tensor()
    tensor._set_dims([2, 3])
    for alloc, dtype in ((tensor._alloc_int, "int32"), (tensor._alloc_double, "float64")):
        alloc(fluid.CPUPlace())
        np.testing.assert_array_equal(np.array(tensor), np.zeros((2, 3), dtype), strict=True)
    tensor._alloc_float(fluid.CPUPlace())
    other = fluid.LoDTensor()
    other._share_data_with(tensor)
    np.testing.assert_array_equal(np.array(other), np.zeros((2, 3), np.float32), strict=True)

    number = scope.var("n")
    number.set_int(10)
    assert (number.get_int(), number.is_int(), number.is_float()) == (10, True, False)
    number.set_float(2.5)
    assert (number.get_float(), number.is_int(), number.is_float()) == (2.5, False, True)
    with pytest.raises(TypeError, match="holds no integer"):
        number.get_int()


def test_places_say_what_they_are():
    late = fluid.core.Place()
    assert not late.is_cpu_place()
    late.set_place(fluid.CPUPlace())
    assert (late.is_cpu_place(), late.is_gpu_place()) == (True, False)
    assert fluid.CUDAPlace(0).is_gpu_place()
    assert fluid.CPUPlace()._equals(fluid.CPUPlace())
    assert not fluid.CPUPlace()._equals(fluid.CUDAPlace(0))
