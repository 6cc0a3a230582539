"""Files of slots: what 1.8.5 makes of them (recorded), bad ones, pipe commands, training over them."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidjax as fluid
from fluidjax.errors import FluidError, FluidTypeError, FluidValueError, UnsupportedError
from fluidjax.feeds.bucketing import bucketed, form_of
from fluidjax.incubate import data_generator
from fluidjax.loaders.processes import WorkerDied
from fluidjax.loaders.slots import blocks, datasets, parsers
from fluidjax.loaders.slots.lines import Slot, parse
from fluidjax.loaders.slots.records import in_batches
from tests.dataset import slot_cases as cases
from tests.forked import Popen

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "slots_1.8.5.json").read_text())
SLOTS = (Slot("ids", "uint64"), Slot("x", "float", (-1, 1)), Slot("y", "uint64", (-1, 1)))
CPU = fluid.CPUPlace()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in cases.FILES.items():
        Path(name).write_text(text)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield tmp_path


def plain(feed):
    return {n: np.asarray(v).tolist() for n, v in feed.items()}


def ids(made):
    return [np.asarray(feed["ids"]).ravel().tolist() for feed in made.feeds()]


@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
def test_batches_as_recorded(folder, kind):
    made = cases.dataset(fluid, kind, ["a.txt", "b.txt"], cases.variables(fluid))
    assert made.desc() == RECORDED[kind]["desc"]
    if kind == "InMemoryDataset":
        made.load_into_memory()
        assert made.get_memory_data_size() == 7 and made.get_shuffle_data_size() == 0
    recorded = RECORDED[kind]["batches"]
    loader = fluid.io.DataLoader.from_dataset(made, CPU, False)
    for _ in range(2):
        found = [group[0] for group in loader()]
        assert [plain(feed) for feed in found] == [
            {n: v for n, (v, _) in batch.items()} for batch in recorded
        ]
        assert [feed["ids"].lod() for feed in found] == [batch["ids"][1] for batch in recorded]
    assert [a.dtype.name for a in (found[0]["ids"].array(), found[0]["x"], found[0]["y"])] == [
        "int64",
        "float32",
        "int64",
    ]
    assert len(list(fluid.io.DataLoader.from_dataset(made, [CPU], True)())) == len(recorded) - 1
    two = fluid.io.DataLoader.from_dataset(made, [CPU, CPU], False)
    assert [len(group) for group in two] == [2, 2] and plain(next(two)[1]) == plain(found[1])
    two.__next__()
    with pytest.raises(StopIteration):
        next(two)


@pytest.mark.parametrize("base", ["Numbers", "Strings"])
def test_generators_write_what_1_8_5_writes(base):
    made = {
        "Numbers": data_generator.MultiSlotDataGenerator,
        "Strings": data_generator.MultiSlotStringDataGenerator,
    }[base]
    table = {"Numbers": cases.NUMBERS, "Strings": cases.STRINGS}[base]
    for samples, recorded in zip(table, RECORDED[base.lower()], strict=True):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            if isinstance(recorded, list):
                with pytest.raises(ValueError):
                    cases.generated(made, samples)
                continue
            cases.generated(made, samples)
        assert text.getvalue() == recorded
    with pytest.raises(NotImplementedError, match="generate_sample"):
        made().run_from_memory()


def test_descriptions(folder):
    Path("desc.txt").write_text(cases.DESC)
    desc = fluid.DataFeedDesc("desc.txt")
    assert desc.desc() == RECORDED["desc"][0]
    desc.set_batch_size(128)
    desc.set_dense_slots(["words"])
    desc.set_use_slots(['a"b'])
    assert desc.desc() == RECORDED["desc"][1]
    with pytest.raises(FluidValueError, match="no slot 'b'; the description has 'words', "):
        desc.set_use_slots(["b"])
    for text, told in (
        ("name: 1", r"desc\.txt .*1:7"),
        ("multi_slot_desc { slots { name: 'x' } }", "a name and a type"),
    ):
        Path("desc.txt").write_text(text)
        with pytest.raises(FluidValueError, match=told):
            fluid.DataFeedDesc("desc.txt")
    with pytest.raises(FluidValueError, match="cannot be read"):
        fluid.DataFeedDesc("none.txt")


def test_training_from_files(folder, capsys):
    """Three steps of a small net, its output and its parameters are 1.8.5's."""
    main, startup, fed, loss = cases.ctr(fluid)
    exe = fluid.Executor(CPU)
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        made = cases.dataset(fluid, "QueueDataset", ["ctr.txt"], fed)
        exe.train_from_dataset(
            main, made, fetch_list=[loss, fed[0]], fetch_info=["loss", "words"], print_period=1
        )
        exe.infer_from_dataset(
            main,
            made,
            fetch_list=[loss, fed[0]],
            fetch_info=["again", "ids"],
            print_period=1,
            debug=True,
        )
        for name, recorded in RECORDED["values"].items():
            found = np.asarray(fluid.global_scope().find_var(name).get_tensor())
            np.testing.assert_allclose(found, recorded, rtol=0, atol=2e-6)
        printed = capsys.readouterr()
        assert "waiting for data" in printed.err
        for line, recorded in zip(
            printed.out.split("\n"), RECORDED["printed"].split("\n"), strict=True
        ):
            if "data: [0." in recorded:
                assert float(line.removeprefix("\tdata: [")[:-1]) == pytest.approx(
                    float(recorded[8:-1]), abs=3e-6
                )
            else:
                assert line == recorded
        exe.train_from_dataset(
            main, made, fetch_list=[loss, fed[0]], fetch_info=["second", ""], print_period=2
        )
        assert capsys.readouterr().out.count("second") == 1
        seen = []

        class Handler(fluid.executor.FetchHandler):
            def handler(self, values):
                seen.append(values)
                raise KeyError("enough")

        class Waiting(fluid.executor.FetchHandler):
            def handler(self, values):
                assert values == {"words": None}

        def watch(**more):
            exe.train_from_dataset(
                main, made, fetch_list=[loss, fed[0]], fetch_info=["", ""], **more
            )

        made.set_filelist(["ctr.txt"] * 1000)  # for longer than a handler waits, 10 ms
        with pytest.raises(KeyError, match="enough"):
            watch(fetch_handler=Handler({"cost": loss}, period_secs=0))
        assert list(seen[0]) == ["cost"]
        with pytest.raises(FluidValueError, match="'words' has a LoD"):
            watch(fetch_handler=Waiting({"words": fed[0]}, period_secs=0))
        Path("bad.txt").write_text("1 1 1 0.5 1 1\n" * 4 + "1 1 1 0.5\n")
        made.set_filelist(["ctr.txt", "bad.txt"])
        with pytest.raises(FluidValueError, match=r"bad\.txt:5: too short: slot 'y' is missing"):
            watch()
        made.set_filelist(["ctr.txt"])
        for wrong, told in (
            ({"fetch_list": [loss]}, "a word for each variable"),
            ({"dataset": 5}, "DatasetFactory"),
            ({"print_period": 0}, "print_period"),
            ({"fetch_handler": print}, "FetchHandler"),
        ):
            with pytest.raises(FluidError, match=told):
                exe.train_from_dataset(**{"program": main, "dataset": made, **wrong})
    assert not [t for t in threading.enumerate() if t.name.startswith("fluidjax-")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 1 0.5 1 0\n1 3 1 0.25 1 0 77\n", r"f:8: too long: '77' is behind the last slot"),
        ("1 3 1 0.25\n", r"f:7: too short: slot 'y' is missing"),
        (
            "0 1 0.25 1 0\n",
            "f:7: slot 'ids' begins with how many values it has, at least 1, not '0'",
        ),
        ("1 3 1 0.25 1 0\n\n1 4 1 0.25 1 0\n", "f:8: too short: slot 'ids' is missing"),
        ("1 a 1 0.25 1 0\n", "f:7: 'a' is not a whole number"),
        ("1 3.7 1 0.25 1 0\n", "f:7: '3.7' is not a whole number"),
        ("1 18446744073709551616 1 0.25 1 0", "is not a whole number of at most 64 bits"),
        ("1 3 1 0,25 1 0\n", "f:7: '0,25' is not a number"),
        (
            "1 3 2 0.25 0.5 1 0\n",
            r"f:7: dense slot 'x' has '2' values, where its shape \[-1, 1\] asks for 1",
        ),
        (
            "9223372036854775807 1 1 1",
            "too short for the '9223372036854775807' values of slot 'ids'",
        ),
        ("-1", "at least 1, not '-1'"),
        ("\xff\0", r"not '\\\\xff\\x00'"),
        ("1 3 1 0.25 1 " + "9" * 100, r"'9{37}\.\.\.'"),
    ],
)
def test_bad_lines(text, message):
    with pytest.raises(FluidValueError, match=message):
        parse(text.encode("latin1"), SLOTS, "f", 7)


