"""What LogWriter writes, read by others: json, and protobuf's reader of TensorBoard's records."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import fluidjax as fluid
from fluidjax.errors import FluidTypeError, FluidValueError


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lines_of_json(tmp_path: Path) -> None:
    with fluid.io.LogWriter(tmp_path / "log") as log:
        log.add_scalars({"loss": np.float32(0.5), "rate": jnp.full((1,), 0.25)}, 3)
        found = lines(tmp_path / "log" / "metrics.jsonl")  # before the end
        log.add_scalar("loss", float("nan"), np.int64(4))
        log.add_scalar("steps", 7, 5)
    (first,) = found
    assert first.pop("time") == pytest.approx(1.8e9, rel=0.5)
    assert first == {"step": 3, "loss": 0.5, "rate": 0.25}
    assert [r.get("loss", r.get("steps")) for r in lines(log.path)] == [0.5, "nan", 7]


def test_a_job_that_goes_on_drops_what_it_does_again(tmp_path: Path) -> None:
    with fluid.io.LogWriter(tmp_path) as log:
        for step in range(1, 6):
            log.add_scalar("loss", 1.0 / step, step)
    with log.path.open("a") as file:
        file.write('{"step": 3, "lo')  # the machine went away
    with fluid.io.LogWriter(tmp_path, after=3) as log:
        log.add_scalar("loss", 9.0, 4)
    assert [(r["step"], r["loss"]) for r in lines(log.path)] == [
        (1, 1.0), (2, 0.5), (3, 1 / 3), (4, 9.0)
    ]  # fmt: skip


def test_each_trainer_has_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLE_TRAINER_ID", "2")
    with fluid.io.LogWriter(tmp_path) as log, fluid.io.LogWriter(tmp_path, trainer=0) as zero:
        assert (log.path.name, zero.path.name) == ("metrics.2.jsonl", "metrics.jsonl")


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ({"loss": np.zeros(2)}, FluidTypeError, r"not ndarray of shape \(2,\)"),
        ({"loss": "0.5"}, FluidTypeError, "'loss' is a number, .* not str"),
        ({"time": 1.0}, FluidValueError, "named 'time' would hide the line's own"),
    ],
)
def test_what_is_no_number(values: Any, kind: Any, message: str, tmp_path: Path) -> None:
    with fluid.io.LogWriter(tmp_path) as log, pytest.raises(kind, match=message):
        log.add_scalars(values, 1)
    assert log.path.read_text() == ""


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FluidValueError, match="cannot be written: "):
        fluid.io.LogWriter(tmp_path / "file")


def test_event_files_of_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="the package tensorboardX is not installed")
    from tensorboardX.proto.event_pb2 import Event

    with fluid.io.LogWriter(tmp_path, tensorboard=True) as log:
        log.add_scalars({"loss": 0.5, "rate": 0.25}, 3)
        log.add_scalar("loss", 0.125, 4)
    (path,) = tmp_path.glob("events.out.tfevents.*")
    data, found = path.read_bytes(), []
    while data:  # length, its checksum, the record, its checksum
        (length,) = struct.unpack("<Q", data[:8])
        event = Event.FromString(data[12 : 12 + length])
        found += [(event.step, v.tag, v.simple_value) for v in event.summary.value]
        data = data[16 + length :]
    assert found == [(3, "loss", 0.5), (3, "rate", 0.25), (4, "loss", 0.125)]
