"""``Checkpoint``: the checkpoints of one job in a folder, written by orbax in the background."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..base.progress import size, waiting
from ..dist.jobs.process import same_checkpoint
from ..errors import FluidError, FluidTypeError, FluidValueError, LoadError, ParseError
from ..executor import Executor
from ..graph.program import Program
from ..loaders.position import Position, Positioned
from ..saved.values import Difference, as_program
from ..state.scope import Scope, chosen
from . import pending
from .load import ALIKE, OWN, PIECES, contents, load, whole_arrays, whole_of
from .record import Random, Record, checked_args, lines
from .restore import (
    Restored,
    besides,
    check,
    concerned,
    fitting,
    meant,
    program_difference,
    shardings_of,
    wanted,
)
from .seal import STATE, is_sealed, opened, seal
from .snapshot import Snapshot, nbytes, put, take

_logger = logging.getLogger(__name__)


def _is_news(entry: logging.LogRecord) -> bool:
    """Whether an entry of orbax's log is shown. Not shown are tracebacks of errors that orbax also
    raises, which we report in a sentence, and notes that a save waited for the one before it, which
    `wait` shows.
    """
    said = entry.exc_info or str(entry.msg).startswith("Waiting for previous save")
    return not (said and "orbax" in entry.pathname)


# Old checkpoints are moved here before they are deleted: an interrupted deletion must not leave a
# part that looks whole.
REMOVED = "removed"


class Checkpoint:
    """The checkpoints of a job in a folder, a subfolder for each step.

    path: the folder, made by the first save; in a job of several processes all of them must see it.
    keep: the number of newest checkpoints to keep; None keeps all. keep_seconds: also keep older
    ones that are at least so many seconds apart, such as 3600 for one an hour. asynchronous: save
    returns after the values are copied, and the files are written while the program continues; the
    next save, restore, wait() or the end of the process waits for them.

    A checkpoint gets its final name when it is complete and sealed with checksums, so an
    interrupted one is never chosen and a damaged one never loaded. As a context manager this waits
    at the end. Raises FluidValueError for a keep below 1, and a keep_seconds that is not above 0.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        keep: int | None = 3,
        asynchronous: bool = True,
        keep_seconds: float | None = None,
    ) -> None:
        if not isinstance(path, str | os.PathLike):
            raise FluidTypeError(f"a checkpoint's folder is a path, not {type(path).__name__}")
        if keep is not None and (type(keep) is not int or keep < 1):
            raise FluidValueError(
                "keep is the number of checkpoints that stay, at least 1, or None for all; not"
                f" {keep!r}"
            )
        if keep_seconds is not None and not keep_seconds > 0:
            raise FluidValueError(
                f"keep_seconds is a number of seconds above 0, or None; not {keep_seconds!r}"
            )
        self.path = Path(os.path.abspath(path))
        self.keep, self.keep_seconds = keep, keep_seconds
        self.asynchronous = asynchronous
        self._writer: Any = None
        self._record: Any = None  # of the current save

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- what is there -----------------------------------------------------------------------------

    def steps(self) -> list[int]:
        """The steps of the checkpoints that are whole, in order."""
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise FluidValueError(
                f"cannot read the folder {str(self.path)!r}: {error.strerror or error}"
            ) from None
        return sorted(
            int(n)
            for n in names
            if re.fullmatch(r"0|[1-9][0-9]{0,17}", n) and is_sealed(self.path / n)
        )

    def latest(self) -> int | None:
        """The newest step with a complete checkpoint, or None."""
        return max(self.steps(), default=None)

    # -- saving ------------------------------------------------------------------------------------

    def save(
        self,
        executor: Executor,
        main_program: Program | None = None,
        step: int | None = None,
        reader: Positioned | None = None,
        trainer_args: Mapping[str, Any] | None = None,
        scope: Scope | None = None,
    ) -> int:
        """Save all persistable variables of a program, and the random state and reader's position,
        so that a run can resume exactly.

        executor: the executor that runs the program and has its random state. main_program: a
        Program or CompiledProgram, default the default main program. step: the checkpoint's number,
        above all existing ones; default the next. reader: a DataLoader or resumable reader, whose
        position is saved. trainer_args: any value that JSON can hold.

        In a job of several processes all call it with the same step. Returns the step. Raises
        EnforceNotMet for variables without a value, FluidValueError for a step that is not above
        the last one, LoadError if the save before this one failed in the background.
        """
        self.wait()
        program, found_scope = as_program(main_program), chosen(scope)
        step = self._next(step)
        same_checkpoint(step, str(self.path), saves=True)
        more = [
            n
            for n in besides(program)
            if (var := found_scope.find_var(n)) is not None and var.value is not None
        ]
        snapshot = take(sorted([*wanted(program), *more]), found_scope)
        if not snapshot.replicated and not snapshot.pieces:
            raise FluidValueError(
                "the program has no persistable variables, so there is nothing to save"
            )
        empty = {
            n: (v.dtype.name, tuple(v.shape)) for n, v in snapshot.replicated.items() if v.size == 0
        }
        runner = _executor(executor)
        random = Random(program.random_seed, *runner.random_state(program))
        args = checked_args(dict(trainer_args or {}))
        record = Record(
            step,
            lines(meant(program)),
            random,
            _position(reader),
            args,
            empty,
            snapshot.placed,
            snapshot.lods,
        )
        began, amount = time.perf_counter(), nbytes(snapshot)
        with waiting(f"saving checkpoint {step} in {str(self.path)!r}, {size(amount)}"):
            self._write(step, snapshot, record)
        how = (
            "is being written"
            if self.asynchronous
            else f"was written in {time.perf_counter() - began:.2f} s"
        )
        _logger.info("checkpoint %d in %r, %s, %s", step, str(self.path), size(amount), how)
        return step

    def _next(self, step: int | None) -> int:
        last = self.latest()
        if step is None:
            return 0 if last is None else last + 1
        if type(step) is not int or not 0 <= step < 10**18:
            raise FluidValueError(f"a checkpoint's step is a whole number from 0, not {step!r}")
        if last is not None and step <= last:
            raise FluidValueError(
                f"{str(self.path)!r} holds a checkpoint of step {last}, and step {step} is not"
                " after it; remove the later ones (clean_checkpoint), or save elsewhere"
            )
        return step

    def _write(self, step: int, snapshot: Snapshot, record: Record) -> None:
        import orbax.checkpoint as ocp  # takes a third of a second

        groups = {ALIKE: snapshot.replicated, OWN: snapshot.own, PIECES: snapshot.pieces}
        state = {
            key: kept
            for key, group in groups.items()
            if (kept := {n: v for n, v in group.items() if n not in record.empty})
        }
        with self._ours(f"cannot save a checkpoint in {str(self.path)!r}"), jax.enable_x64(True):
            if self._writer is None:
                seconds = self.keep_seconds
                apart = None if seconds is None else timedelta(seconds=seconds)
                last = ocp.AsyncOptions(post_finalization_callback=self._seal)
                options = ocp.CheckpointManagerOptions(
                    max_to_keep=self.keep,
                    keep_time_interval=apart,
                    todelete_subdir=REMOVED,
                    cleanup_tmp_directories=True,
                    async_options=last,
                )
                # compression hardly makes the numbers of a training smaller, and takes time from
                # its steps
                handler = ocp.PyTreeCheckpointHandler(use_compression=False)
                self._writer = ocp.CheckpointManager(
                    self.path, options=options, item_handlers={STATE: handler}
                )
                # wait once, however often this is called
                logging.getLogger("absl").addFilter(_is_news)
            pending.add(self)
            self._record = record
            self._writer.save(
                step, args=ocp.args.Composite(**{STATE: ocp.args.PyTreeSave(state)}), force=True
            )
        if not self.asynchronous:
            self.wait()

    def _seal(self) -> None:
        """orbax calls this in the job's first process when all files are written, before the folder
        gets its final name.
        """
        step = str(self._record.step)
        found = [
            p
            for p in self.path.iterdir()
            if p.is_dir() and (p.name == step or p.name.startswith(f"{step}."))
        ]
        seal(max(found, key=lambda p: p.stat().st_mtime_ns), self._record)

    def wait(self) -> None:
        """Wait until everything is written. Raises LoadError if writing failed."""
        if self._writer is None:
            return
        what = f"waiting until a checkpoint in {str(self.path)!r} is written"
        with self._ours(f"a checkpoint in {str(self.path)!r} could not be written"), waiting(what):
            self._writer.wait_until_finished()
        if jax.process_index() == 0:
            self._delete_removed()

    def _delete_removed(self) -> None:
        # the rest is not a checkpoint; the next wait tries again
        shutil.rmtree(self.path / REMOVED, ignore_errors=True)

    def close(self) -> None:
        """Wait, and drop the saving machinery. The object can still be used."""
        try:
            self.wait()
        finally:
            writer, self._writer = self._writer, None
            if writer is not None:
                with contextlib.suppress(Exception):  # wait has reported it
                    writer.close()

    # -- restoring ---------------------------------------------------------------------------------

    def restore(
        self,
        executor: Executor,
        main_program: Program | None = None,
        step: int | None = None,
        reader: Positioned | None = None,
        scope: Scope | None = None,
        strict: bool = True,
        shardings: Mapping[str, Any] | None = None,
    ) -> Restored:
        """Load a checkpoint into a scope, set the random state of the program, and move the reader
        to its saved position.

        step: default the latest. main_program: a CompiledProgram on as many devices as the saved
        one gets each device's own values back (batch_norm's moving averages); otherwise all devices
        get the first device's. strict: False loads what fits, and the result lists the rest.
        shardings: name -> jax.sharding.Sharding to load a variable onto; default the sharding of
        the scope's array if it is sharded, else the host.

        In a job of several processes all call it. Raises FluidValueError if there is no such
        checkpoint; LoadError listing every variable that is missing, unexpected, or of another
        shape or dtype, or the first op that differs; ParseError for a damaged checkpoint. Then the
        scope does not change.
        """
        self.wait()
        runner, program = _executor(executor), as_program(main_program)
        scope = chosen(scope)
        step = self._chosen(step)
        same_checkpoint(step, str(self.path), saves=False)
        source = f"the checkpoint {str(self.path / str(step))!r}"
        record = self._opened(step, source)
        with self._ours(f"{source} is damaged", ParseError), self._reading() as manager:
            groups = contents(manager, step)
            stored = whole_of(record, groups)
            difference, names = fitting(*concerned(program, stored))
            differs = program_difference(record, meant(program), program.random_seed)
            if strict:
                check(source, difference, differs)
            if reader is not None and record.position is None:
                raise LoadError(
                    f"{source} was saved without a reader, so it does not tell where one stood"
                )
            _position(reader)
            whole = {n: stored[n] for n in whole_arrays(record, groups)}
            targets = shardings_of(names, whole, scope, shardings)
            began = time.perf_counter()
            with waiting(f"restoring {len(names):,} variables of {source}"):
                loaded = load(manager, step, names, record, groups, targets)
            _logger.info(
                "restored %d variables of %s in %.2f s",
                len(names),
                source,
                time.perf_counter() - began,
            )
        return _install(record, loaded, runner, program, scope, reader, main_program, Restored(
            step, record.position, record.trainer_args, difference, differs
        ))  # fmt: skip

    def _chosen(self, step: int | None) -> int:
        there = self.steps()
        if not there:
            raise FluidValueError(f"there is no checkpoint in {str(self.path)!r}")
        if step is None:
            return there[-1]
        if step not in there:
            raise FluidValueError(
                f"there is no checkpoint of step {step!r} in {str(self.path)!r}, only of"
                f" {there[-20:]}"
            )
        return step

    def _opened(self, step: int, source: str) -> Record:
        try:
            record = opened(self.path / str(step))
        except FluidValueError as error:
            raise ParseError(f"{source} is damaged: {error}") from None
        if record.step != step:
            raise ParseError(f"{source} is damaged: the record is that of step {record.step}")
        return record

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Any]:
        import orbax.checkpoint as ocp

        handlers = {STATE: ocp.PyTreeCheckpointHandler()}
        manager = ocp.CheckpointManager(
            self.path, options=ocp.CheckpointManagerOptions(create=False), item_handlers=handlers
        )
        try:
            with jax.enable_x64(True):
                yield manager
        finally:
            manager.close()

    @contextlib.contextmanager
    def _ours(self, what: str, kind: type[FluidError] = LoadError) -> Iterator[None]:
        """Turn errors of orbax into ours. Orbax has no base class of its own for errors, so any
        exception may come.
        """
        try:
            yield
        except FluidError:
            raise
        except Exception as error:
            raise kind(f"{what}: {cause(error)}") from error

    def clean(self, after: int | None = None) -> None:
        """Remove all checkpoints, or those of later steps than `after`."""
        self.close()
        self._delete_removed()
        for step in self.steps():
            if after is None or step > after:
                (self.path / REMOVED).mkdir(exist_ok=True)
                os.rename(self.path / str(step), self.path / REMOVED / str(step))
        self._delete_removed()


