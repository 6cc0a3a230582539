"""kill -9 of any process of a 2x2 job at any step: how the others end, and whether a restart ends
with the same bits.

``python -m benchmarks.faults --kills 20 --seed 0``: the job of `fault_job.py` is run once to its
end, and then again and again; each time a process drawn at random is killed at a random step, every
third time while a checkpoint is being written. The others must end within 30 seconds, with a
sentence that names the dead one. Then the job is started again and must end with the values of the
run that nobody disturbed, bit for bit.

``--restarts 3``: the launcher itself starts the job again; processes are killed at any moment since
the last start, the first moments of their imports too, until 20 were.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import fluidjax as fluid

ROOT = Path(__file__).parents[1]
NAMES = ("trainer 0", "trainer 1", "pserver 0", "pserver 1")
LIMIT = 30.0  # seconds that the other processes may take to end
LONGEST = 300.0  # seconds for a whole run


@dataclass(frozen=True)
class Setting:
    """How long the job is: its steps, a checkpoint after every so many, the width of its layers."""

    steps: int = 60
    every: int = 5
    width: int = 512


@dataclass(frozen=True)
class Kill:
    """`victim` is killed `after` seconds after a trainer began `step`, or after the files of a
    checkpoint began to be written.
    """

    victim: str
    step: int
    writing: bool
    after: float


@dataclass(frozen=True)
class Outcome:
    """What came of it. seconds: until the last process had ended. silent: those that did not name
    the dead one themselves.

    cut: a checkpoint was left unfinished. resumed: the step after which the restarted job went on
    (0: from the start).
    """

    kill: Kill
    at: int
    seconds: float
    silent: tuple[str, ...]
    cut: bool
    resumed: int


class Job:
    """A running job, and what it has said so far."""

    def __init__(self, folder: Path, setting: Setting, restarts: int = 0) -> None:
        script = str(Path(__file__).with_name("fault_job.py"))
        words = [script, str(folder), *map(str, (setting.steps, setting.every, setting.width))]
        env = {k: v for k, v in os.environ.items() if "PADDLE" not in k and "FLUIDJAX" not in k} | {
            "JAX_PLATFORMS": "cpu"
        }
        self.checkpoints = folder / "checkpoints"
        self.lines: list[str] = []
        self.pids: dict[str, int] = {}
        self.step = self.restarted = 0
        self.began = time.monotonic()
        options = ["--nproc", "2", "--pservers", "2", "--restarts", str(restarts)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fluidjax", "launch", *options, *words],
            cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))
            if found := re.fullmatch(r"\[(.*?)\] pid (\d+)\n", line):
                self.pids[found[1]] = int(found[2])
            elif found := re.fullmatch(r"\[trainer \d\] step (\d+)\n", line):
                self.step = max(self.step, int(found[1]))
            elif line.startswith("fluidjax launch: starts the job again"):
                self.pids, self.step, self.began = {}, 0, time.monotonic()
                self.restarted += 1

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        self._process.kill()
        self._reader.join(10)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def ended(self, seconds: float) -> int:
        """The launcher's exit code. Raises AssertionError if it takes longer."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.text(f"the job has not ended after {seconds:g} s")) from None
        self._reader.join(10)
        return code

    def finish(self) -> None:
        """Wait for a good end."""
        code = self.ended(LONGEST)
        assert code == 0, self.text(f"the job ended with exit code {code}")

    def strike(self, kill: Kill) -> int:
        """Kill the victim; the last step that had begun then."""
        self._until(lambda: self.step >= kill.step and kill.victim in self.pids)
        if kill.writing:
            self._until(
                lambda: any(
                    int(p.name.split(".")[0]) >= kill.step for p in unfinished(self.checkpoints)
                )
            )
        time.sleep(kill.after)
        os.kill(self.pids[kill.victim], signal.SIGKILL)
        return self.step

    def again(self, number: int) -> None:
        """Wait until the launcher has started the job again so many times."""
        self._until(lambda: self.restarted >= number)

    def strike_at(self, seconds: float, draw: random.Random) -> str:
        """Kill any process so many seconds after the last start; its name, "" if the job ended
        before.
        """
        again = self.restarted
        while time.monotonic() - self.began < seconds:
            if self._process.poll() is not None:
                return ""
            time.sleep(0.001)
        children = f"/proc/{self._process.pid}/task/{self._process.pid}/children"
        with contextlib.suppress(OSError):
            found = Path(children).read_text().split()
            if len(found) == len(NAMES) and self._process.poll() is None:
                number = draw.randrange(len(NAMES))
                os.kill(int(found[number]), signal.SIGKILL)
                self._until(
                    lambda: self.restarted > again or self._process.poll() is not None, True
                )
                return NAMES[number]
        return ""

    def _until(self, what: Callable[[], bool], may_end: bool = False) -> None:
        limit = time.monotonic() + LONGEST
        while not what():
            running = may_end or self._process.poll() is None
            assert running and time.monotonic() < limit, self.text("the job did not come so far")
            time.sleep(0.001)

    def said(self, text: str) -> bool:
        """Whether a line begins with this."""
        return any(line.startswith(text) for line in self.lines)

    def text(self, why: str) -> str:
        """A reason, and the last lines of the job."""
        return "\n".join([why, *self.lines[-60:]])


