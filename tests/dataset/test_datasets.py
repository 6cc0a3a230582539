"""Data sets from local files: what 1.8.5 reads of small ones (recorded), and files that are
missing, damaged or hostile.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import json
import pickle
import random
import tarfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fluidjax import dataset
from fluidjax.dataset import common, image
from fluidjax.errors import (
    FluidError,
    FluidTypeError,
    FluidValueError,
    ParseError,
    UnsupportedError,
)
from fluidjax.saved import pickles
from tests.dataset import dataset_cases as cases

RECORDED = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data" / "datasets_1.8.5.json.gz").read_bytes())
)
MODULES = (
    "cifar conll05 flowers imdb imikolov mnist movielens mq2007 sentiment uci_housing voc2012 wmt14"
    " wmt16".split()
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    home = tmp_path_factory.mktemp("datasets")
    cases.write(str(home))
    return home


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(common.VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def found(written):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(common.VARIABLE, str(written))
        return json.loads(json.dumps(cases.renumbered(cases.read(dataset))))


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_as_recorded(found, name):
    assert found[name] == RECORDED[name]


def test_module_is_imported_when_asked_for():
    assert dataset.__all__ == sorted(dataset.__all__) and set(MODULES) < set(dataset.__all__)
    assert dataset.DatasetFactory().create_dataset().thread_num == 1
    with pytest.raises(AttributeError, match="imbd"):
        _ = dataset.imbd


READERS = [
    ("cifar", "train10", (), "cifar-10-python.tar.gz"), ("cifar", "test100", (), "cifar-100-python.tar.gz"),
    ("conll05", "test", (), "conll05st%2FwordDict.txt (or wordDict.txt)"), ("conll05", "get_embedding", (), "conll05st%2Femb (or emb)"),
    ("flowers", "train", (), "102flowers.tgz"), ("imdb", "train", ({"<unk>": 0},), "imdb%2FaclImdb_v1.tar.gz (or aclImdb_v1.tar.gz)"),
    ("imdb", "word_dict", (), "aclImdb_v1.tar.gz"), ("imikolov", "test", ({}, 2), "simple-examples.tgz"),
    ("movielens", "train", (), "ml-1m.zip"), ("movielens", "user_info", (), "ml-1m.zip"), ("mnist", "train", (), "train-images-idx3-ubyte"),
    ("sentiment", "get_word_dict", (), "movie_reviews.zip"), ("voc2012", "val", (), "VOCtrainval_11-May-2012.tar"),
    ("wmt14", "train", (3,), "wmt14.tgz"), ("wmt16", "validation", (3, 3), "wmt16.tar.gz"), ("uci_housing", "train", (), "housing.data"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name", "args", "file"), READERS)
def test_a_missing_file_is_named_with_its_sum_and_place(home, module, name, args, file):
    loaded = importlib.import_module(f"fluidjax.dataset.{module}")
    with pytest.raises(common.MissingFileError) as error:
        getattr(loaded, name)(*args)
    text = str(error.value)
    assert (
        file in text and ", md5 " in text and str(home) in text and "nothing is downloaded" in text
    )
    with pytest.raises(common.MissingFileError):
        loaded.fetch() if hasattr(loaded, "fetch") else loaded.train()


def drained(made):
    return list(made() if callable(made) else made)


# a damaged file of each data set, and how it is read
ARCHIVES = [
    ("cifar/cifar-10-python.tar.gz", lambda d: drained(d.cifar.train10())),
    ("conll05st/conll05st-tests.tar.gz", lambda d: drained(d.conll05.test())),
    ("imdb/imdb%2FaclImdb_v1.tar.gz", lambda d: drained(d.imdb.train({"<unk>": 0}))),
    ("imikolov/imikolov%2Fsimple-examples.tgz", lambda d: d.imikolov.build_dict(0)),
    ("movielens/movielens%2Fml-1m.zip", lambda d: drained(d.movielens.train())),
    ("corpora/movie_reviews.zip", lambda d: d.sentiment.get_word_dict()),
    ("wmt14/wmt14.tgz", lambda d: drained(d.wmt14.train(5))),
    ("wmt16/wmt16.tar.gz", lambda d: drained(d.wmt16.train(5, 5))),
]


@pytest.mark.parametrize(("name", "read"), ARCHIVES, ids=[n.split("/")[0] for n, _ in ARCHIVES])
def test_damaged_archives_raise_nothing_but_our_errors(home, written, name, read):
    draw = random.Random(name)
    whole = (written / name).read_bytes()
    for other in (p for p in written.glob(f"{name.split('/')[0]}/*") if p.is_file()):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).with_name(other.name).write_bytes(other.read_bytes())
    damaged = [b"", b"text", whole[: len(whole) // 2], whole[:-1]]
    for _ in range(12):
        at = draw.randrange(len(whole))
        damaged.append(whole[:at] + bytes([draw.randrange(256)]) + whole[at + 1 :])
    raised = 0
    for content in damaged:
        (home / name).write_bytes(content)
        try:
            read(dataset)
        except FluidError as error:
            raised += 1
            assert name.split("/")[1] in str(error) or "is plain" in str(error)
    assert raised >= 3
    (home / name).write_bytes(b"text")
    with pytest.raises(
        FluidValueError,
        match=r"its md5 is 1cb251ec0d568de6a929b520c4aed8d1, not \w{32} as published",
    ):
        read(dataset)


def put(home, name, files):
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".zip"):
        with zipfile.ZipFile(home / name, "w") as package:
            for file, data in files:
                package.writestr(file, data)
    elif isinstance(files, bytes):
        (home / name).write_bytes(files)
    else:
        cases.tar(str(home / name), files)


WRONG = [
    ("cifar/cifar-10-python.tar.gz", [("a/data_batch_1", pickle.dumps({b"data": 1}))], ARCHIVES[0][1],
     "data_batch_1 is not a batch of images"),
    ("cifar/cifar-10-python.tar.gz", [("a/b", b"")], ARCHIVES[0][1], "holds no file with 'data_batch' in its name"),
    ("cifar/cifar-10-python.tar.gz", [("data_batch_1", b"\x80\x02")], ARCHIVES[0][1],
     "data_batch_1, offset 0: these bytes are not a pickle"),
    ("imikolov/simple-examples.tgz", [("x", b"")], ARCHIVES[3][1], r"holds no file './simple-examples/data/ptb.train.txt'"),
    ("movielens/ml-1m.zip", [("ml-1m/movies.dat", "1::a (1)\n")], ARCHIVES[4][1], r"movies.dat line 1 has 2 fields apart by ::, not 3"),
    ("movielens/ml-1m.zip", [("ml-1m/movies.dat", "1::a::b\n")], ARCHIVES[4][1], r"line 1: title 'a' does not end in a year"),
    ("movielens/ml-1m.zip", [("ml-1m/movies.dat", "x::a (1)::b\n")], ARCHIVES[4][1], r"line 1: 'x' is not a whole number"),
    ("movielens/ml-1m.zip", [("ml-1m/movies.dat", ""), ("ml-1m/users.dat", "1::F::2::1::1")], ARCHIVES[4][1], "age 2 is none of"),
    ("movielens/ml-1m.zip", [("ml-1m/movies.dat", ""), ("ml-1m/users.dat", ""), ("ml-1m/ratings.dat", "1::1::1::1")], ARCHIVES[4][1],
     "ratings.dat line 1: there is no user 1"),
    ("corpora/movie_reviews.zip", [("movie_reviews/neg/a.txt", b"\xff")], ARCHIVES[5][1], "a.txt: no ascii text"),
    ("corpora/movie_reviews.zip", [("x", b"")], ARCHIVES[5][1], "holds no reviews such as"),
    ("wmt14/wmt14.tgz", [("a/src.dict", b"a"), ("a/trg.dict", b"a")], ARCHIVES[6][1], "holds no <s> among the first 5 words of trg.dict"),
    ("wmt14/wmt14.tgz", [("a/src.dict", b"\xff")], ARCHIVES[6][1], "a/src.dict line 1: no utf-8 text"),
    ("wmt14/wmt14.tgz", [("a", b"")], ARCHIVES[6][1], "no single file whose name ends in src.dict, but 0"),
    ("wmt16/wmt16.tar.gz", [("wmt16/train", b"a\tb\n\xff")], ARCHIVES[7][1], "wmt16/train line 2: no utf-8 text"),
    ("MQ2007/MQ2007/MQ2007/Fold1/train.txt", b"1 qid:1 1:2\n", lambda d: drained(d.mq2007.train()), r"train.txt:1 has 3 fields, not 48"),
    ("MQ2007/MQ2007/MQ2007/Fold1/train.txt", b"a qid:1" + b" 1:2" * 46, lambda d: drained(d.mq2007.train()), r"train.txt:1: score, qid"),
    ("MQ2007/MQ2007/MQ2007/Fold1/train.txt", b"\xff", lambda d: drained(d.mq2007.train()), r"train.txt holds no utf-8 text"),
    ("MQ2007/7b6dbbe2-842c-11e4-a536-bcaec51b9163_MQ2007.rar", b"", lambda d: drained(d.mq2007.train()), "unpack 7b6dbbe2"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "files", "read", "message"), WRONG)
def test_what_is_wrong_within_is_said(home, name, files, read, message):
    put(home, name, files)
    with pytest.raises(FluidError, match=message):
        read(dataset)


def test_links_and_folders_within_an_archive_are_no_files(home):
    """A member's name is compared, never made a path; a link leads to another member or nowhere."""
    for kind, target in (
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.DIRTYPE, ""),
        (tarfile.LNKTYPE, "../../x"),
        (tarfile.FIFOTYPE, ""),
    ):
        with tarfile.open(home / "a.tgz", "w:gz") as archive:
            info = tarfile.TarInfo("./simple-examples/data/ptb.train.txt")
            info.type, info.linkname = kind, target
            archive.addfile(info)
        put(home, "imikolov/simple-examples.tgz", (home / "a.tgz").read_bytes())
        with pytest.raises(FluidValueError, match=r"ptb\.train\.txt' is not a file"):
            dataset.imikolov.build_dict(0)