def words(kind):
    if kind == "uint64":
        return st.integers(-(2**63), 2**64 - 1).map(str)
    fixed = st.tuples(st.integers(-(10**9), 10**9), st.integers(0, 9)).map(
        lambda t: f"{t[0] / 10 ** t[1]:.{t[1]}f}"
    )
    return fixed | st.floats(width=32).map(repr)


SAMPLES = st.lists(
    st.tuples(*(st.lists(words(s.kind), min_size=1, max_size=s.width() or 3) for s in SLOTS)),
    min_size=0,
    max_size=9,
)


@settings(max_examples=25)
@given(SAMPLES, st.integers(1, 4), st.sampled_from([" ", "\t ", "  "]))
def test_lines_as_read_one_by_one(samples, size, blank):
    text = "".join(blank.join(w for f in s for w in [str(len(f)), *f]) + "\n" for s in samples)
    batches = list(in_batches([parse(text.encode(), SLOTS)], size))
    assert [len(b) for b in batches] == [
        len(samples[i : i + size]) for i in range(0, len(samples), size)
    ]
    found = [[c.true() for c in b.columns] for b in batches]
    for i, slot in enumerate(SLOTS):
        read = (lambda w: int(w) % 2**64) if slot.kind == "uint64" else np.float32
        expected = [[read(w) for w in s[i]] for s in samples]
        values = [v[a:b] for batch in found for v, o in [batch[i]] for a, b in pairwise(o)]
        kind = np.uint64 if slot.kind == "uint64" else np.float32
        for got, want in zip(values, expected, strict=True):
            np.testing.assert_array_equal(got.view(kind), np.array(want, kind))