def unfinished(checkpoints: Path) -> list[Path]:
    """Folders of checkpoints that have not got their final names."""
    return (
        [p for p in checkpoints.glob("[0-9]*.*") if "tmp" in p.name] if checkpoints.is_dir() else []
    )


def final(folder: Path) -> list[dict[str, np.ndarray]]:
    """What the two trainers held in the end: every persistable variable, and the losses of the
    steps that they ran.
    """
    return [dict(np.load(folder / f"trainer_{rank}.npz")) for rank in (0, 1)]


def whole_run(folder: Path, setting: Setting) -> list[dict[str, np.ndarray]]:
    """The end of a run that nobody disturbs."""
    folder.mkdir()
    with Job(folder, setting) as job:
        job.finish()
    return final(folder)


def killed_run(folder: Path, setting: Setting, kill: Kill) -> Outcome:
    """Start the job, or go on with it, and kill a process of it. Raises AssertionError unless the
    others end as they should.
    """
    folder.mkdir(exist_ok=True)
    with Job(folder, setting) as job:
        at = job.strike(kill)
        begun = time.monotonic()
        code = job.ended(LIMIT)
        seconds = time.monotonic() - begun
    how = "was killed by SIGKILL (signal 9)"
    others = [name for name in NAMES if name != kill.victim]
    left = [
        name for name in others if name in job.pids and Path(f"/proc/{job.pids[name]}").exists()
    ]
    assert code == 137 and job.said(f"fluidjax launch: {kill.victim} {how}"), job.text(
        f"{kill}: exit code {code}"
    )
    assert not left, job.text(f"{kill}: {left} run on")
    silent = tuple(
        n
        for n in others
        if n in job.pids and not job.said(f"[{n}] fluidjax: {n} ends because {kill.victim} {how}")
    )
    return Outcome(
        kill, at, seconds, silent, bool(unfinished(folder / "checkpoints")), latest(folder)
    )


def latest(folder: Path) -> int:
    """The step of the newest checkpoint that is whole; 0 if there is none."""
    return max(fluid.io.get_latest_checkpoint_serial(folder / "checkpoints"), 0)


def restarted(folder: Path, setting: Setting, whole: list[dict[str, np.ndarray]]) -> None:
    """Have the job go on to its end. Raises AssertionError where it does not end with the bits of
    the whole run.
    """
    after = latest(folder)
    with Job(folder, setting) as job:
        job.finish()
    same(folder, job, after, whole)


def same(folder: Path, job: Job, after: int, whole: list[dict[str, np.ndarray]]) -> None:
    """Raises AssertionError unless a job that went on after that step has ended with the bits of
    the whole run.
    """
    for rank, (found, expected) in enumerate(zip(final(folder), whole, strict=True)):
        if after:
            assert job.said(f"[trainer {rank}] goes on after step {after}"), job.text(
                f"trainer {rank} did not go on after step {after}"
            )
        names = {n for n in expected if not n.startswith("loss ") or int(n.split()[1]) > after}
        assert set(found) == names, f"trainer {rank}: {sorted(set(found) ^ names)}"
        wrong = [
            n
            for n in sorted(names)
            if found[n].tobytes() != expected[n].tobytes() or found[n].dtype != expected[n].dtype
        ]
        assert not wrong, (
            f"trainer {rank} ends with other values of {', '.join(wrong)} when it goes on after"
            f" step {after}"
        )


