"""Checkpoints that do not fit, or are damaged: one error of ours, and the scope as it was."""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore

import fluidjax as fluid
from fluidjax import layers
from fluidjax.checkpoint.folder import cause
from fluidjax.checkpoint.record import from_json, to_json
from fluidjax.checkpoint.seal import checksum
from fluidjax.checkpoint.snapshot import take
from fluidjax.devices.placement import per_rank
from fluidjax.errors import (
    EnforceNotMet,
    FluidError,
    FluidTypeError,
    FluidValueError,
    LoadError,
    ParseError,
)

from .model import Job


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a checkpoint of step 2."""
    folder = tmp_path_factory.mktemp("saved")
    job = Job()
    job.train(2)
    job.save(str(folder), 2, asynchronous=False)
    return folder


@pytest.fixture
def copied(saved: Path, tmp_path: Path) -> Path:
    shutil.copytree(saved, tmp_path / "copy")
    return tmp_path / "copy"


def line(names: dict[str, Any]) -> tuple[Any, Any, Any]:
    program, scope = fluid.Program(), fluid.Scope()
    for name, value in names.items():
        program.global_block().create_var(
            name=name, shape=value.shape, dtype=str(value.dtype), persistable=True
        )
        scope.var(name).value = value
    return fluid.Executor(fluid.CPUPlace()), program, scope


def test_a_diff_by_name(tmp_path: Path) -> None:
    exe, program, scope = line(
        {
            "a": np.ones(3, "float32"),
            "b": np.ones((2, 2), "float32"),
            "c": np.ones(2, "int64"),
            "d": np.ones(1),
        }
    )
    fluid.io.save_checkpoint(exe, tmp_path, program, scope=scope)
    _, other, there = line(
        {
            "a": np.zeros(3, "float32"),
            "b": np.zeros((2, 3), "float32"),
            "c": np.zeros(2, "int32"),
            "e": np.zeros(1),
        }
    )
    with pytest.raises(LoadError) as caught:
        fluid.io.load_checkpoint(exe, tmp_path, other, scope=there)
    text = str(caught.value)
    for part in (
        "missing in the file (1):\n    e",
        "unexpected in the file (1):\n    d",
        "b  [2, 3]  [2, 2]",
        "c  int32  int64",
    ):
        assert part in text
    assert "strict=False" in text and "the first difference between the programs" in text
    assert not any(there.get(n).any() for n in "abce")
    told = fluid.io.load_checkpoint(exe, tmp_path, other, scope=there, strict=False)
    assert there.get("a").tolist() == [1, 1, 1] and not any(there.get(n).any() for n in "bce")
    assert (told.difference.missing, told.difference.unexpected) == (("e",), ("d",))
    assert list(told.difference.shapes or ()) == ["b"] and list(told.difference.dtypes or ()) == [
        "c"
    ]
    assert there.find_var("d") is None


def test_another_program_is_told_by_its_first_op(saved: Path) -> None:
    job = Job()
    before = job.state()
    with fluid.program_guard(job.main, job.startup):
        layers.mean(layers.scale(job.loss, 2.0))
    with pytest.raises(LoadError, match="was made of another program") as caught:
        job.load(str(saved))
    assert "the checkpoint's has" in str(caught.value) and "this one has `block 0: " in str(
        caught.value
    )
    assert "= scale(X=" in str(caught.value)
    assert job.state() == before
    assert "scale" in job.load(str(saved), strict=False).program
    assert job.state() != before


def test_another_dropout_number_or_seed(saved: Path) -> None:
    """The values would fit, but the masks would be others."""
    with pytest.raises(LoadError, match=r"seed=5.*seed=6"):
        Job(seed=6).load(str(saved))
    job = Job()
    job.main.random_seed = 6
    with pytest.raises(LoadError, match="has random_seed 5, this one 6"):
        job.load(str(saved))
    job = Job()
    job.main.set_desc(_renumbered(job.main.desc))
    with pytest.raises(
        LoadError, match=r"the checkpoint's has `block 0: dropout draws as number \d+`"
    ):
        job.load(str(saved))


def _renumbered(desc: Any) -> Any:
    from dataclasses import replace

    from fluidjax.ir import edit

    return edit.map_ops(desc, lambda op: replace(op, uid=op.uid + 1))


def test_what_save_refuses(tmp_path: Path) -> None:
    job = Job()
    with pytest.raises(
        EnforceNotMet, match=r"nothing to save for .*'fc_0\.w_0'.*; run the startup program first"
    ):
        fluid.io.save_checkpoint(job.exe, tmp_path, job.main, scope=fluid.Scope())
    with pytest.raises(FluidValueError, match="no persistable variables"):
        fluid.io.save_checkpoint(job.exe, tmp_path, fluid.Program(), scope=job.scope)
    with pytest.raises(
        FluidTypeError, match="executor is the Executor that runs the program, not str"
    ):
        fluid.io.save_checkpoint("exe", tmp_path, job.main, scope=job.scope)  # type: ignore[arg-type]
    with pytest.raises(FluidTypeError, match="resumable made, not function"):
        fluid.io.save_checkpoint(job.exe, tmp_path, job.main, reader=lambda: [], scope=job.scope)  # type: ignore[arg-type]
    with pytest.raises(FluidValueError, match="whole number from 0, not -1"):
        job.save(str(tmp_path), -1)
    with pytest.raises(FluidValueError, match="keep is the number"):
        job.save(str(tmp_path), max_num_checkpoints=0)
    with pytest.raises(FluidTypeError, match="folder is a path, not int"):
        fluid.io.Checkpoint(3)  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FluidError, match="file"):
        Job().save(str(tmp_path / "file" / "below"), asynchronous=False)
    with pytest.raises(FluidError, match="file"):
        Job().save(str(tmp_path / "file"), asynchronous=False)


def test_what_load_refuses(saved: Path, tmp_path: Path) -> None:
    job = Job()
    with pytest.raises(FluidValueError, match="there is no checkpoint in"):
        job.load(str(tmp_path / "none"))
    with pytest.raises(
        FluidValueError, match=r"there is no checkpoint of step 3 in .*, only of \[2\]"
    ):
        job.load(str(saved), step=3)
    fluid.io.save_checkpoint(job.exe, tmp_path, job.main, scope=job.scope)
    with pytest.raises(LoadError, match="was saved without a reader"):
        job.load(str(tmp_path))


@functools.cache
def _fresh() -> Job:
    return Job()


def refused(folder: Path) -> str:
    """What loading raises, which then changes nothing; "" if it works."""
    job = _fresh()
    before, position = job.state(), job.reader.position
    try:
        job.load(str(folder))
    except FluidError as error:
        assert isinstance(error, FluidValueError)
        assert (
            job.state() == before
            and job.reader.position == position
            and not job.exe.random_state(job.main)[1]
        )
        return str(error)
    _fresh.cache_clear()
    return ""


def files(folder: Path) -> Iterator[Path]:
    yield from sorted(p for p in (folder / "2").rglob("*") if p.is_file())


def test_every_file_cut_off_changed_or_gone(copied: Path) -> None:
    draw, count = random.Random(3), 0
    for path in [p for p in files(copied) if p.parent != copied / "2" or p.name == "fluidjax.json"]:
        data = path.read_bytes()
        changed = bytearray(data)
        changed[draw.randrange(len(data))] ^= 128
        for damage in (data[: len(data) // 2], b"", None, bytes(changed)):
            path.unlink() if damage is None else path.write_bytes(damage)
            text = refused(copied)
            assert "is damaged" in text or (damage is None and "no checkpoint" in text), (
                path,
                text,
            )
            path.write_bytes(data)
            count += 1
    assert count >= 20 and refused(copied) == ""


def test_the_record_is_read_strictly(saved: Path, copied: Path) -> None:
    path = copied / "2" / "fluidjax.json"
    whole = json.loads(path.read_text())
    del whole["checksum"]
    good = whole["record"]

    def write(record: Any, files: Any) -> None:
        held = {"record": record, "files": files}
        path.write_text(json.dumps({**held, "checksum": checksum(held)}))

    assert to_json(from_json(good)) == good
    bad: list[tuple[dict[str, Any], str]] = [
        ({"format": "other"}, "is of format"),
        ({"version": 1}, "version 1"),
        ({"step": 5}, "that of step 5"),
        ({"step": -2}, "below 0"),
        ({"step": True}, "expected int, found bool"),
        ({"fingerprint": "0"}, "does not have the fingerprint"),
        ({"program": "?"}, "a packed text is cut off"),
        ({"random": {"seed": 1}}, "random: expected the fields"),
        ({"position": {"epoch": -1, "batches": 0}}, "below 0"),
        ({"position": 3}, "position: expected the fields"),
        ({"empty": {"x": ["float32", [1]]}}, "a shape with a 0"),
        ({"empty": {"x": ["what", [0]]}}, "is damaged"),
        (
            {"placed": {"fc_0.w_0": [[8, 16], [["a", 0, 0, 0, 128, 0, 1]]]}},
            "which variables are in pieces",
        ),
        ({"placed": {"w": [[8], [["a", 0, 0, 0, 9, 0, 1]]]}}, "do not make up an array"),
        ({"placed": {"w": [[8], [["a", 0, 0, 4, 8, 0, 1]]]}}, "do not make up an array"),
        (
            {"placed": {"w": [[8], [["a", 0, -1, 0, 8, 0, 1]]]}},
            "not a list of what should be there",
        ),
        ({"placed": {"w": [[8], [["a", 0, 0, 0, 0, 0, 1]]]}}, "are not 0"),
        ({"placed": {"w": [[8]]}}, "a shape and a list of spans"),
        ({"lods": {"x": [[-1]]}}, "not a list of what should be there"),
        ({"more": 1}, "expected the fields"),
    ]
    for change, text in bad:
        write({**good, **change}, whole["files"])
        assert text in refused(copied), change
    path.write_text("[" * 100_000)
    assert "is damaged" in refused(copied)
    path.write_text(json.dumps({"record": good}))
    assert "does not hold a record, files and a checksum" in refused(copied)
    path.write_text(json.dumps({**whole, "checksum": 1}))
    assert "fluidjax.json is not as it was written" in refused(copied)
    write(good, {**whole["files"], "../other": [0, 0]})
    assert "the file '../other' is missing" in refused(copied)
    write(good, whole["files"])
    assert refused(copied) == ""


def test_parse_error_is_what_damage_raises(copied: Path) -> None:
    path = copied / "2" / "fluidjax.json"
    held = {"record": {}, "files": json.loads(path.read_text())["files"]}
    path.write_text(json.dumps({**held, "checksum": checksum(held)}))
    with pytest.raises(ParseError, match="the record: expected the fields"):
        Job().load(str(copied))


def test_rows_that_other_processes_have_are_not_made_up() -> None:
    """What a process keeps of the trainers' own values when it writes to the scope of a job is its
    own rows alone.
    """
    scope = fluid.Scope()
    kept = per_rank(np.zeros((2, 2), np.float32))
    kept.partial = True
    scope.var("w").value = kept
    with pytest.raises(
        EnforceNotMet, match=r"each trainer has its own value of 'w', .* run a step before you save"
    ):
        take(["w"], scope)


FULL = """
import resource, sys
import fluidjax as fluid
fluid.layers.fc(fluid.data("x", [1, 300]), 400)
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
fluid.io.save_checkpoint(exe, sys.argv[1], fluid.default_main_program())
fluid.io.wait_checkpoint(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # what does not fit fails as on a full disk
try:
    fluid.io.save_checkpoint(exe, sys.argv[1], fluid.default_main_program())
    fluid.io.wait_checkpoint(sys.argv[1])
except fluid.errors.LoadError as error:
    print(error)
print(fluid.io.get_latest_checkpoint_serial(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_disk_without_room_is_told_in_one_sentence(tmp_path):
    """With the cause, and without the tracebacks that orbax's threads log; the checkpoint before is
    the latest still.
    """
    run = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "kept")], capture_output=True, text=True
    )
    sentence, latest = run.stdout.splitlines()
    assert "File too large" in sentence and str(tmp_path / "kept") in sentence and latest == "0"
    assert "Traceback" not in run.stderr


def test_a_cause_is_seen_before_what_tensorstore_appends(tmp_path):
    """An error while an array is opened carries the whole specification behind its cause."""
    (tmp_path / "o'clock").write_text("a file, no folder")
    where = {"driver": "file", "path": str(tmp_path / "o'clock")}
    array = {"shape": [3], "dtype": "<f4", "chunks": [3]}
    with pytest.raises(ValueError, match="tensorstore_spec") as caught:
        tensorstore.open(
            {"driver": "zarr", "kvstore": where, "metadata": array}, create=True
        ).result()
    text = cause(caught.value)
    assert text.endswith("Not a directory") and "\n" not in text
    assert len(cause(ValueError("word " * 200 + "the cause"))) < 500
