"""Every kind of file that is read: good ones, how they are spoiled, how they are read and used."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fluidjax as fluid
from fluidjax import dataset, layers
from fluidjax.dataset.idx import MNIST
from fluidjax.errors import FluidError
from fluidjax.ir import jsonio, text
from fluidjax.ir.verify import verify
from fluidjax.ops.registry import lookup
from fluidjax.saved import pickled, safe, stream
from tests.dataset import dataset_cases, slot_cases

from . import mutations as m

DATA = Path(__file__).parents[1] / "data/saved"
NAMES = sorted(p.name for p in (DATA / "separate").iterdir() if p.name != "__model__")
SIZE = 1 << 12  # elements of a feed, of all that a program is fed
DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64")
LOOPS = ("while", "recurrent")
Mutate = Callable[[bytes, random.Random], bytes]


class TooSlow(BaseException):
    """It took more CPU time than it may."""


@dataclass(frozen=True)
class Kind:
    """files: good ones. mutate: spoils one. read: reads bytes and uses what they hold, in an empty
    folder.
    """

    files: Sequence[bytes]
    mutate: Mutate
    read: Callable[[bytes, Path], object]


def program(build: Callable[[], Any]) -> fluid.Program:
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        build()
    return main


def images() -> None:
    x = layers.data("x", [1, 8, 8])
    h = layers.pool2d(layers.batch_norm(layers.conv2d(x, 2, 3, padding=1, act="relu")), 2, "max", 2)
    layers.softmax(layers.fc(layers.reshape(h, [-1, 32]), 3))


def branches() -> None:
    x, i = layers.data("x", [4]), layers.fill_constant([1], "int64", 0)
    total = layers.cond(layers.mean(x) < 0.0, lambda: x * 2.0, lambda: x + 1.0)
    loop = layers.While(layers.less_than(i, layers.fill_constant([1], "int64", 3)))
    with loop.block():
        layers.increment(i)
        layers.assign(layers.less_than(i, layers.fill_constant([1], "int64", 3)), loop.cond_var)
    layers.elementwise_add(total, layers.cast(i, "float32"))


def training() -> None:
    ids = layers.data("ids", [1], dtype="int64")
    rows = layers.dropout(layers.embedding(ids, [7, 4]), 0.3)
    loss = layers.mean(
        layers.softmax_with_cross_entropy(layers.fc(rows, 3), layers.data("y", [1], dtype="int64"))
    )
    fluid.optimizer.Adam(layers.piecewise_decay([2, 4, 6, 8], [0.1, 0.2, 0.3, 0.2, 0.1])).minimize(
        loss
    )


def sentences() -> None:
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    rows = layers.sequence_pool(layers.sequence_conv(layers.embedding(words, [9, 4]), 4), "sum")
    layers.concat([rows, layers.slice(rows, [1], [0], [2]), layers.transpose(rows, [0, 1])], 1)


PROGRAMS = [program(build) for build in (images, branches, training, sentences)]


def used(desc_or_program: Any, run: bool) -> None:
    """A program that was read: shown, verified, copied, and one step of it."""
    main = (
        desc_or_program
        if isinstance(desc_or_program, fluid.Program)
        else fluid.Program.from_desc(desc_or_program)
    )
    str(main)
    with contextlib.suppress(FluidError):
        verify(main.desc, lookup)
    with contextlib.suppress(FluidError):
        main.clone(for_test=True)
    if not run:
        return
    scope, block = fluid.Scope(), main.desc.blocks[0]
    fed, elements = {}, 0
    for name, var in block.vars.items():
        if (
            var.kind != "LOD_TENSOR"
            or var.shape is None
            or var.dtype is None
            or var.dtype not in DTYPES
            or not (var.is_data or var.persistable)
        ):
            continue
        shape = tuple(2 if n < 0 else n for n in var.shape)
        count = 1
        for n in shape:
            count *= n
        elements += count
        if elements > SIZE or len(shape) > 32:
            return
        value = np.ones(shape, var.dtype if var.dtype != "bfloat16" else "float32")
        if var.persistable:
            scope.var(name).get_tensor().set(value)
        else:
            fed[name] = (
                fluid.create_lod_tensor(value, [[1] * shape[0]], fluid.CPUPlace())
                if var.lod_level == 1 and shape
                else value
            )
    ends = {
        n
        for op in block.ops
        for n in op.writes
        if n in block.vars and block.vars[n].kind == "LOD_TENSOR"
    }
    ends -= {n for op in block.ops for n in op.reads}
    try:
        fluid.Executor(fluid.CPUPlace()).run(
            main, feed=fed, fetch_list=sorted(ends), scope=scope, return_numpy=False
        )
    except TooSlow:
        if not any(
            op.type in LOOPS for b in main.desc.blocks for op in b.ops
        ):  # how long those run is the program's to say
            raise


def model(data: bytes, folder: Path) -> None:
    """A ``__model__``; one in four that can be read is run."""
    used(fluid.Program.parse_from_string(data), run=len(data) % 4 == 0 or bool(data[-1] & 1))


def of_json(data: bytes, folder: Path) -> None:
    used(jsonio.from_json(data), run=len(data) % 4 == 0)


def of_text(data: bytes, folder: Path) -> None:
    used(text.parse(data.decode("utf-8", "surrogateescape")), run=len(data) % 4 == 0)


def saved_model(data: bytes, folder: Path) -> None:
    """A ``__model__`` beside good parameters, one file each."""
    for name in NAMES:
        shutil.copy(DATA / "separate" / name, folder / name)
    (folder / "__model__").write_bytes(data)
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_inference_model(str(folder), fluid.Executor(fluid.CPUPlace()))


def parameters(combined: bool) -> Callable[[bytes, Path], None]:
    def read(data: bytes, folder: Path) -> None:
        """Parameters beside a good program: all in one file, or one of several spoiled."""
        source = DATA / ("combined" if combined else "separate")
        shutil.copy(source / ("model" if combined else "__model__"), folder / "__model__")
        for name in [] if combined else NAMES:
            shutil.copy(source / name, folder / name)
        (folder / ("params" if combined else "conv2d_0.w_0")).write_bytes(data)
        with fluid.scope_guard(fluid.Scope()):
            fluid.io.load_inference_model(
                str(folder), fluid.Executor(fluid.CPUPlace()), None, "params" if combined else None
            )

    return read


def safetensors() -> bytes:
    from safetensors.numpy import save

    return save({"a": np.arange(12, dtype="float32").reshape(3, 4), "b": np.ones(5, "int64")})


def of_archive(inner: Mutate) -> Mutate:
    """The archive's bytes; or those of a member, in an archive that is whole."""

    def mutate(data: bytes, draw: random.Random) -> bytes:
        if draw.random() < 0.4:
            return m.of_bytes(data, draw)
        if data[:2] == b"PK":
            with zipfile.ZipFile(io.BytesIO(data)) as old:
                members = [(i.filename, old.read(i)) for i in old.infolist()]
        elif data[:2] == b"\x1f\x8b":
            try:
                with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                    files = [f for f in tar if f.isfile()]
                    members = [(f.name, tar.extractfile(f).read()) for f in files]  # type: ignore[union-attr]
            except tarfile.TarError:
                return gzip.compress(inner(gzip.decompress(data), draw), 1)
        else:
            return inner(data, draw)
        at = draw.randrange(len(members))
        name, content = members[at]
        members[at] = (
            draw.choice([name, name, name, "x", name + "/", "../" + name]),
            _member(content, inner, draw),
        )
        out = io.BytesIO()
        if data[:2] == b"PK":
            with zipfile.ZipFile(out, "w") as new:
                for name, content in members:
                    new.writestr(name, content)
        else:
            with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as new_tar:
                for name, content in members:
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    new_tar.addfile(info, io.BytesIO(content))
        return out.getvalue()

    return mutate


