"""paddle.Model: a net with its loss, optimizer and metrics, and its own programs for training and
prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...base.progress import Bar, bar, shown
from ...errors import FluidTypeError, FluidValueError, UnsupportedError
from ...executor import Executor
from ...graph.program import Program
from ...graph.variable import Variable
from ...saved.values import is_belong_to_optimizer, is_persistable
from ...state.scope import global_scope
from .. import static
from ..metric import Metric
from ..nn.layer import Layer
from ..state import load as load_file
from ..state import save as save_file
from ..static.model import save_inference_model
from .batches import batches
from .built import beside, in_mode, listed
from .summary import summary


class _Step:
    """One program of a model: its feeds and its results."""

    def __init__(
        self,
        program: Program,
        feeds: list[Variable],
        outputs: list[Variable],
        losses: list[Variable],
    ) -> None:
        self.program, self.feeds, self.outputs, self.losses = program, feeds, outputs, losses
        self.measured: list[list[Variable]] = []


class Model:
    """A net (a layer) with its training. inputs, labels: InputSpecs of the net's inputs and of the
    loss's labels.

    prepare() first; then fit, evaluate, predict over data, or train_batch, eval_batch,
    predict_batch. Programs and values are static: the net's parameters are in the global scope.
    """

    def __init__(self, network: Layer, inputs: Any = None, labels: Any = None) -> None:
        if not isinstance(network, Layer):
            raise FluidTypeError(f"Model takes a layer, not {type(network).__name__}")
        if not listed(inputs):
            raise FluidValueError(
                "Model needs inputs in static mode: paddle.static.InputSpec(shape, dtype, name), or"
                " a list of them"
            )
        self.network, self._inputs, self._labels = network, listed(inputs), listed(labels)
        self.mode, self.stop_training = "train", False
        self._steps: dict[str, _Step] = {}
        self._optimizer: Any = None
        self._loss: Any = None
        self._metrics: list[Metric] = []
        self._exe = Executor()

    # -- programs

    def prepare(
        self,
        optimizer: Any = None,
        loss: Callable[..., Any] | None = None,
        metrics: Any = None,
        amp_configs: Any = None,
    ) -> None:
        """Set the optimizer, a loss of (outputs, labels), and metrics (paddle.metric objects).

        Missing values are initialised; others stay. Raises UnsupportedError for amp_configs,
        FluidTypeError for arguments of other types.
        """
        if amp_configs:
            raise UnsupportedError(
                "Model.prepare's amp_configs: mixed precision is not supported; use static programs"
            )
        if loss is not None and not callable(loss):
            raise FluidTypeError(f"Model.prepare takes a loss that can be called, not {loss!r}")
        for metric in listed(metrics):
            if not isinstance(metric, Metric):
                raise FluidTypeError(
                    f"Model.prepare takes metrics of paddle.metric, not {type(metric).__name__}"
                )
        self._optimizer, self._loss, self._metrics, self._steps = (
            optimizer,
            loss,
            listed(metrics),
            {},
        )
        self._initialise(
            [p.block.program for p in self.network.parameters()][:1],
            static.default_startup_program(),
        )

    def _initialise(self, programs: Sequence[Program], startup: Program) -> None:
        """Run a startup program for its missing values."""
        names = [v.name for p in (startup, *programs) for v in p.list_vars() if is_persistable(v)]
        scope = global_scope()
        vars = {n: var for n in names if (var := scope.find_var(n)) is not None and not var.empty}
        held = scope.between_steps(
            names, lambda: {n: np.array(var.value) for n, var in vars.items()}
        )
        self._exe.run(startup)
        for name, value in held.items():
            global_scope().var(name).set(value)

    def _step(self, mode: str) -> _Step:
        if mode not in self._steps:
            startup = Program()
            with beside(self.network, startup) as program, in_mode(self.network, mode == "train"):
                self._steps[mode] = self._built(mode, program)
            self._initialise([program], startup)
        return self._steps[mode]

    def _built(self, mode: str, program: Program) -> _Step:
        fed = [self._data("input", k, spec) for k, spec in enumerate(self._inputs)]
        outputs = listed(self.network(*fed))
        if mode == "predict":
            return _Step(program, fed, outputs, [])
        labels = [self._data("label", k, spec) for k, spec in enumerate(self._labels)]
        losses = [] if self._loss is None else listed(self._loss(*outputs, *labels))
        step = _Step(program, [*fed, *labels], outputs, losses)
        step.measured = [listed(metric.compute(*outputs, *labels)) for metric in self._metrics]
        if mode == "train":
            if self._optimizer is None or not losses:
                raise FluidValueError(
                    "a Model that trains has an optimizer and a loss; give them to prepare()"
                )
            total = losses[0]
            for other in losses[1:]:
                total = total + other
            self._optimizer.minimize(total)
        return step

    def _data(self, what: str, k: int, spec: Any) -> Variable:
        return static.data(spec.name or f"{what}_{k}", spec.shape, spec.dtype)

    # -- batches

    def _run(
        self, mode: str, values: Sequence[Any]
    ) -> tuple[list[np.ndarray], list[np.ndarray], list[list[np.ndarray]]]:
        """Losses, outputs, and metrics of one batch."""
        step = self._step(mode)
        if len(values) < len(step.feeds):
            raise FluidValueError(
                f"a batch has {len(values)} fields, but {mode} takes"
                f" {', '.join(v.name for v in step.feeds)}"
            )
        feed = {
            v.name: np.asarray(a).astype(v.desc.dtype)
            for v, a in zip(step.feeds, values, strict=False)
        }
        wanted = [*step.losses, *step.outputs, *(v for vs in step.measured for v in vs)]
        found = iter(self._exe.run(step.program, feed=feed, fetch_list=wanted))
        losses, outputs = [next(found) for _ in step.losses], [next(found) for _ in step.outputs]
        return losses, outputs, [[next(found) for _ in vs] for vs in step.measured]

    def _measured(self, mode: str, values: Sequence[Any]) -> Any:
        losses, _, measured = self._run(mode, values)
        results = [
            metric.update(*found) for metric, found in zip(self._metrics, measured, strict=True)
        ]
        if not losses:
            return results
        return (losses, results) if results else losses

    def train_batch(self, inputs: Any, labels: Any = None, update: bool = True) -> Any:
        """One step of training: the losses, or with metrics (losses, results of their updates).
        Raises UnsupportedError for update=False.
        """
        if not update:
            raise UnsupportedError(
                "Model.train_batch(update=False): gradients are not gathered over batches; make the"
                " batch larger"
            )
        return self._measured("train", [*listed(inputs), *listed(labels)])

    def eval_batch(self, inputs: Any, labels: Any = None) -> Any:
        """The losses of a batch, or with metrics (losses, results of their updates)."""
        return self._measured("eval", [*listed(inputs), *listed(labels)])

    def predict_batch(self, inputs: Any) -> list[np.ndarray]:
        """The net's outputs for a batch."""
        return self._run("predict", listed(inputs))[1]

    # -- data

    def fit(
        self, train_data: Any = None, eval_data: Any = None, batch_size: int = 1, epochs: int = 1, eval_freq: int = 1, log_freq: int = 10,
        save_dir: str | None = None, save_freq: int = 1, verbose: int = 2, drop_last: bool = False, shuffle: bool = True,
        num_workers: int = 0, callbacks: Any = None, accumulate_grad_batches: int = 1, num_iters: int | None = None,
    ) -> None:  # fmt: skip
        """Train: `epochs` times over the batches of train_data, evaluating every eval_freq epochs,
        saving every save_freq to save_dir.

        data: a data set of samples (``__getitem__``, ``__len__``), or an iterable of batches;
        batches are made in this thread, whatever num_workers is. num_iters: the largest number of
        steps. verbose: 0 prints nothing, 1 a line per epoch, 2 also one every log_freq steps.
        callbacks: objects with methods of paddle.callbacks.Callback (on_epoch_end(epoch, logs),
        ...). Raises UnsupportedError for accumulate_grad_batches other than 1.
        """
        if accumulate_grad_batches != 1:
            raise UnsupportedError(
                "Model.fit's accumulate_grad_batches: gradients are not gathered over batches; make"
                " the batch larger"
            )
        calls, steps, self.stop_training = self._calls(callbacks), 0, False
        calls("on_train_begin", {})
        for epoch in range(epochs):
            calls("on_epoch_begin", epoch, {})
            data = batches(train_data, batch_size, shuffle, drop_last)
            left = None if num_iters is None else num_iters - steps
            logs, count = self._pass(
                "train",
                data,
                calls,
                log_freq if verbose > 1 else 0,
                f"epoch {epoch + 1}/{epochs}",
                left,
            )
            steps += count
            self._say(verbose, f"epoch {epoch + 1}/{epochs}", logs)
            calls("on_epoch_end", epoch, logs)
            if eval_data is not None and epoch % eval_freq == 0:
                self.evaluate(eval_data, batch_size, log_freq, verbose, num_workers, callbacks)
            if save_dir is not None and epoch % save_freq == 0:
                self.save(str(Path(save_dir) / str(epoch)))
            if self.stop_training or (num_iters is not None and steps >= num_iters):
                break
        calls("on_train_end", {})
        if save_dir is not None:
            self.save(str(Path(save_dir) / "final"))

    def evaluate(
        self, eval_data: Any, batch_size: int = 1, log_freq: int = 10, verbose: int = 2, num_workers: int = 0, callbacks: Any = None,
        num_samples: int | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """The loss of the last batch and the metrics over all data: {"loss": [...], metric: value}.
        Arguments as in fit.
        """
        calls = self._calls(callbacks)
        calls("on_eval_begin", {})
        most = None if num_samples is None else max(1, num_samples // batch_size)
        logs, _ = self._pass(
            "eval",
            batches(eval_data, batch_size),
            calls,
            log_freq if verbose > 1 else 0,
            "eval",
            most,
        )
        self._say(verbose, "eval", logs)
        calls("on_eval_end", logs)
        return logs

    def predict(
        self, test_data: Any, batch_size: int = 1, num_workers: int = 0, stack_outputs: bool = False, verbose: int = 1,
        callbacks: Any = None,
    ) -> list[Any]:  # fmt: skip
        """The net's outputs for all data: for each output a list of batches' arrays, or one array
        with stack_outputs.
        """
        calls, found = self._calls(callbacks), []
        calls("on_predict_begin", {})
        for step, batch in enumerate(batches(test_data, batch_size)):
            calls("on_predict_batch_begin", step, {})
            found.append(self.predict_batch(batch))
            calls("on_predict_batch_end", step, {})
        calls("on_predict_end", {})
        columns = [list(column) for column in zip(*found, strict=True)]
        return [np.concatenate(column) for column in columns] if stack_outputs else columns

    def _pass(
        self, mode: str, data: Any, calls: Any, every: int, title: str, most: int | None
    ) -> tuple[dict[str, Any], int]:
        """One pass over the batches: the final results, and the number of batches."""
        for metric in self._metrics:
            metric.reset()
        with bar(title, most, show=every > 0 and shown()) as progress:
            return self._batches(mode, data, calls, every, title, most, progress)

    def _batches(
        self,
        mode: str,
        data: Any,
        calls: Any,
        every: int,
        title: str,
        most: int | None,
        progress: Bar,
    ) -> tuple[dict[str, Any], int]:
        logs: dict[str, Any] = {}
        count = 0
        for batch in data:
            if most is not None and count >= most:
                break
            calls(f"on_{mode}_batch_begin", count, logs)
            made = self._measured(mode, batch)
            losses = (made[0] if self._metrics else made) if self._step(mode).losses else []
            logs = {"loss": [float(np.asarray(v).ravel()[0]) for v in losses]} if losses else {}
            for metric in self._metrics:
                names, values = listed(metric.name()), listed(metric.accumulate())
                logs.update(zip(names, values, strict=True))
            count += 1
            calls(f"on_{mode}_batch_end", count - 1, logs)
            if every and count % every == 0:
                progress.print(_line(f"{title}, step {count}", logs))
            progress.step()
        return logs, count

    def _say(self, verbose: int, title: str, logs: dict[str, Any]) -> None:
        if verbose:
            print(_line(title, logs), end="")

    def _calls(self, callbacks: Any) -> Callable[..., None]:
        """A function that calls a method of all callbacks that define it."""
        held = listed(callbacks)
        for callback in held:
            if hasattr(callback, "set_model"):
                callback.set_model(self)

        def calls(name: str, *args: Any) -> None:
            for callback in held:
                method = getattr(callback, name, None)
                if method is not None:
                    method(*args)

        return calls

    # -- values

    def parameters(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The net's parameters."""
        return self.network.parameters(*args, **kwargs)

    def save(self, path: str, training: bool = True) -> None:
        """Write PATH.pdparams with the net's values and PATH.pdopt with the optimizer's; without
        `training`, a model for inference.
        """
        if not training:
            step = self._step("predict")
            save_inference_model(path, step.feeds, step.outputs, self._exe, step.program)
            return
        save_file(self.network.state_dict(), path + ".pdparams")
        kept = {v.name: v for v in self._of_optimizer()}
        if kept:
            save_file(kept, path + ".pdopt")

    def _of_optimizer(self) -> list[Variable]:
        if "train" not in self._steps:
            return []
        own = {v.name for v in self.network.state_dict().values()}
        return [
            v
            for v in self._steps["train"].program.list_vars()
            if is_belong_to_optimizer(v) and v.name not in own
        ]

    def load(self, path: str, skip_mismatch: bool = False, reset_optimizer: bool = False) -> None:
        """Load the values that save wrote. skip_mismatch: skip values of other shapes.

        Raises FluidValueError for values of other shapes, and for names that the file lacks.
        """
        values = load_file(path + ".pdparams")
        own = self.network.state_dict()
        if skip_mismatch:
            values = {
                n: a
                for n, a in values.items()
                if n in own and tuple(own[n].shape) == tuple(np.shape(a))
            }
        lacking, _ = self.network.set_state_dict(values)
        if lacking and not skip_mismatch:
            raise FluidValueError(
                f"{path}.pdparams has no value for {', '.join(map(repr, lacking[:5]))}"
            )
        if not reset_optimizer and Path(path + ".pdopt").is_file() and self._optimizer is not None:
            self._step("train")
            for name, value in load_file(path + ".pdopt").items():
                global_scope().var(name).set(np.asarray(value))

    def summary(self, input_size: Any = None, dtype: Any = None) -> dict[str, int]:
        """paddle.summary of the net, for the model's inputs."""
        given = self._inputs if input_size is None else input_size
        return summary(
            self.network,
            given,
            dtype or ([spec.dtype for spec in self._inputs] if input_size is None else None),
        )


def _line(title: str, logs: dict[str, Any]) -> str:
    return " - ".join([title, *(f"{name}: {value}" for name, value in logs.items())]) + "\n"


__all__ = ["Model"]
