"""CTC, CRF and NMS through `Executor.run` beside Paddle 1.8.5 and torch: the same arrays, the same
answers, CPU time of one core.

torch without torchvision has CTC alone; CRF and NMS are written for it as a user would
(`benchmarks/peers/searched.py`).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from .beside import PYTHONS, ROOT
from .page import Table, shown

SCRIPT = Path(__file__).parent / "peers" / "searched.py"
SIDES = ("fluidjax", "paddle", "torch")
CASES = {
    "ctc": "CTC, 64 steps, batch 16, 80 classes, 12 labels",
    "crf": "CRF, 32 sentences of up to 32 words, 20 tags",
    "nms": "NMS, 1,000 boxes, 20 classes, the best 400 of each",
}
TURNS = 3


def arrays() -> dict[str, np.ndarray]:
    """What all sides are given. Boxes overlap, scores differ."""
    rng = np.random.default_rng(0)
    corner = rng.uniform(0, 0.8, (1, 1000, 2))
    scores = rng.permutation(20_000).reshape(1, 20, 1000) / 20_000
    return {
        "ctc.logits": rng.standard_normal((64, 16, 80), np.float32), "ctc.labels": rng.integers(1, 80, (16, 12)).astype(np.int32),
        "ctc.steps": rng.integers(40, 65, 16), "ctc.sizes": rng.integers(4, 13, 16),
        "crf.emission": rng.standard_normal((32, 32, 20), np.float32), "crf.transition": rng.standard_normal((22, 20), np.float32),
        "crf.label": rng.integers(0, 20, (32, 32, 1)), "crf.length": rng.integers(8, 33, (32, 1)),
        "nms.boxes": np.concatenate([corner, corner + rng.uniform(0.05, 0.2, (1, 1000, 2))], 2).astype(np.float32),
        "nms.scores": scores.astype(np.float32),
    }  # fmt: skip


def one(side: str, path: Path) -> tuple[str, dict[str, float]] | None:
    """A side's version and CPU ms; None where it cannot run."""
    if not PYTHONS[side].exists():
        return None
    environ = {n: v for n, v in os.environ.items() if n != "PYTHONPATH"}
    quiet = {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "CPU_NUM": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "GLOG_v": "0",
    }
    found = subprocess.run(
        [str(PYTHONS[side]), str(SCRIPT), side, str(path)], stdout=subprocess.PIPE, text=True, check=False,
        env={**environ, **quiet, **({"PYTHONPATH": str(ROOT)} if side == "fluidjax" else {})},
    )  # fmt: skip
    if found.returncode:
        return None
    *_, version, times = found.stdout.splitlines()
    return version, json.loads(times)


def agree(folder: Path, side: str) -> None:
    """Raises AssertionError where a side computed something else than fluidjax."""
    mine, other = np.load(folder / "fluidjax.npz"), np.load(folder / f"{side}.npz")
    for name in mine.files:
        np.testing.assert_allclose(
            mine[name], other[name], rtol=1e-3, atol=1e-4, err_msg=f"{side}: {name}"
        )


def table() -> list[Table]:
    """CPU ms of each case, and behind a peer's how many times as long ours takes."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})  # what a side runs in inherits it
    try:
        with tempfile.TemporaryDirectory() as name:
            return [_table(Path(name))]
    finally:
        os.sched_setaffinity(0, before)


def _table(folder: Path) -> Table:
    path = folder / "given.npz"
    np.savez(path, **arrays())
    turns: list[dict[str, tuple[str, dict[str, float]]]] = []
    for _ in range(TURNS):
        turns.append({side: found for side in SIDES if (found := one(side, path)) is not None})
    there = [side for side in SIDES if all(side in turn for turn in turns)]
    for side in there[1:]:
        agree(folder, side)
    for side in set(SIDES) - set(there):
        print(f"  {side} is not there; make bench-peers installs it")

    def row(case: str) -> list[str]:
        mine, *others = (statistics.median(turn[side][1][case] for turn in turns) for side in there)
        return [
            CASES[case],
            f"{mine:.3f}",
            *(f"{other:.3f} ({mine / other:.2f})" for other in others),
        ]

    title = (
        "Paths and boxes, with gradients, through Executor.run: CPU ms, one core, medians of turns;"
        " in brackets fluidjax over it"
    )
    peers = [turns[0][side][0] for side in there]
    return shown(
        "searches", title, ["case", *there], map(row, CASES), peers, [56] + [18] * len(there)
    )