class Calls:
    """Pickles as a call."""

    def __init__(self, function, *args):
        self.what = function, args

    def __reduce__(self):
        return self.what


def array_pickle(dtype, shape=(2,), data=b"12"):
    """an array with this in its state, as NumPy writes one"""
    text = f"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n({''.join(f'I{n}' + chr(10) for n in shape)}t"
    state = "(I3\nS'|'\nNNNI-1\nI-1\nI0\ntb" if dtype == "u1" else ""
    return f"{text}cnumpy\ndtype\n(S'{dtype}'\nI0\nI1\ntR{state}I00\nS{data.decode('latin1')!r}\ntb.".encode(
        "latin1"
    )


def test_plain_pickles_are_read():
    value = {
        b"a": [1, 2.5, "x", None, True],
        "b": (np.arange(6, dtype=">i2").reshape(2, 3, order="F"), b"", 2**70),
        3: np.zeros((0, 2)),
    }
    for protocol in range(2, 6):
        found = pickles.loads(
            pickle.dumps(value, protocol) if protocol < 5 else pickle.dumps(value, 4)
        )
        np.testing.assert_array_equal(found["b"][0], value["b"][0])
        assert (
            found[b"a"] == value[b"a"]
            and found["b"][1:] == value["b"][1:]
            and found[3].shape == (0, 2)
        )
    assert pickles.loads(array_pickle("u1")).tolist() == [49, 50]
    assert pickles.loads(b"U\x01\xe9.") == b"\xe9"  # a string of Python 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pickle.dumps(Calls(eval, "1/0")), "wants '(builtins|__builtin__).eval'"),
        (pickle.dumps(Calls(io.open, "/tmp/x", "w")), r"wants '(_?io)\.open"),
        (pickle.dumps(Calls(np.dtype, "O")), "arrays of dtype 'O'"),
        (pickle.dumps(np.array([object])), "wants"),
        (pickle.dumps(np.zeros(2, [("a", "i4")])), "arrays of dtype 'V4'"),
        (pickle.dumps(Calls(bytes, 10**12)), "calls .*bytes with other arguments"),
        (array_pickle("u1", (3,)), r"an array \[3\] of uint8 has 2 bytes"),
        (array_pickle("u1", (2**62, 4, 0)), r"an array \[4611686018427387904, 4, 0\]"),
        (array_pickle("u1", (-1,)), "is not shape, dtype, order and bytes"),
        (b"cnumpy\nndarray\n.", "holds a name for a value"),
        (b"cnumpy\ndtype\n(S'x'\nI1\ndb.", "sets a state that is not"),
        (
            b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR.",
            "holds an array without numbers",
        ),
        (b"(lp0\ng0\na.", "holds a container that holds itself"),
        (pickle.dumps({1, 2}), "set|EMPTY_SET"),
        (b"P1\n.", "opcode PERSID does not belong"),
        (b"\x80\x02X\xff\xff\xff\x7fa.", "these bytes are not a pickle"),
        (b"I1\n" * 3, "they end early"),
        (b"", "they end early"),
    ],
)
def test_other_pickles_are_refused_and_run_nothing(data, message):
    with pytest.raises(ParseError, match=message):
        pickles.loads(data, "f")