def _member(content: bytes, inner: Mutate, draw: random.Random) -> bytes:
    if content[:2] == b"\x1f\x8b" and draw.random() < 0.8:
        return gzip.compress(inner(gzip.decompress(content), draw), 1)
    return inner(content, draw) if content else b"x"


def drained(made: Any) -> None:
    for number, _ in enumerate(made() if callable(made) else made):
        if number > 2000:
            return


# data set -> its file that is spoiled, how members are, and how it is read
DATA_SETS: dict[str, tuple[str, Mutate, Callable[[Any], object]]] = {
    "cifar": ("cifar/cifar-10-python.tar.gz", m.of_bytes, lambda d: drained(d.cifar.train10())),
    "conll05": ("conll05st/conll05st-tests.tar.gz", m.of_text, lambda d: drained(d.conll05.test())),
    "flowers": ("flowers/102flowers.tgz", m.of_bytes, lambda d: drained(d.flowers.test(lambda s: s, use_xmap=False))),
    "matlab": ("flowers/setid.mat", m.of_bytes, lambda d: drained(d.flowers.test(lambda s: s, use_xmap=False))),
    "imdb": ("imdb/imdb%2FaclImdb_v1.tar.gz", m.of_text, lambda d: drained(d.imdb.train({"<unk>": 0}))),
    "imikolov": ("imikolov/imikolov%2Fsimple-examples.tgz", m.of_text, lambda d: d.imikolov.build_dict(0)),
    "mnist": ("mnist/train-images-idx3-ubyte.gz", m.of_numbers, lambda d: drained(d.mnist.train())),
    "mq2007": ("MQ2007/MQ2007/MQ2007/Fold1/train.txt", m.of_text, lambda d: drained(d.mq2007.train())),
    "movielens": ("movielens/movielens%2Fml-1m.zip", m.of_text, lambda d: drained(d.movielens.train())),
    "sentiment": ("corpora/movie_reviews.zip", m.of_text, lambda d: drained(d.sentiment.train())),
    "uci_housing": ("uci_housing/housing.data", m.of_text, lambda d: drained(d.uci_housing.train())),
    "voc2012": ("voc2012/VOCtrainval_11-May-2012.tar", m.of_bytes, lambda d: drained(d.voc2012.train())),
    "wmt14": ("wmt14/wmt14.tgz", m.of_text, lambda d: drained(d.wmt14.train(5))),
    "wmt16": ("wmt16/wmt16.tar.gz", m.of_text, lambda d: drained(d.wmt16.train(5, 5))),
}  # fmt: skip