# tensorstore appends the spec that it was opened with, as JSON: ` [tensorstore_spec='{...}']`
ATTACHED = re.compile(r" \[\w+='(?:\\.|[^'\\])*'\]")


def cause(error: Exception) -> str:
    """The cause of an error of orbax or tensorstore, on one line of at most 500 characters; the end
    is kept, because the cause is there.
    """
    text = ATTACHED.sub("", " ".join(str(error).split()))
    shown = text if len(text) < 500 else f"{text[:200]} ... {text[-250:]}"
    return f"{type(error).__name__}: {shown}"


def _executor(executor: Any) -> Executor:
    found = getattr(executor, "_executor", executor)  # a ParallelExecutor has one
    if not isinstance(found, Executor):
        raise FluidTypeError(
            f"executor is the Executor that runs the program, not {type(executor).__name__}"
        )
    return found


def _position(reader: Any) -> Position | None:
    if reader is None or isinstance(reader, Positioned):
        return None if reader is None else reader.position
    raise FluidTypeError(
        "reader is a DataLoader or a reader that fluid.io.resumable made, not"
        f" {type(reader).__name__}, which cannot tell its position"
    )


def _install(
    record: Record,
    loaded: Snapshot,
    runner: Executor,
    program: Program,
    scope: Scope,
    reader: Any,
    given: Any,
    result: Restored,
) -> Restored:
    """Install the loaded values; called after all checks."""
    names = wanted(program)
    empty = {n: np.zeros(shape, dtype) for n, (dtype, shape) in record.empty.items() if n in names}
    lods = {n: lod for n, lod in record.lods.items() if n in names}
    put(
        replace(loaded, replicated={**loaded.replicated, **empty}, lods=lods),
        scope,
        runner.rank_count(given),
    )
    runner.set_random_state(program, record.random.seed, record.random.runs)
    if reader is not None and record.position is not None:
        reader.resume(record.position)
    return result


__all__ = ["Checkpoint", "Difference"]
