"""Predictors: saved models with scopes of their own, run on PaddleTensors or on tensors that keep
their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from ..base.dtypes import name_of, numpy_dtype
from ..compiling.compilations import Compilation
from ..errors import EnforceNotMet, FeedError, FluidTypeError, FluidValueError, near
from ..executor import Executor
from ..graph.program import Program
from ..lod_tensor import LoDTensor
from ..saved.model import load_inference_model, save_inference_model
from ..state.scope import Scope, scope_guard
from .config import AnalysisConfig, Model, NativeConfig
from .tensors import PaddleTensor, ZeroCopyTensor, fed


class Predictor:
    """A model that was loaded for inference. Its values are in a scope of its own. `clone` shares
    the scope and the executables.

    Any number of threads may run it at once: by `run`, or each by zero_copy_run of a clone, whose
    tensors are its own.
    """

    def __init__(
        self, config: AnalysisConfig | NativeConfig, origin: Predictor | None = None
    ) -> None:
        self._config = (
            config.analysis() if isinstance(config, NativeConfig) else AnalysisConfig(config)
        )
        if origin is None:
            self._exe, self._scope = Executor(self._config.place()), Scope()
            self._program, self._feeds, self._targets = _loaded(
                self._config.model(), self._exe, self._scope
            )
            self._program.update_info(
                batch_sizes=self._config.batch_sizes(),
                max_executables=self._config.max_executables(),
            )
        else:
            self._exe, self._scope, self._program = origin._exe, origin._scope, origin._program
            self._feeds, self._targets = origin._feeds, origin._targets
        self._inputs = {n: ZeroCopyTensor(n, True) for n in self._feeds}
        self._outputs = {t.name: ZeroCopyTensor(t.name, False) for t in self._targets}

    def run(self, inputs: Sequence[PaddleTensor] | None = None) -> Any:
        """The outputs for these inputs, by order, or by name if the config says so. Without inputs:
        zero_copy_run.

        Raises FeedError for a wrong number of inputs or wrong names, FluidTypeError for anything
        but PaddleTensors, and the errors of Executor.run.
        """
        if inputs is None:
            return self.zero_copy_run()
        if not all(isinstance(t, PaddleTensor) for t in inputs):
            raise FluidTypeError(
                "a predictor runs on PaddleTensors, not on"
                f" {', '.join(type(t).__name__ for t in inputs)}"
            )
        given = (
            {t.name: t for t in inputs}
            if self._config.specify_input_name()
            else dict(zip(self._feeds, inputs, strict=False))
        )
        if len(inputs) != len(self._feeds) or given.keys() != set(self._feeds):
            names, wanted = (
                ", ".join(map(repr, found)) for found in ([t.name for t in inputs], self._feeds)
            )
            raise FeedError(
                f"the predictor takes {len(self._feeds)} inputs, {wanted}, not {len(inputs)}:"
                f" {names}"
            )
        values = self._values({n: fed(t.as_ndarray(), t.lod) for n, t in given.items()})
        return [
            PaddleTensor.of(t.name, array, lod)
            for t, (array, lod) in zip(self._targets, values, strict=True)
        ]

    def zero_copy_run(self) -> bool:
        """Run on the values of the input tensors; the output tensors then hold the results. Raises
        FluidValueError for an input without a value.
        """
        values = self._values({n: t.value() for n, t in self._inputs.items()})
        for target, (array, lod) in zip(self._targets, values, strict=True):
            self._outputs[target.name].take(array, lod)
        return True

    def _values(self, feed: Mapping[str, Any]) -> list[tuple[np.ndarray, list[list[int]]]]:
        found = self._exe.run(
            self._program, feed, self._targets, scope=self._scope, return_numpy=False
        )
        return [(np.asarray(v), v.lod() if isinstance(v, LoDTensor) else []) for v in found]

    def warm_up(self, shapes: Iterable[Mapping[str, Sequence[int]] | int]) -> None:
        """Compile for these shapes before the first request comes: each is a shape for every input
        by name, or the size of a batch whose other dimensions the model declares.

        The model runs once on zeros of each shape. Raises FluidValueError if a shape leaves a
        dimension open or names other inputs, and the errors of `run`.
        """
        for shape in shapes:
            self._values({n: self._zeros(n, s) for n, s in self._shapes(shape).items()})

    def _shapes(self, given: Mapping[str, Sequence[int]] | int) -> Mapping[str, Sequence[int]]:
        declared = self.get_input_tensor_shape()
        if not isinstance(given, Mapping):
            given = {n: (given, *s[1:]) if s[:1] == [-1] else s for n, s in declared.items()}
        if given.keys() != declared.keys():
            raise FluidValueError(
                f"warm_up takes a shape for each of {', '.join(map(repr, declared))}, not for"
                f" {', '.join(map(repr, given))}"
            )
        return given

    def _zeros(self, name: str, shape: Sequence[int]) -> np.ndarray:
        if any(type(n) is bool or not isinstance(n, Integral) or n < 0 for n in shape):
            raise FluidValueError(
                f"warm_up needs every dimension of input {name!r}, not {list(shape)}"
            )
        return np.zeros(
            tuple(shape), numpy_dtype(name_of(self._program.global_block().var(name).dtype))
        )

    def compilations(self) -> list[Compilation]:
        """The compilations of the model so far, by this predictor and its clones, with shapes and
        times.
        """
        return self._exe.compilations(self._program)

    def get_input_names(self) -> list[str]:
        return list(self._feeds)

    def get_output_names(self) -> list[str]:
        return [t.name for t in self._targets]

    def get_input_tensor(self, name: str) -> ZeroCopyTensor:
        """The input of that name. Raises EnforceNotMet if there is none."""
        return _named(self._inputs, name, "input")

    def get_output_tensor(self, name: str) -> ZeroCopyTensor:
        """The output of that name. Raises EnforceNotMet if there is none."""
        return _named(self._outputs, name, "output")

    def get_input_handle(self, name: str) -> ZeroCopyTensor:
        """get_input_tensor under Paddle 2's name."""
        return self.get_input_tensor(name)

    def get_output_handle(self, name: str) -> ZeroCopyTensor:
        """get_output_tensor under Paddle 2's name."""
        return self.get_output_tensor(name)

    def get_input_tensor_shape(self) -> dict[str, list[int]]:
        """The declared shapes of the inputs."""
        return {n: list(self._program.global_block().var(n).shape) for n in self._feeds}

    def clone(self) -> Predictor:
        """Another predictor with the same values and compiled steps, and tensors of its own, for
        another thread.
        """
        return Predictor(self._config, self)

    def program(self) -> Program:
        return self._program

    def scope(self) -> Scope:
        return self._scope

    def get_serialized_program(self) -> bytes:
        """The program as Paddle's protobuf."""
        return self._program.serialize_to_string()

    def SaveOptimModel(self, dir: str) -> None:
        """Save the model to a folder: save_inference_model."""
        with scope_guard(self._scope):
            save_inference_model(dir, self._feeds, self._targets, self._exe, self._program)

    def clear_intermediate_tensor(self) -> None:
        """Accepted without effect, because nothing is kept between runs."""

    def try_shrink_memory(self) -> int:
        """Returns 0, because nothing is kept between runs and no bytes can be freed."""
        return 0