def data_set(home: Path, name: str) -> Kind:
    file, inner, read_ = DATA_SETS[name]
    whole = (home / file).read_bytes()

    def read(data: bytes, folder: Path) -> None:
        shutil.copytree(home / file.split("/")[0], folder / file.split("/")[0])
        (folder / file).write_bytes(data)
        read_(dataset)

    return Kind([whole], of_archive(inner), read)


def written(home: Path) -> None:
    """A small one of each data set."""
    from PIL import Image
    from scipy.io import savemat

    def picture(array: np.ndarray, kind: str) -> bytes:
        file = io.BytesIO()
        Image.fromarray(array).save(file, kind)
        return file.getvalue()

    dataset_cases.write(str(home))
    for folder in ("flowers", "voc2012", "mnist", "uci_housing"):
        (home / folder).mkdir()
    jpeg, top = picture(np.full((256, 260, 3), 200, "uint8"), "JPEG"), "VOCdevkit/VOC2012"
    dataset_cases.tar(
        str(home / "flowers/102flowers.tgz"), [(f"jpg/image_{i:05d}.jpg", jpeg) for i in (1, 2)]
    )
    savemat(home / "flowers/imagelabels.mat", {"labels": np.array([[5, 102]], "uint8")})
    savemat(
        home / "flowers/setid.mat",
        {"trnid": np.array([[1]]), "valid": np.array([[1]]), "tstid": np.array([[2]], "uint16")},
    )
    classes = picture(np.arange(24, dtype="uint8").reshape(4, 6), "PNG")
    dataset_cases.tar(
        str(home / "voc2012/VOCtrainval_11-May-2012.tar"),
        [
            (f"{top}/ImageSets/Segmentation/trainval.txt", b"a\n"),
            (f"{top}/JPEGImages/a.jpg", jpeg),
            (f"{top}/SegmentationClass/a.png", classes),
        ],
        "w",
    )
    for name, shape in zip(MNIST["train"], ((3, 28, 28), (3,)), strict=True):
        head = bytes([0, 0, 8, len(shape)]) + b"".join(n.to_bytes(4, "big") for n in shape)
        (home / "mnist" / f"{name}.gz").write_bytes(
            gzip.compress(head + bytes(int(np.prod(shape))), mtime=0)
        )
    rows = np.random.RandomState(0).rand(10, 14)
    (home / "uci_housing/housing.data").write_text(
        "\n".join(" ".join(f"{v:.3f}" for v in row) for row in rows)
    )


