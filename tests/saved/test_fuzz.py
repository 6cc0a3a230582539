"""Hostile files: 10,000 mutations of every format; only our own errors come out, and memory stays
near the file's size.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FluidError, FluidValueError, ParseError
from fluidjax.saved import model, pickled, safe, stream

DATA = Path(__file__).parents[1] / "data/saved"
NAMES = sorted(p.name for p in (DATA / "separate").iterdir() if p.name != "__model__")


def _safetensors() -> bytes:
    from safetensors.numpy import save

    return save({"a": np.arange(12, dtype="float32").reshape(3, 4), "b": np.ones(5, "int64")})


# format -> (a good file, how it is read, mutations)
FORMATS: dict[str, tuple[bytes, Callable[[bytes], object], int]] = {
    "program": (
        (DATA / "combined/model").read_bytes(),
        lambda d: model.read_program(d, "FILE"),
        1500,
    ),
    "tensor": (
        (DATA / "separate/conv2d_0.w_0").read_bytes(),
        lambda d: stream.read_one(d, "FILE"),
        2500,
    ),
    "ragged": ((DATA / "lod/ragged").read_bytes(), lambda d: stream.read_one(d, "FILE"), 2000),
    "combined": (
        (DATA / "combined/params").read_bytes(),
        lambda d: stream.read_many(d, NAMES, "FILE"),
        1500,
    ),
    "pickle": ((DATA / "prefix.pdparams").read_bytes(), lambda d: pickled.read(d, "FILE"), 2500),
    "safetensors": (_safetensors(), lambda d: safe.read_safetensors(d, "FILE"), 1000),
}
LARGE = (
    [struct.pack("<q", n) for n in (-1, 2**31, 2**40, 2**62)]
    + [struct.pack("<i", n) for n in (-1, 2**30)]
    + [b"\xff" * 9]
)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """The file with one to four faults: flipped bits, cut off, huge numbers, pieces repeated or
    taken out.
    """
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            out = out[:at]
        elif kind == 1 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            new = rng.choice(LARGE)
            out[at : at + len(new)] = new
        elif kind == 3:
            out[at:at] = rng.randbytes(rng.randint(1, 12))
        elif kind == 4:
            out[at:at] = out[at : at + rng.randint(1, 40)]
        else:
            del out[at : at + rng.randint(1, 40)]
    return bytes(out)


@pytest.mark.parametrize("name", FORMATS)
def test_mutations(name: str) -> None:
    data, read, count = FORMATS[name]
    rng, refused = random.Random(name), 0
    read(data)
    for number in range(count):
        bad = mutated(data, rng)
        try:
            read(bad)
        except FluidError as error:
            refused += 1
            assert "FILE" in str(error) and len(str(error)) < 2000, f"mutation {number}: {error}"
    assert refused > count // 4


@pytest.mark.parametrize("name", FORMATS)
def test_memory_is_bounded_by_the_file(name: str) -> None:
    data, read, _ = FORMATS[name]
    rng = random.Random(name + "memory")
    read(data)
    tracemalloc.start()
    try:
        for _ in range(150):
            bad = mutated(data, rng)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            with contextlib.suppress(FluidError):
                read(bad)
            peak = tracemalloc.get_traced_memory()[1] - before
            assert peak < 64 * len(bad) + (1 << 20)
    finally:
        tracemalloc.stop()


def test_mutations_number_ten_thousand() -> None:
    assert sum(count for _, _, count in FORMATS.values()) >= 10_000


def _tensor(
    dims: list[int], data: bytes = b"", dtype: int = 5, version: int = 0, levels: int = 0
) -> bytes:
    desc = stream.wire.VarType.TensorDesc(data_type=dtype, dims=dims).SerializeToString()
    return struct.pack("<IQ", version, levels) + struct.pack("<Ii", 0, len(desc)) + desc + data


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", r"FILE, offset 0: the version of the LoDTensor needs 4 bytes, but 0 are left"),
        (_tensor([2**40, 2**40]), r"a tensor \[1099511627776, 1099511627776\] of float32 needs"),
        (_tensor([-1, 2]), r"dims: \[-1, 2\] is not a shape"),
        (_tensor([1] * 65), r"is not a shape"),
        (_tensor([0, 2**62, 2**62]), r"FILE, offset \d+: dims"),
        (_tensor([1], b"1234", dtype=99), r"data_type: 99 is not the number"),
        (_tensor([1], b"1234", version=7), r"the version of the LoDTensor is 7"),
        (_tensor([1], b"1234", levels=2**50), r"LoD levels, more than the file has room for"),
        (_tensor([1], b"12345678"), r"4 bytes follow the tensor"),
        (_tensor([1], b"\x05", dtype=0), r"a boolean is neither 0 nor 1"),
    ],
)
def test_hostile_tensors(data: bytes, text: str) -> None:
    with pytest.raises(ParseError, match=text):
        stream.read_one(data, "FILE")


class Evil:
    """What a pickle could do."""

    def __init__(self, *call: object) -> None:
        self.call = call

    def __reduce__(self) -> tuple:
        return self.call[0], self.call[1:]


def test_pickles_run_nothing(tmp_path: Path) -> None:
    import pickle

    flag = tmp_path / "flag"
    for value in (
        Evil(os.mkdir, str(flag)),
        {"a": Evil(os.mkdir, str(flag))},
        {"a": Evil(eval, "1")},
        {"a": object()},
        [1],
        3,
        {1: 2},
    ):
        for protocol in range(5):
            with pytest.raises(ParseError, match=r"FILE(, offset|: )"):
                pickled.read(pickle.dumps(value, protocol), "FILE")
    assert not flag.exists()


def test_a_pickle_that_doubles_stays_small() -> None:
    """Tuples of tuples by reference: small in the file and here."""
    bomb = b"\x80\x02)q\x00" + b"".join(b"h%ch%c\x86q%c" % (i, i, i + 1) for i in range(200)) + b"."
    with pytest.raises(ParseError):
        pickled.read(bomb, "FILE")


def _array(name: bytes, size: int, payload: bytes) -> bytes:
    """How a pickle spells an array of `size` uint8 whose bytes `payload` pushes."""
    start = (
        b"X"
        + struct.pack("<I", len(name))
        + name
        + b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
    )
    dtype = b"cnumpy\ndtype\nX\x02\x00\x00\x00u1K\x00K\x01\x87R(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    return start + b"(K\x01(J" + struct.pack("<i", size) + b"t" + dtype + b"\x89" + payload + b"tb"


@pytest.mark.parametrize("spelled", ["bytes", "text"])
def test_bytes_stored_once_do_not_become_many_arrays(spelled: str) -> None:
    """A reference takes two bytes; were each one followed, 40 kB of references would make 40 MB."""
    size, encode = 100_000, b""
    once = b"B" + struct.pack("<I", size) + bytes(size) + b"q\x01"
    again = b"h\x01"
    if spelled == "text":
        encode = b"c_codecs\nencode\n"
        once = (
            encode
            + b"X"
            + struct.pack("<I", size)
            + bytes(size)
            + b"q\x01X\x06\x00\x00\x00latin1\x86R"
        )
        again = encode + b"h\x01X\x06\x00\x00\x00latin1\x86R"
    honest = b"\x80\x03}(" + _array(b"a", size, once) + b"u."
    assert pickled.read(honest, "FILE")["a"].nbytes == size
    bomb = honest[:-2] + b"".join(_array(b"%d" % i, size, again) for i in range(400)) + b"u."
    tracemalloc.start()
    try:
        with pytest.raises(
            ParseError, match=r"FILE, offset \d+: the arrays have more bytes than the file"
        ):
            pickled.read(bomb, "FILE")
        assert tracemalloc.get_traced_memory()[1] < 10 * len(bomb)
    finally:
        tracemalloc.stop()


OBJECTS = {
    "dicts": b"\x80\x03" + b"}" * 50_000,
    "memo": b"\x80\x04N" + b"\x94" * 50_000,
    "tuples": b"\x80\x03)" + b"\x85" * 50_000,
    "marks": b"(" * 50_000,
    "arrays": (
        b"\x80\x03cnumpy.core.multiarray\n_reconstruct\nq\x00cnumpy\nndarray\nK\x00N\x87q\x01"
        + b"h\x00h\x01R" * 20_000
    ),
    "number": b"\x80\x03I" + b"9" * 50_000 + b"\n.",
    "name": b"\x80\x03c" + b"a" * 50_000 + b"\nb\n.",
    "length": b"\x80\x03\x8e" + b"\xff" * 7 + b"\x7fabc",
    "frame": b"\x80\x04\x95" + b"\xff" * 7 + b"\x7fN.",
    "long": b"\x80\x02\x8b\xff\xff\xff\x7fabc",
    # what kills pickle.Unpickler: a memo made as long as its highest number, and keys that are
    # hashed before anyone sees them
    "far": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "deep": b"\x80\x02})" + b"\x85" * 50_000 + b"Ns.",
    "doubling": (
        b"\x80\x02})q\x00"
        + b"".join(b"0h%ch%c\x86q%c" % (i, i, i + 1) for i in range(200))
        + b"Ns."
    ),
}


@pytest.mark.first(3)
@pytest.mark.parametrize("name", OBJECTS)
def test_pickles_of_one_byte_objects(name: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ParseError, match=r"FILE(, offset|: )") as caught:
            pickled.read(OBJECTS[name], "FILE")
        assert tracemalloc.get_traced_memory()[1] < 64 * len(OBJECTS[name]) + (1 << 14)
    finally:
        tracemalloc.stop()
    assert len(str(caught.value)) < 400


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(_tensor([1 << 20], bytes(4 << 20)))
    with open(path, "rb") as file:
        reader = stream.Reader(file, "FILE")
        os.truncate(path, 1 << 20)
        with pytest.raises(ParseError, match=r"FILE, offset .* the file became shorter"):
            stream.read(reader)


@pytest.mark.parametrize("what", ["/dev/zero", "pipe"])
def test_devices_and_pipes_are_not_read(what: str, tmp_path: Path) -> None:
    """They have no end, or none comes."""
    path = tmp_path / "model"
    if what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(what)
    with pytest.raises(FluidValueError, match=r"cannot read .*model': it is not a regular file"):
        fluid.io.load_inference_model(str(tmp_path), None, "model")


def test_a_program_with_wrong_feed_ops(tmp_path: Path) -> None:
    program = fluid.Program.parse_from_string((DATA / "combined/model").read_bytes())
    program.global_block().ops[0]._set_attr("col", 5)
    with pytest.raises(ParseError, match="FILE: the program's feed ops are numbered"):
        model.read_program(program.serialize_to_string(), "FILE")


def test_saved_text_has_no_stray_paths() -> None:
    """Recorded models hold no file names of the machine that wrote them."""
    for path in DATA.rglob("*"):
        if path.is_file():
            assert not re.search(rb"/(home|root|work|tmp)/", path.read_bytes()), path


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    """It is a variable whose file is not there, in a message that can be read."""
    program = fluid.Program()
    program.global_block().create_var(name="w" * 5000, shape=[1], dtype="float32", persistable=True)
    with pytest.raises(FluidError) as caught:
        fluid.io.load_persistables(fluid.Executor(), str(tmp_path), program)
    assert len(str(caught.value)) < 1000
