"""Whether the benchmarks run: a few small ones, measured for a moment, and the page made of them.
No figure is judged or kept.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from . import convolutions, from_files, ops, overhead, scripts, searched
from .gpu import page as gpu_page
from .page import FIGURES, PAGE, keep, measured, read, rendered

OPS = ("cross_entropy", "gather", "gru", "adam", "auc")


def rehearsed() -> None:
    """What is for a machine with a GPU (gpu/), with the CPU in its place; and its page."""
    with tempfile.TemporaryDirectory() as folder:
        env = {
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "OUT": folder,
            "BUDGET": "300",
            "PYTHON": sys.executable,
        }
        subprocess.run(["bash", str(Path(__file__).parent / "gpu/run.sh")], env=env, check=True)
        page = Path(folder) / gpu_page.PAGE.name
        page.write_text(gpu_page.PAGE.read_text())
        gpu_page.main(
            str(Path(folder) / "results.jsonl"),
            page=page,
            figures=Path(folder) / gpu_page.FIGURES.name,
        )
        assert "a rehearsal" in page.read_text()


def table() -> None:
    """Some ops beside plain JAX, which must agree; fit-a-line's call; CTC, CRF, NMS; training from
    a file; a copy of the page.
    """
    begin = time.perf_counter()
    cases = [c for c in ops.CASES if c.op in OPS]
    with (
        mock.patch.multiple(convolutions, TURNS=1, TURN=0.005),
        mock.patch.multiple(searched, SIDES=("fluidjax",), TURNS=1),
    ):
        found = measured("ops", lambda: ops.table(cases)) | measured("searched", searched.table)
    with mock.patch.multiple(from_files, SLOTS=2, LINES=256, FILES=1, TURNS=1, IDS=(1,)):
        found |= measured("from_files", from_files.table)
    reached = scripts.run("fluidjax", "MLP", scripts.CORES["one core"], last=1)
    print(f"\nMLP: step 1 after {reached['1'][0]:.1f} CPU s")
    paired = overhead.fit_a_line(budget=0.2)
    print(
        f"\nfit-a-line: Executor.run {paired.ours * 1e6:.1f} us, bare jitted call"
        f" {paired.theirs * 1e6:.1f} us"
    )
    with tempfile.TemporaryDirectory() as folder:
        figures, page = Path(folder) / FIGURES.name, Path(folder) / PAGE.name
        figures.write_text(FIGURES.read_text())
        page.write_text(PAGE.read_text())
        keep(found, figures, page)
        assert rendered(page.read_text(), read(figures)) == page.read_text()
        assert all(
            row[0] in page.read_text()
            for made in found.values()
            if made.table
            for row in made.table.rows
        )
    rehearsed()
    print(
        f"\nThe benchmarks run ({time.perf_counter() - begin:.0f} s); these figures were taken too"
        " quickly to be kept."
    )