def test_shuffles_and_memory(folder):
    made = cases.dataset(fluid, "InMemoryDataset", ["ctr.txt"], cases.variables(fluid), batch=1)
    assert made.get_memory_data_size() == 0
    for call in (made.local_shuffle, lambda: list(made.feeds())):
        with pytest.raises(FluidValueError, match="call load_into_memory first"):
            call()
    made.preload_into_memory(2)
    made.wait_preload_done()
    first = ids(made)
    orders = []
    for seed in (1, 1, 2):
        random.seed(seed)
        made.local_shuffle() if seed == 1 else made.global_shuffle()
        orders.append(ids(made))
    assert (
        orders[0] == orders[1] != orders[2]
        and sorted(orders[2]) == sorted(first)
        and made.get_shuffle_data_size() == 6
    )
    made.load_into_memory()
    assert ids(made) == first
    made.set_fea_eval(2)
    made.slots_shuffle(["ids"])
    assert len({tuple(v) for v in ids(made)}) <= 2 and [f["x"].item() for f in made.feeds()] == [
        0.5,
        0.25,
        -1.5,
        0,
        2.5,
        np.float32(0.1),
    ]
    with pytest.raises(FluidValueError, match="did you mean 'ids'"):
        made.slots_shuffle(["idss"])
    made.release_memory()
    assert made.get_memory_data_size() == 0
    Path("empty.txt").write_text("")
    made.set_filelist(["empty.txt"])
    made.load_into_memory()
    made.local_shuffle()
    assert made.get_memory_data_size() == 0 and not list(made.feeds())
    with pytest.raises(NotImplementedError, match="InMemoryDataset"):
        fluid.QueueDataset().global_shuffle()


