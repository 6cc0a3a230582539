"""Small files in the formats of the published data sets, and what is read of them; for Python 3.8
too (tests/tools/record_datasets.py).
"""

# ruff: noqa: UP031, E501 - the tables are wide
import gzip
import io
import os
import pickle
import tarfile
import zipfile

import numpy as np

TEXTS = [
    "A fine, fine film -- it's good.\n",
    "bad BAD film",
    "fine \xe9t\xe9 . good it's\r\n",
    "b a b a c",
]
PTB = "the cat <unk> sat on the mat\n the N cat\n\nthe cat sat\n"
PTB_VALID = "the dog sat\nN N mat\n"
RANKS = "".join(
    "%d qid:%d %s #docid = GX%d\n"
    % (score, query, " ".join("%d:%.6f" % (k, (k * 7 + i) % 11 / 10) for k in range(1, 47)), i)
    for i, (score, query) in enumerate(
        [(0, 10), (2, 10), (1, 10), (2, 10), (0, 11), (0, 11), (1, 12)]
    )
)
WORDS = "The\ncat\nsat\non\nthe\nmat\n.\n\nDogs\nbark\nand\nrun\n\n"
PROPS = (
    "-\t(A0*\n-\t*)\nsit\t(V*)\n-\t(AM-LOC*\n-\t*\n-\t*)\n-\t*\n\n"
    "-\t(A0*)\t(A0*)\nbark\t(V*)\t*\n-\t*\t*\nrun\t*\t(V*)\n\n"
)