def test_a_pickle_of_lists_of_lists_takes_no_time():
    deep = [1]
    for _ in range(60):
        deep = [deep] * 9
    found = pickles.loads(pickle.dumps(deep))
    assert len(found) == 9 and found[0] is found[8]


def test_damaged_pickles_raise_nothing_but_our_errors():
    draw = random.Random(5)
    whole = cases.cifar(b"labels", [1, 2], 0)[-120:] + pickle.dumps(
        {b"a": np.arange(3), "b": [1, "x"]}, 2
    )
    start = pickle.dumps({b"a": np.arange(3), "b": [1, ("x", 2.5)]}, 2)
    for _ in range(400):
        data = bytearray(draw.choice((whole, start)))
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(ParseError):
                pickles.loads(bytes(data))


def test_common(home, monkeypatch):
    (home / "x").mkdir()
    (home / "x" / "a.txt").write_bytes(b"text")
    text = "1cb251ec0d568de6a929b520c4aed8d1"
    assert common.md5file(home / "x" / "a.txt") == text and common.download(
        "http://none/a.txt", "x", text
    ) == str(home / "x" / "a.txt")
    with pytest.raises(FluidValueError, match=f"its md5 is {text}, not 0"):
        common.download("http://none/b", "x", "0", save_name="a.txt")
    with pytest.raises(common.MissingFileError, match="needs the file b, md5 0"):
        common.download("http://none/b", "x", "0")
    monkeypatch.setattr(common, "DATA_HOME", str(home / "other"))
    assert common.folder("x") == home / "other" / "x"
    pattern = str(home / "part-%03d")
    common.split(lambda: iter(range(8)), 3, pattern)
    read = common.cluster_files_reader(str(home / "part-*"), 2, 0)
    assert [*read()] == [0, 1, 2, 3, 7] and [
        *common.cluster_files_reader(str(home / "part-*"), 2, 1)()
    ] == [4, 5, 6]
    common.split(lambda: iter(range(2)), 3, str(home / "json-%d"), json.dump)
    assert [*common.cluster_files_reader(str(home / "json-*"), 1, 0, json.load)()] == [0, 1]
    (home / "part-000").write_bytes(pickle.dumps(Calls(eval, "1/0")))
    with pytest.raises(ParseError, match=r"part-000, offset \d+: the pickle wants"):
        list(read())
    for wrong in (
        lambda: common.split(range, 1, dumper=1),
        lambda: common.cluster_files_reader("x", 1, 0, loader=1),
    ):
        with pytest.raises(FluidTypeError, match="can be called"):
            wrong()


