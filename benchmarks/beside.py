"""fluidjax beside flax, Paddle 1.8.5, torch and onnxruntime: the first second of a net, and its
steps, in the same run.

Every side is a process in its own environment (peers/serve.py), and they take turns. Those in other
environments than this one's run where `make bench-peers` made them: Paddle in .peers/paddle, torch
in .peers/torch, or where FLUIDJAX_PEERS names a folder that holds these two. A side
that is not there is left out, and that is said.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from .fusing import SAVED, there_is
from .page import Table, shown

ROOT = Path(__file__).parents[1]
SERVE = Path(__file__).parent / "peers" / "serve.py"
PEERS = Path(os.environ.get("FLUIDJAX_PEERS") or ROOT / ".peers")
PYTHONS = {
    "fluidjax": Path(sys.executable), "flax": Path(sys.executable), "paddle": PEERS / "paddle/bin/python",
    "torch": PEERS / "torch/bin/python", "onnxruntime": Path(sys.executable), "scan": Path(sys.executable),
    "XLA's kernels": Path(sys.executable),
}  # fmt: skip
TRAINING = ("fluidjax", "flax", "paddle", "torch")
FIRST = ("2 layers", "LeNet", "ResNet-32")
STEADY = ("fit-a-line", "LeNet", "transformer", "ResNet-18")
OCR = tuple(f"{name}, {batch}" for name in SAVED for batch in (1, 8))
NETS = ("ResNet-50", "MobileNet-v1", "BERT, 4 layers")
PREDICTING = (*(f"{name}, {batch}" for name in NETS for batch in (1, 8)), *OCR)
SEARCHES = ("beam search, 1 sentence", "beam search, 8 sentences")
# a user's Python keeps what it has compiled, and fluidjax chooses where executables are kept
UNUSUAL = (
    "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "JAX_COMPILATION_CACHE_DIR",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
)  # fmt: skip
LATER = 0.005  # seconds after the loss that are reported
WARM_UP, TURNS, TURN = 4, 9, 0.4  # steps, turns, seconds of CPU time that a turn is to take


class Side:
    """One side's process. cores: those that it may use, all if None."""

    def __init__(
        self,
        side: str,
        case: str,
        cores: set[int] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        one = (
            {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            if cores is not None
            else {}
        )
        path = {"PYTHONPATH": str(ROOT)} if PYTHONS[side] == Path(sys.executable) else {}
        quiet = {
            "CUDA_VISIBLE_DEVICES": "",
            "JAX_PLATFORMS": "cpu",
            "FLAGS_compilation_cache": "0",
            "GLOG_v": "0",
            "CPU_NUM": "1",
        }
        self.process = subprocess.Popen(
            [str(PYTHONS[side]), str(SERVE), side, case], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**{n: v for n, v in os.environ.items() if n not in UNUSUAL}, **quiet, **one, **path, **(environ or {})},
        )  # fmt: skip
        if cores is not None:
            os.sched_setaffinity(self.process.pid, cores)
        self.begun = self._answer()
        self.version: str = self.begun["version"]

    def ask(self, words: str) -> dict[str, Any]:
        """{"wall": s, "cpu": s, "value": ...} of what was asked."""
        assert self.process.stdin is not None
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(
                f"{' '.join(map(str, self.process.args[2:]))}:"
                f" {self.process.stderr.read().strip()[-2000:]}"
            )  # type: ignore[index]
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def running(side: str, case: str, cores: set[int] | None = None, **environ: str) -> Iterator[Side]:
    found = Side(side, case, cores, environ)
    try:
        yield found
    finally:
        found.close()


def there(sides: Sequence[str]) -> dict[str, str]:
    """Those of these sides that this machine has, with their versions; which, and what is missing,
    is printed.
    """
    found = {}
    for side in sides:
        try:
            with running(side, "-") as process:
                print(f"  {process.version}")
                found[side] = process.version
        except (OSError, RuntimeError):
            print(f"  {side} is not there; make bench-peers installs it")
    return found


def first_second() -> Table:
    """Startup, and the first step: seconds of wall time, of all cores, in fresh processes; and
    again with what was compiled kept.
    """
    sides = there(TRAINING)
    heads = ["fluidjax", "fluidjax warm", *(s for s in sides if s != "fluidjax")]

    def row(case: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            kept = {"FLAGS_compilation_cache": "1", "FLAGS_compilation_cache_dir": folder}
            return [
                case,
                _first("fluidjax", case, **kept),
                _first("fluidjax", case, **kept),
                *(_first(side, case) for side in heads[2:]),
            ]

    title = (
        "The first second: startup + first step up to its loss, and where updates come later up to"
        " these, wall s (CPU s), fresh processes; warm: fluidjax again with its compilation cache"
    )
    return shown(
        "first second",
        title,
        ["net", *heads],
        map(row, FIRST),
        sides.values(),
        [12] + [26] * len(heads),
    )


def _first(side: str, case: str, **environ: str) -> str:
    with running(side, case, **environ) as process:
        made, step, rest = process.ask("make"), process.ask("steps 1"), process.ask("wait")
    later = f" + {rest['wall']:.2f}" if rest["wall"] >= LATER else ""
    return (
        f"{made['wall']:.2f} + {step['wall']:.2f}{later}"
        f" ({made['cpu'] + step['cpu'] + rest['cpu']:.2f})"
    )


def steady() -> Table:
    """Later steps, one core each, in turns: milliseconds of CPU time, and how many times the
    other's ours takes.
    """
    title = "Later steps: CPU ms a step, one core, medians of turns; in brackets fluidjax over it"
    return _table("later steps", title, STEADY, there(TRAINING))


def predicting() -> list[Table]:
    """Prediction beside onnxruntime, which is given what fluid.export wrote, and beside the bare
    kernels of its convolutions and products: with one thread by CPU time, as steady(), and with two
    by the clock, which wants a machine that is idle.
    """
    there_are = {case: case not in OCR or there_is(case.rsplit(", ", 1)[0]) for case in PREDICTING}
    if not all(there_are.values()):
        print("  the OCR models are not there; make models fetches them")
    cases = [case for case in PREDICTING if there_are[case]]
    versions = there(("fluidjax", "onnxruntime", "XLA's kernels"))
    found = []
    for threads, name, what in (
        (1, "prediction", "CPU ms a call, one core"),
        (2, "prediction on two cores", "ms a call, two cores"),
    ):
        title = f"Prediction: {what}, medians of turns; in brackets fluidjax over it"
        with tempfile.TemporaryDirectory() as folder:
            found.append(
                _table(
                    name,
                    title,
                    cases,
                    versions,
                    threads,
                    PEER_MODEL=folder,
                    PEER_THREADS=str(threads),
                )
            )
    return found


def searching() -> Table:
    """Beam searches beside Paddle's, as steady(): 4 beams, 50 steps, 10,000 words."""
    title = (
        "Beam search, 4 beams, 50 steps, 10,000 words: CPU ms a search, one core, medians of turns;"
        " in brackets fluidjax over it"
    )
    return _table("beam search", title, SEARCHES, there(("fluidjax", "paddle")))


def _table(
    name: str, title: str, cases: Sequence[str], versions: Mapping[str, str], threads: int = 1,
    **environ: str,
) -> Table:  # fmt: skip
    sides = list(versions)

    def row(case: str) -> list[str]:
        times = measured(case, sides, threads, **environ)
        ours = times[sides[0]]
        cells = [case, f"{statistics.median(ours) * 1e3:.3f}"]
        for side in sides[1:]:
            ratio = statistics.median(a / b for a, b in zip(ours, times[side], strict=True))
            cells.append(f"{statistics.median(times[side]) * 1e3:.3f} ({ratio:.2f})")
        return cells

    return shown(name, title, ["net", *sides], map(row, cases), versions.values())


def measured(
    case: str, sides: Sequence[str], threads: int = 1, **environ: str
) -> dict[str, list[float]]:
    """Seconds a step, of each side in each turn: of CPU time with one thread, by the clock with
    more. Raises AssertionError where two sides predict different values.
    """
    cores = {*sorted(os.sched_getaffinity(0))[-threads:]}
    clock = "cpu" if threads == 1 else "wall"
    with ExitStack() as stack:
        processes: dict[str, Side] = {}
        values, counts = [], {}
        for side in sides:  # one after another: onnxruntime reads what our side has written
            processes[side] = process = stack.enter_context(running(side, case, cores, **environ))
            process.ask("make")
            values.append(process.ask(f"steps {WARM_UP}")["value"])
            once = process.ask("steps 2")[clock] / 2
            counts[side] = max(1, int(TURN / max(once, 1e-6)))
        if (case in PREDICTING or case in SEARCHES) and any(
            abs(v - values[0]) > 1e-3 * abs(values[0]) for v in values
        ):
            raise AssertionError(f"{case}: the sides predict different values: {values}")
        times: dict[str, list[float]] = {side: [] for side in sides}
        for turn in range(TURNS):
            for side in sides if turn % 2 == 0 else sides[::-1]:
                asked = [
                    processes[side].ask(words)[clock] for words in (f"steps {counts[side]}", "wait")
                ]
                times[side].append(sum(asked) / counts[side])
    return times


def table() -> list[Table]:
    """The first second, and later steps."""
    return [first_second(), steady()]