def restarts_by_itself(
    folder: Path, setting: Setting, whole: list[dict[str, np.ndarray]], seconds: float, kills: int, draw: random.Random
) -> list[tuple[str, float, int]]:  # fmt: skip
    """A job under --restarts that loses up to so many processes, each at a moment within `seconds`
    after a start: (victim, when, the step after which the job went on) of each. Raises
    AssertionError where it does not end with the bits of the whole run.
    """
    folder.mkdir()
    lost = []
    with Job(folder, setting, restarts=kills) as job:
        for _ in range(kills):
            when = draw.random() * seconds
            if not (victim := job.strike_at(when, draw)):
                break
            lost.append((victim, when, latest(folder)))
        job.finish()
    for rank, (found, expected) in enumerate(zip(final(folder), whole, strict=True)):
        wrong = [n for n in found if found[n].tobytes() != expected[n].tobytes()]
        missing = {n for n in expected if not n.startswith("loss ")} - set(found)
        assert not wrong and not missing, job.text(f"trainer {rank}: other values of {wrong}")
        # a process that was killed after the last checkpoint leaves no step to go on with
        over = any(step == setting.steps for _, _, step in lost)
        assert over or f"loss {setting.steps}" in found, job.text(f"trainer {rank} ended early")
    return lost


def drawn(seed: int, count: int, setting: Setting) -> Iterator[Kill]:
    """Kills at random: every process, every step, up to 30 ms into it."""
    draw = random.Random(seed)
    for number in range(count):
        writing = number % 3 == 2
        yield Kill(
            draw.choice(NAMES),
            draw.randint(1, setting.steps - 2 * setting.every),
            writing,
            draw.random() * 0.03,
        )


def main(arguments: list[str]) -> None:
    """Print a line for each kill, then the figures of all."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.faults", description=(__doc__ or "").split("\n", 1)[0]
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--restarts", type=int, default=0, help="by the launcher itself")
    args = parser.parse_args(arguments)
    if args.restarts:
        return by_itself(args.kills, args.seed, args.restarts)
    setting, outcomes = Setting(), list[Outcome]()
    with tempfile.TemporaryDirectory() as made:
        whole = whole_run(Path(made) / "whole", setting)
        for number, kill in enumerate(drawn(args.seed, args.kills, setting)):
            folder = Path(made) / str(number)
            outcome = killed_run(folder, setting, kill)
            restarted(folder, setting, whole)
            outcomes.append(outcome)
            during = " while a checkpoint is written" if kill.writing else ""
            print(
                f"{kill.victim} killed at step {outcome.at}{during}: the others ended in"
                f" {outcome.seconds:.2f}"
                f" s{', without a word of ' * bool(outcome.silent)}{' and '.join(outcome.silent)};"
                f" {'a checkpoint cut off; ' * outcome.cut}restarted after step {outcome.resumed}:"
                " the same bits",
                flush=True,
            )
    seconds = [o.seconds for o in outcomes]
    print(
        f"{len(outcomes)} kills, seed {args.seed}: ended within {max(seconds):.2f} s (median"
        f" {statistics.median(seconds):.2f}), {sum(o.cut for o in outcomes)} checkpoints cut off,"
        f" {sum(len(o.silent) for o in outcomes)} processes without a sentence; every restart ended"
        " with the same bits"
    )


def by_itself(kills: int, seed: int, restarts: int) -> None:
    """Print a line for each kill, until so many were made."""
    setting, draw, made = Setting(), random.Random(seed), 0
    with tempfile.TemporaryDirectory() as where:
        began = time.monotonic()
        whole = whole_run(Path(where) / "whole", setting)
        seconds = time.monotonic() - began
        while made < kills:
            folder = Path(where) / f"after {made}"
            few = min(restarts, kills - made)
            lost = restarts_by_itself(folder, setting, whole, seconds, few, draw)
            for victim, when, step in lost:
                print(
                    f"{victim} killed {when:.2f} s after a start, the last checkpoint of step {step}",
                    flush=True,
                )
            shutil.rmtree(folder)
            made += len(lost)
            print(f"{made} kills: the same bits in the end", flush=True)
    print(f"{made} kills, seed {seed}, --restarts {restarts}: every job ended with the same bits")


if __name__ == "__main__":
    main(sys.argv[1:])
