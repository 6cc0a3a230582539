"""What is told while something lasts, where somebody watches; and that nothing is told where nobody
does.
"""

from __future__ import annotations

import importlib
import io
import json
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import layers, paddle
from fluidjax.base import progress
from fluidjax.dist.jobs.launch import run_job
from fluidjax.errors import FluidValueError
from fluidjax.paddle import nn


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    """FLAGS_progress as it is by default, and afterwards as it was."""
    before = fluid.get_flags("FLAGS_progress")
    fluid.set_flags({"FLAGS_progress": "auto"})
    yield
    fluid.set_flags(before)


@pytest.fixture
def stderr(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A stderr that is a terminal."""
    terminal = Terminal()
    # pytest sets sys.stderr anew between a fixture and its test
    monkeypatch.setattr(progress, "stream", lambda: terminal)
    return terminal


def until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("value", "terminal", "shown"),
    [("auto", True, True), ("auto", False, False), ("on", False, True), ("1", False, True), (True, False, True),
     ("off", True, False), ("0", True, False), (False, True, False)],
)  # fmt: skip
def test_when_it_is_shown(monkeypatch, value, terminal, shown):
    monkeypatch.setattr(progress, "stream", lambda: Terminal() if terminal else io.StringIO())
    fluid.set_flags({"FLAGS_progress": value})
    assert progress.shown() is shown


def test_in_a_notebook_and_without_ipython(monkeypatch, stderr):
    monkeypatch.setattr(progress, "stream", io.StringIO)
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    assert progress.shown()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    assert not progress.shown()
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert not progress.shown()
    monkeypatch.setattr(progress, "stream", lambda: None)  # as under pythonw
    assert not progress.shown()


def test_another_value_is_refused():
    fluid.set_flags({"FLAGS_progress": "loud"})
    with pytest.raises(
        FluidValueError, match="FLAGS_progress is auto, on, off or json, not 'loud'"
    ):
        progress.shown()


def test_a_wait_is_told_when_it_lasts_and_goes_away(stderr):
    done = ["file 1"]
    with progress.waiting(lambda: f"reading {done[-1]}", after=0.0):
        until(lambda: "reading file 1 ... " in stderr.getvalue())
        done.append("file 2")
        until(lambda: "reading file 2 ... " in stderr.getvalue())
    assert stderr.getvalue().endswith("\r") and not stderr.getvalue().split("\r")[-2].strip()
    assert not [t for t in threading.enumerate() if t.name == "fluidjax-progress"]


def test_a_short_wait_is_not_told_and_errors_pass(stderr):
    with pytest.raises(KeyError), progress.waiting("reading"):
        raise KeyError
    with progress.waiting("reading"):
        pass
    assert stderr.getvalue() == ""


def test_a_bar_counts_and_prints_above_itself(stderr, capsys):
    with progress.bar("dataset", total=3, unit="batch") as bar:
        bar.step("loss 0.5")
        bar.print("a line\n")
        bar.step(n=2)
    assert "dataset: " in stderr.getvalue() and "0/3" in stderr.getvalue()
    assert capsys.readouterr().out == "a line\n"


def test_nobody_watches(capsys):
    with progress.bar("dataset") as bar, progress.waiting("reading", after=0.0):
        bar.step()
        bar.print("a line\n")
        assert not [t for t in threading.enumerate() if t.name == "fluidjax-progress"]
    progress.tell("started")
    assert capsys.readouterr() == ("a line\n", "")


@pytest.mark.parametrize(
    ("n", "told"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (1_250_000_000, "1.2 GB"),
        (10**16, "10,000.0 TB"),
    ],
)
def test_sizes(n, told):
    assert progress.size(n) == told


def at_once(
    monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, module: str, name: str, told: str
) -> None:
    """Have waits told at once, and `name` of a module last until `told` is."""
    monkeypatch.setattr(progress, "SOON", 0.0)
    owner, _, attribute = name.rpartition(".")
    found = importlib.import_module(module)
    holder = getattr(found, owner) if owner else found
    real = getattr(holder, attribute)

    def slow(*args, **kwargs):
        until(lambda: told in stderr.getvalue())
        return real(*args, **kwargs)

    monkeypatch.setattr(holder, attribute, slow)


def test_compilations_are_told(stderr, monkeypatch):
    at_once(
        monkeypatch,
        stderr,
        "fluidjax.runtime.building",
        "compile_lowered",
        "compiling a step of 2 ops ... ",
    )
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        out = layers.mean(layers.scale(fluid.data("x", [3]), 2.0))
    assert fluid.Executor().run(main, {"x": np.ones(3, "float32")}, [out])[0] == 2


def test_files_and_checkpoints_are_told(stderr, monkeypatch, tmp_path):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, startup):
        layers.create_parameter(
            [2, 3], "float32", name="w", default_initializer=fluid.initializer.Constant(2.0)
        )
        exe = fluid.Executor()
        exe.run(startup)
        at_once(
            monkeypatch,
            stderr,
            "fluidjax.saved.files",
            "os.fsync",
            f"writing file 1 of 1 into {str(tmp_path / 'files')!r} ... ",
        )
        fluid.io.save_persistables(exe, str(tmp_path / "files"), main)
        text = f"reading variable 0 of 1 from {str(tmp_path / 'files')!r} ... "
        at_once(monkeypatch, stderr, "fluidjax.saved.arrays", "read_array", text)
        fluid.io.load_persistables(exe, str(tmp_path / "files"), main)
        folder = tmp_path / "saves"
        text = f"saving checkpoint 0 in {str(folder)!r}, 24 bytes ... "
        at_once(monkeypatch, stderr, "fluidjax.checkpoint.folder", "Checkpoint._write", text)
        fluid.io.save_checkpoint(exe, folder, main)
        fluid.io.wait_checkpoint(folder)
        at_once(
            monkeypatch,
            stderr,
            "fluidjax.checkpoint.folder",
            "load",
            "restoring 1 variables of the checkpoint",
        )
        assert fluid.io.load_checkpoint(exe, folder, main).step == 0


def test_loops_of_a_script_get_a_bar_only_where_it_is_asked_for(stderr):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [2])
        loader = fluid.io.DataLoader.from_generator([x], capacity=2)
    loader.set_batch_generator(lambda: iter([[np.ones(2, "float32")]] * 3), fluid.cpu_places(1))
    assert len(list(loader())) == 3 and stderr.getvalue() == ""
    fluid.set_flags({"FLAGS_progress": "on"})
    assert len(list(loader())) == 3 and "loader: " in stderr.getvalue()


def test_a_pass_over_a_dataset_and_its_files_are_told(stderr, monkeypatch, tmp_path, capsys):
    (tmp_path / "part").write_text("1 5\n1 6\n1 7\n")
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 1], "int64")
        out = layers.scale(x, 2.0)
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    dataset.set_use_var([x])
    dataset.set_batch_size(1)
    dataset.set_thread(1)
    dataset.set_filelist([str(tmp_path / "part")])
    at_once(
        monkeypatch,
        stderr,
        "fluidjax.loaders.slots.datasets",
        "InMemoryDataset._loaded",
        "reading 1 files into memory ... ",
    )
    dataset.load_into_memory()
    fluid.Executor().train_from_dataset(
        main, dataset, fetch_list=[out], fetch_info=["doubled"], print_period=2
    )
    assert "dataset: " in stderr.getvalue()
    assert "doubled" in capsys.readouterr().out


def test_nothing_is_told_into_a_pipe(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        out = layers.mean(layers.scale(fluid.data("x", [3]), 2.0))
    fluid.Executor().run(main, {"x": np.ones(3, "float32")}, [out])
    assert capfd.readouterr().err == ""


def test_the_launcher_tells_what_it_starts(capfd: pytest.CaptureFixture[str]):
    fluid.set_flags({"FLAGS_progress": "on"})
    assert run_job([sys.executable, "-S", "-c", "pass"], 1) == 0
    assert "fluidjax launch: started trainer 0\n" in capfd.readouterr().err


def test_an_epoch_of_a_model_is_told(stderr, capsys):
    paddle.enable_static()
    programs = fluid.program_guard(fluid.Program(), fluid.Program())
    with programs, fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        net = nn.Linear(2, 1)
        spec = paddle.static.InputSpec
        model = paddle.Model(
            net, [spec([None, 2], "float32", "x")], [spec([None, 1], "float32", "y")]
        )
        model.prepare(paddle.optimizer.SGD(0.1, parameters=net.parameters()), nn.MSELoss())
        data = [(np.ones(2, "float32"), np.ones(1, "float32"))] * 4
        model.fit(data, batch_size=2, epochs=1, verbose=1)
        assert stderr.getvalue() == ""
        model.fit(data, batch_size=2, epochs=1, verbose=2, log_freq=1)
    assert "epoch 1/1: " in stderr.getvalue()
    assert "epoch 1/1, step 2 - loss: " in capsys.readouterr().out


def test_lines_of_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """For programs that watch: every line is JSON, also where stderr is a file."""
    file = io.StringIO()
    monkeypatch.setattr(progress, "stream", lambda: file)
    monkeypatch.setattr(progress, "OFTEN", 0.0)
    fluid.set_flags({"FLAGS_progress": "json"})
    with progress.bar("epochs", total=2) as bar:
        bar.step("loss 0.5")
        bar.step()
    with progress.waiting(lambda: "compiling", after=0.0):
        until(lambda: "compiling" in file.getvalue())
    progress.tell("all have met")
    found = [json.loads(line) for line in file.getvalue().splitlines()]
    bars = [line for line in found if line["what"] == "epochs"]
    assert [(b["done"], b["total"], b.get("ended")) for b in bars] == [
        (1, 2, None), (2, 2, None), (2, 2, True)
    ]  # fmt: skip
    assert bars[0]["told"] == "loss 0.5"
    waits = [line for line in found if line["what"] == "compiling"]
    assert len(waits) >= 2 and [w.get("ended") for w in waits[-2:]] == [None, True]
    assert all(line["seconds"] >= 0 for line in bars + waits)
    assert found[-1]["what"] == "all have met" and found[-1]["time"] > 1.7e9