def _named(tensors: Mapping[str, ZeroCopyTensor], name: str, kind: str) -> ZeroCopyTensor:
    if name not in tensors:
        raise EnforceNotMet(
            f"the predictor has no {kind} {name!r}{near(name, tensors)}; it has"
            f" {', '.join(map(repr, tensors))}"
        )
    return tensors[name]


def _loaded(model: Model, exe: Executor, scope: Scope) -> tuple[Program, list[str], list[Any]]:
    with scope_guard(scope):
        if isinstance(model.program, bytes):
            return tuple(load_inference_model(None, exe, model.program, model.params))
        if not model.program:
            return tuple(load_inference_model(model.folder, exe))
        program = Path(model.program)
        params = Path(str(model.params)).resolve() if model.params else None
        return tuple(
            load_inference_model(
                str(program.parent), exe, program.name, _params_name(program, params)
            )
        )


def _params_name(program: Path, params: Path | None) -> str | None:
    """The file of all values in the form that load_inference_model takes: its name in the program's
    folder. Raises FluidTypeError if the files are in different folders.
    """
    if params is not None and params.parent != program.parent.resolve():
        raise FluidTypeError(
            "the program's file and the file of its values must be in one folder, not "
            f"{str(program)!r} and"
            f" {str(params)!r}"
        )
    return None if params is None else params.name


def create_paddle_predictor(config: AnalysisConfig | NativeConfig) -> Predictor:
    """A predictor of the model that `config` names, with its values loaded.

    Raises FluidTypeError for another config, and the errors of load_inference_model.
    """
    if not isinstance(config, AnalysisConfig | NativeConfig):
        raise FluidTypeError(
            "create_paddle_predictor takes an AnalysisConfig or a NativeConfig, not"
            f" {type(config).__name__}"
        )
    return Predictor(config)


def create_predictor(config: AnalysisConfig) -> Predictor:
    """paddle.inference.create_predictor: create_paddle_predictor under Paddle 2's name."""
    return create_paddle_predictor(config)
