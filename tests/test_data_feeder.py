"""DataFeeder: what Paddle 1.8.5 makes of samples (recorded), and what is refused, by name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.data_feeder import DataFeeder
from fluidjax.errors import FeedError, FluidTypeError, FluidValueError
from fluidjax.feeds.feeding import rule_for
from fluidjax.ir.desc import VarDesc

RECORDED = json.loads((Path(__file__).parent / "data" / "feeding_1.8.5.json").read_text())["feeds"]
VARS = {
    "x": ([None, 2], "float32"),
    "y": ([None, 1], "int64"),
    "im": ([None, 1, 2, 2], "float32"),
    "b": ([None], "bool"),
    "words": ([None, 1], "int64", 1),
    "rows": ([None, 2], "float32", 1),
    "pages": ([None, 1], "int64", 2),
}


@pytest.fixture
def made():
    """The fed variables by name, in a program of their own."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield {n: fluid.data(n, *v) for n, v in VARS.items()}


@pytest.mark.parametrize("case", RECORDED)
def test_as_recorded(made, case):
    row = RECORDED[case]
    fed = DataFeeder([made[n] for n in row["names"]], fluid.CPUPlace()).feed(
        [tuple(s) for s in row["samples"]]
    )
    assert list(fed) == row["names"]
    for name, array in fed.items():
        want = row["feed"][name]
        assert (
            isinstance(array, fluid.LoDTensor)
            and array.lod() == want["lod"]
            and array.shape() == want["shape"]
        )
        array = np.asarray(array)
        assert (array.dtype.name, list(array.shape), array.ravel().tolist()) == (
            want["dtype"],
            want["shape"],
            want["values"],
        )


def test_arrays_are_stacked_and_converted(made):
    feeder = DataFeeder(["x", "y"], fluid.CPUPlace(), made["x"].block.program)
    fed = feeder.feed((np.full(2, i), np.array([i], "int32")) for i in range(3))
    assert fed["x"].dtype == "float32" and fed["x"].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert fed["y"].dtype == "int64" and fed["y"].tolist() == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("names", "sample", "message"),
    [
        ("y", (3.7,), "feed 'y' is int64, but a sample holds 3.7"),
        ("y", (float("nan"),), "feed 'y' is int64, but a sample holds nan"),
        ("y", (2**70,), "feed 'y' holds integers that do not fit int64"),
        ("y", (np.uint64(2**63),), "feed 'y' holds integers that do not fit int64"),
        ("x", ([1e300, 0],), "feed 'x' holds numbers that do not fit float32"),
        ("x", ("ab",), "feed 'x' has <U2 values; it takes numbers of dtype float32"),
        ("x", (None,), "feed 'x' has samples of different lengths or kinds"),
        ("x", ([1, 2, 3],), r"feed 'x' has shape \[1, 3\], but the program declares \[-1, 2\]"),
        (
            "x",
            (1,),
            (
                r"feed 'x' has samples of shape \[\], which cannot be reshaped to the declared"
                r" \[-1, 2\]"
            ),
        ),
        ("im", (np.arange(5),), r"feed 'im' has samples of shape \[5\], which cannot be reshaped"),
        (
            "im",
            (np.zeros((2, 2, 2)),),
            r"feed 'im' has shape \[1, 2, 2, 2\], but the program declares \[-1, 1, 2, 2\]",
        ),
        ("b", (2,), "feed 'b' is bool, but a sample holds 2"),
        ("words", (3,), "feed 'words' has lod_level 1, so a sample holds sequences of rows, not 3"),
        ("words", ([1.5],), "feed 'words' is int64, but a sample holds 1.5"),
        (
            "rows",
            ([1.0, 2.0, 3.0],),
            r"feed 'rows' has samples of shape \[\], which cannot be reshaped",
        ),
        (
            "pages",
            ([1, 2],),
            "feed 'pages' has lod_level 2, so a sample holds sequences of rows, not 1",
        ),
        (
            "x y",
            ([1, 2],),
            r"the number of fields in data \(1\) does not match len\(feed_list\) \(2\) in sample 0",
        ),
        ("x y", 5, "sample 0 is a int; it should be a tuple of 2 fields: 'x', 'y'"),
    ],
)
def test_refused_by_name(made, names, sample, message):
    feeder = DataFeeder([made[n] for n in names.split()], fluid.CPUPlace())
    with pytest.raises(FeedError, match=message):
        feeder.feed([sample])


