"""The demo: its reader, its data, its pictures, and the accuracy that it must reach."""

from __future__ import annotations

import contextlib
import gzip
import struct
import tracemalloc

import numpy as np
import pytest

from fluidjax import cli
from fluidjax.dataset.idx import MNIST, mnist, parse_idx, read_idx
from fluidjax.demo import GOAL, run_demo
from fluidjax.demo.digits import SIDE, Digits, load
from fluidjax.demo.lenet import build
from fluidjax.demo.train import Trainer
from fluidjax.errors import FluidValueError

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx(array: np.ndarray) -> bytes:
    header = bytes([0, 0, CODES[array.dtype.str[1:]], array.ndim]) + struct.pack(
        f">{array.ndim}I", *array.shape
    )
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.fixture
def folder(tmp_path):
    """Ten images a part, under MNIST's names; the labels are compressed."""
    rng = np.random.default_rng(0)
    for part, (images, labels) in MNIST.items():
        count = 96 if part == "train" else 10
        (tmp_path / images).write_bytes(idx(rng.integers(0, 256, (count, 28, 28), "u1")))
        (tmp_path / f"{labels}.gz").write_bytes(
            gzip.compress(idx(np.arange(count, dtype="u1") % 10))
        )
    return tmp_path


# -- IDX files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("shape", [(5,), (2, 3), (0, 4), (2, 1, 3)])
def test_idx_round_trip(dtype, shape):
    array = (np.arange(np.prod(shape)) * 7 % 100).reshape(shape).astype(dtype)
    back = parse_idx(idx(array))
    assert back.dtype == array.dtype and back.dtype.isnative and back.flags.writeable
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not an IDX file: it begins with nothing"),
        (b"\x89PNG....", "is not an IDX file: it begins with 89 50 4e 47"),
        (b"\0\0\x07\x01", "is not an IDX file"),
        (b"\0\0\x08\x02\0\0\0\1", "ends within its header"),
        (b"\0\0\x08\0", "ends within its header"),
        (
            idx(np.zeros((2, 3), "i2"))[:-1],
            r"should hold 12 bytes for shape \[2, 3\], but holds 11",
        ),
        (idx(np.zeros(4, "u1")) + b"x", "should hold 4 bytes"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "should hold 7922"),
        (
            b"\0\0\x08\x41" + b"\0\0\0\1" * 65 + b"x",
            "holds an array of 65 dimensions; at most 64 are read",
        ),
        (b"\0\0\x0e\x05" + b"\0" * 4 + b"\xff" * 16, r"has the shape \[0, 4294967295, "),
    ],
)
def test_malformed_idx(data, message, tmp_path):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(FluidValueError, match=message) as error:
        read_idx(tmp_path / "file")
    assert str(tmp_path / "file") in str(error.value)


def test_no_more_is_unpacked_than_the_header_names(tmp_path):
    """Zeros pack a thousand times smaller: 64 MB in a file of 64 kB, with a header of 10 numbers,
    with none, and with a huge one.
    """
    few, huge = (b"\0\0\x08\1" + n.to_bytes(4, "big") for n in (10, 2**32 - 1))
    for head, told in (
        (few, "should hold 10 bytes .*, but holds more"),
        (b"", "is not an IDX file"),
        (huge, "but holds [0-9]+ at most"),
    ):
        (tmp_path / "bomb.gz").write_bytes(gzip.compress(head + bytes(64 << 20), 9))
        tracemalloc.start()
        try:
            with pytest.raises(FluidValueError, match=told):
                read_idx(tmp_path / "bomb.gz")
            assert tracemalloc.get_traced_memory()[1] < 1 << 20
        finally:
            tracemalloc.stop()


def test_mutations_of_idx_raise_our_error_only():
    rng, good = np.random.default_rng(0), idx(np.arange(24, dtype="i2").reshape(2, 3, 4))
    for _ in range(2000):
        data = bytearray(good[: rng.integers(0, len(good) + 1)])
        for _ in range(rng.integers(0, 4)):
            if data:
                data[rng.integers(0, min(len(data), 20))] = rng.integers(0, 256)
        with contextlib.suppress(FluidValueError):
            parse_idx(bytes(data))


def test_missing_and_damaged_files(tmp_path):
    with pytest.raises(FluidValueError, match=r"cannot read .*nothing"):
        read_idx(tmp_path / "nothing")
    (tmp_path / "a.gz").write_bytes(gzip.compress(idx(np.arange(1000, dtype="i2")))[:-9])
    with pytest.raises(FluidValueError, match=r"a\.gz is a damaged gzip file"):
        read_idx(tmp_path / "a.gz")


