"""PostTrainingQuantization: quantisation of a saved model without training, from its values on
samples.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ....base.absent import reporter
from ....errors import FluidTypeError, FluidValueError, near
from ....executor import Executor
from ....graph.core_graph import Graph
from ....graph.ir_graph import IrGraph
from ....graph.program import Program
from ....loaders.loader import DataLoader
from ....saved.model import load_inference_model, save_inference_model
from ....state.scope import Scope, global_scope, scope_guard
from .add_quant_dequant import AddQuantDequantPass
from .divergence import threshold
from .freeze import QuantizationFreezePass
from .held import read, write
from .tables import (
    OUT_SCALES,
    WITH_WEIGHTS,
    WITHOUT_WEIGHTS,
    checked_choice,
    checked_types,
    inputs_of,
    outputs_of,
)
from .transform import ACTIVATIONS, QuantizationTransformPass
from .weight_quantization import WeightQuantization
from .weights_alone import round_weights

_logger = logging.getLogger(__name__)
_NOTES = {"KL": "post_kl", "abs_max": "post_abs_max", "min_max": "post_min_max"}
_Seen = dict[str, Any]  # by variable: a number, or a list with one per channel


class PostTrainingQuantization:
    """Runs a model from save_inference_model on samples, and quantises it by the observed
    magnitudes. executor: runs it.

    scope: the scope of the model's values (default: the global one). model_dir, model_filename,
    params_filename: as in load_inference_model. sample_generator: yields samples, batched by
    batch_size; batch_generator: yields batches, also of sequences. batch_nums: the number of
    batches (default: all).

    algo: "KL" clips activations where their histogram loses least (divergence.py), "abs_max" uses
    their greatest magnitude; the result is a frozen program, as from QuantizationFreezePass.
    "min_max" keeps the program in floats, and writes the least and greatest values of data to the
    ops' attributes. quantizable_op_type: the types of ops; is_full_quantize: all supported ones.
    activation_bits, weight_bits: of integers with their sign. activation_quantize_type,
    weight_quantize_type: the ops in the program. weight_only_op_type: ops of which only the weights
    become integers, with data in floats; not also a quantised type. skip_tensor_list: variables
    whose readers stay in floats, weights included. is_use_cache_file: store observed
    activations in files below cache_dir, not in memory.

    Raises FluidValueError, FluidTypeError for arguments that do not fit.
    """

    def __init__(
        self,
        executor: Any = None,
        scope: Scope | None = None,
        model_dir: str | None = None,
        model_filename: str | None = None,
        params_filename: str | None = None,
        batch_generator: Callable[[], Any] | None = None,
        sample_generator: Callable[[], Any] | None = None,
        batch_size: int = 10,
        batch_nums: int | None = None,
        algo: str = "KL",
        quantizable_op_type: Sequence[str] = ["conv2d", "depthwise_conv2d", "mul"],
        is_full_quantize: bool = False,
        activation_bits: int = 8,
        weight_bits: int = 8,
        activation_quantize_type: str = "range_abs_max",
        weight_quantize_type: str = "channel_wise_abs_max",
        is_use_cache_file: bool = False,
        cache_dir: str = "./temp_post_training",
        weight_only_op_type: Sequence[str] = (),
        skip_tensor_list: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(executor, Executor):
            raise FluidTypeError(
                "PostTrainingQuantization needs an executor, fluid.Executor(fluid.CPUPlace()), not"
                f" {executor!r}"
            )
        if not isinstance(model_dir, str):
            raise FluidTypeError(
                "PostTrainingQuantization needs a model_dir, the folder of a saved model, not"
                f" {model_dir!r}"
            )
        if not callable(sample_generator) and not callable(batch_generator):
            raise FluidValueError(
                "PostTrainingQuantization needs a sample_generator or a batch_generator, a function"
                " that gives samples"
            )
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise FluidValueError(f"batch_size is a positive number, not {batch_size!r}")
        self._algo = checked_choice("algo", algo, _NOTES)
        self._activations = checked_choice(
            "activation_quantize_type", activation_quantize_type, ACTIVATIONS
        )
        self._weights = checked_choice(
            "weight_quantize_type", weight_quantize_type, ("abs_max", "channel_wise_abs_max")
        )
        known = list(dict.fromkeys((*WITH_WEIGHTS, *WITHOUT_WEIGHTS)))
        self._kinds = known if is_full_quantize else checked_types(quantizable_op_type, known)
        self._alone = checked_types(weight_only_op_type, WITH_WEIGHTS)
        if is_full_quantize:
            self._kinds = [kind for kind in self._kinds if kind not in self._alone]
        if both := [kind for kind in self._alone if kind in self._kinds]:
            raise FluidValueError(
                f"weight_only_op_type: {both[0]!r} is in quantizable_op_type too; name it once"
            )
        if self._alone and algo == "min_max":
            raise FluidValueError(
                "weight_only_op_type: algo='min_max' leaves all weights in floats; take another"
            )
        if isinstance(skip_tensor_list, str) or not isinstance(skip_tensor_list, Sequence | None):
            raise FluidTypeError(
                f"skip_tensor_list is a list of names of variables, not {skip_tensor_list!r}"
            )
        self._skipped = frozenset(skip_tensor_list or ())
        if self._skipped and algo == "min_max":
            raise FluidValueError(
                "skip_tensor_list: algo='min_max' leaves all ops in floats; take another"
            )
        self._executor, self._scope = executor, global_scope() if scope is None else scope
        self._model = (model_dir, model_filename, params_filename)
        self._samples, self._batches = sample_generator, batch_generator
        self._batch_size, self._batch_nums = batch_size, batch_nums
        self._bits = (weight_bits, activation_bits)
        self._cache = cache_dir if is_use_cache_file else None
        self._made: tuple[Program, list[str], list[Any]] | None = None

    def quantize(self) -> Program:
        """Load the model, run it on the samples, and quantise it; returns the program, whose values
        are in the scope.

        Raises FluidValueError if the samples are too few for one batch, and the errors of
        load_inference_model and Executor.run.
        """
        with scope_guard(self._scope):
            program, feeds, fetches = load_inference_model(
                self._model[0], self._executor, *self._model[1:]
            )
            names = _watched(program, self._kinds)
            kept = {v.name for v in program.list_vars() if v.persistable}
            weights, activations = (
                [n for n in names if n in kept],
                [n for n in names if n not in kept],
            )
            least, greatest = self._met(program, feeds, activations)
            for name in weights:
                rows = [read(self._scope, name)[i] for i in range(read(self._scope, name).shape[0])]
                if self._algo == "min_max":
                    least[name], greatest[name] = (
                        [float(f(r)) for r in rows] for f in (np.min, np.max)
                    )
                elif self._algo == "KL" and self._weights == "abs_max":
                    greatest[name] = float(max(np.abs(r).max() for r in rows))
                else:
                    greatest[name] = [float(np.abs(r).max()) for r in rows]
            if self._algo == "min_max":
                _note_inputs(program, self._kinds, least, greatest)
            else:
                program = self._frozen(program, greatest)
            self._note_outputs(program, least, greatest)
        self._made = program, feeds, fetches
        return program

    def save_quantized_model(
        self,
        save_model_path: str,
        model_filename: str | None = None,
        params_filename: str | None = None,
    ) -> None:
        """Save the quantised model by save_inference_model. Raises FluidValueError before quantize."""
        if self._made is None:
            raise FluidValueError("there is no quantised model to save; call quantize first")
        program, feeds, fetches = self._made
        with scope_guard(self._scope):
            save_inference_model(
                save_model_path,
                feeds,
                fetches,
                self._executor,
                program,
                model_filename,
                params_filename,
            )

    def _feeds(self, program: Program, feeds: Sequence[str]) -> Iterator[Any]:
        variables = [program.global_block().var(name) for name in feeds]
        loader = DataLoader.from_generator(
            feed_list=variables, capacity=3 * self._batch_size, iterable=True
        )
        if self._samples is not None:
            loader.set_sample_generator(
                self._samples, self._batch_size, drop_last=True, places=self._executor.place
            )
        else:
            assert self._batches is not None
            loader.set_batch_generator(self._batches, places=self._executor.place)
        yield from loader()

    def _met(
        self, program: Program, feeds: Sequence[str], names: Sequence[str]
    ) -> tuple[_Seen, _Seen]:
        """The least value of each activation (min_max), and the greatest value, the greatest
        magnitude, or the clipping threshold.
        """
        least: _Seen = {}
        greatest: _Seen = {}
        with ExitStack() as stack:
            kept = _Kept(stack, self._cache)
            count = 0
            for feed in self._feeds(program, feeds):
                if self._batch_nums and count >= self._batch_nums:
                    break
                for name, found in zip(
                    names,
                    self._executor.run(program, feed, list(names), return_numpy=False),
                    strict=True,
                ):
                    value = np.asarray(found)
                    if self._algo == "KL":
                        kept.add(name, np.abs(value).ravel())
                    elif self._algo == "abs_max":
                        greatest[name] = max(float(np.abs(value).max()), greatest.get(name, 0.0))
                    else:
                        least[name] = min(float(value.min()), least.get(name, np.inf))
                        greatest[name] = max(float(value.max()), greatest.get(name, -np.inf))
                count += 1
            if not count:
                wanted = f"no batch of {self._batch_size} samples to quantise by"
                raise FluidValueError(
                    f"the generator gave {wanted}; give more, or a smaller batch_size"
                )
            _logger.info("quantised by %d batches", count)
            if self._algo == "KL":
                greatest = {name: threshold(kept.all(name)) for name in names}
        return least, greatest

    def _frozen(self, program: Program, scales: _Seen) -> Program:
        """The program with ops that quantise, by these scales, and integer weights."""
        graph, place = IrGraph(Graph(program.desc), for_test=True), self._executor.place
        read_names = {n for op in graph.all_op_nodes() for n in op.input_arg_names()}
        for name in sorted(self._skipped - read_names):
            raise FluidValueError(f"skip_tensor_list: no op reads {name!r}{near(name, read_names)}")
        for op in graph.all_op_nodes():
            if not self._skipped.isdisjoint(op.input_arg_names()):
                op.set_attr("skip_quant", True)
        with_weights = [kind for kind in WITH_WEIGHTS if kind in self._kinds]
        QuantizationTransformPass(
            self._scope,
            place,
            *self._bits,
            self._activations,
            self._weights,
            quantizable_op_type=with_weights,
        ).apply(graph)
        others = [kind for kind in WITHOUT_WEIGHTS if kind in self._kinds]
        AddQuantDequantPass(self._scope, place, quantizable_op_type=others).apply(graph)
        for name, scale in scales.items():
            for held in (f"{name}.scale", f"{name}.quant_dequant.scale"):
                if self._scope.find_var(held) is not None:
                    write(self._scope, place, held, np.array([scale], "float32"))
        QuantizationFreezePass(self._scope, place, *self._bits, self._weights, with_weights).apply(
            graph
        )
        round_weights(graph, self._scope, place, self._alone, self._bits[0])
        return graph.to_program()

    def _note_outputs(self, program: Program, least: _Seen, greatest: _Seen) -> None:
        """Write the observed values of an op's output to its attributes."""
        for op in program.global_block().ops:
            if op.type not in self._kinds and op.type not in OUT_SCALES:
                continue
            (name,) = outputs_of(op, op.type)
            if self._algo == "min_max":
                op._set_attr("out_min", least[name])
                op._set_attr("out_max", greatest[name])
            else:
                op._set_attr("out_threshold", greatest[name])
            if op.type in self._kinds:
                op._set_attr("quantization_type", _NOTES[self._algo])


