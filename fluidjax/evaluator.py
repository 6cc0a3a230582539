"""Evaluators: metrics that ops of the program accumulate in persistable variables; fluid.metrics
replaces them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import layers, unique_name
from .base.absent import reporter
from .base.loc import warn
from .errors import FluidValueError, UnsupportedError
from .graph.program import Program, program_guard
from .graph.variable import Variable
from .layer_helper import LayerHelper
from .metrics import forget, mean_precision_ops


class Evaluator:
    """Base of the evaluators. states: the variables that accumulate; metrics: the variables of a
    batch's own figures.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        kind = type(self).__name__
        warn(f"fluid.evaluator.{kind} is deprecated; use fluid.metrics.{kind}", DeprecationWarning)
        self.states: list[Variable] = []
        self.metrics: list[Variable] = []
        self.helper = LayerHelper(name, **kwargs)

    def reset(self, executor: Any, reset_program: Program | None = None) -> None:
        """Set the states to zero by running a program (default a new one)."""
        program = Program() if reset_program is None else reset_program
        with program_guard(program):
            for var in self.states:
                copy = _copy(program, var)
                layers.fill_constant(shape=copy.shape, value=0.0, dtype=copy.dtype, out=copy)
        executor.run(program)

    def eval(self, executor: Any, eval_program: Program | None = None) -> Any:
        """The figures over all added batches; subclasses define it."""
        raise UnsupportedError(
            f"{type(self).__name__} does not say what it evaluates to; define eval(executor)"
        )

    def _create_state(self, suffix: str, dtype: str, shape: Any) -> Variable:
        name = f"{unique_name.generate(self.helper.name)}_{suffix}"
        self.states.append(
            self.helper.create_variable(name=name, persistable=True, dtype=dtype, shape=shape)
        )
        return self.states[-1]

    def _outside_blocks(self) -> None:
        if self.helper.main_program.current_block().idx != 0:
            raise FluidValueError(
                f"{type(self).__name__} is made outside of blocks of control flow"
            )


def _copy(program: Program, var: Variable) -> Variable:
    block = program.current_block()
    return block.create_var(
        name=var.name, shape=var.shape, dtype=var.dtype, lod_level=var.lod_level, persistable=True
    )


class ChunkEvaluator(Evaluator):
    """Precision, recall and F1 of chunks (layers.chunk_eval) over all batches since the last
    reset.
    """

    def __init__(
        self,
        input: Variable,
        label: Variable,
        chunk_scheme: str,
        num_chunk_types: int,
        excluded_chunk_types: Sequence[int] | None = None,
    ) -> None:
        super().__init__("chunk_eval")
        self._outside_blocks()
        states = [
            self._create_state(f"num_{what}_chunks", "int64", [1])
            for what in ("infer", "label", "correct")
        ]
        self.num_infer_chunks, self.num_label_chunks, self.num_correct_chunks = states
        *figures, infer, true, correct = layers.chunk_eval(
            input, label, chunk_scheme, num_chunk_types, excluded_chunk_types
        )
        for state, count in zip(states, (infer, true, correct), strict=True):
            layers.sums([state, count], out=state)
        self.metrics.extend(figures)

    def eval(
        self, executor: Any, eval_program: Program | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Precision, recall, F1, each [1] float32; 0 if the divisor is 0."""
        program = Program() if eval_program is None else eval_program
        counts = executor.run(program, fetch_list=[_copy(program, state) for state in self.states])
        infer, true, correct = (float(c[0]) for c in counts)
        precision, recall = correct / infer if infer else 0.0, correct / true if true else 0.0
        f1 = 2 * precision * recall / (precision + recall) if correct else 0.0
        return tuple(np.array([v], "float32") for v in (precision, recall, f1))  # type: ignore[return-value]


class EditDistance(Evaluator):
    """The mean edit distance of sequences (layers.edit_distance), and the share of wrong ones, over
    all batches since the last reset.
    """

    def __init__(
        self,
        input: Variable,
        label: Variable,
        ignored_tokens: Sequence[int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__("edit_distance", **kwargs)
        self._outside_blocks()
        self.total_distance = self._create_state("total_distance", "float32", [1])
        self.seq_num = self._create_state("seq_num", "int64", [1])
        self.instance_error = self._create_state("instance_error", "int64", [1])
        distances, count = layers.edit_distance(input, label, ignored_tokens=ignored_tokens)
        right = layers.equal(distances, layers.fill_constant(shape=[1], value=0.0, dtype="float32"))
        wrong = layers.elementwise_sub(count, layers.reduce_sum(layers.cast(right, "int64")))
        total = layers.reduce_sum(distances)
        layers.sums([self.total_distance, total], out=self.total_distance)
        layers.sums([self.seq_num, count], out=self.seq_num)
        layers.sums([self.instance_error, wrong], out=self.instance_error)
        self.metrics.extend([total, wrong])

    def eval(
        self, executor: Any, eval_program: Program | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The mean distance and the share of wrong sequences, each [1] float32."""
        program = Program() if eval_program is None else eval_program
        with program_guard(program):
            total, count, wrong = (_copy(program, v) for v in self.states)
            count, wrong = layers.cast(count, "float32"), layers.cast(wrong, "float32")
            means = [layers.elementwise_div(total, count), layers.elementwise_div(wrong, count)]
            distance, share = executor.run(program, fetch_list=means)
        return np.array(distance), np.array(share)


class DetectionMAP(Evaluator):
    """As fluid.metrics.DetectionMAP."""

    def __init__(
        self, input: Variable, gt_label: Variable, gt_box: Variable, gt_difficult: Variable | None = None, class_num: int | None = None,
        background_label: int = 0, overlap_threshold: float = 0.5, evaluate_difficult: bool = True, ap_version: str = "integral",
    ) -> None:  # fmt: skip
        super().__init__("map_eval")
        attrs = {
            "overlap_threshold": overlap_threshold,
            "evaluate_difficult": evaluate_difficult,
            "ap_version": ap_version,
        }
        given = input, gt_label, gt_box, gt_difficult, class_num, background_label
        made = mean_precision_ops(*given, self._create_state, self._mark, attrs)
        self.cur_map, self.accum_map, self.has_state = made

    def _mark(self) -> Variable:
        return self.helper.create_variable(persistable=True, dtype="int32", shape=[1])

    def get_map_var(self) -> tuple[Variable, Variable]:
        """The variables of the batch's mean and of the mean so far."""
        return self.cur_map, self.accum_map

    def reset(self, executor: Any, reset_program: Program | None = None) -> None:
        """Make the next batch the first."""
        forget(self.has_state, executor, reset_program)


__all__ = ["ChunkEvaluator", "DetectionMAP", "EditDistance"]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.evaluator", __all__)
