"""A checkpoint of a job of two trainers and two pservers, taken up by one process and by jobs of
other sizes.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidjax as fluid
from fluidjax import cli
from fluidjax.dist.jobs import children
from tests.forked import AS_SUBPROCESS

from . import pserver_job

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SAVED, END = 3, 5
Values = dict[str, np.ndarray]


def launched(folder: Path, trainers: int, pservers: int, steps: int) -> list[Values]:
    """What each trainer held in the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setattr(children, "subprocess", AS_SUBPROCESS)
        words = [
            "launch",
            "--nproc",
            str(trainers),
            "--pservers",
            str(pservers),
            pserver_job.__file__,
            str(folder),
            str(steps),
        ]
        assert cli.main(words) == 0
    return [dict(np.load(folder / f"trainer_{rank}.npz")) for rank in range(trainers)]


def one_process(folder: Path, steps: int = 0) -> Values:
    """The program before transpile, from the latest checkpoint on."""
    main, startup, loss = pserver_job.build()
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    step = fluid.io.load_checkpoint(exe, folder, main, scope=scope).step
    for more in range(step + 1, steps + 1):
        exe.run(main, pserver_job.feed_of(more), [loss], scope=scope)
    return pserver_job.held([v.name for v in fluid.io.get_program_persistable_vars(main)], scope)


def same(found: Values, expected: Values, prefix: str = "") -> None:
    for name, value in expected.items():
        assert found[prefix + name].dtype == value.dtype, name
        np.testing.assert_array_equal(found[prefix + name], value, err_msg=name)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: Any) -> tuple[Path, Values]:
    """The folder of the job's checkpoint, and its values then."""
    folder = tmp_path_factory.mktemp("checkpoints")
    trainers = launched(folder, 2, 2, SAVED)
    ended = {n: v for n, v in trainers[0].items() if not n.startswith("loaded ")}
    same(trainers[1], ended)
    assert sum("moment" in n for n in ended) == 8 and all(
        np.isfinite(v).all() for v in ended.values()
    )
    return folder, ended


def test_one_process_takes_it_up(saved: tuple[Path, Values]) -> None:
    folder, ended = saved
    same(one_process(folder), ended)


@pytest.mark.parametrize(("trainers", "pservers"), [(4, 2), (2, 3)])
def test_a_job_of_another_size_takes_it_up(
    saved: tuple[Path, Values], trainers: int, pservers: int, tmp_path: Path
) -> None:
    """Bit for bit; it goes on like one process, and what it saves in its turn is what it holds."""
    folder, ended = saved
    shutil.copytree(folder, tmp_path / "copy")
    found = launched(tmp_path / "copy", trainers, pservers, END)
    for trainer in found:
        same(trainer, ended, "loaded ")
        same(trainer, {n: v for n, v in found[0].items() if not n.startswith("loaded ")})
    same(found[0], one_process(tmp_path / "copy"))
    for name, value in one_process(folder, END).items():
        np.testing.assert_allclose(found[0][name], value, rtol=1e-4, atol=1e-6, err_msg=name)
        assert "moment" not in name or not np.array_equal(value, ended[name])
