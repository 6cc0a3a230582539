"""Data sets from local files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from fluidjax.dataset import common, mnist, uci_housing
from fluidjax.errors import FluidError, FluidValueError

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "feeding_1.8.5.json").read_text())[
    "housing"
]


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(common.VARIABLE, str(tmp_path))
    return tmp_path


def write_housing(home, text):
    (home / "uci_housing").mkdir(exist_ok=True)
    (home / "uci_housing" / "housing.data").write_text(text)


def test_housing_as_recorded(home):
    write_housing(home, "\n".join("  ".join(map(str, row)) for row in RECORDED["table"]))
    for reader, rows in (
        (uci_housing.train(), RECORDED["train"]),
        (uci_housing.test(), RECORDED["test"]),
    ):
        samples = list(reader())
        assert [x.shape for x, _ in samples] == [(13,)] * len(rows) and samples[0][1].shape == (1,)
        np.testing.assert_allclose([[*x, *y] for x, y in samples], rows, rtol=1e-12)
        assert len(list(reader())) == len(rows)
    np.testing.assert_allclose(
        uci_housing.predict_reader()[0], RECORDED["test"][0][:-1], rtol=1e-12
    )
    assert len(uci_housing.feature_names) == 13


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 3", "should hold rows of 14 finite numbers; it holds 3 numbers"),
        ("", "should hold rows of 14 finite numbers; it holds 0 numbers"),
        ("a b", "holds no table of numbers"),
        (" ".join(["1"] * 28), "feature CRIM is the same in every row"),
        (" ".join(["nan"] * 14), "finite numbers"),
    ],
)
def test_bad_housing_files_are_named(home, text, message):
    write_housing(home, text)
    with pytest.raises(FluidValueError, match=message) as error:
        uci_housing.train()
    assert "housing.data" in str(error.value)


def test_a_missing_file_says_where_to_put_it(home, monkeypatch):
    for read, name, file in (
        (uci_housing.train, "uci_housing", "housing.data"),
        (mnist.test, "mnist", "t10k-images-idx3-ubyte.gz"),
    ):
        with pytest.raises(common.MissingFileError) as error:
            read()
        assert isinstance(error.value, FluidError) and isinstance(error.value, FileNotFoundError)
        for part in (file, str(home / name), common.VARIABLE, "nothing is downloaded"):
            assert part in str(error.value)
    monkeypatch.delenv(common.VARIABLE)
    assert common.folder("mnist") == Path("~/.cache/paddle/dataset/mnist").expanduser()


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return head + array.astype("uint8").tobytes()


def test_mnist(home):
    folder = home / "mnist"
    folder.mkdir()
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (6, 28, 28)), rng.integers(0, 10, 6)
    images[0, 0, :2] = 0, 255
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
    with pytest.raises(
        common.MissingFileError, match=r"train-labels-idx1-ubyte\.gz \(or train-labels-idx1-ubyte"
    ):
        mnist.train()
    (folder / "train-labels-idx1-ubyte").write_bytes(idx(labels))
    reader = mnist.train()
    samples = list(reader())
    assert [label for _, label in samples] == labels.tolist() and all(
        type(label) is int for _, label in samples
    )
    image = samples[0][0]
    assert image.shape == (784,) and image.dtype == "float32" and image[:2].tolist() == [-1.0, 1.0]
    np.testing.assert_array_equal(
        [x for x, _ in samples], images.reshape(6, 784).astype("float32") / 255.0 * 2.0 - 1.0
    )


def test_a_damaged_mnist_file_is_named(home):
    folder = home / "mnist"
    folder.mkdir()
    (folder / "t10k-images-idx3-ubyte").write_bytes(b"no idx")
    (folder / "t10k-labels-idx1-ubyte").write_bytes(idx(np.zeros(3)))
    with pytest.raises(FluidValueError, match="t10k-images-idx3-ubyte is not an IDX file"):
        list(mnist.test()())