def test_samples_of_different_shapes(made):
    feeder = DataFeeder([made["x"]], fluid.CPUPlace())
    with pytest.raises(FeedError, match="feed 'x' has samples of different lengths"):
        feeder.feed([([1, 2],), ([1],)])
    with pytest.raises(
        FeedError,
        match=r"feed 'x' has samples of different shapes, such as \[1\] and \[2\]; pad them",
    ):
        feeder.feed([(np.ones(2),), (np.ones(1),)])


def test_a_row_is_not_made_of_several_samples(made):
    with pytest.raises(FeedError, match="cannot be reshaped"):
        # Paddle makes one row of the two
        DataFeeder([made["x"]], fluid.CPUPlace()).feed([(1,), (2,)])


def test_integers_that_do_not_fit():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        small = DataFeeder(
            [fluid.data("i8", [None], "int8"), fluid.data("u8", [None], "uint8")], fluid.CPUPlace()
        )
    with pytest.raises(
        FeedError, match=r"feed 'i8' holds integers that do not fit int8 \(-128 to 127\)"
    ):
        small.feed([(300, 0)])
    with pytest.raises(FeedError, match="feed 'u8' holds integers that do not fit uint8"):
        small.feed([(1, -1)])


def test_bad_lists(made):
    with pytest.raises(FluidValueError, match="var nope not in this block"):
        DataFeeder(["nope"], fluid.CPUPlace())
    with pytest.raises(FluidTypeError, match="should contain a list of variables, not int"):
        DataFeeder([3], fluid.CPUPlace())


def test_feed_parallel(made):
    feeder = DataFeeder([made["y"]], fluid.CPUPlace())
    assert [f["y"].tolist() for f in feeder.feed_parallel([[(3,)], [(4,), (5,)]], 2)] == [
        [[3]],
        [[4], [5]],
    ]
    with pytest.raises(FluidValueError, match="there are 2 devices and 1 batches"):
        list(feeder.feed_parallel([[(3,)]], 2))


def test_decorate_reader(made):
    feeder = DataFeeder([made["y"]], fluid.CPUPlace())

    def batches():
        return ([(i,)] for i in range(5))

    assert [f["y"].item() for f in feeder.decorate_reader(batches, multi_devices=False)()] == [
        0,
        1,
        2,
        3,
        4,
    ]
    groups = feeder.decorate_reader(batches, multi_devices=True, num_places=2)
    assert [[f["y"].item() for f in g] for g in groups()] == [[0, 1], [2, 3]]
    with pytest.raises(FluidValueError, match="1 batches remain for 2 devices"):
        list(feeder.decorate_reader(batches, True, 2, drop_last=False)())


class Exporter:
    """No array, but has one: as a DataFrame or a tensor of another library."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


DTYPES = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"]
FED = json.loads((Path(__file__).parent / "data" / "feeding_1.8.5.json").read_text())["fed"]


def taken(make, declared):
    """The dtypes of arrays that a feed rule takes in this form."""
    rule, found = rule_for(VarDesc("x", (-1, 2), declared, need_check_feed=True)), []
    for dtype in DTYPES:
        try:
            got = np.asarray(rule(make(np.array([[0, 1], [1, 0]], dtype))))
        except FeedError as error:
            assert f", but the program declares {declared}; convert it with .astype" in str(error)
            continue
        assert got.dtype == declared and got.tolist() == [[0, 1], [1, 0]]
        found.append(dtype)
    return found


@pytest.mark.parametrize("declared", ["float32", "float64", "int32", "int64"])
def test_what_brings_a_dtype_brings_the_declared_one(declared):
    assert taken(lambda a: a, declared) == FED["array"][declared] == [declared]
    assert taken(Exporter, declared) == FED["exporter"][declared]
    # 1.8.5 takes no lists. Here one of arrays is like an array, and one of numbers takes the
    # declared dtype.
    assert FED["list"][declared] == FED["list of arrays"][declared] == []
    assert taken(list, declared) == [declared]
    whole = ["bool", "uint8", "int32", "int64"]
    assert taken(lambda a: a.tolist(), declared) == (
        whole if declared.startswith("int") else DTYPES
    )
