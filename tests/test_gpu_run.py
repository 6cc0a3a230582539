"""The run on a machine with a GPU keeps what was found, whatever becomes of a case; and its page is
made of that.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.gpu import __main__ as conductor
from benchmarks.gpu import cases, page
from benchmarks.gpu.listed import GROUPS, LISTED, REHEARSED, Listed
from benchmarks.gpu.records import Records

ROOT = Path(__file__).parents[1]
TESTS = sorted(p.stem for p in (ROOT / "tests/gpu").glob("test_*.py"))
WAITS = "import sys; print('READY one', flush=True); sys.stdin.readline(); "
ADDS = (
    "from pathlib import Path; from benchmarks.gpu.records import Records;"
    " Records(Path(sys.argv[1])).add"
)
SCRIPTS = {
    "fine": f"{WAITS}{ADDS}('fine', {{'ms': 1.5}}); print('DONE', flush=True)",
    "crashes": f"{WAITS}{ADDS}('crashes', {{'ms': 2.5}}); import os; os.abort()",
    "hangs": f"{WAITS}import time; time.sleep(60)",
    "is never ready": "import time; time.sleep(60)",
}


def test_a_case_that_dies_or_hangs_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    listed = [Listed(name, "g", 1.0) for name in SCRIPTS]
    monkeypatch.setattr(conductor, "LISTED", listed)
    run = conductor.Conductor(tmp_path, tmp_path, 8, ["g"], rehearsal=True)
    results = str(tmp_path / conductor.RESULTS)

    def processes() -> Any:
        for name, script in SCRIPTS.items():
            yield conductor.Process(
                name, [sys.executable, "-c", script, results], tmp_path, run.env, turns=True
            )

    monkeypatch.setattr(run, "processes", processes)
    assert not run.run()
    found = list(run.records.read())
    told = {r["case"]: r.get("failed", "cut") for r in found if "failed" in r or "cut" in r}
    assert {r["case"]: r["ms"] for r in found if "ms" in r} == {"fine": 1.5, "crashes": 2.5}
    assert told["crashes"].startswith("ended with -") and told["hangs"].startswith("over 1 s")
    assert told["is never ready"] == "cut" and "fine" not in told
    assert "findings" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", TESTS)
def test_the_tests_of_the_gpu_pass_where_the_cpu_takes_its_place(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So they are in order when a GPU is there."""
    monkeypatch.setenv("TESTS", name)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # whose tests are told by its master
    run = conductor.Conductor(tmp_path, tmp_path, 600, ["tests"], rehearsal=True)
    fine = run.run()
    outcomes = [r["outcome"] for r in run.records.read() if "outcome" in r]
    assert fine and "passed" in outcomes, list(run.records.read())


def test_every_listed_case_is_there() -> None:
    assert list(cases.CASES) == [c.name for c in LISTED]
    assert {c.group for c in LISTED} | {"tests"} == set(GROUPS) and set(REHEARSED) <= set(
        cases.CASES
    )


def test_records_are_whole_lines_of_plain_json(tmp_path: Path) -> None:
    records = Records(tmp_path / "r")
    records.add(
        "a", {"x": np.float32(1 / 3), "y": [np.int64(2), np.nan], "z": {"s": {1, 2} and "text"}}
    )
    with records.path.open("a") as file:
        file.write('{"case": "cut off')
    (found,) = records.read()
    assert (
        found["x"] == pytest.approx(1 / 3, rel=1e-4)
        and found["y"] == [2, "nan"]
        and found["z"] == {"s": "text"}
    )
    json.dumps(found)


def test_the_page_is_made_of_the_lines(tmp_path: Path) -> None:
    records = Records(tmp_path / "results.jsonl")
    records.add("run", {"rehearsal": False})
    records.add(
        "machine",
        {"device": "NVIDIA H100", "cores": 16, "python": "3.12.3", "versions": {"jax": "0.11.2"}},
    )
    records.add("roofline", {"f32 tflops": 400.0, "bf16 tflops": 800.0, "copy tb_s": 3.0})
    records.add("mlp", {"sides": {"f32": {"first_s": 3.0, "total_mb": 12.0}}})
    records.add(
        "mlp",
        {"sides": {"f32": {"ms": 2.0, "ratio": 1.01, "samples_a_second": 2048.0}}, "gflop": 400.0},
    )
    records.add("tests", {"outcome": "passed", "test": "test_ops.py::test_x[1]"})
    seconds = {"1": 2.5, "10": 2.75}
    records.add("whole scripts", {"net": "LeNet", "kind": "second run", "wall_s": seconds})
    kept, written = tmp_path / "gpu.json", tmp_path / "gpu.md"
    written.write_text(page.PAGE.read_text())
    page.main(str(records.path), page=written, figures=kept)
    text = written.read_text()
    assert (
        "| mlp | f32 | 2 | 1.01 | 2,048 | 50 % |  | 3 | 12 |" in text
        and "| test_ops.py | 1 | 0 | 0 |" in text
    )
    assert (
        "on NVIDIA H100, 16 cores; Python 3.12.3, jax 0.11.2" in text
        and "No GPU has been measured yet" not in text
    )
    assert "| LeNet | second run | 2.5 | 2.75 |  |" in text
    tables = {"a tests", "b roofline", "c training", "h scripts"}
    assert set(json.loads(kept.read_text())) == tables
    later = Records(tmp_path / "later.jsonl")
    later.add("run", {"rehearsal": False})
    later.add(
        "machine", {"device": "NVIDIA H100", "python": "3.12.3", "versions": {"jax": "0.11.2"}}
    )
    later.add("mlp", {"failed": "over 30 s with the card"})
    later.add("lenet", {"sides": {"f32": {"ms": 3.0, "ratio": 0.9}}, "gflop": 1.0})
    later.add("tests", {"outcome": "failed", "test": "test_ops.py::test_x[1]"})
    page.main(str(records.path), str(later.path), page=written, figures=kept)
    text = written.read_text()
    assert (
        "| mlp | f32 | 2 |" in text
        and "| lenet | f32 | 3 |" in text
        and "| test_ops.py | 0 | 1 | 0 |" in text
    )
    with pytest.raises(ValueError, match="different machines"):
        page.main(str(later.path), str(_another(tmp_path)), page=written, figures=kept)


def _another(folder: Path) -> Path:
    records = Records(folder / "another.jsonl")
    records.add("run", {"rehearsal": False})
    records.add(
        "machine", {"device": "NVIDIA H200", "python": "3.12.3", "versions": {"jax": "0.11.2"}}
    )
    return records.path