def test_slots_settle_on_few_sizes(folder):
    """Each slot is padded up to the largest bucket that it has needed, so that its neighbours'
    sizes make no new steps.
    """
    draw = np.random.default_rng(0)
    lines = [f"{n} {' '.join('1' * n)} 1 0.5 1 0\n" for n in draw.integers(1, 8, 400)]
    Path("many.txt").write_text("".join(lines))
    made = cases.dataset(fluid, "QueueDataset", ["many.txt"], cases.variables(fluid), batch=4)
    first, second = ([bucketed(feed)["ids"] for feed in made.feeds()] for _ in range(2))
    assert (
        len({(v.rows.shape, v.longest) for v in second})
        == 1
        < len({(v.rows.shape, v.longest) for v in first})
    )
    assert [v.offsets[0].tolist() for v in first] == [v.offsets[0].tolist() for v in second]


def test_pipe_commands(folder, capfd):
    made = cases.dataset(
        fluid, "QueueDataset", ["a.txt", "b.txt"], cases.variables(fluid), batch=100
    )
    plain = ids(made)
    assert capfd.readouterr().err == ""
    made.set_thread(2)
    made.set_pipe_command("sed -e 's/^1 3 /1 19 /'")
    assert ids(made) == [[19 if i == 3 else i for i in plain[0]]]
    assert (
        "for each of 2 files this shell command runs: sed -e 's/^1 3 /1 19 /'"
        in capfd.readouterr().err
    )
    Path("a.txt.gz").write_bytes(gzip.compress(Path("a.txt").read_bytes()))
    made.set_filelist(["a.txt.gz"])
    assert ids(made)[0][2] == 19
    made.set_pipe_command("head -c 20; echo gone >&2; exit 3")
    with pytest.raises(FluidValueError, match=r"a\.txt\.gz \| head -c 20; .*:2: too short"):
        ids(made)
    made.set_pipe_command("echo why >&2; exit 3")
    with pytest.raises(
        FluidValueError,
        match=r"the pipe command 'echo why .* ended with status 3 on the file a\.txt\.gz",
    ):
        ids(made)
    assert "why" in capfd.readouterr().err
    made.set_pipe_command("kill -9 $$")
    with pytest.raises(FluidValueError, match="was ended by SIGKILL"):
        ids(made)
    made.set_pipe_command("echo $$ > pid; yes '1 1 1 0.5 1 0'")  # endless: it ends when it is left
    feeds = made.feeds()
    next(feeds)
    feeds.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path("pid").read_text()), 0)


@pytest.fixture
def apart(monkeypatch):
    """Even small files are parsed by processes, from their first line on."""
    for module, name, value in (
        (parsers, "_WORTH", 0),
        (parsers, "_cores", lambda: 4),
        (datasets, "_HERE", 0),
    ):
        monkeypatch.setattr(module, name, value)


