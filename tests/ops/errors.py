"""docs/errors-by-op.md: how far each op lies from the recordings of real Paddle, and at which
sample.

    python -m tests.ops.errors      writes it anew (make errors)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import fluidjax.ops  # noqa: F401
from fluidjax.ops import ring
from fluidjax.ops.ragged import rows_of

from .extremes import FAMILIES
from .extremes.case import Extreme
from .extremes.judge import differences, results, runs, underflows
from .extremes.recorded import Answer
from .extremes.recorded import recorded as recorded_extreme
from .recorded import recorded
from .running import Batch, shown
from .sample import LATER, Sample
from .samples import all_samples
from .together import SIZE

PATH = Path(__file__).parents[2] / "docs" / "errors-by-op.md"
KINDS = ("float32", "float32 gradient", "float64", "float64 gradient")
REAL = {"float32": "float32", "complex64": "float32", "float64": "float64", "complex128": "float64"}
HEAD = """# The error of every op

How far each op lies from what real Paddle answers to the samples (`tests/ops/samples`) and, where it has cases there, at the
[extremes](extremes.md): the greatest difference of an element of an output or a gradient, and the sample where it occurs. It is counted
in units of the greatest finite number of that variable; at the extremes of an op that computes element by element, in units of the
element itself. Elements that [extremes.md](extremes.md) lists with their reason are left out, and subnormal
numbers, which XLA takes for zero. `0` is bit for bit; nothing: no
recording holds such numbers. A sample is named FAMILY-OP-NUMBER, as its test is (`pytest tests/ops/test_samples.py -k math-p_norm-3`),
a case at extremes by its label. Compared with Paddle 1.8.5, and with 3.3.1 where the op is a later one; gradient ops stand with
their forward op. `make errors` writes this page; the tests bound what it shows.
"""
LAST = """## Ops without a recording of their own

| op types | why |
| --- | --- |
"""
COLUMNS = "| op | of | " + " | ".join(KINDS) + " |\n" + "| --- " * (2 + len(KINDS)) + "|\n"


@dataclass
class Errors:
    """The greatest error of an op in each kind of number, with where it occurs; and whose
    recordings it was compared with.
    """

    greatest: dict[str, tuple[float, str]] = field(default_factory=dict)
    versions: set[str] = field(default_factory=set)
    integers: bool = False

    def add(self, key: str, want: np.ndarray, error: float, where: str) -> None:
        kind = REAL.get(str(want.dtype))
        if kind is None:
            self.integers = True
            return
        kind += " gradient" if key.partition("#")[0].endswith("@GRAD") else ""
        if kind not in self.greatest or error > self.greatest[kind][0]:
            self.greatest[kind] = error, where


def distance(
    want: np.ndarray, got: np.ndarray, own: bool = False, without: frozenset[int] = frozenset()
) -> float:
    """The greatest difference of finite elements, in units of the greatest finite one or, with
    `own`, of the element.

    Raises AssertionError where the shapes differ.
    """
    assert want.shape == got.shape, (want.shape, got.shape)
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    want, got = want.astype(wide).reshape(-1), got.astype(wide).reshape(-1)
    there = np.isfinite(want) & np.isfinite(got)
    there[list(without)] = False
    if not there.any():
        return 0.0
    size, apart = np.abs(want[there]), np.abs(want[there] - got[there])
    size = size if own else np.full_like(size, size.max())
    return float(np.max(np.divide(apart, size, out=np.where(size > 0, 0.0, apart), where=size > 0)))


def of_samples(found: dict[str, Errors]) -> None:
    """The errors of all samples that a real Paddle answered."""
    there = [(f"{family}-{s.op}-{i}", family, i, s) for family, i, s in all_samples() if s.paddle]
    for start in range(0, len(there), SIZE):
        part = there[start : start + SIZE]
        for (name, family, i, sample), run in zip(
            part, Batch([s for *_, s in part]).runs, strict=True
        ):
            errors = found.setdefault(sample.op, Errors())
            errors.versions.add("3.3.1" if sample.paddle == LATER else "1.8.5")
            answer = recorded(family, i, sample)
            for key, want, got in beside(sample, answer, run.outputs, run.gradients):
                errors.add(key, want, distance(want, got) if want.dtype.kind in "fc" else 0.0, name)


def beside(
    sample: Sample, answer: dict[str, Any], outputs: Any, gradients: Any
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Each variable of a sample: its key, Paddle's answer, ours."""
    pairs = [(slot, answer[slot], shown(outputs[slot])) for slot in sample.outputs]
    pairs += [
        (f"{slot}@GRAD", answer[f"{slot}@GRAD"], rows_of(gradients[slot])) for slot in sample.grad
    ]
    for key, want, got in pairs:
        for w, g in zip(want, got, strict=True) if isinstance(want, list) else [(want, got)]:
            yield key, np.asarray(w), np.asarray(g)