def tar(path, files, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def cifar(kind, labels, seed, protocol=2):
    rows = np.random.RandomState(seed).randint(0, 256, (len(labels), 3072)).astype("uint8")
    return pickle.dumps(
        {b"batch_label": b"x", b"data": rows, kind: labels, b"filenames": [b"a.png"] * len(labels)},
        protocol,
    )


def write(home):
    """all of them, below a folder"""

    def at(name):
        path = os.path.join(home, name)
        if not os.path.isdir(os.path.dirname(path)):
            os.makedirs(os.path.dirname(path))
        return path

    def text(name, content):
        with open(at(name), "wb") as file:
            file.write(content.encode("utf-8"))

    tar(at("cifar/cifar-10-python.tar.gz"), [
        ("cifar-10-batches-py/batches.meta", b"no pickle"), ("cifar-10-batches-py/data_batch_2", cifar(b"labels", [3, 9], 2)),
        ("cifar-10-batches-py/data_batch_1", cifar(b"labels", [0], 1, 3)), ("cifar-10-batches-py/test_batch", cifar(b"labels", [7], 3)),
    ])  # fmt: skip
    tar(at("cifar/cifar-100-python.tar.gz"), [
        ("cifar-100-python/train", cifar(b"fine_labels", [99, 0], 4)), ("cifar-100-python/test", cifar(b"fine_labels", [5], 5)),
    ])  # fmt: skip
    reviews = [("aclImdb/%s/%s/%d_7.txt" % (part, kind, i), TEXTS[(i + k) % 4].encode("utf-8"))
               for part in ("train", "test") for k, kind in enumerate(("neg", "pos")) for i in (2, 0, 1)]  # fmt: skip
    tar(
        at("imdb/imdb%2FaclImdb_v1.tar.gz"),
        [("aclImdb/README", b"x"), *reviews, ("aclImdb/train/unsup/0_0.txt", b"x y z")],
    )
    ptb = [
        ("./simple-examples/data/ptb.%s.txt" % n, t.encode())
        for n, t in (("train", PTB), ("valid", PTB_VALID), ("test", "x"))
    ]
    tar(at("imikolov/imikolov%2Fsimple-examples.tgz"), ptb)
    with zipfile.ZipFile(at("movielens/movielens%2Fml-1m.zip"), "w") as package:
        package.writestr(
            "ml-1m/movies.dat",
            "1::Toy Story (1995)::Animation|Comedy\n7::\xc9t\xe9, the toy (1990)::Drama\n".encode(
                "latin1"
            ),
        )
        package.writestr("ml-1m/users.dat", "1::F::1::10::48067\n2::M::56::16::70072\n")
        lines = [
            "%d::%d::%d::97830%d" % (1 + i % 2, (1, 7)[i // 2 % 2], 1 + i % 5, i) for i in range(30)
        ]
        package.writestr("ml-1m/ratings.dat", "\n".join(lines) + "\n")
    packed = [
        ("conll05st-release/test.wsj/%s/test.wsj.%s.gz" % (n, n), gzip.compress(t.encode()))
        for n, t in (("words", WORDS), ("props", PROPS))
    ]
    tar(at("conll05st/conll05st-tests.tar.gz"), packed)
    text(
        "conll05st/conll05st%2FwordDict.txt",
        "<unk>\nthe\nThe\ncat\nsat\nmat\nbos\neos\nDogs\nrun\n",
    )
    text("conll05st/conll05st%2FverbDict.txt", "run\nsit\n")
    text("conll05st/conll05st%2FtargetDict.txt", "B-A0\nI-A0\nB-V\nO\nB-AM-LOC\nI-AM-LOC\n")
    text("conll05st/conll05st%2Femb", "0 0\n")
    pairs = {
        "train": "le chat\tthe cat\nnope\nun  chien dort\ta dog sleeps \n" + "x " * 79 + "\ty\n",
        "test": "chien\tdog\n",
        "gen": "le\tthe cat dog\n",
    }
    tar(at("wmt14/wmt14.tgz"), [
        ("wmt14/src.dict", b"<s>\n<e>\n<unk>\nle\nchat\nun\n"), ("wmt14/trg.dict", b"<s>\n<e>\n<unk>\nthe\na\ndog\n"),
        *[("wmt14/%s/%s" % (n, n), t.encode()) for n, t in pairs.items()],
    ])  # fmt: skip
    pairs = {
        "train": "a dog sleeps\tein Hund schl\xe4ft\na cat\teine Katze\nnope\na dog eats\tein Hund frisst\n",
        "val": "a cat eats\teine Katze\n",
        "test": "b\tein\n",
    }
    tar(at("wmt16/wmt16.tar.gz"), [("wmt16/" + n, t.encode("utf-8")) for n, t in pairs.items()])
    with zipfile.ZipFile(at("corpora/movie_reviews.zip"), "w") as package:
        for i, (kind, words) in enumerate(
            [
                ("pos", "good , good film !!!\nit's ok"),
                ("neg", "bad film ..."),
                ("neg", "worse film\n"),
                ("pos", "ok "),
            ]
        ):
            package.writestr("movie_reviews/%s/cv%03d_%d.txt" % (kind, 9 - i, i), words)
        package.writestr("movie_reviews/README", "x")
    text("MQ2007/MQ2007/MQ2007/Fold1/train.txt", RANKS)
    text(
        "MQ2007/MQ2007/MQ2007/Fold1/test.txt",
        RANKS[: RANKS.index("\n") + 1].replace("0 qid", "2 qid", 1),
    )


def plain(value):
    """as JSON has it, with dtypes; bytes as ["bytes", text]"""
    if isinstance(value, np.ndarray):
        return [
            str(value.dtype),
            list(value.shape),
            np.round(value.astype("float64").ravel()[:40], 9).tolist(),
            float(value.astype("float64").sum()),
        ]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(plain, value)]
    if isinstance(value, bytes):
        return ["bytes", value.decode("utf-8")]
    if isinstance(value, dict):
        return [[plain(k), plain(v)] for k, v in value.items()]
    assert value is None or isinstance(value, (int, float, str)), type(value)
    return value


def read(d):
    """what is read of the files. d: paddle.dataset, whose modules are attributes"""
    found = {}

    def keep(name, reader):
        found[name] = [plain(sample) for sample in (reader() if callable(reader) else reader)]

    for name in ("train10", "test10", "train100", "test100"):
        keep("cifar." + name, getattr(d.cifar, name)())
    import re

    words = d.imdb.build_dict(re.compile(r"aclImdb/((train)|(test))/((pos)|(neg))/.*\.txt$"), 3)
    found["imdb.dict"] = plain(words)
    keep("imdb.train", d.imdb.train(words))
    keep("imdb.test", d.imdb.test(words))
    words = d.imikolov.build_dict(1)
    found["imikolov.dict"] = plain(words)
    kind = d.imikolov.DataType
    for name, n, what in (
        ("2", 2, kind.NGRAM),
        ("5", 5, kind.NGRAM),
        ("all", 0, kind.SEQ),
        ("short", 4, kind.SEQ),
    ):
        keep("imikolov.train." + name, d.imikolov.train(words, n, what))
    keep("imikolov.test", d.imikolov.test(words, 3))
    for size in (4, 5, 100):
        keep("wmt14.train.%d" % size, d.wmt14.train(size))
        found["wmt14.dict.%d" % size] = plain(d.wmt14.get_dict(size)) + plain(
            d.wmt14.get_dict(size, reverse=False)
        )
    keep("wmt14.test", d.wmt14.test(6))
    keep("wmt14.gen", d.wmt14.gen(6))
    for size in (3, 5, 7, 100):
        keep("wmt16.train.%d" % size, d.wmt16.train(size, size))
        keep("wmt16.val.%d" % size, d.wmt16.validation(size, 6, src_lang="de"))
        keep("wmt16.test.%d" % size, d.wmt16.test(size, size))
        found["wmt16.dict.%d" % size] = [
            plain(d.wmt16.get_dict(lang, size, r)) for lang in ("en", "de") for r in (True, False)
        ]
    found["sentiment.dict"] = plain(d.sentiment.get_word_dict())
    keep("sentiment.train", d.sentiment.train())
    keep("sentiment.test", d.sentiment.test())
    for how in ("plain_txt", "pointwise", "pairwise", "listwise"):
        keep("mq2007." + how, d.mq2007.train(format=how))
    keep("mq2007.test", d.mq2007.test(format="listwise"))
    keep("movielens.test", d.movielens.test())
    keep("movielens.train", d.movielens.train())
    found["movielens"] = [d.movielens.max_movie_id(), d.movielens.max_user_id(), d.movielens.max_job_id(), d.movielens.age_table,
                          sorted(d.movielens.movie_categories()), sorted(d.movielens.get_movie_title_dict()),
                          [str(m) for m in d.movielens.movie_info().values()], [repr(u) for u in d.movielens.user_info().values()]]  # fmt: skip
    keep("conll05.test", d.conll05.test())
    words, verbs, labels = d.conll05.get_dict()
    found["conll05.dicts"] = [plain(words), plain(verbs), sorted(labels)]
    return found


def renumbered(found):
    """numbers that 1.8.5 gives by the order of a set, by their first appearance instead"""

    def by_appearance(rows, of):
        seen = {}
        for row in rows:
            of(row, lambda n: seen.setdefault(n, len(seen)))

    def last(row, number):
        row[-1] = ["list"] + [number(n) for n in row[-1][1:]]

    def words(row, number):
        row[7] = ["list"] + [number(n) for n in row[7][1:]]

    def kinds(row, number):
        row[6] = ["list"] + [number(n) for n in row[6][1:]]

    by_appearance(found["conll05.test"], last)
    both = found["movielens.train"] + found["movielens.test"]
    by_appearance(both, words)
    by_appearance(both, kinds)
    return found
