"""fluid.contrib.Trainer of Paddle 0.14 to 1.2: a training loop that reports events to a function."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import unique_name
from ..base.absent import reporter
from ..compiler import CompiledProgram
from ..data_feeder import DataFeeder
from ..errors import FluidTypeError, FluidValueError, UnsupportedError
from ..executor import Executor
from ..graph.program import Program, program_guard
from ..graph.variable import Variable
from ..io import load_persistables, save_inference_model, save_persistables
from ..optimizers.base import Optimizer
from ..saved.files import read_file
from ..state.scope import Scope, scope_guard

_PROGRESS = "trainer.json"
_FOLDER = "checkpoint_"


@dataclass
class BeginEpochEvent:
    """An epoch begins. epoch: its number, from 0."""

    epoch: int


@dataclass
class EndEpochEvent:
    """An epoch has ended. epoch: its number, from 0."""

    epoch: int


@dataclass
class BeginStepEvent:
    """A step begins. epoch, step: their numbers, from 0. fetch_metrics: set it to False to skip
    this step's metrics.
    """

    epoch: int
    step: int
    fetch_metrics: bool = True


@dataclass
class EndStepEvent:
    """A step has ended. epoch, step: their numbers. metrics: the values of train_func's results, []
    if skipped.
    """

    epoch: int
    step: int
    metrics: list[Any] = field(default_factory=list)


class CheckpointConfig:
    """Where and how often a Trainer saves checkpoints.

    checkpoint_dir: default the current folder. max_num_checkpoints: older ones are removed.
    epoch_interval, step_interval: checkpoints are saved after steps whose epoch and number these
    divide. Raises FluidValueError for intervals below 1.
    """

    def __init__(
        self,
        checkpoint_dir: str | None = None,
        max_num_checkpoints: int = 3,
        epoch_interval: int = 1,
        step_interval: int = 10,
    ) -> None:
        self.checkpoint_dir = checkpoint_dir or os.getcwd()
        self.max_num_checkpoints, self.epoch_interval, self.step_interval = (
            max_num_checkpoints,
            epoch_interval,
            step_interval,
        )
        for name in ("max_num_checkpoints", "epoch_interval", "step_interval"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise FluidValueError(
                    f"CheckpointConfig: {name} is a whole number from 1 on, not {value!r}"
                )


class Trainer:
    """Builds a program by `train_func`, minimizes its first result, and trains.

    train_func: builds the net in the default programs; returns the loss, or a list of it and other
    metrics. optimizer_func: returns the optimizer. param_path: a folder with initial parameters.
    place: default the first GPU that JAX sees, or the CPU. parallel: on all of cpu_places() or
    cuda_places(), with a batch each. checkpoint_config: a CheckpointConfig; if its folder has a
    checkpoint, training continues from it. Counters of parameter names are reset, so that an
    Inferencer finds the parameters. Raises FluidTypeError for an optimizer_func that returns
    something else.
    """

    def __init__(
        self, train_func: Callable[[], Any], optimizer_func: Callable[[], Optimizer], param_path: str | None = None, place: Any = None,
        parallel: bool = False, checkpoint_config: CheckpointConfig | None = None,
    ) -> None:  # fmt: skip
        if "PADDLE_TRAINING_ROLE" in os.environ:
            raise UnsupportedError(
                "Trainer trains in one process, but PADDLE_TRAINING_ROLE is set; use"
                " fluid.DistributeTranspiler"
            )
        if checkpoint_config is not None and not isinstance(checkpoint_config, CheckpointConfig):
            raise FluidTypeError(
                f"checkpoint_config is a CheckpointConfig, not {type(checkpoint_config).__name__}"
            )
        self.parallel, self.checkpoint_cfg, self._stopped = parallel, checkpoint_config, False
        self.scope, self.startup_program, self.train_program = Scope(), Program(), Program()
        with program_guard(self.train_program, self.startup_program), unique_name.guard():
            outputs = train_func()
            self.train_func_outputs: list[Variable] = (
                list(outputs) if isinstance(outputs, list | tuple) else [outputs]
            )
            self.test_program = self.train_program.clone(for_test=True)
            optimizer = optimizer_func()
            if not isinstance(optimizer, Optimizer):
                raise FluidTypeError(
                    f"optimizer_func returns an optimizer, not {type(optimizer).__name__}"
                )
            optimizer.minimize(self.train_func_outputs[0])
        self.exe = Executor(place)
        self.place = self.exe.place
        self._begin = (0, 0)  # the epoch and the step to resume from
        with scope_guard(self.scope):
            self.exe.run(self.startup_program)
            if param_path:
                load_persistables(self.exe, param_path, self.startup_program)
            self._resume()

    def stop(self) -> None:
        """Make train return after the current step."""
        self._stopped = True

    def train(
        self, num_epochs: int, event_handler: Callable[[Any], Any], reader: Callable[[], Any],
        feed_order: Sequence[str] | Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        """Train for `num_epochs` passes over the batches of ``reader()``, and call event_handler
        for each epoch and step.

        feed_order: the names of the variables for a sample's fields, or their positions by name;
        default all data variables of the program. When all epochs are done, checkpoints are
        removed, as in Paddle.
        """
        feeder = self._feeder(self.train_program, feed_order)
        program: Any = self.train_program
        batches: Callable[[], Any] = lambda: map(feeder.feed, reader())  # noqa: E731
        if self.parallel:
            program = CompiledProgram(program).with_data_parallel(
                loss_name=self.train_func_outputs[0].name
            )
            batches = feeder.decorate_reader(reader, multi_devices=True)
        with scope_guard(self.scope):
            for epoch in range(self._begin[0], num_epochs):
                event_handler(BeginEpochEvent(epoch))
                for step, feed in enumerate(batches()):
                    if self._stopped:
                        return
                    if (epoch, step) < self._begin:
                        continue
                    begin = BeginStepEvent(epoch, step)
                    event_handler(begin)
                    metrics = self.exe.run(
                        program,
                        feed=feed,
                        fetch_list=self.train_func_outputs if begin.fetch_metrics else [],
                    )
                    self._save(epoch, step)
                    event_handler(EndStepEvent(epoch, step, metrics))
                if self._stopped:
                    return
                event_handler(EndEpochEvent(epoch))
            if self.checkpoint_cfg is not None:
                for folder in self._checkpoints():
                    shutil.rmtree(folder)

    def test(
        self, reader: Callable[[], Any], feed_order: Sequence[str] | Mapping[str, int] | None = None
    ) -> list[float]:
        """The means, over the batches of ``reader()``, of train_func's results. Raises
        FluidValueError if there is no batch.
        """
        feeder, total, count = (
            self._feeder(self.test_program, feed_order),
            [0.0] * len(self.train_func_outputs),
            0,
        )
        with scope_guard(self.scope):
            for data in reader():
                outs = self.exe.run(
                    self.test_program, feed=feeder.feed(data), fetch_list=self.train_func_outputs
                )
                total = [t + float(out.reshape(-1)[0]) for t, out in zip(total, outs, strict=True)]
                count += 1
        if not count:
            raise FluidValueError("Trainer.test: the reader gives no batch")
        return [t / count for t in total]

    def save_params(self, param_path: str) -> None:
        """Save the parameters and the optimizer's state in a folder."""
        with scope_guard(self.scope):
            save_persistables(self.exe, param_path, self.train_program)

    def save_inference_model(
        self, param_path: str, feeded_var_names: Sequence[str], target_var_indexes: Sequence[int]
    ) -> None:
        """Save the program that computes some of train_func's results (given by index) from the
        feeds.
        """
        targets = [self.train_func_outputs[i] for i in target_var_indexes]
        with scope_guard(self.scope):
            save_inference_model(
                param_path, list(feeded_var_names), targets, self.exe, self.test_program
            )

    # -- inside ------------------------------------------------------------------------------------

    def _feeder(
        self, program: Program, feed_order: Sequence[str] | Mapping[str, int] | None
    ) -> DataFeeder:
        block = program.global_block()
        if feed_order is None:
            names = [v.name for v in block.vars.values() if v.is_data]
        elif isinstance(feed_order, Mapping):
            if sorted(feed_order.values()) != list(range(len(feed_order))):
                raise FluidValueError(
                    "feed_order gives each name another position from 0 on, not"
                    f" {dict(feed_order)!r}"
                )
            names = sorted(feed_order, key=lambda name: feed_order[name])
        else:
            names = list(feed_order)
        return DataFeeder([block.var(name) for name in names], self.place, program)

    def _checkpoints(self) -> list[Path]:
        """The folders of checkpoints, the newest last."""
        assert self.checkpoint_cfg is not None
        found = [
            p
            for p in Path(self.checkpoint_cfg.checkpoint_dir).glob(_FOLDER + "*")
            if p.name[len(_FOLDER) :].isdecimal()
        ]
        return sorted(found, key=lambda p: int(p.name[len(_FOLDER) :]))

    def _save(self, epoch: int, step: int) -> None:
        """Write a checkpoint, if one is due: to a temporary folder, which is then renamed."""
        config = self.checkpoint_cfg
        if config is None or epoch % config.epoch_interval or step % config.step_interval:
            return
        there = self._checkpoints()
        folder = Path(
            config.checkpoint_dir,
            f"{_FOLDER}{int(there[-1].name[len(_FOLDER) :]) + 1 if there else 0}",
        )
        beside = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(beside, ignore_errors=True)
        try:
            save_persistables(self.exe, str(beside), self.train_program)
            (beside / _PROGRESS).write_text(json.dumps({"epoch": epoch, "step": step}))
            os.replace(beside, folder)
        except BaseException:  # a full disk, Ctrl-C
            shutil.rmtree(beside, ignore_errors=True)
            raise
        for old in [*there, folder][: -config.max_num_checkpoints]:
            shutil.rmtree(old)

    def _resume(self) -> None:
        """Resume from the newest checkpoint. Raises FluidValueError for one without a position."""
        if self.checkpoint_cfg is None or not (there := self._checkpoints()):
            return
        path = there[-1] / _PROGRESS
        try:
            said = json.loads(read_file(path))
            self._begin = int(said["epoch"]), int(said["step"]) + 1
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FluidValueError(
                f"{path} does not say how far the training came ({error}); remove the folder"
                f" {there[-1]}"
            ) from None
        load_persistables(self.exe, str(there[-1]), self.train_program)


__all__ = [
    "BeginEpochEvent",
    "BeginStepEvent",
    "CheckpointConfig",
    "EndEpochEvent",
    "EndStepEvent",
    "Trainer",
]
__getattr__ = reporter("fluid.contrib.trainer", __all__)