def parsing(parent):
    """The processes of `parent` that parse."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, above = stat.read_text().rpartition(")")[2].split()[:2]
            if (
                int(above) == parent
                and state != "Z"
                and b"slots.parsing" in stat.with_name("cmdline").read_bytes()
            ):
                found.append(int(stat.parent.name))
    return found


def test_processes_parse_as_threads_do(folder, apart, monkeypatch):
    """The same arrays, offsets and errors, in the same order."""
    Path("a.txt.gz").write_bytes(gzip.compress(Path("a.txt").read_bytes()))
    Path("bad.txt").write_text("1 1 1 0.5 1 1\n" * 9 + "1 1 1 0.5 1 x\n")
    Path("empty.txt").write_text("")
    made = cases.dataset(
        fluid,
        "QueueDataset",
        ["a.txt", "empty.txt", "a.txt.gz", "b.txt", "bad.txt", "a.txt"],
        cases.variables(fluid),
    )
    found = []

    def look():
        batches = []
        with pytest.raises(FluidValueError) as error:
            for feed in made.feeds():
                batches.append(
                    {
                        n: (v.dtype, v.tobytes(), getattr(t, "offsets", ()))
                        for n, t in feed.items()
                        for v in [np.asarray(t)]
                    }
                )
        found.append((batches, str(error.value)))
        assert not parsing(os.getpid())

    with monkeypatch.context() as alone:
        alone.setattr(parsers, "_cores", lambda: 1)
        look()
    monkeypatch.setattr(blocks, "_BLOCK", 16)  # what the thread reads before; lines go over its end
    look()
    monkeypatch.setattr(datasets, "_HERE", 2)
    made.set_thread(2)
    look()
    assert len(found[0][0]) > 4 and found[0] == found[1] == found[2]
    assert found[0][1].startswith("bad.txt:10: 'x' is not a whole number")
    made.set_filelist(["a.txt.gz"])
    made.set_pipe_command("cut -c 1-4; exit 2")
    with pytest.raises(FluidValueError, match=r"^a\.txt\.gz \| cut -c 1-4; exit 2:1: too short"):
        list(made.feeds())
    # where it cannot begin, threads parse
    monkeypatch.setattr(parsers, "_BEGIN", "import nothing_of_this_name")
    made.set_pipe_command("cat")
    assert len(list(made.feeds())) == 2


def test_tensors_of_batches_can_be_changed(folder):
    """They are known to fit and make their LoD late; what is set afterwards counts, by offsets that
    equal tensors have.
    """
    made = cases.dataset(fluid, "QueueDataset", ["a.txt"], cases.variables(fluid), batch=2)
    tensor = next(made.feeds())["ids"]
    plain = fluid.create_lod_tensor(np.asarray(tensor), tensor.recursive_sequence_lengths(), CPU)
    keys = {v.key for v in bucketed({"a": tensor, "b": plain}).values()}
    assert len(keys) == 1 and form_of({"a": tensor, "b": plain}) == (("a", 0, 1), ("b", 0, 1))
    tensor.set(np.zeros((9, 1), np.int64))
    assert (
        "there are 9 rows" in tensor.misfit() and not tensor.has_valid_recursive_sequence_lengths()
    )
    tensor.set_lod([[0, 4, 9]])
    assert (
        tensor.misfit() is None
        and bucketed({"a": tensor})["a"].offsets[0].tolist() == [0, 4, 9]
        and tensor.lod() == [[0, 4, 9]]
    )
    assert form_of({"a": tensor, "b": plain}) == (("a", 0, 1), ("b", 1, 1))


def test_a_dead_parser_is_told(folder, apart):
    made = cases.dataset(fluid, "QueueDataset", ["a.txt"], cases.variables(fluid), batch=100)
    made.set_pipe_command("yes '1 1 1 0.5 1 0'")
    feeds = made.feeds()
    next(feeds)
    (process,) = parsing(os.getpid())
    os.kill(process, signal.SIGKILL)
    with pytest.raises(
        WorkerDied,
        match=(
            rf"parses the dataset's files \(process {process}\) was ended by SIGKILL before it was"
            r" done"
        ),
    ):
        for _ in feeds:
            pass
    assert not parsing(os.getpid())


def test_a_file_that_changes_while_it_is_read(folder, monkeypatch):
    monkeypatch.setattr(blocks, "_BLOCK", 16)  # the file is longer than what is read ahead
    for harm, told in (
        (lambda: os.truncate("long.txt", 1414), r"^long\.txt changed while it was read"),
        (
            lambda: os.truncate("long.txt", 1411),
            r"^long\.txt:101: too short.*; the file changed while it was read$",
        ),
    ):
        Path("long.txt").write_text("1 1 1 0.5 1 0\n" * 200)
        made = cases.dataset(fluid, "QueueDataset", ["long.txt"], cases.variables(fluid), batch=1)
        feeds = made.feeds()
        next(feeds)
        harm()
        with pytest.raises(FluidValueError, match=told):
            list(feeds)


def test_ctrl_c_ends_the_pipe_command(folder):
    """And the process that parses what it writes."""
    script = (
        "import signal, fluidjax as fluid\n"
        "from fluidjax.loaders.slots import datasets, parsers\n"
        "parsers._WORTH, parsers._cores, datasets._HERE = 0, lambda: 3, 0\n"
        # what a shell starts in the background ignores it
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "x = fluid.data('x', [None, 1])\n"
        "y = fluid.layers.relu(x)\n"
        "made = fluid.DatasetFactory().create_dataset()\n"
        "made.set_use_var([x])\n"
        "made.set_filelist(['a.txt'])\n"
        "made.set_pipe_command('sleep 600 & echo $$ $! > pids; wait')\n"
        "try: fluid.Executor().train_from_dataset(fluid.default_main_program(), made)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(fluid.__file__).parents[1])}
    process = Popen([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE, text=True)
    limit = time.monotonic() + 60
    while not (Path("pids").exists() and Path("pids").read_text()) and time.monotonic() < limit:
        time.sleep(0.02)
    parses = parsing(process.pid)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted\n"
    left = [Path(f"/proc/{pid}/stat") for pid in [*Path("pids").read_text().split(), *parses]]
    assert len(left) == 3
    # the kernel takes a moment
    while any(stat.exists() and stat.read_text().split()[2] != "Z" for stat in left):
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_a_generator_as_pipe_command(folder):
    Path("made.py").write_text(
        "import paddle.fluid.incubate.data_generator as dg\n"
        "class Made(dg.MultiSlotDataGenerator):\n"
        "    def generate_sample(self, line):\n"
        "        def samples():\n"
        "            yield [('ids', [int(n) for n in line.split()]), ('x', [0.5]), ('y', [1])]\n"
        "        return samples\n"
        "import sys, six\n"  # which is there even where nobody has installed it
        "sys.stdin = six.StringIO(sys.stdin.read())\n"
        "Made().run_from_stdin()\n"
        "assert 'jax' not in sys.modules\n"
    )
    Path("raw.txt").write_text("1 2 3\n4\n")
    made = cases.dataset(fluid, "QueueDataset", ["raw.txt"], cases.variables(fluid), batch=1)
    made.set_pipe_command(f"{sys.executable} made.py")
    assert ids(made) == [[1, 2, 3], [4]]


def test_bad_datasets(folder):
    with pytest.raises(FluidValueError, match="did you mean 'QueueDataset'"):
        fluid.DatasetFactory().create_dataset("QueDataset")
    with pytest.raises(UnsupportedError, match="InMemoryDataset"):
        fluid.DatasetFactory().create_dataset("BoxPSDataset")
    made = fluid.DatasetFactory().create_dataset()
    with pytest.raises(FluidValueError, match="set_use_var"):
        list(made.feeds())
    made.set_use_var(cases.variables(fluid))
    assert list(made.feeds()) == []
    for wrong, told in (
        (lambda: made.set_filelist("a.txt"), "list of names of files"),
        (lambda: made.set_batch_size(0), "positive whole number"),
        (lambda: made.set_pipe_command(""), "a shell command"),
        (lambda: made.set_thread("2"), "whole number"),
        (lambda: made.set_hdfs_config("a", "b"), "local folders"),
        (lambda: made.set_use_var(["x"]), "takes variables, not str"),
        (lambda: made.set_use_var([fluid.data("d", [None, 1], "float64")]), "'d' is FP64"),
        (lambda: made.set_use_var([fluid.data("e", [None, -1, -1])]), "leaves several sizes open"),
    ):
        with pytest.raises((FluidValueError, FluidTypeError, UnsupportedError), match=told):
            wrong()
    line = "1 1 1 0.5 1 1\n"
    written = {
        "cut.gz": gzip.compress(line.encode())[:-9], "plain.gz": line.encode(), "packed": gzip.compress(line.encode()),
        "wide": line.encode("utf-16"), "marked": line.encode("utf-8-sig"), "binary": bytes(100),
    }  # fmt: skip
    for name, data in written.items():
        Path(name).write_bytes(data)
    files = {
        "none.txt": "'none.txt' cannot be read", "hdfs://x": "copy it to a local file", "cut.gz": "cannot be read to its end",
        "plain.gz": "Not a gzipped file", "packed": "packed:1: .* compressed by gzip; let its name end in .gz", ".": "Is a directory",
        "wide": "wide:1: .* text in UTF-16", "marked": "marked:1: .* byte order mark", "binary": "binary:1: slot 'ids' begins with",
    }  # fmt: skip
    for name, told in files.items():
        made.set_filelist([name])
        with pytest.raises(FluidValueError, match=told):
            list(made.feeds())


def test_names_and_texts_before_the_slots_are_passed_over(tmp_path):
    """What set_parse_ins_id and set_parse_content say that a line begins with; the slots are as
    without.
    """
    (tmp_path / "a").write_text("1 line_7 1 some:text 2 5 6 1 1\n1 x 1 y 1 7 1 0\n")
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        ids, label = (
            fluid.data("ids", [None, 1], "int64", lod_level=1),
            fluid.data("label", [None, 1], "int64"),
        )
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    dataset.set_use_var([ids, label])
    dataset.set_filelist([str(tmp_path / "a")])
    with pytest.raises(FluidValueError):
        dataset.load_into_memory()
    dataset.set_parse_ins_id(True)
    dataset.set_parse_content(True)
    dataset.load_into_memory()
    (feed,) = dataset.feeds()
    assert np.asarray(feed["ids"]).ravel().tolist() == [5, 6, 7] and np.asarray(
        feed["label"]
    ).ravel().tolist() == [1, 0]
    dataset.set_generate_unique_feasigns(True, 2)
    dataset.generate_local_tables_unlock(0, 11, 1, 1, 2)
    dataset.global_shuffle()
    dataset.set_merge_by_lineid(2)
    with pytest.raises(NotImplementedError, match="set_merge_by_lineid"):
        dataset.global_shuffle()


def test_datasets_without_files(capsys):
    """A pass over nothing is told, and changes nothing; no dataset is a RuntimeError as in 1.8.5,
    and a TypeError.
    """
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 1], "int64")
    exe = fluid.Executor()
    for kind in ("QueueDataset", "FileInstantDataset", "InMemoryDataset"):
        dataset = fluid.DatasetFactory().create_dataset(kind)
        dataset.set_use_var([x])
        dataset.set_download_cmd("cat")
        dataset.set_rank_offset("rank_offset")
        dataset.set_pv_batch_size(16)
        assert (
            'rank_offset: "rank_offset"' in dataset.desc() and "pv_batch_size: 16" in dataset.desc()
        )
        if kind == "InMemoryDataset":
            dataset.load_into_memory()
            assert dataset.get_memory_data_size() == 0
        else:
            with pytest.raises(NotImplementedError, match=kind):
                dataset.local_shuffle()
        with pytest.warns(RuntimeWarning, match="no batch"):
            exe.train_from_dataset(main, dataset)
        with pytest.raises(FluidTypeError, match="FetchHandler takes a dict"):
            exe.train_from_dataset(main, dataset, fetch_handler=fluid.executor.FetchHandler("loss"))
    for wrong in (RuntimeError, TypeError):
        with pytest.raises(wrong, match="DatasetFactory"):
            exe.train_from_dataset(main, None)