def test_mnist(folder):
    images, labels = mnist(folder, "test")
    assert images.shape == (10, 28, 28) and labels.tolist() == list(range(10))
    with pytest.raises(FluidValueError, match="parts 'train', 'test', not 'valid'"):
        mnist(folder, "valid")
    # as some archives spell it
    (folder / MNIST["test"][0]).rename(folder / "t10k-images.idx3-ubyte")
    assert mnist(folder, "test")[0].shape == (10, 28, 28)


def test_mnist_that_does_not_belong_together(folder):
    (folder / MNIST["train"][0]).write_bytes(idx(np.zeros((9, 28, 28), "u1")))
    with pytest.raises(FluidValueError, match="are not images and their labels"):
        mnist(folder, "train")
    (folder / MNIST["train"][0]).unlink()
    with pytest.raises(
        FluidValueError,
        match=r"there is no train-images-idx3-ubyte \(or .*; put MNIST's four IDX files there",
    ):
        mnist(folder, "train")


# -- data and network ------------------------------------------------------------------------------


@pytest.mark.slow
def test_digits():
    data = load(seed=3)
    assert data.train_images.shape == (1438, 1, SIDE, SIDE) and data.test_images.shape == (
        359,
        1,
        SIDE,
        SIDE,
    )
    assert data.train_labels.shape == (1438, 1) and data.train_labels.dtype == np.int64
    assert data.train_images.dtype == np.float32 and (
        data.train_images.min(),
        data.train_images.max(),
    ) == (-1, 1)
    again, other = load(seed=3), load(seed=4)
    np.testing.assert_array_equal(data.test_labels, again.test_labels)
    assert (data.test_labels != other.test_labels).any()


def test_the_test_program_has_no_training_in_it():
    net = build(seed=1)
    types = [op.type for op in net.test.global_block().ops]
    assert "adam" in [op.type for op in net.train.global_block().ops]
    assert not [t for t in types if t.endswith("_grad") or t == "adam"]
    modes = [
        op.attr("is_test")
        for op in net.test.global_block().ops
        if op.type in ("batch_norm", "dropout")
    ]
    assert modes == [True] * 3


@pytest.mark.slow
def test_equal_seeds_give_equal_results():
    data = load()
    few = Digits(
        "few",
        data.train_images[:96],
        data.train_labels[:96],
        data.test_images[:32],
        data.test_labels[:32],
    )
    losses = [Trainer(seed).fit(few, 1, 32, quiet=True).loss for seed in (5, 5, 6)]
    assert losses[0] == losses[1] != losses[2]


# -- the whole demo --------------------------------------------------------------------------------


@pytest.mark.slow
def test_demo_on_mnist_files(folder, tmp_path, capsys):
    """Noise cannot be learnt: the demo says so by its exit code."""
    assert run_demo(folder, epochs=1, batch=32, out=tmp_path / "a" / "b", quiet=True) == 1
    out = capsys.readouterr().out
    assert f"MNIST in {folder}: 96 images to train on, 10 to test" in out
    assert "that is less than the 97% that this network should reach" in out
    assert (tmp_path / "a" / "b" / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "a" / "b" / "mistakes.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--batch", "2000"], "a batch of 2000 is more than the 1438 training images"),
        (["--mnist", "nowhere"], "there is no train-images-idx3-ubyte"),
        (["--out", "file"], "cannot write to 'file'"),
    ],
)
def test_bad_arguments(arguments, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert cli.main(["demo", "--epochs", "1", *arguments]) == 1
    assert told in capsys.readouterr().err


def test_missing_packages(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("fluidjax.demo.find_spec", lambda name: None)
    assert cli.main(["demo", "--out", str(tmp_path)]) == 1
    assert (
        "the demo needs matplotlib, tqdm, scikit-learn: pip install 'fluidjax[demo]'"
        in capsys.readouterr().err
    )


@pytest.mark.slow
def test_the_demo_reaches_its_goal(tmp_path, capsys):
    assert cli.main(["demo", "--out", str(tmp_path), "--epochs", "6", "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    accuracies = [float(line.split()[-1].rstrip("%")) for line in lines if line.startswith("epoch")]
    assert len(accuracies) == 6 and accuracies[-1] >= 100 * GOAL
    assert (tmp_path / "loss.png").stat().st_size > 10_000 and (
        tmp_path / "mistakes.png"
    ).stat().st_size > 1_000
