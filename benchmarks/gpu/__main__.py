"""Conducts what run.sh asks for: ``python -m benchmarks.gpu``.

Cases prepare side by side, each in a process of its own, the most important first and no more at
once than the cores can compile for, while the tests run. Whichever is ready has the card for itself
until it is done: whatever else runs is stopped meanwhile. A process that dies, or takes longer with
the card than it may, costs its own findings alone: they are written as they come, and what became
of it is written too.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from .listed import GROUPS, LISTED, REHEARSED, TESTS, Listed
from .records import Records
from .worker import DONE, READY, TOLD

ROOT = Path(__file__).parents[2]
RESULTS = "results.jsonl"
SLACK = 8.0  # seconds at the end, to pack up
TEST_FILES = "tests/gpu"
REHEARSED_TESTS = "test_ops or test_places or mlp"
AT_ONCE = max(2, (os.cpu_count() or 2) // 3)  # cases that prepare at once
# of all tests; of those that were named half as many
WORKERS = max(2, min(8, (os.cpu_count() or 2) // 2))
LITTLE = (
    # effort of a rehearsal's compiler
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)


class Process:
    """A process of its own session, whose output goes to a file. With a pipe to it, it waits for
    its turn.
    """

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, env: dict[str, str], turns: bool
    ) -> None:
        self.name, self.turns = name, turns
        self.log = folder / f"{name.replace(' ', '_')}.log"
        out: IO[bytes] = self.log.open("wb")
        stdin = subprocess.PIPE if turns else subprocess.DEVNULL
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=env,
            stdin=stdin,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        out.close()
        self.given = 0  # turns that it was given
        self.killed = False  # by the conductor, which printed why

    def over(self) -> bool:
        return self.process.poll() is not None

    def says(self, word: str) -> int:
        """How many of its lines begin with a word."""
        return sum(line.startswith(word.encode()) for line in self.log.read_bytes().splitlines())

    def ready(self) -> bool:
        """Whether it waits for its turn."""
        return self.turns and not self.over() and self.says(READY) > self.given

    def go(self) -> None:
        """Its turn, up to the next time that it is ready, or to its end."""
        self.given += 1
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def send(self, number: int) -> None:
        """A signal for it and all that it has started."""
        if not self.over():
            os.killpg(self.process.pid, number)

    def end(self) -> None:
        self.killed = True
        self.send(signal.SIGCONT)
        self.send(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()

    def tail(self, lines: int = 12) -> list[str]:
        return self.log.read_text(errors="replace").splitlines()[-lines:]


class Conductor:
    def __init__(
        self, out: Path, work: Path, budget: float, only: Sequence[str], rehearsal: bool
    ) -> None:
        self.records, self.work, self.rehearsal = Records(out / RESULTS), work, rehearsal
        self.began = time.monotonic()
        self.end = self.began + budget - (1.0 if rehearsal else SLACK)
        self.budget = budget
        default = REHEARSED if rehearsal else GROUPS
        self.wanted = [c for c in LISTED if {c.group, c.name} & set(only or default)]
        self.tests = not only or TESTS in only
        self.env = {**os.environ, "GPU_WORK": str(work), **self._settings()}

    def _settings(self) -> dict[str, str]:
        """Of the processes: several share the card, what one compiles another may find, and nothing
        is kept elsewhere.
        """
        given = {
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_CPP_MIN_LOG_LEVEL": "2", "FLAGS_compilation_cache": "0",
            "JAX_COMPILATION_CACHE_DIR": str(self.work / "cache"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5",
        }  # fmt: skip
        if self.rehearsal:
            given["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", LITTLE)
        return given

    def left(self) -> float:
        return self.end - time.monotonic()

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self.began:5.0f} s] {text}", flush=True)

    def processes(self) -> Iterator[Process]:
        """Started one by one, as they are asked for: the tests first."""
        logs = self.work / "logs"
        logs.mkdir()
        results = str(self.records.path)
        if self.tests:
            env = {**self.env, "GPU_RESULTS": results, "GPU_RUN": "1"}
            yield Process(TESTS, self._pytest(), logs, env, turns=False)
        worker = [sys.executable, "-m", "benchmarks.gpu.worker", results]
        if self.rehearsal and self.wanted and not os.environ.get("APART"):
            # one process for all: to import jax takes longer than a case
            yield Process(
                "cases", [*worker, *(c.name for c in self.wanted)], logs, self.env, turns=True
            )
            return
        for case in self.wanted:
            yield Process(case.name, [*worker, case.name], logs, self.env, turns=True)

    def _pytest(self) -> list[str]:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            TEST_FILES,
            "-p",
            "no:cacheprovider",
            "--confcutdir",
            TEST_FILES,
        ]
        command += ["-o", "filterwarnings=default", "-o", "addopts=", "-m", "gpu"]
        named = os.environ.get("TESTS") or (REHEARSED_TESTS if self.rehearsal else "")
        command += ["-k", named] if named else []
        if not self.rehearsal:
            command += [
                "-n",
                str(max(2, WORKERS // 2) if named else WORKERS),
                "--dist",
                "worksteal",
            ]
        if importlib.util.find_spec("pytest_timeout") is not None:
            # seconds, those when it is stopped too
            command += ["--timeout", "280", "--timeout-method", "thread"]
        return command

    def run(self) -> bool:
        """Whether all went well."""
        self.records.add(
            "run",
            {
                "budget_s": self.budget,
                "commit": _commit(),
                "rehearsal": self.rehearsal,
                "card": _card(),
            },
        )
        waiting, more = self.processes(), True
        running: list[Process] = []
        try:
            while (more or running) and self.left() > 0:
                for process in [p for p in running if p.over()]:
                    running.remove(process)
                    self._ended(process)
                if ready := [p for p in running if p.ready()]:
                    self._give(ready[0], [p for p in running if p is not ready[0]])
                elif more and sum(p.turns for p in running) < AT_ONCE:
                    began = next(waiting, None)
                    more = began is not None
                    running += [began] if began else []
                else:
                    time.sleep(0.05)
        finally:
            for process in running:
                process.end()
                self._ended(process, cut=True)
        return self._summary()

    def _give(self, process: Process, others: Sequence[Process]) -> None:
        """The card for one, until it is done or waits again."""
        limit = min(_limit(process.name), self.left())
        busy = [p.name for p in others if not p.ready()]
        for other in others:
            other.send(signal.SIGSTOP)
        began = time.monotonic()
        process.go()
        while not process.over() and not process.ready() and time.monotonic() - began < limit:
            time.sleep(0.02)
        took = time.monotonic() - began
        if not process.over() and not process.ready():
            if process.says(DONE):
                process.process.wait(10)
            else:
                self.records.add(
                    process.name,
                    {"failed": f"over {limit:.0f} s with the card", "where": process.tail()},
                )
                process.end()
        for other in others:
            other.send(signal.SIGCONT)
        self.say(
            f"{process.name}: {took:.1f} s with the"
            f" card{f', while {len(busy)} were stopped' if busy else ''}"
        )

    def _ended(self, process: Process, cut: bool = False) -> None:
        code = process.process.returncode
        process.close()
        if cut:
            self.records.add(process.name, {"cut": True, "where": process.tail(4)})
        elif code and not process.killed and not (process.turns and code == TOLD):
            self.records.add(
                process.name,
                {
                    "failed": f"ended with {code}",
                    "where": process.tail(40 if process.name == TESTS else 12),
                },
            )
        self.say(f"{process.name} {'was cut' if cut else f'ended with {code}'}")

    def _summary(self) -> bool:
        found = list(self.records.read())
        bad = [r for r in found if "failed" in r or "cut" in r]
        tests = [r for r in found if r["case"] == TESTS and "outcome" in r]
        outcomes = {
            o: sum(r["outcome"] == o for r in tests) for o in sorted({r["outcome"] for r in tests})
        }
        print(
            f"\n{len(found)} findings, {len(bad)} of them of what went wrong; tests:"
            f" {outcomes or 'none'}"
        )
        for r in (*bad, *(r for r in tests if r["outcome"] == "failed")):
            print("-", json.dumps({k: v for k, v in r.items() if k != "at"})[:700])
        for r in found:
            if "sides" in r and all("ratio" in s for s in r["sides"].values()):
                print(
                    f"{r['case']:20}",
                    {n: (s["ms"], s["ratio"]) for n, s in r["sides"].items()},
                    {k: r[k] for k in ("batch", "peak_mb") if k in r},
                )
            elif {"added_us", "tb_s", "piece", "model"} & {
                w for k in r for w in (k, k.split()[-1])
            }:
                print(
                    f"{r['case']:20}",
                    json.dumps(
                        {k: v for k, v in r.items() if k not in ("case", "at", "stats", "sides")}
                    )[:400],
                )
        return not bad and outcomes.keys() <= {"passed", "skipped"} and bool(found)


def _limit(name: str) -> float:
    """Seconds that a process may have the card; of one for several cases all of theirs."""
    found: list[Listed] = [c for c in LISTED if c.name == name] or list(LISTED)
    return sum(c.measure for c in found)


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def _card() -> str:
    if shutil.which("nvidia-smi") is None:
        return ""
    wanted = "--query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem"
    done = subprocess.run(
        ["nvidia-smi", wanted, "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    return done.stdout.strip()


def pack(work: Path, out: Path) -> None:
    """Logs, and the text of what was compiled, as one file each."""
    for name in ("logs", "hlo"):
        if (work / name).is_dir():
            with tarfile.open(out / f"{name}.tar.gz", "w:gz") as archive:
                archive.add(work / name, name)


def main() -> int:
    rehearsal = os.environ.get("JAX_PLATFORMS", "").startswith("cpu")
    out = Path(os.environ.get("OUT") or ROOT / "bench-output")
    out.mkdir(parents=True, exist_ok=True)
    (out / RESULTS).unlink(missing_ok=True)
    only = [name for name in os.environ.get("ONLY", "").split(",") if name]
    unknown = set(only) - {*GROUPS, *(c.name for c in LISTED)}
    if unknown:
        sys.exit(
            f"ONLY: no group or case {', '.join(sorted(unknown))}; there are"
            f" {', '.join((*GROUPS, *(c.name for c in LISTED)))}"
        )
    with tempfile.TemporaryDirectory() as folder:
        fine = Conductor(
            out, Path(folder), float(os.environ.get("BUDGET", "540")), only, rehearsal
        ).run()
        pack(Path(folder), out)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