def jpeg(array, kind="JPEG"):
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(array).save(file, kind)
    return file.getvalue()


def test_voc2012(home):
    image, classes = np.full((4, 6, 3), 200, "uint8"), np.arange(24, dtype="uint8").reshape(4, 6)
    top = "VOCdevkit/VOC2012"
    sets = [
        (f"{top}/ImageSets/Segmentation/{n}.txt", t)
        for n, t in (("trainval", b"b\na\n"), ("train", b"a\n"), ("val", b"gone\n"))
    ]
    files = [(f"{top}/JPEGImages/{n}.jpg", jpeg(image)) for n in "ab"]
    files += [(f"{top}/SegmentationClass/{n}.png", jpeg(classes, "PNG")) for n in "ab"]
    put(home, "voc2012/VOCtrainval_11-May-2012.tar", [*sets, *files])
    samples = list(dataset.voc2012.train()())
    assert (
        len(samples) == 2
        and samples[0][0].shape == (4, 6, 3)
        and len(list(dataset.voc2012.test()())) == 1
    )
    np.testing.assert_array_equal(samples[1][1], classes)
    with pytest.raises(FluidValueError, match=r"holds no file .*gone\.jpg"):
        list(dataset.voc2012.val()())
    put(
        home,
        "voc2012/VOCtrainval_11-May-2012.tar",
        [*sets, (f"{top}/JPEGImages/b.jpg", b"x"), *files[2:]],
    )
    with pytest.raises(FluidValueError, match=r"b\.jpg holds no image"):
        list(dataset.voc2012.train()())