def of_extremes(found: dict[str, Errors]) -> None:
    """The errors of all cases at extremes, but for the elements that are listed with a reason."""
    for family in FAMILIES:
        for name, run in runs(family).items():
            listed: dict[str, set[int | None]] = {}
            for d in differences(family, name):
                listed.setdefault(d.key, set()).add(d.at)
            if "" in listed:
                continue
            errors, got = found.setdefault(run.sample.op, Errors()), results(run)
            errors.versions.add("3.3.1" if family.startswith("later_") else "1.8.5")
            answer = recorded_extreme(family, run.sample)
            for key, want in answer.values.items():
                if "@LOD" not in key and None not in listed.get(key, set()):
                    far = (
                        apart(run.sample, answer, key, got[key], listed.get(key, set()))
                        if want.dtype.kind in "fc"
                        else 0.0
                    )
                    errors.add(key, want, far, name)


def apart(
    case: Extreme, answer: Answer, key: str, got: np.ndarray, listed: set[int | None]
) -> float:
    """The distance of one variable of a case, as tests/ops/extremes/judge.py judges it: of 1.8.5's
    two answers the nearer one counts, and subnormal numbers, which XLA takes for zero, do not.
    """
    want = answer.values[key]
    places, values = answer.scalar.get(key, (np.zeros(0, int), want.reshape(-1)[:0]))
    with np.errstate(all="ignore"):
        lost = underflows(case, want.reshape(-1), got.reshape(-1)).nonzero()[0]
        flat, either = want.reshape(-1).copy(), np.asarray(values)
        nearer = ~(
            np.abs(flat[places] - got.reshape(-1)[places])
            <= np.abs(either - got.reshape(-1)[places])
        )
        flat[places] = np.where(nearer, either, flat[places])
        without = frozenset(lost.tolist()) | {i for i in listed if i is not None}
        return distance(flat.reshape(want.shape), got, case.pointwise, without)


ELSEWHERE: dict[str, str] = {
    "They steer a program, hold arrays, or read and write files and feeds: they copy numbers. Whole programs with them are recorded "
    "(`tests/lower/test_control.py`, `tests/lower/test_rank.py`, `tests/loaders/test_program_readers.py`, `tests/saved`).":
        "array_to_lod_tensor conditional_block conditional_block_infer create_double_buffer_reader create_py_reader "
        "delete_var feed fetch load load_combine lod_array_length lod_rank_table lod_tensor_to_array max_sequence_len merge_lod_tensor "
        "merge_lod_tensor_infer print py_func read read_from_array recurrent reorder_lod_tensor_by_rank save save_combine select_input "
        "select_output shrink_rnn_memory split_lod_tensor tensor_array_to_tensor while write_to_array",
    "Whole searches with it are recorded (`tests/layers/test_decode.py`).": "beam_search_decode",
    "Later Paddles have it; it compares and raises (`tests/lower/test_checks.py`).": "assert",
    "They talk to other processes, which one process of 1.8.5 cannot do alone (`tests/dist`).":
        "c_comm_init c_comm_init_all c_gen_nccl_id checkpoint_notify distributed_lookup_table fetch_barrier gen_nccl_id listen_and_serv "
        "lookup_sparse_table prefetch recv send send_barrier",
    "They move rows by their numbers, in variables that cannot be fed; programs with them are recorded (`tests/lower/test_sparse.py`).":
        "get_tensor_from_selected_rows merge_ids merge_selected_rows split_ids split_selected_rows",
    "It keeps what it read of an output, so it needs a program; its steps are recorded (`tests/ops/test_quantize.py`).":
        "fake_quantize_range_abs_max",
    "No op of Paddle: rewrites of programs and optax bring it (`tests/dist`, `tests/optimizers/test_optimizer_optax.py`).":
        "c_arrival_order c_table_owned optax_init optax_update",
}  # fmt: skip


def unrecorded() -> dict[str, str]:
    """Op types of which no recording of a single op can be made: why, and what shows them instead."""
    found = {
        s.op: s.note + " (its samples: numeric derivatives, or what is computed by hand)"
        for _, _, s in all_samples()
        if not s.paddle
    }
    return found | {kind: why for why, kinds in ELSEWHERE.items() for kind in kinds.split()}


def cell(errors: Errors, kind: str) -> str:
    if kind not in errors.greatest:
        return ""
    error, where = errors.greatest[kind]
    return f"{error:.0e}: {where}" if error else "0"


def row(kind: str, errors: Errors) -> str:
    of = ", ".join(sorted(errors.versions)) + ("" if errors.greatest else ": integers, equal")
    return f"| {kind} | {of} | {' | '.join(cell(errors, k) for k in KINDS)} |"


def page() -> str:
    """The whole page, from the recordings and from what the ops compute."""
    found: dict[str, Errors] = {}
    with ring.bound(ring.Ring(None, 1)):
        of_samples(found)
        of_extremes(found)
    rows = [row(kind, errors) for kind, errors in sorted(found.items())]
    why: dict[str, list[str]] = {}
    for kind, reason in sorted(unrecorded().items()):
        if kind not in found:
            why.setdefault(reason, []).append(f"`{kind}`")
    without = [f"| {', '.join(kinds)} | {reason} |" for reason, kinds in sorted(why.items())]
    return "\n".join([HEAD, COLUMNS + "\n".join(rows), "", LAST + "\n".join(without)]) + "\n"


if __name__ == "__main__":
    PATH.write_text(page())
