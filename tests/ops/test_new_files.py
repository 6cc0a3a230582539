"""The files of docs/adding-ops.md in a copy of the package: the checks of every op ask for no other
change.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import examples

ROOT = Path(__file__).parents[2]
(OP, SAMPLES), (CONTROL_OP, *_) = (
    examples("adding-ops.md", f"## To add a{kind}") for kind in ("n op", " control op")
)
FILES = {
    "fluidjax/ops/curved.py": OP,
    "tests/ops/samples/curved.py": SAMPLES,
    "fluidjax/ops/control/when_positive.py": CONTROL_OP,
}
CHECKS = [
    "tests/ops/test_registry.py",
    "tests/ops/test_traits.py",
    "tests/ops/test_errors.py",
    "tests/ops/test_extremes.py::test_every_op_has_a_case_or_a_reason",
    "tests/runtime/test_transforms.py::test_every_loop_of_an_op_goes_through_loops",
]


@pytest.mark.once
def test_no_other_file_changes(tmp_path: Path) -> None:
    left_out = shutil.ignore_patterns("data", "__pycache__")
    for folder in ("fluidjax", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=left_out)
    for same in ("tests/data", "docs", "benchmarks", "pyproject.toml"):
        (tmp_path / same).symlink_to(ROOT / same)
    for name, text in FILES.items():
        assert not (ROOT / name).exists()
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *CHECKS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    found = "import fluidjax; from fluidjax.ops.registry import lookup; print(fluidjax.__file__)"
    found += "; lookup('bent_identity'); lookup('when_positive')"
    shown = subprocess.run(
        [sys.executable, "-c", found], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith(str(tmp_path))