@pytest.mark.parametrize("packed", [False, True])
def test_matlab_tables_are_those_that_scipy_writes(packed):
    from scipy.io import savemat

    from fluidjax.dataset.matlab import table

    for kind in "u1 i1 u2 i2 u4 i4 u8 i8 f4 f8".split():
        for values in (
            np.arange(6).reshape(2, 3),
            np.arange(2000).reshape(1, -1) % 120,
            np.zeros((0, 3)),
            np.array([[7]]),
        ):
            values, file = values.astype(kind), io.BytesIO()
            savemat(
                file,
                {"other": np.ones(3), "b": values, "a_longer_name": values},
                do_compression=packed,
            )
            for name in ("b", "a_longer_name"):
                found = table(file.getvalue(), name)
                assert found.dtype == values.dtype
                np.testing.assert_array_equal(found, values)
    for told, held in (
        ("none of this name", {"a": np.ones(3)}),
        ("no real numbers", {"b": np.ones(3) * 1j}),
        ("no real", {"b": "text"}),
    ):
        file = io.BytesIO()
        savemat(file, held, do_compression=packed)
        with pytest.raises(ValueError, match=told):
            table(file.getvalue(), "b")


def test_a_member_that_says_that_it_is_encrypted(home, written):
    """A damaged flag; zipfile raises a RuntimeError."""
    name = "corpora/movie_reviews.zip"
    whole = bytearray((written / name).read_bytes())
    at = whole.index(b"PK\1\2")
    whole[at + 8] |= 1
    whole[6] |= 1
    put(home, name, [])
    (home / name).write_bytes(whole)
    with pytest.raises(FluidValueError, match=r"movie_reviews\.zip cannot be read: .*encrypted"):
        dataset.sentiment.get_word_dict()


def test_flowers(home):
    from scipy.io import savemat

    files = [(f"jpg/image_{i:05d}.jpg", bytes([i])) for i in (3, 1, 2, 4)]
    put(home, "flowers/102flowers.tgz", files)
    savemat(home / "flowers" / "imagelabels.mat", {"labels": np.array([[5, 102, 1, 7]], "uint8")})
    savemat(
        home / "flowers" / "setid.mat",
        {"trnid": np.array([[1]]), "valid": np.array([[4]]), "tstid": np.array([[2, 3]], "uint16")},
    )
    assert list(dataset.flowers.train(lambda s: s)()) == [(b"\3", 0), (b"\2", 101)]
    assert list(dataset.flowers.test(lambda s: s, use_xmap=False)()) == [(b"\1", 4)]
    assert list(dataset.flowers.valid(lambda s: s)()) == [(b"\4", 6)]
    savemat(home / "flowers" / "setid.mat", {"tstid": np.array([[5]])})
    with pytest.raises(FluidValueError, match=r"names images 5 to 5; .* has labels for 1 to 4"):
        dataset.flowers.train()
    (home / "flowers" / "setid.mat").write_bytes(b"text" * 50)
    with pytest.raises(
        FluidValueError, match=r"setid\.mat is not a MATLAB file with a table 'tstid'"
    ):
        dataset.flowers.train()


def test_images(home):
    array = np.arange(5 * 4 * 3, dtype="uint8").reshape(5, 4, 3)
    np.testing.assert_array_equal(image.center_crop(array, 3), array[1:4, 0:3])
    np.testing.assert_array_equal(image.left_right_flip(array), array[:, ::-1])
    assert image.to_chw(array).shape == (3, 5, 4)
    np.random.seed(3)
    top = np.random.randint(0, 5 - 3 + 1)
    left = np.random.randint(0, 4 - 3 + 1)
    np.random.seed(3)
    np.testing.assert_array_equal(
        image.random_crop(array, 3), array[top : top + 3, left : left + 3]
    )
    for wrong, told in (
        (lambda: image.random_crop(array, 5), "no square of 5"),
        (lambda: image.to_chw(array[0]), "turns 3 axes"),
    ):
        with pytest.raises(FluidValueError, match=told):
            wrong()
    cases.tar(str(home / "a.tgz"), [("b", b"1"), ("a", b"2"), ("c", b"3"), ("d", b"4")])
    listed = image.batch_images_from_tar(str(home / "a.tgz"), "set", {"a": 0, "b": 1, "d": 2}, 2)
    batches = [pickles.loads(Path(name).read_bytes()) for name in Path(listed).read_text().split()]
    assert batches == [{"label": [1, 0], "data": [b"1", b"2"]}, {"label": [2], "data": [b"4"]}]
    assert image.batch_images_from_tar(str(home / "a.tgz"), "set", {}) == listed
    if importlib.util.find_spec("cv2") is None:
        with pytest.raises(UnsupportedError, match="install opencv-python"):
            image.load_image_bytes(b"x")
        return
    made = image.simple_transform(
        image.load_image_bytes(jpeg(array, "PNG")), 8, 6, False, mean=[1.0, 2.0, 3.0]
    )
    assert made.shape == (3, 6, 6) and made.dtype == "float32"