def slots(data: bytes, folder: Path) -> None:
    (folder / "part").write_bytes(data)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        made = slot_cases.dataset(
            fluid, "InMemoryDataset", [str(folder / "part")], slot_cases.variables(fluid)
        )
    made.load_into_memory()
    made.get_memory_data_size()


def description(data: bytes, folder: Path) -> None:
    (folder / "desc").write_bytes(data)
    fluid.DataFeedDesc(str(folder / "desc")).desc()


class Checkpoints:
    """A checkpoint of a small job; one of its files is spoiled."""

    def __init__(self, home: Path) -> None:
        self.home = home / "checkpoint"
        with fluid.scope_guard(fluid.Scope()):
            self.main, startup = fluid.Program(), fluid.Program()
            with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
                fluid.optimizer.Adam(0.1).minimize(layers.mean(layers.fc(layers.data("x", [3]), 2)))
            self.exe = fluid.Executor(fluid.CPUPlace())
            self.exe.run(startup)
            fluid.io.save_checkpoint(self.exe, str(self.home), self.main, asynchronous=False)
        self.files = sorted(p for p in self.home.rglob("*") if p.is_file() and p.stat().st_size)

    def kind(self) -> Kind:
        good = [bytes([i]) + p.read_bytes() for i, p in enumerate(self.files)]
        return Kind(
            good,
            lambda data, draw: (
                data[:1] + (m.of_json if data[1:2] == b"{" else m.of_bytes)(data[1:], draw)
            ),
            self.read,
        )

    def read(self, data: bytes, folder: Path) -> None:
        there = folder / "c"
        shutil.copytree(self.home, there)
        (there / self.files[data[0]].relative_to(self.home)).write_bytes(data[1:])
        scope = fluid.Scope()
        fluid.io.load_checkpoint(self.exe, str(there), self.main, scope=scope)


def kinds(home: Path) -> dict[str, Callable[[], Kind]]:
    """Every kind by name. home: a folder for what some need."""
    found: dict[str, Callable[[], Kind]] = {
        "program": lambda: Kind([p.serialize_to_string() for p in PROGRAMS], m.of_program, model),
        "__model__": lambda: Kind(
            [(DATA / "separate/__model__").read_bytes()], m.of_program, saved_model
        ),
        "separate": lambda: Kind(
            [(DATA / "separate/conv2d_0.w_0").read_bytes()], m.of_bytes, parameters(False)
        ),
        "combined": lambda: Kind(
            [(DATA / "combined/params").read_bytes()], m.of_bytes, parameters(True)
        ),
        "ragged": lambda: Kind(
            [(DATA / "lod/ragged").read_bytes()],
            m.of_bytes,
            lambda d, _: stream.read_one(d, "FILE"),
        ),
        "pickle": lambda: Kind(
            [(DATA / "prefix.pdparams").read_bytes()],
            m.of_bytes,
            lambda d, _: pickled.read(d, "FILE"),
        ),
        "safetensors": lambda: Kind(
            [safetensors()], m.of_bytes, lambda d, _: safe.read_safetensors(d, "FILE")
        ),
        "json": lambda: Kind(
            [jsonio.to_json(p.desc).encode() for p in PROGRAMS], m.of_json, of_json
        ),
        "text": lambda: Kind([text.to_text(p.desc).encode() for p in PROGRAMS], m.of_text, of_text),
        "checkpoint": lambda: Checkpoints(home).kind(),
        "slots": lambda: Kind([t.encode() for t in slot_cases.FILES.values()], m.of_text, slots),
        "description": lambda: Kind([slot_cases.DESC.encode()], m.of_text, description),
    }
    (home / "sets").mkdir()
    written(home / "sets")
    found.update({name: lambda name=name: data_set(home / "sets", name) for name in DATA_SETS})
    return found
