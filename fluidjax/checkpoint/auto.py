"""``AutoCheckpoint``: a loop that saves by steps, by time, and on SIGTERM."""

from __future__ import annotations

import json
import os
import time
from types import TracebackType
from typing import Any

from ..dist.jobs import notice
from ..dist.jobs.process import met_job
from ..errors import FluidValueError
from ..executor import Executor
from ..graph.program import Program
from ..loaders.position import Positioned
from ..state.scope import Scope
from .folder import Checkpoint

# seconds between the messages by which a job's trainers agree whether a checkpoint is due: one
# message each, too rare to slow a step
ASKED = 0.25
FARTHEST = 1000  # least steps between two such messages, however short the steps are


class AutoCheckpoint:
    """Checkpoints of a training loop: at intervals of steps or seconds, and on SIGTERM.

    executor, main_program, reader, scope: as for Checkpoint.save. path, keep, keep_seconds,
    asynchronous: as for Checkpoint. every_steps, every_seconds: the intervals; None switches one
    off. A checkpoint's number is the number of steps done.

        with fluid.io.AutoCheckpoint(exe, "ckpt", main, reader=reader, every_steps=100) as auto:
            auto.resume()
            for epoch in range(reader.epoch, 10):
                for batch in reader():
                    exe.run(main, feed=feeder.feed(batch), fetch_list=[loss])
                    auto.step()

    In a job of several processes every trainer has one and calls the same methods. They agree on
    checkpoints by time, and SIGTERM for one trainer counts for all. Raises FluidValueError for an
    interval that is not above 0.
    """

    def __init__(
        self,
        executor: Executor,
        path: str | os.PathLike[str],
        main_program: Program | None = None,
        *,
        reader: Positioned | None = None,
        every_steps: int | None = None,
        every_seconds: float | None = None,
        keep: int | None = 3,
        keep_seconds: float | None = None,
        asynchronous: bool = True,
        scope: Scope | None = None,
    ) -> None:
        if every_steps is not None and (type(every_steps) is not int or every_steps < 1):
            raise FluidValueError(
                f"every_steps is a number of steps, at least 1, or None; not {every_steps!r}"
            )
        if every_seconds is not None and not every_seconds > 0:
            raise FluidValueError(
                f"every_seconds is a number of seconds above 0, or None; not {every_seconds!r}"
            )
        self._checkpoint = Checkpoint(path, keep, asynchronous, keep_seconds)
        self._of: dict[str, Any] = {
            "executor": executor,
            "main_program": main_program,
            "reader": reader,
            "scope": scope,
        }
        self._every_steps, self._every_seconds = every_steps, every_seconds
        self._steps = self._saved_at = self._ask_at = 0
        self._saved = self._began = time.monotonic()
        self._begun = 0  # the step at which the clock started
        self._holds = self._ended = False

    @property
    def steps(self) -> int:
        """The number of steps done, including those before a restart."""
        return self._steps

    def __enter__(self) -> AutoCheckpoint:
        self._hold()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _hold(self) -> None:
        if not self._holds:
            self._holds = True
            notice.hold()
            if (job := met_job()) is not None:
                job.saves_at_the_end()

    def resume(self) -> int:
        """Restore the latest checkpoint, and return `steps`; 0 if there is no checkpoint.

        Call it after the startup program has run. Raises the errors of Checkpoint.restore.
        """
        import orbax.checkpoint  # noqa: F401  # takes a second, which no step is to lose

        self._hold()
        if self._checkpoint.latest() is not None:
            self._steps = self._saved_at = self._checkpoint.restore(**self._of).step
        self._ask_at = self._steps
        self._begin()
        return self._steps

    def _begin(self) -> None:
        self._saved = self._began = time.monotonic()
        self._begun = self._steps

    def step(self, trainer_args: dict[str, Any] | None = None) -> bool:
        """Call this after each step: it saves if a checkpoint is due, and returns whether it saved.

        trainer_args: as for Checkpoint.save. If this process or another trainer got SIGTERM, a
        whole checkpoint is written and Preempted is raised: a SystemExit with code 75, after which
        schedulers restart a job. Raises the errors of Checkpoint.save.
        """
        self._hold()
        self._steps += 1
        due = self._every_steps is not None and self._steps % self._every_steps == 0
        by_time, ends = self._agreed_requests()
        if due or by_time or (ends and self._saved_at < self._steps):
            self._checkpoint.save(**self._of, step=self._steps, trainer_args=trainer_args)
            self._saved_at, self._saved = self._steps, time.monotonic()
        if ends:
            self._end()
        return self._saved_at == self._steps

    def _agreed_requests(self) -> tuple[bool, bool]:
        """Whether a checkpoint is due by time, and whether the job shall end; the answers are the
        same in every trainer.
        """
        now = time.monotonic()
        late = self._every_seconds is not None and now - self._saved >= self._every_seconds
        job = met_job()
        if job is None or job.count == 1 or not job.watched:
            return late, notice.is_requested()
        if self._steps < self._ask_at:
            return False, False
        each = (now - self._began) / max(1, self._steps - self._begun)
        apart = int(min(FARTHEST, max(1.0, ASKED / max(each, 1e-9))))
        words = [
            json.loads(w) for w in job.agree(json.dumps([late, notice.is_requested(), apart])) if w
        ]
        late, _, apart = words[0]  # the first trainer's clock decides
        self._ask_at = self._steps + apart
        return bool(late), any(word[1] for word in words)

    def _end(self) -> None:
        self.wait()
        self._ended = True
        job = met_job()
        if job is not None:
            job.agree("saved")  # no trainer leaves before the last one has written its part
        raise notice.Preempted  # close() restores the handler of SIGTERM, whose work is done

    def wait(self) -> None:
        """Wait until everything is written. Raises LoadError if writing failed."""
        self._checkpoint.wait()

    def close(self) -> None:
        """Wait, and restore the handler of SIGTERM. Raises Terminated if SIGTERM came after the
        last step.
        """
        try:
            self._checkpoint.close()
        finally:
            if self._holds and not self._ended:
                self._holds = False
                notice.release()


__all__ = ["AutoCheckpoint"]