class _Kept:
    """The observed activations: in memory, or in files of a new folder below the given one."""

    def __init__(self, stack: ExitStack, below: str | None) -> None:
        self._values: dict[str, list[Any]] = {}
        self._folder = None
        if below is not None:
            Path(below).mkdir(parents=True, exist_ok=True)
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=below)))

    def add(self, name: str, value: np.ndarray) -> None:
        parts = self._values.setdefault(name, [])
        if self._folder is None:
            parts.append(value)
            return
        path = self._folder / f"{list(self._values).index(name)}-{len(parts)}.npy"
        np.save(path, value, allow_pickle=False)
        parts.append(path)

    def all(self, name: str) -> np.ndarray:
        parts = self._values.pop(name) if self._folder is None else self._values[name]
        return np.concatenate(
            [p if isinstance(p, np.ndarray) else np.load(p, allow_pickle=False) for p in parts]
        )


def _watched(program: Program, kinds: Sequence[str]) -> list[str]:
    """The variables to observe: data of quantised ops, and outputs of these and other ops."""
    names: dict[str, None] = {}
    for op in program.global_block().ops:
        if op.type in kinds:
            names.update(dict.fromkeys(inputs_of(op, op.type)))
        if op.type in kinds or op.type in OUT_SCALES:
            found = outputs_of(op, op.type)
            if len(found) != 1:
                raise FluidValueError(
                    f"op {op.type} has {len(found)} outputs; only ops with one are quantised after"
                    " training"
                )
            names.update(dict.fromkeys(found))
    return list(names)


def _note_inputs(program: Program, kinds: Sequence[str], least: _Seen, greatest: _Seen) -> None:
    for op in program.global_block().ops:
        if op.type in kinds:
            for name in inputs_of(op, op.type):
                op._set_attr(f"{name}.min", least[name])
                op._set_attr(f"{name}.max", greatest[name])


__all__ = ["PostTrainingQuantization", "WeightQuantization"]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.contrib.slim.quantization.post_training_quantization", __all__)
